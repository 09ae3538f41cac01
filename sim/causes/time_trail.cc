// SPDX-License-Identifier: Apache-2.0
//
// A message in steps, from a WAIT that names block b's CQE to the CQE at the next node, inline:
//
//     b's CQE --wait--> . --wqe--> ready --> departs --wire--> . --sharing--> left
//                                              |
//     the message before it on the QP has left +    (whichever came later)
//
//     left --latency--> arrived --cqe--> landed, its CQE
//
// What takes no time has no step. A QP's messages leave, land and retire in order, so the trail
// counts them and needs no names.
#include "sim/causes/time_trail.h"

#include <algorithm>

namespace prepost::sim {

void TimeTrail::AddGroup(const Plan& plan) {
  Group group;
  group.plan = &plan;
  const auto index = static_cast<uint32_t>(groups_.size());
  group.counts.resize(plan.channels().size());
  for (const Op& op : plan.ops()) {
    if (op.is_send()) ++group.counts[op.channel.index()];
  }
  auto next = static_cast<MessageId>(messages_.size());
  for (const uint32_t count : group.counts) {
    group.first.push_back(next);
    next += count;
  }
  messages_.resize(next);
  group.of_ops.resize(plan.ops().size());
  group.op_begins.resize(plan.header().nodes);
  group.op_counts.resize(plan.header().nodes);
  group.ends.resize(plan.header().nodes);
  group.knows.resize(plan.header().nodes);
  group.results.resize(plan.header().nodes, kFirstStep);
  group.hosts.resize(plan.header().nodes);
  group.once.resize(plan.header().nodes);
  group.wakeups.resize(plan.header().nodes);
  std::vector<uint32_t> sends(plan.channels().size()), receives(plan.channels().size());
  for (const Program& program : plan.programs()) {
    group.op_begins[program.node.index()] = program.op_begin;
    group.op_counts[program.node.index()] = program.op_count;
    const std::span<const Op> ops = plan.ops(program);
    for (uint32_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      const size_t channel = op.channel.index();
      const uint32_t ordinal = op.is_send() ? sends[channel]++ : receives[channel]++;
      const MessageId id = group.first[channel] + ordinal;
      group.of_ops[program.op_begin + i] = id;
      TimedMessage& message = messages_[id];
      (op.is_send() ? message.send : message.receive) = OpId(i);
      message.group = index;
      message.from = plan.channels()[channel].from;
      message.to = plan.channels()[channel].to;
      message.block = op.block;
    }
  }
  groups_.push_back(std::move(group));
  channels_.clear();
  for (size_t i = 0; i < plan.channels().size(); ++i) channels_[plan.channels()[i]] = i;
}

void TimeTrail::AddNode(NodeId host, NodeId node, std::span<const nic::OpenQp> qps) {
  Group& group = groups_.back();
  group.hosts[node.index()] = host;
  for (const nic::OpenQp& qp : qps) {
    const auto found = channels_.find({.from = node, .to = qp.peer, .lane = qp.lane});
    if (found == channels_.end()) continue;  // it only receives on it
    Queue& queue = QueueOf(host, qp.qpn);
    queue.first = group.first[found->second];
    queue.count = group.counts[found->second];
  }
}

StepId TimeTrail::Push(Picoseconds at, StepId before, TimeCause cause, MessageId message) {
  const Picoseconds from = steps_[before].at;
  if (at == from) return before;
  PREPOST_CHECK(at > from);
  steps_.push_back({at, before, message, cause});
  return static_cast<StepId>(steps_.size() - 1);
}

StepId TimeTrail::AtTime(Picoseconds at, StepId first, StepId second, TimeCause cause,
                         MessageId message) {
  // What is in the future has no part in it.
  const auto usable = [&](StepId step) { return steps_[step].at <= at ? step : kFirstStep; };
  const StepId a = usable(first), b = usable(second);
  return Push(at, steps_[b].at > steps_[a].at ? b : a, cause, message);
}

TimedMessage* TimeTrail::Next(Queue& queue, uint32_t* count, MessageId* id) {
  if (*count >= queue.count) return nullptr;
  *id = queue.first + (*count)++;
  return &messages_[*id];
}

void TimeTrail::Ring(NodeId host, Picoseconds now, Picoseconds at) {
  const StepId rung = AtTime(now, host_step_, host_step_, TimeCause::kRearm);
  doorbells_[host.value].push_back(Push(at, rung, TimeCause::kDoorbell));
}

void TimeTrail::ReadDoorbell(NodeId host, uint32_t qpn) {
  std::deque<StepId>& doorbells = doorbells_[host.value];
  if (doorbells.empty()) return;
  QueueOf(host, qpn).fetch_step = doorbells.front();
  doorbells.pop_front();
}

void TimeTrail::QueueWork(NodeId host, uint32_t qpn, Picoseconds now, Picoseconds until,
                          Picoseconds cost, TimeCause cause) {
  Queue& queue = QueueOf(host, qpn);
  const StepId begin = now >= until
                           ? AtTime(now, queue.fetch_step, queue.queue_step, TimeCause::kOther)
                           : AtTime(until, queue.queue_step, queue.queue_step, TimeCause::kOther);
  const MessageId message = queue.started < queue.count ? queue.first + queue.started : kNoMessage;
  queue.queue_step = Push(std::max(now, until) + cost, begin, cause, message);
}

void TimeTrail::Start(NodeId host, uint32_t qpn, uint16_t wqe_index, bool is_message,
                      bool is_signaled) {
  Queue& queue = QueueOf(host, qpn);
  if (is_message) {
    ++queue.started;
    queue.ready.push_back(queue.queue_step);
  } else if (is_signaled) {
    queue.signaled.push_back({wqe_index, queue.queue_step});
  }
}

void TimeTrail::Depart(NodeId host, uint32_t qpn, Picoseconds now) {
  Queue& queue = QueueOf(host, qpn);
  MessageId id = kNoMessage;
  TimedMessage* const message = Next(queue, &queue.departed, &id);
  if (message == nullptr || queue.ready.empty()) return;
  message->departed = now;
  message->departed_step = AtTime(now, queue.ready.front(), queue.left_step, TimeCause::kRetry, id);
  queue.ready.pop_front();
}

void TimeTrail::Leave(NodeId host, uint32_t qpn, Picoseconds now, Picoseconds alone) {
  Queue& queue = QueueOf(host, qpn);
  MessageId id = kNoMessage;
  TimedMessage* const message = Next(queue, &queue.left, &id);
  if (message == nullptr) return;
  message->left = now;
  const StepId wire = Push(std::min(now, After(message->departed, alone)), message->departed_step,
                           TimeCause::kWire, id);
  message->left_step = queue.left_step = Push(now, wire, TimeCause::kSharing, id);
}

size_t TimeTrail::UnderWay(NodeId host, uint32_t qpn) {
  const Queue& queue = QueueOf(host, qpn);
  return queue.left - queue.landed;
}

void TimeTrail::Land(NodeId host, uint32_t qpn, Picoseconds now, Picoseconds latency) {
  Queue& queue = QueueOf(host, qpn);
  MessageId id = kNoMessage;
  TimedMessage* const message = Next(queue, &queue.landed, &id);
  if (message == nullptr) return;
  message->arrived = std::min(now, message->left + latency);
  message->landed = now;
  const StepId arrived = Push(message->arrived, message->left_step, TimeCause::kLatency, id);
  message->landed_step = Push(now, arrived, TimeCause::kCqe, id);
  queue.landed_step = cqe_step_ = message->landed_step;
}

void TimeTrail::Retire(NodeId host, uint32_t qpn, uint16_t wqe_index, bool is_message,
                       bool is_signaled, Picoseconds now) {
  Queue& queue = QueueOf(host, qpn);
  MessageId id = kNoMessage;
  if (is_message) {
    TimedMessage* const message = Next(queue, &queue.retired, &id);
    if (message == nullptr) return;
    if (!is_signaled) return;
    message->acknowledged = now;
    queue.retire_step = cqe_step_ =
        AtTime(now, message->landed_step, queue.retire_step, TimeCause::kAcknowledge, id);
    return;
  }
  const auto found = std::ranges::find(queue.signaled, wqe_index, &Signaled::wqe_index);
  if (found == queue.signaled.end()) return;
  const Picoseconds seen = std::min(now, steps_[found->step].at + costs_.cqe);
  const StepId own =
      steps_[found->step].at > now ? kFirstStep : Push(seen, found->step, TimeCause::kCqe);
  queue.signaled.erase(queue.signaled.begin(), found + 1);
  // Or it had to wait for acknowledgements of what stands before it.
  const StepId held = steps_[queue.retire_step].at == now ? queue.retire_step : queue.landed_step;
  queue.retire_step = cqe_step_ = AtTime(now, own, held, TimeCause::kAcknowledge);
}

void TimeTrail::WriteCqe(NodeId host, uint32_t cqn) { cqes_[KeyOf(host, cqn)] = cqe_step_; }

void TimeTrail::Wake(NodeId host, uint32_t qpn) { QueueOf(host, qpn).fetch_step = cqe_step_; }

void TimeTrail::BeginEnable(NodeId host, uint32_t master, uint32_t target, uint16_t limit) {
  const StepId step = QueueOf(host, master).queue_step;
  QueueOf(host, target).enables.push_back({limit, step});
}

void TimeTrail::EndEnable(NodeId host, uint32_t target, uint16_t limit) {
  Queue& queue = QueueOf(host, target);
  const auto found = std::ranges::find(queue.enables, limit, &Enable::limit);
  if (found == queue.enables.end()) return;
  queue.fetch_step = found->step;
  queue.enables.erase(found);
}

StepId TimeTrail::CqeStep(NodeId host, uint32_t cqn) const {
  const auto found = cqes_.find(KeyOf(host, cqn));
  return found == cqes_.end() ? kFirstStep : found->second;
}

void TimeTrail::NoteOnce(uint32_t group, NodeId node, StepId step) {
  groups_[group].once[node.index()].push_back(step);
}

void TimeTrail::Post(uint32_t group, NodeId node, OpId op, Picoseconds now) {
  TimedMessage& message = messages_[MessageOf(group, node, op)];
  const Group& it = groups_[group];
  const bool is_send = it.plan->ops()[it.op_begins[node.index()] + op.index()].is_send();
  (is_send ? message.send_posted : message.receive_posted) = now;
}

void TimeTrail::End(uint32_t group, NodeId node, StepId step, StepId known) {
  groups_[group].ends[node.index()] = step;
  groups_[group].knows[node.index()] = known;
}

std::span<const MessageId> TimeTrail::MessagesOf(uint32_t group, NodeId node) const {
  const Group& it = groups_[group];
  return std::span(it.of_ops).subspan(it.op_begins[node.index()], it.op_counts[node.index()]);
}

}  // namespace prepost::sim
