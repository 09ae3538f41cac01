// SPDX-License-Identifier: Apache-2.0
//
// RunPreposted: the offload executor in virtual time. The emulated NICs execute the very bytes
// that they would in a real run, on a modelled network (docs/simulate.md); a payload is a tag
// per block, checked on delivery. All that it reports is modelled.
//
// Hosts do what they do in a real run: arm, ring, and wait for the final completion. Where rings
// are re-armed, they see that one is free, and write it, as hosts of the model do
// (docs/simulate.md). Several groups may go at once, each with its own queues and memory, and share
// NICs, links and cores.
#ifndef PREPOST_SIM_RUNS_PREPOSTED_H_
#define PREPOST_SIM_RUNS_PREPOSTED_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "backends/emulated/engine.h"
#include "backends/nic/program/lower.h"
#include "ir/analysis/network.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "ir/verify/verify.h"
#include "runtime/base/checkpoint.h"
#include "runtime/executor/wait_policy.h"
#include "sim/causes/time_trail.h"
#include "sim/hosts/host_costs.h"
#include "sim/network/fluid_network.h"
#include "sim/nics/time.h"
#include "sim/runs/group.h"

namespace prepost::sim {

/// What a run goes through, one after the other.
enum class RunStep : uint8_t {
  kLower,  ///< the plan becomes a queue program
  kMake,   ///< all nodes' queues are made and connected
  kArm,    ///< they are filled, and what stands in them is validated
  kRun,    ///< virtual time passes
  kCheck   ///< hosts read their CQEs, and all blocks are searched for
};
inline constexpr std::array<std::string_view, 5> kRunStepNames = {"lower", "make", "arm", "run",
                                                                  "check"};

struct PrepostedOptions {
  NicCosts costs = {};
  HostCosts host = {};  ///< what comes once per message, and TCP, are not of preposted hosts
  WaitMode wait = WaitMode::kInterrupt;
  // What keeps hosts from writing rings again.
  std::vector<HostDelay> delays = {};
  // Of these hosts, rising; of the others, `host` says.
  std::vector<HostPreemptions> preemptions = {};
  std::vector<HostNeighbours> neighbours = {};
  uint64_t seed = 1;  ///< of preemptions
  nic::LowerOptions lower = {};
  bool validate = true;  ///< what is armed, as a real run does before it rings
  /// Completion queues hold a whole message, and hosts read them all at the end, as in a real run.
  /// False, for large plans: all but those that hosts read on the way hold one CQE, and the queue
  /// program is freed as rings are filled, if the run has made it for one group alone, which
  /// starts at 0; what malloc has free, of the whole process, then goes back to the system now and
  /// then. Stuck reports carry less detail then.
  bool keep_cqes = true;
  /// Whether the engine prefetches, which changes nothing but how long the run takes; unset: with
  /// many hosts.
  std::optional<bool> prefetches = {};
  Checkpoint checkpoint = {};  ///< called now and then; may be empty
  /// Records all that takes time, and changes nothing; may be null. Not owned, and empty before.
  TimeTrail* trail = nullptr;
  std::function<void(RunStep)> done = {};  ///< called at each step's end; may be empty
};

/// Times count from the start of the clock, when every node of a group that starts at 0 is armed
/// and rings its first doorbell. A node has the message when its last block is there; its final CQE
/// comes when its own sends are acknowledged, too, which is later at the root and at nodes that
/// pass blocks on.
struct PrepostedResult {
  struct Node {
    Picoseconds doorbells = 0;   ///< the NIC knows of the first ring of every queue
    Picoseconds received = 0;    ///< its last block is there; 0 of the root
    Picoseconds completion = 0;  ///< the final CQE
    uint64_t wqes = 0;           ///< in its rings when it starts
    uint64_t rings = 0;          ///< doorbells that start it
    uint64_t rearms = 0;         ///< parts of rings re-armed
    uint64_t wqes_later = 0;     ///< in those
    uint64_t rings_later = 0;    ///< doorbells for them
    Picoseconds rearming = 0;    ///< its host has spent on writing them
    Picoseconds delayed = 0;     ///< of that and of polls, by delays, preemptions and neighbours
    uint64_t polls = 0;          ///< of its host, that a CQE brought about
    uint64_t wakeups = 0;        ///< those that found it asleep
    uint64_t completions = 0;    ///< CQEs that its host has read, the final one among them
    bool ends_asleep = false;    ///< its host slept when the final CQE came
    /// Its host has seen the final CQE, and dealt with it; nothing keeps it from that.
    Picoseconds known = 0;
  };
  struct Group {
    std::vector<Node> nodes;     ///< by node of the plan
    Picoseconds start = 0;       ///< its hosts rang their first doorbells
    Picoseconds doorbells = 0;   ///< the last node's
    Picoseconds completion = 0;  ///< the last node's
    Picoseconds known = 0;       ///< by the last host
  };
  std::vector<Group> groups;
  std::vector<UsedLink> links;  ///< those that carried something, by kind and index
  emulated::EngineCounters counters;
};

/// Lowers the plans of all `groups`, each once however many have it, and runs them on one
/// `network`. Errors (kRejected): a plan that does not fit the profile, a network that cannot be
/// modelled, costs that are negative, timers of 0, what CheckGroups() finds; a run that is stuck,
/// fails or delivers something else than the message; those of `checkpoint`; kEnvironment: no
/// memory. Memory: the plans, their queue programs and rings.
Result<PrepostedResult> RunPreposted(std::span<const Group> groups, const Network& network,
                                     const PrepostedOptions& options = {});

/// The same for programs that exist: by group, all nodes' of its plan, in the order of node ids.
Result<PrepostedResult> RunPreposted(std::span<const Group> groups,
                                     std::span<const nic::QueueProgram* const> programs,
                                     const Network& network, const PrepostedOptions& options = {});

}  // namespace prepost::sim

#endif  // PREPOST_SIM_RUNS_PREPOSTED_H_
