// SPDX-License-Identifier: Apache-2.0
//
// RunSimulation: a plan on a modelled cluster, preposted, CPU-driven or both: what simulate prints,
// and compare of the virtual clock.
#ifndef PREPOST_TOOLS_SIMULATION_RUN_H_
#define PREPOST_TOOLS_SIMULATION_RUN_H_

#include <cstdint>
#include <vector>

#include "prepost/backends/emulated/host_costs.h"
#include "prepost/backends/emulated/profile.h"
#include "prepost/backends/emulated/virtual_hosts.h"
#include "prepost/backends/emulated/virtual_offload.h"
#include "prepost/backends/nic/lower.h"
#include "prepost/ir/status.h"
#include "prepost/runtime/wait_policy.h"
#include "tools/simulation.h"

namespace prepost::tools {

struct SimulationOptions {
  bool is_offload = true;
  bool is_cpu = true;
  nic::LowerOptions lower = {};
  WaitMode wait = WaitMode::kHybrid;
  std::vector<emulated::HostDelay> delays = {};
  std::vector<emulated::HostNeighbours> neighbours = {};
  bool copies_first_block = false;  ///< CPU-driven hosts, as RDMC's
  bool has_trail = false;           ///< notes what time goes to
  bool is_quiet = false;            ///< no progress
};

/// What a run on the cluster of `profile` is told, but for a trail.
emulated::VirtualOffloadOptions OffloadOptionsOf(const SimulationOptions& options,
                                                 const emulated::Profile& profile, uint64_t seed);
emulated::VirtualHostsOptions HostsOptionsOf(const SimulationOptions& options,
                                             const emulated::Profile& profile, uint64_t seed);

/// Fills in what ran. `simulation` has the plan, the profile, the network and the seed. Errors:
/// those of the runs.
Status RunSimulation(const SimulationOptions& options, Simulation* simulation);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_SIMULATION_RUN_H_
