// SPDX-License-Identifier: Apache-2.0
//
// RunCpuDriven: CPU-driven transfers in virtual time. Real executors over real endpoints of
// emulated NICs, which run on a modelled network; what their hosts do takes the time that HostCosts
// says (docs/simulate.md). Several groups may go at once, and share links, NICs and cores. All that
// it reports is modelled.
#ifndef PREPOST_SIM_RUNS_CPU_DRIVEN_H_
#define PREPOST_SIM_RUNS_CPU_DRIVEN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "backends/emulated/engine.h"
#include "ir/analysis/network.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "runtime/base/checkpoint.h"
#include "runtime/executor/wait_policy.h"
#include "sim/causes/time_trail.h"
#include "sim/hosts/host_costs.h"
#include "sim/hosts/host_thread.h"
#include "sim/network/fluid_network.h"
#include "sim/nics/time.h"
#include "sim/runs/group.h"
#include "sim/runs/preposted.h"

namespace prepost::sim {

struct CpuDrivenOptions {
  NicCosts nic = {};
  HostCosts host = {};
  WaitMode wait = WaitMode::kPolling;
  std::vector<HostDelay> delays = {};
  // Of these hosts, rising; of the others, `host` says.
  std::vector<HostPreemptions> preemptions = {};
  std::vector<HostNeighbours> neighbours = {};
  uint64_t seed = 1;  ///< of preemptions and of packets that are lost
  uint32_t ring_wqes_max = nic::DeviceEndpointConfig().ring_wqes_max;
  /// Rings of plans with windows are as long as those can use; that changes nothing but memory.
  bool rings_by_window = true;
  /// Whether the engine prefetches, which changes nothing but how long the run takes; unset: with
  /// many hosts.
  std::optional<bool> prefetches = {};
  Checkpoint checkpoint = {};  ///< called now and then; may be empty
  /// Called at the end of kMake, with which hosts have armed, kRun and kCheck; may be empty.
  std::function<void(RunStep)> done = {};
  /// Records all that takes time, and changes nothing; may be null. Not owned, and empty before.
  TimeTrail* trail = nullptr;
};

/// Times count from the start of the clock.
struct CpuDrivenResult {
  struct Node {
    /// Its last block is there, seen or not, or combined; 0 of a multicast's root.
    Picoseconds received = 0;
    Picoseconds completion = 0;  ///< its host has dealt with its last completion
    HostWork work;
  };
  struct Group {
    std::vector<Node> nodes;     ///< by node of the plan
    Picoseconds start = 0;       ///< when its threads began
    Picoseconds completion = 0;  ///< the last node's
  };
  struct Host {
    Picoseconds busy = 0;     ///< of all its cores
    Picoseconds delayed = 0;  ///< of its work, by delays and preemptions
  };
  std::vector<Group> groups;
  std::vector<Host> hosts;
  std::vector<UsedLink> links;  ///< those that carried something, by kind and index
  emulated::EngineCounters counters;
};

/// Runs all `groups` on one `network`. Errors (kRejected): a network, costs or delays that cannot
/// be modelled, what CheckGroups() finds, what endpoints refuse; a run that is stuck or fails;
/// those of `checkpoint`; kEnvironment: no memory.
Result<CpuDrivenResult> RunCpuDriven(std::span<const Group> groups, const Network& network,
                                     const CpuDrivenOptions& options = {});

}  // namespace prepost::sim

#endif  // PREPOST_SIM_RUNS_CPU_DRIVEN_H_
