// SPDX-License-Identifier: Apache-2.0
//
// A vector clock per send: entry c counts the ops of the node's channel c that have completed when
// the send starts. Ids are a topological order of the local order (`after` names smaller ids,
// channels go by id), so one walk suffices. A receive completes with everything before it on its
// channel and nothing else, so it needs no clock. A send's clock is kept until the last op that
// refers to it, which bounds the memory by the window of live sends.
//
// An op's predecessors are visited from the latest on: with a send window, or sends that wait
// for each other, the past of the latest send holds those of the others, and the clock is that
// one's with some entries raised. An entry of `after` is implied if it has completed when any of
// the others (or the send before on the channel) starts, or stands before another on the same
// channel; it has itself never completed when it starts, so it need not be left out.
#include "ir/local_order.h"

#include <llvm/ADT/DenseMap.h>

#include <ranges>
#include <utility>

namespace prepost {
namespace {

/// The node's own numbers of its channels, by op; sets `*channels` to how many there are.
std::vector<uint32_t> NumberChannels(std::span<const Op> ops, uint32_t* channels) {
  llvm::DenseMap<uint32_t, uint32_t> numbers;  // plan's channel id -> the node's own number
  std::vector<uint32_t> channel_of(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    channel_of[i] = numbers.try_emplace(ops[i].channel.value, static_cast<uint32_t>(numbers.size()))
                        .first->second;
  }
  *channels = static_cast<uint32_t>(numbers.size());
  return channel_of;
}

}  // namespace

LocalOrder::LocalOrder(const Plan& plan, const Program& program)
    : plan_(plan),
      ops_(plan.ops(program)),
      channel_of_(NumberChannels(ops_, &channels_)),
      position_(ops_.size()),
      previous_(ops_.size(), kNone),
      last_use_(ops_.size(), kNone),
      clocks_(channels_),
      clock_of_(ops_.size(), VectorClocks::kZero) {
  std::vector<uint32_t> last_op(channels_, kNone);
  std::vector<uint32_t> counts(channels_);
  for (size_t i = 0; i < ops_.size(); ++i) {
    const uint32_t id = static_cast<uint32_t>(i);
    const uint32_t channel = channel_of_[i];
    position_[i] = counts[channel]++;
    if (ops_[i].is_send()) {
      previous_[i] = last_op[channel];
      if (previous_[i] != kNone) last_use_[previous_[i]] = id;
    }
    last_op[channel] = id;
    for (OpId before : plan.after(ops_[i])) last_use_[before.index()] = id;
  }
}

void LocalOrder::JoinStart(OpId send) {
  const VectorClocks::Clock clock = clock_of_[send.index()];
  if (clock == VectorClocks::kZero) return;
  if (clocks_.At(started_, channel_of_[send.index()]) > position_[send.index()]) return;
  started_ = clocks_.Join(started_, clock);
}

void LocalOrder::Release(OpId id) {
  if (last_use_[id.index()] != current_->value) return;
  clocks_.Drop(std::exchange(clock_of_[id.index()], VectorClocks::kZero));
}

void LocalOrder::Advance() {
  if (current_ && op(*current_).is_send()) {  // the clocks that only the op just left had need of
    for (OpId before : plan_.after(op(*current_))) Release(before);
    if (previous_[current_->index()] != kNone) Release(OpId(previous_[current_->index()]));
  }
  clocks_.Drop(std::exchange(started_, VectorClocks::kZero));
  clocks_.Drop(std::exchange(completed_, VectorClocks::kZero));
  current_ = current_ ? OpId(current_->value + 1) : OpId(0);
  PREPOST_CHECK(current_->index() < ops_.size());
  const size_t id = current_->index();
  if (!ops_[id].is_send()) return;

  const std::span<const OpId> after = plan_.after(ops_[id]);
  for (const OpId before : after | std::views::reverse) {
    if (op(before).is_send()) JoinStart(before);
  }
  if (previous_[id] != kNone) JoinStart(OpId(previous_[id]));
  completed_ = clocks_.Copy(started_);
  for (const OpId before : after)
    completed_ =
        clocks_.Raise(completed_, channel_of_[before.index()], position_[before.index()] + 1);
  if (last_use_[id] != kNone) clock_of_[id] = clocks_.Copy(completed_);
}

bool LocalOrder::Precedes(OpId before) const {
  PREPOST_CHECK(current_ && op(*current_).is_send());
  return clocks_.At(completed_, channel_of_[before.index()]) > position_[before.index()];
}

bool LocalOrder::IsImplied(size_t index) const {
  PREPOST_CHECK(current_ && op(*current_).is_send());
  const OpId wanted = plan_.after(op(*current_))[index];
  const uint32_t channel = channel_of_[wanted.index()];
  const uint32_t position = position_[wanted.index()];
  return clocks_.At(started_, channel) > position || clocks_.At(completed_, channel) > position + 1;
}

}  // namespace prepost
