// SPDX-License-Identifier: Apache-2.0
//
// Simulation: one multicast or several on a modelled cluster, preposted, CPU-driven or both, and
// what came out: times, what hosts did, what links carried. simulation_run.h fills it in,
// planning/simulation/simulation_report.h prints it. Every figure is modelled.
#ifndef PREPOST_SIM_SIMULATION_H_
#define PREPOST_SIM_SIMULATION_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/analysis/network.h"
#include "ir/plan.h"
#include "ir/verify/verify.h"
#include "sim/causes/time_trail.h"
#include "sim/cluster/profile.h"
#include "sim/runs/cpu_driven.h"
#include "sim/runs/group.h"
#include "sim/runs/preposted.h"

namespace prepost::sim {

/// Of all groups together: blocks and credits on their way to a node, as many as one plan may have
/// (CheckTransfers()). All of their queues are in memory at once.
inline constexpr uint64_t kGroupTransfersMax = uint64_t{1} << 27;

/// The same plan `count` times: node i of group g is host (i + g) mod n (RDMC's figure 10).
std::vector<Group> RotatedGroups(const VerifiedPlan& plan, uint32_t count);

/// When a group's nodes were done. A node has the message when its last block is there, and its
/// host knows later: CPU-driven when it has dealt with its last completion, preposted when it has
/// seen the final CQE; both wait for the acknowledgements of what the node has sent.
struct GroupTimes {
  Picoseconds start = 0;
  Picoseconds first = 0;       ///< of the nodes but the root: it has the message
  Picoseconds completion = 0;  ///< all nodes have it
  Picoseconds known = 0;       ///< all hosts know
  Picoseconds root_known = 0;
  Picoseconds end = 0;                     ///< the last final CQE, or the last host is through
  Picoseconds doorbells = 0;               ///< preposted: the last NIC knows of its doorbells
  std::vector<Picoseconds> received = {};  ///< by node; the root's is the start
  std::vector<Picoseconds> ends = {};      ///< by node: its final CQE, or its host is through
  std::vector<Picoseconds> knows = {};     ///< by node: its host

  Picoseconds latency() const { return completion - start; }
  Picoseconds skew() const { return completion - first; }
  /// Preposted, from the last doorbell to the last final CQE: what hosts have no part in.
  Picoseconds offload() const { return end - doorbells; }
};

/// What an executor took.
struct RunTimes {
  std::vector<GroupTimes> groups;
  Picoseconds completion = 0;  ///< all groups' nodes have their messages
  Picoseconds known = 0;       ///< and all hosts know
  Picoseconds end = 0;         ///< the last group's

  /// The largest of a group.
  Picoseconds skew() const {
    Picoseconds most = 0;
    for (const GroupTimes& group : groups) most = std::max(most, group.skew());
    return most;
  }
};

/// Hosts that a flag is for because they were drawn.
struct DrawnHosts {
  std::string flag;  ///< "--slow hosts=4,factor=0.5"
  std::vector<NodeId> hosts;
};

struct Simulation {
  std::vector<Group> groups;
  bool is_of_groups = false;   ///< reported per group, also if it is one: --groups, --workload
  const Plan* plan = nullptr;  ///< of all groups, if it is one; not owned
  std::string workload = {};   ///< its name, else
  const Profile& profile;
  std::string profile_path;
  std::string command;                       ///< that makes it
  std::vector<std::string> deviations = {};  ///< from the profile: "--set host.poll=1us"
  std::vector<DrawnHosts> drawn_hosts = {};
  Network network;
  uint64_t seed = 0;
  std::string mode = {};  ///< of the lowering: "inline"
  std::string wait = {};  ///< of hosts, whichever executor's: "hybrid"
  std::optional<PrepostedResult> offload = {};
  std::optional<CpuDrivenResult> cpu = {};
  RunTimes offload_times = {};  ///< of what ran, as the next
  RunTimes cpu_times = {};
  /// What time went to; null where it is not asked for.
  std::unique_ptr<TimeTrail> offload_trail = {};  ///< or a trace is
  std::unique_ptr<TimeTrail> cpu_trail = {};
  bool has_causes = false;  ///< what time went to is reported
  double bound = 0;         ///< BoundOf()
};

/// Seconds that all groups together need at least: each by itself, by BoundNetwork(), and of each
/// port the bytes that it must carry, and a latency; 0 of one node.
double BoundOf(const Simulation& it);

RunTimes TimesOf(const Simulation& it, const PrepostedResult& run);
RunTimes TimesOf(const Simulation& it, const CpuDrivenResult& run);

/// CPU-driven over preposted, of what both have: until all nodes have the message, and until all
/// hosts know; 0 where not both ran, or nothing is sent.
struct Gain {
  double completion = 0;
  double known = 0;
};
Gain GainOf(const Simulation& it);
/// Whether a run waits for the barrier before it starts. Preposted queues do: hosts arm them and
/// start them together. CPU-driven hosts do only where no credit says that receives are posted:
/// ready mode barrier.
bool NeedsBarrier(const Simulation& it, bool is_offload);
/// As GainOf(), with BarrierSeconds() before each that needs it. None where that is not known or
/// nothing is sent, nor of a workload, whose groups start when they may.
std::optional<Gain> GainWithBarrier(const Simulation& it);

/// What hosts of preposted queues do: one, or all together.
struct PrepostedWork {
  uint64_t posts_before = 0;     ///< WQEs that stand in the first rings
  uint64_t posts = 0;            ///< into rings that are re-armed
  uint64_t doorbells = 0;        ///< from the start on
  uint64_t doorbells_later = 0;  ///< of these, for rings that are re-armed
  uint64_t rearms = 0;
  uint64_t completions = 0;  ///< CQEs read
  uint64_t wakeups = 0;
  double arming_seconds = 0;    ///< before the start
  double rearming_seconds = 0;  ///< on the way
  /// From the start on: polls, CQEs and rearming. Only the last takes time in the run.
  double busy_seconds = 0;

  void Add(const PrepostedWork& other);
};
PrepostedWork WorkOf(const Simulation& it, const PrepostedResult::Node& node);
/// All hosts of all groups.
PrepostedWork WorkOf(const Simulation& it, const PrepostedResult& run);
HostWork WorkOf(const CpuDrivenResult& run);
/// What CPU-driven hosts post when they arm: receives that no credit grants. Of a node, and of all.
uint64_t PostsBefore(const Simulation& it, const CpuDrivenResult& run, size_t group, NodeId node);
uint64_t PostsBefore(const Simulation& it, const CpuDrivenResult& run);

/// The host that arms for longest, for all its groups: preposted all queues, CPU-driven
/// PostsBefore().
double ArmingSeconds(const Simulation& it, const PrepostedResult& run);
double ArmingSeconds(const Simulation& it, const CpuDrivenResult& run);
/// From when all hosts of a group have armed until the last is let go, of the group for which that
/// is longest: all report up a tree to the leader, at the root, and hear it down the same tree;
/// each takes one message after the other, and writes one after the other
/// (runtime/group/gate_tree.h). None: the profile does not say what it takes.
std::optional<double> BarrierSeconds(const Simulation& it);
/// Of the host that knows last: from its final CQE until it does.
double DetectionSeconds(const Simulation& it);

double ToSeconds(Picoseconds time);

}  // namespace prepost::sim

#endif  // PREPOST_SIM_SIMULATION_H_
