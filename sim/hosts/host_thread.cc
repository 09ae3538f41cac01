// SPDX-License-Identifier: Apache-2.0
//
// One poll of a thread at time t, as the real executor's code goes: it reads the CQ (`poll`), deals
// with all CQEs that are there at t, at most 64, one after the other, and then posts what they have
// made ready, one request after the other. The code runs at t, in no time; `until_` says up to when
// the thread would be busy with it, and a request reaches the endpoint when `until_` was there:
//
//     t        poll       CQE        CQE       receive      send
//     |--poll--|-completion-|-credit-|-post_receive-|-post_send-|
//                                                   ^           ^
//                                            the NIC sees it    doorbell, and until()
//
// So nothing that the executor does depends on the model, and nothing of the model needs to know
// what it decides.
#include "sim/hosts/host_thread.h"

#include <algorithm>
#include <utility>

namespace prepost::sim {
namespace {

constexpr OpId kNoOp{0xffffffff};

}  // namespace

HostThread::HostThread(const HostCosts& costs, CpuCore& core, Clock& clock, TimeHandler& handler,
                       nic::DeviceEndpoint& endpoint, const Plan& part, bool begins)
    : clock_(clock),
      endpoint_(endpoint),
      core_(core),
      costs_(costs),
      is_set_up_(begins),
      begins_(begins),
      handler_(handler),
      channels_(part.channels()) {}

void HostThread::Start(CpuExecutor& executor) {
  is_started_ = true;
  until_ = clock_.now();
  if (begins_) Spend(costs_.message_start);
  if (begins_) Note({{costs_.message_start, TimeCause::kSetUp}}, kNoOp);
  if (copied_before_ != 0) CopyBlocks(std::exchange(copied_before_, 0), /*is_result=*/true);
  executor.Start();
}

Result<bool> HostThread::PollOnce(CpuExecutor& executor) {
  PREPOST_CHECK(clock_.now() >= until_ && posts_left_ == 0);
  until_ = clock_.now();
  found_ = 0;
  executor_ = &executor;
  // The endpoint may post what had no room before.
  if (observed_.trail != nullptr) observed_.trail->BeginHost(step_);
  const Status status = executor.Poll(std::chrono::milliseconds(0));
  if (!status.ok()) return status;
  if (executor.done() && first_block_bytes_ != 0) {
    CopyFirstBlock();
    return true;
  }
  return found_ != 0;
}

/// RDMC learns a message's size with its first block, which it so receives into a buffer of its
/// own. It forwards the block out of there, and copies it into place when all else is done
/// (polling_group::complete_message).
void HostThread::CopyFirstBlock() {
  const Picoseconds copy =
      TimeOf(std::exchange(first_block_bytes_, 0), costs_.first_block_copy_rate);
  Spend(copy);
  Note({{copy, TimeCause::kCopy}}, kNoOp);
}

void HostThread::Combine(uint64_t bytes) {
  const Picoseconds cost = After(costs_.combine, TimeOf(bytes, costs_.combine_rate));
  Spend(cost);
  Note({{cost, TimeCause::kCombine}}, kNoOp);
  NoteResult();
}

/// Of what it has been through with last.
void HostThread::NoteResult() {
  result_at_ = until_;
  if (observed_.trail != nullptr)
    observed_.trail->NoteResult(observed_.group, observed_.node, step_);
}

void HostThread::CopyBlocks(uint64_t bytes, bool is_result) {
  if (!is_started_) {
    copied_before_ += bytes;
    return;
  }
  const Picoseconds copy = TimeOf(bytes, costs_.copy_rate);
  Spend(copy);
  Note({{copy, TimeCause::kPlace}}, kNoOp);
  if (is_result) NoteResult();
}

void HostThread::Spend(Picoseconds cost) {
  const Picoseconds begin = until_;
  until_ = core_.WorkEnd(until_, cost);
  if (overlaps() && until_ != kNever) core_.copies().NoteWork(begin, until_);
  work_.busy = After(work_.busy, cost);
}

// Over TCP the thread copies a segment at a time, and others are on the wire meanwhile. With C the
// time to copy a block, W what it takes on the wire, and c and w the same of a segment, the last
// bytes leave no sooner than c + W and C + w after a send begins, and are copied no sooner than c
// after they have come, and C after the first ones have:
//
//     sender    |c |c |c |c |                           C < W: the wire decides, and a block takes
//     wire         |  w  |  w  |  w  |  w  |            c + W + c
//     receiver           |c |  |c |  |c |  |c |
//
// What of C is not done when the block goes, or comes, has the core when there is nothing else to
// do (CopyOverlap); what a core has no time for is left, and then holds the thread up.
//
// Of a block that comes the thread hears for each segment but the last, before it hears of the
// block: each of these takes `segment_calls` besides. What has not been copied by then takes one
// call.

/// What a receive, which has come, takes of the thread for copying.
Picoseconds HostThread::SpendOnReceive(const Channel& channel, uint64_t bytes) {
  const Picoseconds all = TimeOf(bytes, costs_.system_copy_rate);
  if (!overlaps() || bytes == 0 || all == kNever) return all;
  const uint64_t segment = std::min<uint64_t>(bytes, costs_.segment_bytes);
  const Picoseconds last = TimeOf(segment, costs_.system_copy_rate);
  const Picoseconds came = std::max(wire_(channel, bytes), all) - wire_(channel, segment);
  const Picoseconds now = clock_.now();
  const auto segments = static_cast<Picoseconds>((bytes + segment - 1) / segment);
  Picoseconds calls = 0;
  if (__builtin_mul_overflow(segments - 1, costs_.segment_calls, &calls)) calls = kNever;
  const Picoseconds most = After(all - last, calls);
  const Picoseconds taken = core_.copies().Take(std::max<Picoseconds>(0, now - came), now, most);
  work_.busy = After(work_.busy, taken);
  if (taken == most) return last;
  // As far as it has come, calls included.
  return all - ToPicoseconds(static_cast<double>(taken) / static_cast<double>(most) *
                             static_cast<double>(all - last));
}

/// The same of a send, until it is on the wire.
Picoseconds HostThread::SpendOnSend(const Channel& channel, uint64_t bytes) {
  const Picoseconds all = TimeOf(bytes, costs_.system_copy_rate);
  if (!overlaps() || bytes == 0 || all == kNever) return all;
  const uint64_t segment = std::min<uint64_t>(bytes, costs_.segment_bytes);
  const Picoseconds slower = all - (wire_(channel, bytes) - wire_(channel, segment));
  const Picoseconds first = std::max(TimeOf(segment, costs_.system_copy_rate), slower);
  const Picoseconds before = core_.copies().TakeOwed(until_);
  core_.copies().Owe(all - first);
  // The rest counts as work when it is owed, and what was owed does already.
  work_.busy = After(work_.busy, all - first - before);
  return After(before, first);
}

/// Of its completion.
Picoseconds HostThread::CostOf(const CpuExecutor::PostedOp& op) {
  if (op.is_credit()) return costs_.credit + (op.is_send() ? 0 : costs_.system_call);
  Picoseconds cost = costs_.completion;
  if (op.is_send()) return cost;
  const uint64_t bytes = op.bytes;
  copy_ = SpendOnReceive(channels_[op.channel.index()], bytes);
  cost = After(cost + costs_.system_call, copy_);
  if (!std::exchange(is_set_up_, true)) {
    cost = After(cost, costs_.message_setup);
    if (costs_.first_block_copy_rate != 0) first_block_bytes_ = bytes;
  }
  return cost;
}

Result<PollOutcome> HostThread::Poll(std::span<OpId> completed, std::chrono::milliseconds timeout) {
  PREPOST_CHECK(timeout.count() == 0);
  Result<PollOutcome> outcome = endpoint_.Poll(completed, timeout);
  if (!outcome.ok()) return outcome;
  found_ = static_cast<uint32_t>(outcome->completed);
  may_find_more_ = found_ == completed.size();
  if (found_ == 0) return outcome;
  ++work_.polls;
  work_.completions += found_;
  Spend(costs_.poll);
  Note({{costs_.poll, TimeCause::kPoll}}, kNoOp);
  for (const OpId op : completed.first(found_)) {
    const bool is_first = !is_set_up_;
    Spend(CostOf(executor_->posted(op)));
    NoteCompletion(op, is_first);
  }
  return outcome;
}

/// Records in the trail what the time up to until() went to, since the last record.
void HostThread::Note(std::initializer_list<Part> parts, OpId op) {
  TimeTrail* const trail = observed_.trail;
  if (trail == nullptr || until_ == kNever) return;
  const MessageId message =
      op == kNoOp ? kNoMessage : trail->MessageOf(observed_.group, observed_.node, op);
  Picoseconds at = until_;
  for (const Part& part : parts) at -= part.cost;
  step_ = trail->Push(std::max(at, trail->step(step_).at), step_, TimeCause::kStopped, message);
  for (const Part& part : parts) {
    at += part.cost;
    step_ = trail->Push(std::max(at, trail->step(step_).at), step_, part.cause, message);
    const bool is_once = part.cause == TimeCause::kSetUp || part.cause == TimeCause::kCopy;
    if (is_once && part.cost != 0) trail->NoteOnce(observed_.group, observed_.node, step_);
  }
}

/// The parts of CostOf().
void HostThread::NoteCompletion(OpId id, bool is_first) {
  const CpuExecutor::PostedOp op = executor_->posted(id);
  if (op.is_credit()) {
    const Picoseconds call = op.is_send() ? 0 : costs_.system_call;
    return Note({{call, TimeCause::kSystem}, {costs_.credit, TimeCause::kCredit}}, id);
  }
  const Part completion = {costs_.completion, TimeCause::kCompletion};
  if (op.is_send()) return Note({completion}, id);
  const Part system = {After(costs_.system_call, copy_), TimeCause::kSystem};
  Note({system, completion, {is_first ? costs_.message_setup : 0, TimeCause::kSetUp}}, id);
}

void HostThread::PostRecv(const RecvRequest& request) {
  if (!is_started_) return endpoint_.PostRecv(request);
  Spend(costs_.post_receive);
  Note({{costs_.post_receive, TimeCause::kPost}}, request.op);
  PostLater({.at = until_, .step = step_, .request = request});
}

void HostThread::PostSend(const SendRequest& request) {
  const Picoseconds system = After(
      costs_.system_call, SpendOnSend(channels_[request.channel.index()], request.memory.size()));
  Spend(After(costs_.post_send, system));
  Note({{system, TimeCause::kSystem}, {costs_.post_send, TimeCause::kPost}}, request.op);
  PostLater({.at = until_, .step = step_, .request = request});
}

void HostThread::PostLater(const Post& post) {
  ++work_.posts;
  if (post.is_send()) ++work_.doorbells;
  if (posts_left_ == 0 && post.at == clock_.now()) return MakePost(post);
  if (posts_left_++ != 0) return later_posts_.push_back(post);
  next_post_ = post;
  clock_.Schedule(post.at, handler_, PostEvent());
}

void HostThread::MakePosts() {
  while (posts_left_ != 0 && next_post_.at == clock_.now()) {
    MakePost(next_post_);
    if (--posts_left_ == 0) return;
    next_post_ = later_posts_.front();
    later_posts_.pop_front();
  }
  if (posts_left_ != 0) clock_.Schedule(next_post_.at, handler_, PostEvent());
}

void HostThread::MakePost(const Post& post) {
  if (TimeTrail* const trail = observed_.trail; trail != nullptr) {
    trail->BeginHost(post.step);
    trail->Post(observed_.group, observed_.node, post.op(), clock_.now());
  }
  if (const auto* send = std::get_if<SendRequest>(&post.request)) {
    endpoint_.PostSend(*send);
  } else {
    endpoint_.PostRecv(std::get<RecvRequest>(post.request));
  }
}

}  // namespace prepost::sim
