// SPDX-License-Identifier: Apache-2.0
//
// The network under a plan, from a topology: for subcommands that measure plans on it.
#ifndef PREPOST_TOOLS_PLAN_NETWORK_H_
#define PREPOST_TOOLS_PLAN_NETWORK_H_

#include <cstdint>

#include "prepost/compiler/topology.h"
#include "prepost/ir/network.h"

namespace prepost::tools {

/// Node i is host i of the checked `topology`; hosts above are left out. Errors: kRejected, when
/// there are fewer.
Result<Network> NetworkOf(const Topology& topology, uint32_t nodes);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PLAN_NETWORK_H_
