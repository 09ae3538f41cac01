// SPDX-License-Identifier: Apache-2.0
//
// Dependency counting. pending_[s] of a send s is the number of ops in its `after` that have not
// completed, plus one while the send before it on its channel has not started (the channel order of
// the plan). Whoever brings a counter to zero puts the send into the ready ring, and StartReady()
// empties the ring.
//
// Example: n = 4, k = 2, binomial pipeline without credits, node 1 (the plan is in docs/plan.md):
//     op 0 recv 0>1:0    op 1 send 1>3:0 after 0    op 2 recv 3>1:1 ...
// Arm() posts ops 0 and 2. pending_[1] is 1; when op 0 completes it becomes 0, and op 1 starts.
//
// With credits, a credit's send posts the receives that it grants right before it starts. So a node
// has at most W block receives open in window mode (RDMC has the same limit), and never one more
// than it has announced.
//
// Cost: O(ops + after entries) in all; each completion costs its successors.
#include "prepost/runtime/executor.h"

#include <fmt/format.h>

#include <iterator>
#include <unordered_map>

#include "prepost/runtime/program.h"

namespace prepost {

CpuExecutor::CpuExecutor(const Plan& plan, NodeId node, Endpoint& endpoint, OpObserver observer)
    : plan_(plan),
      program_(ProgramOf(plan, node)),
      ops_(plan.ops(program_)),
      endpoint_(endpoint),
      observer_(std::move(observer)) {
  report_.node = node;
  if (observer_) {
    endpoint_.ObserveArrivals([this](OpId op) { Observe(op.value, OpEvent::Kind::kStart); });
  }
}

void CpuExecutor::Prepare(const NodeMemory& memory) {
  memory_ = memory;
  open_ops_ = ops_.size();
  state_.assign(ops_.size(), State::kWaiting);
  pending_.assign(ops_.size(), 0);
  next_on_channel_.assign(ops_.size(), kNone);
  first_granted_.assign(ops_.size(), kNone);
  ready_.reserve(ops_.size());
  LinkChannels();
  LinkSuccessors();
  if (plan_.header().ready.has_credits()) LinkGrants();
}

void CpuExecutor::LinkChannels() {
  std::vector<uint32_t> last(plan_.channels().size(), kNone);
  for (uint32_t id = 0; id < ops_.size(); ++id) {
    uint32_t& before = last[ops_[id].channel.index()];
    if (before != kNone) {
      next_on_channel_[before] = id;
      if (ops_[id].is_send()) ++pending_[id];
    }
    before = id;
  }
}

void CpuExecutor::LinkSuccessors() {
  successor_begin_.assign(ops_.size() + 1, 0);
  for (const Op& op : ops_) {
    for (OpId before : plan_.after(op)) ++successor_begin_[before.index() + 1];
  }
  for (size_t i = 1; i < successor_begin_.size(); ++i)
    successor_begin_[i] += successor_begin_[i - 1];
  successors_.resize(successor_begin_.back());
  std::vector<uint32_t> fill(successor_begin_.begin(), successor_begin_.end() - 1);
  for (uint32_t id = 0; id < ops_.size(); ++id) {
    pending_[id] += ops_[id].after_count;
    for (OpId before : plan_.after(ops_[id])) successors_[fill[before.index()]++] = id;
  }
}

void CpuExecutor::LinkGrants() {
  std::unordered_map<uint32_t, uint32_t>
      next_from;  // peer -> the first of its block receives not yet granted
  for (uint32_t id = 0; id < ops_.size(); ++id) {
    const Op& op = ops_[id];
    if (op.is_send() || op.is_credit()) continue;
    next_from.try_emplace(plan_.channels()[op.channel.index()].from.value, id);
  }
  for (uint32_t id = 0; id < ops_.size(); ++id) {
    const Op& op = ops_[id];
    if (!op.is_send() || !op.is_credit()) continue;
    const auto next = next_from.find(plan_.channels()[op.channel.index()].to.value);
    PREPOST_CHECK(next != next_from.end());
    first_granted_[id] = next->second;
    for (uint32_t i = 0; i < op.grants; ++i) {
      PREPOST_CHECK(next->second != kNone);
      next->second = next_on_channel_[next->second];
    }
  }
}

void CpuExecutor::Arm() {
  const bool credits = plan_.header().ready.has_credits();
  for (uint32_t id = 0; id < ops_.size(); ++id) {
    if (!ops_[id].is_send() && (ops_[id].is_credit() || !credits)) PostRecv(id);
  }
}

void CpuExecutor::Start() {
  started_ = true;
  for (uint32_t id = 0; id < ops_.size(); ++id) {
    if (ops_[id].is_send() && pending_[id] == 0) ready_.push_back(id);
  }
  StartReady();
}

Status CpuExecutor::Poll(std::chrono::milliseconds timeout) {
  Result<PollOutcome> outcome = endpoint_.Poll(completed_, timeout);
  if (!outcome.ok()) return outcome.status();
  woken_ = outcome->woken;
  for (size_t i = 0; i < outcome->completed; ++i) Complete(completed_[i]);
  StartReady();
  return open_ops_ == 0 ? endpoint_.Flush() : Status();
}

void CpuExecutor::Complete(OpId id) {
  const Op& op = ops_[id.index()];
  PREPOST_CHECK(state_[id.index()] == State::kStarted);
  state_[id.index()] = State::kCompleted;
  --open_ops_;
  ++report_.host_completions;
  if (!op.is_send() && !op.is_credit()) {
    report_.bytes_received += plan_.header().message.BlockSize(op.block);
  }
  Observe(id.value, OpEvent::Kind::kComplete);
  for (uint32_t i = successor_begin_[id.index()]; i < successor_begin_[id.index() + 1]; ++i) {
    Release(successors_[i]);
  }
}

void CpuExecutor::Release(uint32_t op) {
  PREPOST_CHECK(pending_[op] > 0);
  if (--pending_[op] == 0) ready_.push_back(op);
}

void CpuExecutor::StartReady() {
  while (ready_begin_ < ready_.size()) StartSend(ready_[ready_begin_++]);
}

void CpuExecutor::StartSend(uint32_t id) {
  const Op& op = ops_[id];
  if (op.is_credit()) PostGranted(id);
  SendRequest request = {.op = OpId(id), .channel = op.channel, .block = op.block, .memory = {}};
  if (!op.is_credit()) {
    const Message& message = plan_.header().message;
    request.memory =
        memory_.source.subspan(message.BlockOffset(op.block), message.BlockSize(op.block));
  }
  state_[id] = State::kStarted;
  CountPost();
  Observe(id, OpEvent::Kind::kPost);
  Observe(id, OpEvent::Kind::kStart);
  endpoint_.PostSend(request);
  if (next_on_channel_[id] != kNone) Release(next_on_channel_[id]);
}

void CpuExecutor::PostRecv(uint32_t id) {
  const Op& op = ops_[id];
  RecvRequest request = {.op = OpId(id), .channel = op.channel, .block = op.block, .memory = {}};
  if (!op.is_credit()) {
    const Message& message = plan_.header().message;
    request.memory =
        memory_.target.subspan(message.BlockOffset(op.block), message.BlockSize(op.block));
  }
  state_[id] = State::kStarted;
  CountPost();
  Observe(id, OpEvent::Kind::kPost);
  endpoint_.PostRecv(request);
}

void CpuExecutor::PostGranted(uint32_t credit) {
  uint32_t receive = first_granted_[credit];
  for (uint32_t i = 0; i < ops_[credit].grants; ++i) {
    PostRecv(receive);
    receive = next_on_channel_[receive];
  }
}

void CpuExecutor::CountPost() {
  ++report_.host_posts;
  if (started_) ++report_.host_posts_during;
}

void CpuExecutor::Observe(uint32_t op, OpEvent::Kind kind) const {
  if (observer_) observer_({.node = program_.node, .op = OpId(op), .kind = kind});
}

NodeReport CpuExecutor::report() const {
  NodeReport report = report_;
  report.host_wakeups = endpoint_.counters().wakeups;
  report.retries = endpoint_.counters().early;
  return report;
}

std::string CpuExecutor::WaitsFor(uint32_t id) const {
  const Op& op = ops_[id];
  const Channel& channel = plan_.channels()[op.channel.index()];
  if (!op.is_send()) {
    return state_[id] == State::kStarted ? fmt::format("node {} to send", channel.from.value)
                                         : std::string("its credit to start");
  }
  if (state_[id] == State::kStarted) return fmt::format("delivery at node {}", channel.to.value);
  for (OpId before : plan_.after(op)) {
    if (state_[before.index()] != State::kCompleted) return fmt::format("op {}", before.value);
  }
  return "the sends before it on its channel";
}

std::string CpuExecutor::Waiting(size_t ops_max) const {
  std::string text;
  size_t listed = 0;
  for (uint32_t id = 0; id < ops_.size() && listed < ops_max; ++id) {
    if (state_[id] == State::kCompleted) continue;
    fmt::format_to(std::back_inserter(text), "{}{} waits for {}", listed == 0 ? "" : "; ",
                   Describe(plan_, program_, OpId(id)), WaitsFor(id));
    ++listed;
  }
  return text;
}

}  // namespace prepost
