// SPDX-License-Identifier: Apache-2.0
//
// RunSimulation: one multicast or several on a modelled cluster, preposted, CPU-driven or both:
// what simulate prints, and compare of the virtual clock.
#ifndef PREPOST_PLANNING_SIMULATION_SIMULATION_RUN_H_
#define PREPOST_PLANNING_SIMULATION_SIMULATION_RUN_H_

#include <vector>

#include "backends/nic/program/lower.h"
#include "ir/base/status.h"
#include "runtime/executor/wait_policy.h"
#include "sim/hosts/host_costs.h"
#include "sim/simulation.h"

namespace prepost {

struct SimulationOptions {
  bool is_offload = true;
  bool is_cpu = true;
  nic::LowerOptions lower = {};
  WaitMode wait = WaitMode::kHybrid;
  std::vector<sim::HostDelay> delays = {};
  std::vector<sim::HostPreemptions> preemptions = {};
  std::vector<sim::HostNeighbours> neighbours = {};
  bool copies_first_block = false;  ///< CPU-driven hosts, as RDMC's
  bool has_trail = false;           ///< notes what time goes to
  bool is_quiet = false;            ///< no progress
};

/// Fills in what ran. `simulation` has the groups, the profile, the network and the seed. Errors:
/// those of the runs.
Status RunSimulation(const SimulationOptions& options, sim::Simulation* simulation);

/// Why RunSimulation() has failed: the plan's fault, which is at `place`; or the cluster's, where
/// flags have changed that (`given`: "--slow 3=0.5"): theirs, kUsage. The cluster's are a network,
/// costs and noise that cannot be modelled, and times beyond what the clock can show.
Status FailureOf(const Status& status, const SimulationOptions& options,
                 const sim::Simulation& simulation, const std::vector<std::string>& given,
                 const std::string& place);

}  // namespace prepost

#endif  // PREPOST_PLANNING_SIMULATION_SIMULATION_RUN_H_
