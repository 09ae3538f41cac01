// SPDX-License-Identifier: Apache-2.0
//
// PrepostedRun: one run of several groups, preposted, in virtual time. For preposted.cc, which has
// the run itself, and preposted_rearm.cc, where hosts write rings again.
#ifndef PREPOST_SIM_RUNS_PREPOSTED_RUN_H_
#define PREPOST_SIM_RUNS_PREPOSTED_RUN_H_

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backends/local/armed_group.h"
#include "backends/nic/host/armed_node.h"
#include "backends/nic/host/preposted_host.h"
#include "backends/nic/host/queue_feed.h"
#include "backends/nic/program/queue_program.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "runtime/base/mapping.h"
#include "sim/causes/time_trail.h"
#include "sim/clock/clock.h"
#include "sim/hosts/host_core.h"
#include "sim/hosts/host_costs.h"
#include "sim/network/fluid_network.h"
#include "sim/nics/time.h"
#include "sim/runs/cluster.h"
#include "sim/runs/group.h"
#include "sim/runs/preposted.h"

namespace prepost::sim {

/// Of so many hosts the memory mostly stays in the cache, as measured.
inline constexpr uint32_t kCachedNics = 48;

/// One run of several groups: arm, start, let time pass, check.
class PrepostedRun final : private TimeHandler {
 public:
  PrepostedRun(std::span<const Group> groups, FluidNetwork network, uint32_t hosts,
               const PrepostedOptions& options)
      : groups_(groups),
        options_(options),
        polling_(PollingTime(options.wait, options.host)),
        cluster_(std::move(network), hosts,
                 {.costs = options.costs,
                  .trail = options.trail,
                  .prefetches = options.prefetches,
                  .cached_hosts = kCachedNics}),
        nodes_at_(hosts),
        node_of_cq_(hosts),
        after_(GroupsAfter(groups)),
        left_(groups.size()),
        cores_(hosts),
        threads_(hosts) {}

  static HostNoise NoiseOf(const PrepostedOptions& options) {
    return {.delays = options.delays,
            .preemptions = options.preemptions,
            .neighbours = options.neighbours,
            .seed = options.seed};
  }

  Status Make(std::span<const nic::QueueProgram* const> programs);
  /// Arms and validates all nodes, one after the other, and rings the doorbells of those that start
  /// at 0. No NIC reads them before time passes. `released`: may be null; the program, of one
  /// group, of which each node's part goes as soon as its bytes stand in rings that are not written
  /// again.
  Status Start(nic::QueueProgram* released);
  Status Run();
  /// After the end: is everything where it should be?
  Status CheckAll();
  PrepostedResult TakeResult();

 private:
  /// A node's thread, as far as rings are to be re-armed: idle until a CQE shows that there is
  /// room, then due to poll, and then at work on what it has found. What it writes is in the rings
  /// when it is through.
  struct Rearming {
    enum class State : uint8_t { kIdle, kDue, kWorking };

    State state = State::kIdle;
    HostCore* core = nullptr;  ///< null: there is nothing to write
    Picoseconds until = 0;
    uint64_t cqes = 0;            ///< that it has dealt with
    nic::QueueFeed::Count count;  ///< WQEs that it writes
    StepId step = kFirstStep;     ///< of the trail: what it has done last
    Picoseconds polled_at = 0;    ///< when the host polled last, or started
  };

  /// A group, its queues, and how far it is.
  struct RunningGroup {
    const Group* group = nullptr;
    Mapping addresses;  // every node's message is here, as far as addresses go
    std::vector<std::span<std::byte>> buffers;
    std::array<local::MessageBuffers, 1> transfers;
    std::optional<local::ArmedGroup> armed;
    std::vector<nic::PrepostedHost> hosts;  // by node, as the next
    std::vector<Rearming> rearming;
    size_t left = 0;                 // nodes
    Picoseconds known = 0;           // by those hosts that are done
    StepId start_step = kFirstStep;  // of the trail: what its start comes after
    StepId known_step = kFirstStep;  // at `known`
  };

  /// A node of a group.
  struct Member {
    uint32_t group = 0;
    NodeId node;
  };

  /// Of several groups an error says which one has it.
  Status InGroup(uint32_t index, Status status) const;
  Status MakeGroup(const nic::QueueProgram& program, RunningGroup* it);
  /// Which events are whose.
  void NoteNodes(uint32_t index);
  void Observe(uint32_t index);
  Status ArmGroup(uint32_t index, nic::QueueProgram* released);
  /// Now.
  void StartGroup(uint32_t index);
  /// As soon as all hosts of the one before it, `before`, know that that is over.
  void StartAfter(const RunningGroup& before, uint32_t index);
  /// Hands its first doorbells to its NIC; when they come there is known.
  void StartNode(uint32_t index, nic::PrepostedHost& host);

  enum What : uint32_t { kStartDue, kHostDue };
  void OnTime(const TimedEvent& event) override;

  Rearming& RearmingOf(const Member& member) {
    return running_[member.group].rearming[member.node.index()];
  }
  nic::PrepostedHost& HostOf(const Member& member) {
    return running_[member.group].hosts[member.node.index()];
  }
  nic::ArmedNode& NodeOf(const Member& member) { return HostOf(member).node(); }

  // preposted_rearm.cc.
  HostCore& CoreFor(size_t host, size_t index);
  void ScheduleHost(Picoseconds at, const Member& member);
  /// Of a thread that has polled, or is at work, until `until`; one that polls counts as a poller.
  void StayAwake(Picoseconds until, HostCore* core) const;
  /// A host's work is over; until it knows it polls for its final CQE.
  void LeaveCore(const PrepostedResult::Node& node, HostCore* core) const;
  /// A CQE is there. True: its host sleeps.
  bool NotePoll(const Member& member);
  /// There is a CQE for a host that has rings to write; it polls when it sees that.
  Status BeginPoll(const Member& member);
  /// As soon as the core is there, and free.
  Status PollWhenFree(const Member& member);
  /// Takes `cost`, and deals with all that is there by now and that it has not begun with yet.
  Status Work(const Member& member, Picoseconds cost);
  Status EndWork(const Member& member);
  /// Its time has come. What has become free while it was at work, it writes as well.
  Status GoOn(const Member& member);

  // preposted.cc again.
  Status TakeEvent(const CqEvent& event);
  Status TakeEvent(const Member& member, std::span<const nic::ErrorEvent> errors);
  Status TakeEvents(const Member& member, std::span<const nic::ErrorEvent> errors);
  /// A node has its final CQE now: when its host knows.
  void NoteEnd(const Member& member, PrepostedResult::Node* node);
  /// The first group that is not through.
  Status Stuck();
  Status CauseOf(RunningGroup& group, const Status& seen);

  const std::span<const Group> groups_;
  const PrepostedOptions& options_;
  const Picoseconds polling_;  // of hosts that write rings again
  Cluster cluster_;
  std::deque<RunningGroup> running_;                // by group; use all of the above
  std::vector<std::vector<Member>> nodes_at_;       // by host
  std::vector<std::vector<Member>> node_of_cq_;     // by host, by number from the first on
  const std::vector<std::vector<uint32_t>> after_;  // by group: who starts when it is complete
  size_t left_;                                     // groups
  std::vector<Member> due_;                         // their time has come
  std::vector<std::deque<HostCore>> cores_;         // by host
  std::vector<size_t> threads_;                     // by host: nodes of all groups
  bool can_report_ = true;                          // the whole queue program is there
  PrepostedResult result_;
};

}  // namespace prepost::sim

#endif  // PREPOST_SIM_RUNS_PREPOSTED_RUN_H_
