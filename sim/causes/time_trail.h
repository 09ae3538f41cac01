// SPDX-License-Identifier: Apache-2.0
//
// TimeTrail: an observer of a run in virtual time. It notes for each thing that takes time its
// predecessor: a step from one point in time to a later one, with its cause. Steps are links of
// chains that end at the start of the run, so that whatever happens at some time is explained by
// causes that add up to it exactly (time_by_cause.h). And it notes when each message was on its
// way.
//
// The engine and the hosts of a run record what they do, if there is one
// (TimedEngineOptions::trail), and nothing depends on it. Of two things that something waited for,
// the one that came later counts; of two that came together, the one that it is about: a block
// before what stood before it in a queue.
#ifndef PREPOST_SIM_CAUSES_TIME_TRAIL_H_
#define PREPOST_SIM_CAUSES_TIME_TRAIL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/nic/program/pairing.h"
#include "ir/ids.h"
#include "ir/plan.h"
#include "sim/nics/time.h"

namespace prepost::sim {

/// What time goes to. docs/simulate.md has them in words.
enum class TimeCause : uint8_t {
  // A NIC.
  kDoorbell,     ///< from a host's write until its NIC knows
  kWqe,          ///< a send queue's, of a WQE other than WAIT
  kWait,         ///< a send queue's, of a WAIT whose CQE is there
  kCqe,          ///< until a CQE can be seen
  kRetry,        ///< of a message that found no receive
  kAcknowledge,  ///< until a sender's NIC knows that the message is there
  // The network.
  kWire,                ///< what the message takes on its links alone
  kSharing,             ///< what it takes longer, with others on the same links
  kOtherGroupsSharing,  ///< of that, what is of other groups: time_by_cause.h finds it in the end
  kLatency,
  // A host.
  kDetect,           ///< until a polling host polls again
  kInterrupt,        ///< until a sleeping host polls
  kPoll,             ///< a poll that finds something
  kCompletion,       ///< a block's
  kCredit,           ///< a credit's
  kPost,             ///< a send or receive
  kSetUp,            ///< once per message
  kCopy,             ///< of the first block
  kCombine,          ///< a block of another collective
  kPlace,            ///< copying such blocks to where they belong, or next to each other
  kSystem,           ///< calls, and copying to and from the kernel
  kStopped,          ///< a delay, a preemption or neighbours have its core
  kOtherGroupsCore,  ///< another group's thread has its core
  kRearm,            ///< of preposted queues: until a ring is re-armed
  // Others.
  kStart,  ///< a group starts after others, or later
  kOther   ///< nothing of these: the trail was lost
};
inline constexpr std::array<std::string_view, 26> kTimeCauseNames = {"doorbell",
                                                                     "wqe",
                                                                     "wait",
                                                                     "cqe",
                                                                     "rnr_retry",
                                                                     "acknowledgement",
                                                                     "wire",
                                                                     "sharing",
                                                                     "other_groups_sharing",
                                                                     "latency",
                                                                     "detection",
                                                                     "interrupt",
                                                                     "poll",
                                                                     "completion",
                                                                     "credit",
                                                                     "post",
                                                                     "set_up",
                                                                     "copy",
                                                                     "combine",
                                                                     "placing",
                                                                     "system_call",
                                                                     "stopped",
                                                                     "other_groups_core",
                                                                     "rearm",
                                                                     "start",
                                                                     "other"};
constexpr std::string_view Name(TimeCause cause) {
  return kTimeCauseNames[static_cast<size_t>(cause)];
}

using StepId = uint32_t;
using MessageId = uint32_t;
inline constexpr StepId kFirstStep = 0;  ///< time 0
inline constexpr MessageId kNoMessage = 0xffffffff;

struct TimeStep {
  Picoseconds at = 0;
  StepId before = kFirstStep;  ///< what it came after: the time since then went to `cause`
  MessageId message = kNoMessage;
  TimeCause cause = TimeCause::kStart;
};

inline constexpr Picoseconds kNotSeen = -1;

/// One send and its receive.
struct TimedMessage {
  uint32_t group = 0;
  NodeId from, to;  ///< nodes of the plan
  OpId send, receive;
  uint32_t block = kNoBlock;
  Picoseconds send_posted = kNotSeen;  ///< handed to the NIC; preposted: never seen
  Picoseconds receive_posted = kNotSeen;
  Picoseconds departed = kNotSeen;  ///< starts on the wire
  Picoseconds left = kNotSeen;
  Picoseconds arrived = kNotSeen;       ///< its last byte is there
  Picoseconds landed = kNotSeen;        ///< the receiver's CQE is there
  Picoseconds acknowledged = kNotSeen;  ///< the sender's NIC knows
  StepId departed_step = kFirstStep;
  StepId left_step = kFirstStep;
  StepId landed_step = kFirstStep;
};

/// One thread.
class TimeTrail {
 public:
  // Before the run.
  /// Of groups in their order. `plan` must outlive the trail.
  void AddGroup(const Plan& plan);
  /// Node `node` of the group that was added last has these QPs, on the NIC of `host`.
  void AddNode(NodeId host, NodeId node, std::span<const nic::OpenQp> qps);
  void SetCosts(const NicCosts& costs) { costs_ = costs; }

