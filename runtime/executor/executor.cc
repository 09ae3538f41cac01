// SPDX-License-Identifier: Apache-2.0
//
// Dependency counting over a window of ops. A send's `pending` is the number of ops in its `after`
// that have not completed. Whoever brings it to zero puts the send into the ready ring, and
// StartReady() empties the ring. But sends of a channel start in its order: one whose turn has not
// come is only counted by its channel, and whoever starts the one before it puts it into the ring.
//
// Ops come out of the node's stream in the order of their ids, as many as its look-ahead allows;
// the window moves on when its first op has completed. What an op names in its `after` is in the
// window or has completed, so the window is all that is ever kept. A flat plan's look-ahead is all
// of its ops. A rolled plan's is a few hundred, however long the message is; receives that no
// credit grants are then posted as the window reaches them, and a block that comes earlier waits in
// the transport (Endpoint). ir/rolled/rolled_play.cc explains why the window adds no cycle.
//
// Example: n = 4, k = 2, binomial pipeline without credits, node 1 (the plan is in docs/plan.md):
//     op 0 recv 0>1:0    op 1 send 1>3:0 after 0    op 2 recv 3>1:1 ...
// Arm() posts ops 0 and 2. `pending` of op 1 is 1; when op 0 completes it becomes 0, and op 1
// starts.
//
// With credits, a credit's send posts the receives that it grants right before it starts, or, if
// the window has not reached them, when it does. So a node has at most W block receives open in
// window mode (RDMC has the same limit), and never one more than it has announced.
//
// Cost: O(ops + after entries) in all; each completion costs its successors.
#include "runtime/executor/executor.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

