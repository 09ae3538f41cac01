// SPDX-License-Identifier: Apache-2.0
//
// What a profile says, in the terms of the model of virtual time: picoseconds.
#ifndef PREPOST_SIM_PROFILE_COSTS_H_
#define PREPOST_SIM_PROFILE_COSTS_H_

#include "sim/host_costs.h"
#include "sim/profile.h"
#include "sim/time.h"

namespace prepost::sim {

/// To the nearest picosecond. The timers of retries are not a cluster's, but what our QPs ask for:
/// they keep their defaults.
NicCosts NicCostsOf(const NicProfile& profile);

/// The same of hosts and, on a TCP cluster, of what they do besides. A message's first block is not
/// copied: our hosts do not; RDMC's copy at `profile.host.copy_rate`, which the caller may set.
HostCosts HostCostsOf(const Profile& profile);

}  // namespace prepost::sim

#endif  // PREPOST_SIM_PROFILE_COSTS_H_