  // What NICs do, at `now`. A QP or CQ is that of `host` with this number.
  /// A doorbell that the host rings now will come at `at`.
  void Ring(NodeId host, Picoseconds now, Picoseconds at);
  /// The oldest of them has come, and is about this QP.
  void ReadDoorbell(NodeId host, uint32_t qpn);
  /// The send queue, which was at work until `until`, takes `cost` more.
  void QueueWork(NodeId host, uint32_t qpn, Picoseconds now, Picoseconds until, Picoseconds cost,
                 TimeCause cause);
  /// A WQE has been started.
  void Start(NodeId host, uint32_t qpn, uint16_t wqe_index, bool is_message, bool is_signaled);
  void Depart(NodeId host, uint32_t qpn, Picoseconds now);
  /// Alone it would have taken `alone`.
  void Leave(NodeId host, uint32_t qpn, Picoseconds now, Picoseconds alone);
  /// Messages of this QP that have left and not landed.
  size_t UnderWay(NodeId host, uint32_t qpn);
  void Land(NodeId host, uint32_t qpn, Picoseconds now, Picoseconds latency);
  void Retire(NodeId host, uint32_t qpn, uint16_t wqe_index, bool is_message, bool is_signaled,
              Picoseconds now);
  /// A CQE of what landed or retired last.
  void WriteCqe(NodeId host, uint32_t cqn);
  /// That CQE lets this send queue go on.
  void Wake(NodeId host, uint32_t qpn);
  /// SEND_EN on one queue, of another up to `limit`; and when that holds.
  void BeginEnable(NodeId host, uint32_t master, uint32_t target, uint16_t limit);
  void EndEnable(NodeId host, uint32_t target, uint16_t limit);

  // What hosts do.
  /// What follows is of the host, after `step`.
  void BeginHost(StepId step) { host_step_ = step; }
  StepId host_step() const { return host_step_; }
  /// The newest CQE that is there.
  StepId CqeStep(NodeId host, uint32_t cqn) const;
  /// Something that ends at `at`, and has taken all of the time since `before`.
  StepId Push(Picoseconds at, StepId before, TimeCause cause, MessageId message = kNoMessage);
  /// A step that is work of a node's host, which it does once per message.
  void NoteOnce(uint32_t group, NodeId node, StepId step);
  void Post(uint32_t group, NodeId node, OpId op, Picoseconds now);
  /// Of a node's host, which slept until `at`.
  void NoteWakeup(uint32_t group, NodeId node, Picoseconds at) {
    groups_[group].wakeups[node.index()].push_back(at);
  }
  /// A node's host has combined a block, or put one into its place, at the end of `step`: the last.
  void NoteResult(uint32_t group, NodeId node, StepId step) {
    groups_[group].results[node.index()] = step;
  }
  /// The group's hosts start.
  void StartGroup(uint32_t group, StepId step) { groups_[group].start = step; }
  /// The node's end, and when its host knows of it.
  void End(uint32_t group, NodeId node, StepId step, StepId known);