namespace prepost {
namespace {

constexpr size_t kCompletionsMax = 64;  // that one Poll() takes

}  // namespace

CpuExecutor::CpuExecutor(Playable plan, NodeId node, Endpoint& endpoint, OpObserver observer,
                         std::pmr::memory_resource& memory)
    : endpoint_(endpoint),
      slots_(memory),
      channels_(&memory),
      ready_(memory),
      has_credits_(plan.header().ready.has_credits()),
      is_observed_(static_cast<bool>(observer)),
      payload_(plan.header().payload),
      element_bytes_(SizeOf(plan.header().combine.type)),
      links_(&memory),
      node_(node),
      observer_(std::move(observer)),
      plan_(plan),
      stream_(plan_.OpsOf(node)) {
  if (is_observed_) {
    endpoint_.ObserveArrivals([this](OpId op) { Observe(NumberOf(op), OpEvent::Kind::kStart); });
    endpoint_.ObserveWakeups(
        [this] { observer_({.node = node_, .op = {}, .kind = OpEvent::Kind::kWakeup}); });
  }
}

void CpuExecutor::Prepare(const NodeMemory& memory) {
  memory_ = memory;
  slots_.Resize(stream_->look_ahead());
  ready_.Resize(stream_->look_ahead());
  links_.reserve(stream_->afters_max());
  channels_.resize(plan_.channels().size());
  if (has_credits_) LinkGrants();
  if (plan_.header().collective.kind != CollectiveKind::kMulticast) {
    if (memory.places == nullptr) own_places_ = plan_.PlacesOf(node_);
    places_ = memory.places != nullptr ? memory.places : own_places_.get();
    CopyOwn();
  }
  Take();
}

/// Which receives a credit grants: the blocks' from the node that it goes to.
void CpuExecutor::LinkGrants() {
  std::map<NodeId, uint32_t> blocks_from;
  const std::vector<ChannelOps> own = plan_.ChannelOpsOf(node_);
  for (const ChannelOps& ops : own) {
    const Channel& channel = plan_.channels()[ops.channel.index()];
    if (!ops.outgoing && !channel.carries_credits()) {
      blocks_from.emplace(channel.from, ops.channel.value);
    }
  }
  for (const ChannelOps& ops : own) {
    const Channel& channel = plan_.channels()[ops.channel.index()];
    if (!ops.outgoing || !channel.carries_credits()) continue;
    const auto found = blocks_from.find(channel.to);
    PREPOST_CHECK(found != blocks_from.end());
    channels_[found->second].granted_by = ops.channel.value;
  }
}

/// Fills the window.
void CpuExecutor::Take() {
  while (begin_ < end_ && slots_[begin_].state == State::kCompleted) ++begin_;
  while (!is_exhausted_ && (begin_ == end_ || end_ - begin_ < stream_->look_ahead())) {
    if (stream_->Next()) {
      TakeOp();
    } else {
      is_exhausted_ = true;
    }
  }
}

void CpuExecutor::TakeOp() {
  const Op& op = stream_->op();
  const uint64_t number = end_++;
  slots_[number] = {.channel = op.channel, .block = op.block, .grants = op.grants, .kind = op.kind};
  Slot& slot = slots_[number];
  for (const OpId id : stream_->after()) {
    const uint64_t before = number - (static_cast<uint32_t>(number) - id.value);
    if (before >= begin_ && slots_[before].state != State::kCompleted) {
      AddSuccessor(slots_[before], number);
      ++slot.pending;
    }
  }
  JoinChannel(number);
  if (slot.is_send()) {
    if (slot.pending == 0 && TakesTurn(number) && started_) ready_[ready_end_++] = IdOf(number);
  } else if (IsGranted(slot)) {
    PostGranted(CreditsOf(slot));
  } else if (is_armed_) {
    PostRecv(number);
  }
}

void CpuExecutor::AddSuccessor(Slot& before, uint64_t op) {
  if (!std::exchange(before.has_successor, true)) {
    before.successor = IdOf(op);
    return;
  }
  uint32_t index = unused_links_;
  if (index == kNone) {
    PREPOST_CHECK(links_.size() < links_.capacity());
    index = static_cast<uint32_t>(links_.size());
    links_.emplace_back();
  } else {
    unused_links_ = links_[index].next;
  }
  uint32_t first = index;
  if (before.last_link != kNone) first = std::exchange(links_[before.last_link].next, index);
  links_[index] = {.op = IdOf(op), .next = first};
  before.last_link = index;
}

/// The op is the last of its channel so far.
void CpuExecutor::JoinChannel(uint64_t op) {
  Slot& slot = slots_[op];
  ChannelState& state = channels_[slot.channel.index()];
  if (state.is_used && state.last >= begin_) {
    Slot& before = slots_[state.last];
    before.has_next = true;
    before.next = IdOf(op);
  }
  state.is_used = true;
  state.last = op;
  const bool has_turn = slot.is_send() || slot.is_combine();
  if (has_turn && !std::exchange(state.has_unstarted, true)) state.unstarted = op;
  if (!IsGranted(slot)) return;
  ChannelState& credits = CreditsOf(slot);
  if (!std::exchange(credits.has_unposted, true)) credits.unposted = op;
}

void CpuExecutor::Arm() {
  is_armed_ = true;
  for (uint64_t op = begin_; op < end_; ++op) {
    if (!slots_[op].is_send() && !IsGranted(slots_[op])) PostRecv(op);
  }
}

void CpuExecutor::Start() {
  started_ = true;
  posts_before_start_ = posts_;
  for (uint64_t op = begin_; op < end_; ++op) {
    const Slot& slot = slots_[op];
    if (!slot.is_send() || slot.pending != 0) continue;
    if (channels_[slot.channel.index()].unstarted == op) ready_[ready_end_++] = IdOf(op);
  }
  StartReady();
}

Status CpuExecutor::Poll(std::chrono::milliseconds timeout) {
  std::array<OpId, kCompletionsMax> completed;
  Result<PollOutcome> outcome = endpoint_.Poll(completed, timeout);
  if (!outcome.ok()) return outcome.status();
  woken_ = outcome->woken;
  for (size_t i = 0; i < outcome->completed; ++i) Complete(completed[i]);
  Take();
  StartReady();
  if (places_ != nullptr) Take();  // combines complete as they start
  return all_completed() ? endpoint_.Flush() : Status();
}

void CpuExecutor::Complete(OpId id) {
  const uint64_t op = NumberOf(id);
  PREPOST_CHECK(op < end_ && slots_[op].state != State::kWaiting);
  Slot& slot = slots_[op];
  if (places_ != nullptr && slot.state == State::kStarted) {
    Arrive(op);
    if (slot.is_combine()) return;
  }
  slot.state = State::kCompleted;
  ++completions_;
  if (!slot.is_send() && !slot.is_credit() && places_ == nullptr) {
    bytes_received_ += payload_.BlockSize(slot.block);
  }
  Observe(op, OpEvent::Kind::kComplete);
  if (!std::exchange(slot.has_successor, false)) return;
  Release(NumberOf(slot.successor));
  if (slot.last_link == kNone) return;
  const uint32_t first = links_[slot.last_link].next;
  for (uint32_t i = first;; i = links_[i].next) {
    Release(NumberOf(links_[i].op));
    if (i == slot.last_link) break;
  }
  links_[slot.last_link].next = std::exchange(unused_links_, first);
  slot.last_link = kNone;
}

void CpuExecutor::Release(uint64_t op) {
  PREPOST_CHECK(slots_[op].pending > 0);
  if (--slots_[op].pending != 0) return;
  if (slots_[op].is_combine()) {
    const ChannelState& state = channels_[slots_[op].channel.index()];
    if (slots_[op].state == State::kArrived && state.unstarted == op)
      ready_[ready_end_++] = IdOf(op);
  } else if (TakesTurn(op)) {
    ready_[ready_end_++] = IdOf(op);
  }
}

/// Whether the turn of a send has come whose `after` has completed. If not, its channel counts it
/// as early.
bool CpuExecutor::TakesTurn(uint64_t op) {
  ChannelState& state = channels_[slots_[op].channel.index()];
  if (state.unstarted == op) return true;
  ++state.early;
  return false;
}

/// It is the turn of the next send of the channel. Its slot is far away, and mostly not yet needed.
void CpuExecutor::StartNext(const Slot& started) {
  ChannelState& state = channels_[started.channel.index()];
  state.has_unstarted = started.has_next;
  if (!started.has_next) return;
  state.unstarted = NumberOf(started.next);
  if (state.early == 0 || slots_[state.unstarted].pending != 0) return;
  --state.early;
  ready_[ready_end_++] = started.next;
}

void CpuExecutor::StartReady() {
  while (ready_begin_ != ready_end_) {
    const uint64_t op = NumberOf(ready_[ready_begin_++]);
    slots_[op].is_combine() ? CombineOp(op) : StartSend(op);
  }
}

void CpuExecutor::StartSend(uint64_t op) {
  Slot& slot = slots_[op];
  if (slot.is_credit()) {
    ChannelState& credits = channels_[slot.channel.index()];
    credits.granted += slot.grants;
    PostGranted(credits);
  }
  SendRequest request = {
      .op = IdOf(op), .channel = slot.channel, .block = slot.block, .memory = {}};
  if (!slot.is_credit()) {
    request.memory = places_ != nullptr ? Gathered(IdOf(op))
                                        : memory_.source.subspan(payload_.BlockOffset(slot.block),
                                                                 payload_.BlockSize(slot.block));
  }
  slot.state = State::kStarted;
  ++posts_;
  Observe(op, OpEvent::Kind::kPost);
  Observe(op, OpEvent::Kind::kStart);
  endpoint_.PostSend(request);
  StartNext(slot);
}

void CpuExecutor::PostRecv(uint64_t op) {
  Slot& slot = slots_[op];
  RecvRequest request = {
      .op = IdOf(op), .channel = slot.channel, .block = slot.block, .memory = {}};
  if (!slot.is_credit()) {
    request.memory = places_ != nullptr ? Landing(IdOf(op))
                                        : memory_.target.subspan(payload_.BlockOffset(slot.block),
                                                                 payload_.BlockSize(slot.block));
  }
  slot.state = State::kStarted;
  ++posts_;
  Observe(op, OpEvent::Kind::kPost);
  endpoint_.PostRecv(request);
}

/// What the node wants of its own and nobody sends.
void CpuExecutor::CopyOwn() {
  for (const BlockPlaces::Copy& copy : places_->copies()) {
    const std::byte* const from = memory_.source.data() + copy.input_offset;
    std::byte* const to = memory_.target.data() + copy.output_offset;
    if (copy.bytes != 0 && from != to) Copy(to, from, copy.bytes);
  }
}

void CpuExecutor::Copy(std::byte* to, const std::byte* from, uint64_t bytes) const {
  if (memory_.copy) {
    memory_.copy(to, from, bytes);
  } else {
    std::memmove(to, from, bytes);
  }
}

/// Nobody writes to the input by it.
std::byte* CpuExecutor::At(const BlockPlace& place) const {
  switch (place.room) {
    case MemoryRoom::kInput:
      return const_cast<std::byte*>(memory_.source.data()) + place.offset;
    case MemoryRoom::kOutput:
      return memory_.target.data() + place.offset;
    case MemoryRoom::kScratch:
      return memory_.scratch.data() + place.offset;
    case MemoryRoom::kStaging:
      return memory_.staging.data() + place.offset;
  }
  PREPOST_CHECK(false);
  return nullptr;
}

/// Where the op's blocks, which lie apart, are next to each other.
std::byte* CpuExecutor::Staged(OpId op) {
  const OpPlace& place = places_->PlaceOf(op.value);
  if (!memory_.staging.empty()) return At(place.at);
  std::unique_ptr<std::byte[]>& staged = staged_[op];
  if (staged == nullptr) staged = std::make_unique_for_overwrite<std::byte[]>(place.bytes);
  return staged.get();
}

/// The bytes of a send: where they lie, or a copy of them next to each other.
std::span<const std::byte> CpuExecutor::Gathered(OpId op) {
  const OpPlace& place = places_->PlaceOf(op.value);
  if (place.bytes == 0) return {};
  if (place.at.room != MemoryRoom::kStaging) return {At(place.at), place.bytes};
  std::byte* const staged = Staged(op);
  std::byte* to = staged;
  for (const BlockWork& work : places_->Of(op.value)) {
    if (work.bytes != 0) Copy(to, At(work.reads), work.bytes);
    to += work.bytes;
  }
  return {staged, place.bytes};
}

/// Where the bytes of a receive come, next to each other: their places, or memory of their own.
std::span<std::byte> CpuExecutor::Landing(OpId op) {
  const OpPlace& place = places_->PlaceOf(op.value);
  if (place.bytes == 0) return {};
  const bool is_apart = place.at.room == MemoryRoom::kStaging;
  return {is_apart ? Staged(op) : At(place.at), place.bytes};
}

/// An op's bytes have been moved.
void CpuExecutor::Arrive(uint64_t op) {
  Slot& slot = slots_[op];
  if (slot.is_credit()) return;
  const OpPlace& place = places_->PlaceOf(IdOf(op).value);
  const bool is_apart = place.at.room == MemoryRoom::kStaging && place.bytes != 0;
  if (!slot.is_send()) {
    bytes_received_ += place.bytes;
    const std::byte* from = is_apart ? Staged(IdOf(op)) : nullptr;
    for (const BlockWork& work : places_->Of(IdOf(op).value)) {
      if (!is_apart) break;
      if (work.bytes != 0) Copy(At(work.lands), from, work.bytes);
      from += work.bytes;
    }
  }
  if (is_apart) staged_.erase(IdOf(op));
  if (!slot.is_combine()) return;
  slot.state = State::kArrived;
  if (slot.pending == 0 && channels_[slot.channel.index()].unstarted == op)
    ready_[ready_end_++] = IdOf(op);
}

/// It has come, nothing that it waits for is open, and it is its turn.
void CpuExecutor::CombineOp(uint64_t op) {
  for (const BlockWork& work : places_->Of(IdOf(op).value)) {
    if (work.bytes == 0) continue;
    memory_.combine(At(work.writes), At(work.reads), At(work.lands), work.bytes / element_bytes_);
  }
  NextCombine(slots_[op]);
  Complete(IdOf(op));
}

/// It is the turn of the next combine of the channel, if it is there.
void CpuExecutor::NextCombine(const Slot& combined) {
  ChannelState& state = channels_[combined.channel.index()];
  state.has_unstarted = false;
  const Slot* before = &combined;
  while (before->has_next) {
    const uint64_t next = NumberOf(before->next);
    before = &slots_[next];
    if (!before->is_combine()) continue;
    state.has_unstarted = true;
    state.unstarted = next;
    if (before->state == State::kArrived && before->pending == 0) ready_[ready_end_++] = IdOf(next);
    return;
  }
}

/// As many receives as are granted and taken.
void CpuExecutor::PostGranted(ChannelState& credits) {
  while (credits.has_unposted && credits.posted < credits.granted) {
    const Slot& slot = slots_[credits.unposted];
    ++credits.posted;
    PostRecv(credits.unposted);
    credits.has_unposted = slot.has_next;
    if (slot.has_next) credits.unposted = NumberOf(slot.next);
  }
}

NodeReport CpuExecutor::report() const {
  NodeReport report;
  report.node = node_;
  report.host_posts = posts_;
  report.host_posts_during = started_ ? posts_ - posts_before_start_ : 0;
  report.host_completions = completions_;
  report.bytes_received = bytes_received_;
  report.host_wakeups = endpoint_.counters().wakeups;
  report.retries = endpoint_.counters().early;
  return report;
}

bool CpuExecutor::IsSuccessor(const Slot& before, OpId op) const {
  if (!before.has_successor) return false;
  if (before.successor == op) return true;
  if (before.last_link == kNone) return false;
  for (uint32_t i = before.last_link;;) {
    i = links_[i].next;
    if (links_[i].op == op) return true;
    if (i == before.last_link) return false;
  }
}

std::string CpuExecutor::WaitsFor(uint64_t op) const {
  const Slot& slot = slots_[op];
  const Channel& channel = plan_.channels()[slot.channel.index()];
  if (!slot.is_send() && slot.state != State::kArrived) {
    return slot.state == State::kStarted ? fmt::format("node {} to send", channel.from.value)
                                         : std::string("its credit to start");
  }
  if (slot.state == State::kStarted) return fmt::format("delivery at node {}", channel.to.value);
  for (uint64_t before = begin_; before < op; ++before) {
    if (slots_[before].state == State::kCompleted) continue;
    if (IsSuccessor(slots_[before], IdOf(op))) return fmt::format("op {}", before);
  }
  return slot.is_send() ? "the sends before it on its channel" : "the combines before it";
}

std::string CpuExecutor::Waiting(size_t ops_max) const {
  std::string text;
  size_t listed = 0;
  for (uint64_t op = begin_; op < end_ && listed < ops_max; ++op) {
    const Slot& slot = slots_[op];
    if (slot.state == State::kCompleted) continue;
    fmt::format_to(
        std::back_inserter(text), "{}{} waits for {}", listed == 0 ? "" : "; ",
        Describe(node_, op, slot.kind, plan_.channels()[slot.channel.index()], slot.block),
        WaitsFor(op));
    ++listed;
  }
  return text;
}

}  // namespace prepost