  // After the run.
  std::span<const TimeStep> steps() const { return steps_; }
  const TimeStep& step(StepId id) const { return steps_[id]; }
  std::span<const TimedMessage> messages() const { return messages_; }
  /// Those that the node sends or receives, in the order of its ops.
  std::span<const MessageId> MessagesOf(uint32_t group, NodeId node) const;
  MessageId MessageOf(uint32_t group, NodeId node, OpId op) const {
    return MessagesOf(group, node)[op.index()];
  }
  std::span<const StepId> OnceOf(uint32_t group, NodeId node) const {
    return groups_[group].once[node.index()];
  }
  /// When the node's host woke up.
  std::span<const Picoseconds> WakeupsOf(uint32_t group, NodeId node) const {
    return groups_[group].wakeups[node.index()];
  }
  StepId StartOf(uint32_t group) const { return groups_[group].start; }
  StepId EndOf(uint32_t group, NodeId node) const { return groups_[group].ends[node.index()]; }
  StepId KnownOf(uint32_t group, NodeId node) const { return groups_[group].knows[node.index()]; }
  /// kFirstStep: there was none.
  StepId ResultOf(uint32_t group, NodeId node) const {
    return groups_[group].results[node.index()];
  }
  const Plan& plan(uint32_t group) const { return *groups_[group].plan; }
  uint32_t groups() const { return static_cast<uint32_t>(groups_.size()); }
  NodeId HostOf(uint32_t group, NodeId node) const { return groups_[group].hosts[node.index()]; }
  const NicCosts& costs() const { return costs_; }

 private:
  struct Group {
    const Plan* plan = nullptr;
    std::vector<MessageId> of_ops;    ///< as plan.ops()
    std::vector<uint32_t> op_begins;  ///< by node
    std::vector<uint32_t> op_counts;  ///< by node
    std::vector<MessageId> first;     ///< by channel
    std::vector<uint32_t> counts;     ///< by channel: messages
    std::vector<StepId> ends;         ///< by node
    std::vector<StepId> knows;        ///< by node: its host
    std::vector<StepId> results;      ///< by node: its host's last
    std::vector<NodeId> hosts;        ///< by node
    StepId start = kFirstStep;
    std::vector<std::vector<StepId>> once;          ///< by node
    std::vector<std::vector<Picoseconds>> wakeups;  ///< by node
  };
  struct Signaled {
    uint16_t wqe_index = 0;
    StepId step = kFirstStep;
  };
  struct Enable {
    uint16_t limit = 0;
    StepId step = kFirstStep;
  };
  struct Queue {
    MessageId first = kNoMessage;
    uint32_t count = 0;  ///< messages that it sends
    uint32_t started = 0, departed = 0, left = 0, landed = 0, retired = 0;
    StepId queue_step = kFirstStep;   ///< what it is through with
    StepId fetch_step = kFirstStep;   ///< what last let it go on
    StepId left_step = kFirstStep;    ///< of the last message that has left
    StepId landed_step = kFirstStep;  ///< of the last that has landed
    StepId retire_step = kFirstStep;
    std::deque<StepId> ready;       ///< of messages that have not departed
    std::deque<Signaled> signaled;  ///< started, not retired, no messages
    std::deque<Enable> enables;     ///< under way
  };

  static uint64_t KeyOf(NodeId host, uint32_t number) {
    return uint64_t{host.value} << 32 | number;
  }
  Queue& QueueOf(NodeId host, uint32_t qpn) { return queues_[KeyOf(host, qpn)]; }
  /// The one of these that is at `at`; else what leads there from the later one before, by `cause`.
  StepId AtTime(Picoseconds at, StepId first, StepId second, TimeCause cause,
                MessageId message = kNoMessage);
  /// The queue's next one of those counted so far by `count`; null if there is none.
  TimedMessage* Next(Queue& queue, uint32_t* count, MessageId* id);

  NicCosts costs_;
  std::vector<TimeStep> steps_ = {TimeStep()};
  std::vector<TimedMessage> messages_;
  std::vector<Group> groups_;
  std::map<Channel, size_t> channels_;  // of the last group
  std::unordered_map<uint64_t, Queue> queues_;
  std::unordered_map<uint64_t, StepId> cqes_;
  std::unordered_map<uint32_t, std::deque<StepId>> doorbells_;  // by host
  StepId host_step_ = kFirstStep;
  StepId cqe_step_ = kFirstStep;
};

}  // namespace prepost::sim

#endif  // PREPOST_SIM_CAUSES_TIME_TRAIL_H_
