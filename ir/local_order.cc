// SPDX-License-Identifier: Apache-2.0
//
// A vector clock per send: entry c counts the ops of the node's channel c that have completed when
// the send starts. Ids are a topological order of the local order (`after` names smaller ids,
// channels go by id), so one walk suffices. A receive completes with everything before it on its
// channel and nothing else, so it needs no clock. A send's clock is kept until the last op that
// refers to it, which bounds the memory by the window of live sends.
#include "prepost/ir/local_order.h"

#include <llvm/ADT/DenseMap.h>

#include <algorithm>

namespace prepost {

LocalOrder::LocalOrder(const Plan& plan, const Program& program)
    : plan_(plan),
      ops_(plan.ops(program)),
      channel_of_(ops_.size()),
      position_(ops_.size()),
      previous_(ops_.size(), kNone),
      last_use_(ops_.size(), kNone),
      clock_of_(ops_.size(), kNone) {
  llvm::DenseMap<uint32_t, uint32_t> numbers;  // plan's channel id -> the node's own number
  std::vector<uint32_t> last_op;
  std::vector<uint32_t> counts;
  for (size_t i = 0; i < ops_.size(); ++i) {
    const uint32_t id = static_cast<uint32_t>(i);
    const auto [it, is_new] =
        numbers.try_emplace(ops_[i].channel.value, static_cast<uint32_t>(counts.size()));
    if (is_new) {
      counts.push_back(0);
      last_op.push_back(kNone);
    }
    const uint32_t channel = it->second;
    channel_of_[i] = channel;
    position_[i] = counts[channel]++;
    if (ops_[i].is_send()) {
      previous_[i] = last_op[channel];
      if (previous_[i] != kNone) last_use_[previous_[i]] = id;
    }
    last_op[channel] = id;
    for (OpId before : plan.after(ops_[i])) last_use_[before.index()] = id;
  }
  current_clock_.assign(counts.size(), 0);
}

void LocalOrder::Join(OpId send) {
  if (clock_of_[send.index()] == kNone) return;  // nothing has completed before it
  std::ranges::transform(current_clock_, clocks_[clock_of_[send.index()]], current_clock_.begin(),
                         [](uint32_t a, uint32_t b) { return std::max(a, b); });
}

void LocalOrder::Release(OpId id) {
  if (last_use_[id.index()] != current_->value || clock_of_[id.index()] == kNone) return;
  free_clocks_.push_back(clock_of_[id.index()]);
  clock_of_[id.index()] = kNone;
}

void LocalOrder::Advance() {
  if (current_ && op(*current_).is_send()) {  // the clocks that only the op just left had need of
    for (OpId before : plan_.after(op(*current_))) Release(before);
    if (previous_[current_->index()] != kNone) Release(OpId(previous_[current_->index()]));
  }
  current_ = current_ ? OpId(current_->value + 1) : OpId(0);
  PREPOST_CHECK(current_->index() < ops_.size());
  const size_t id = current_->index();
  if (!ops_[id].is_send()) return;

  std::ranges::fill(current_clock_, 0);
  if (previous_[id] != kNone) Join(OpId(previous_[id]));
  for (OpId before : plan_.after(ops_[id])) {
    if (op(before).is_send()) Join(before);
    uint32_t& own = current_clock_[channel_of_[before.index()]];
    own = std::max(own, position_[before.index()] + 1);
  }
  const bool is_first =
      ops_[id].after_count == 0 && (previous_[id] == kNone || clock_of_[previous_[id]] == kNone);
  if (last_use_[id] == kNone || is_first) return;
  if (free_clocks_.empty()) {
    free_clocks_.push_back(static_cast<uint32_t>(clocks_.size()));
    clocks_.emplace_back();
  }
  clock_of_[id] = free_clocks_.back();
  free_clocks_.pop_back();
  clocks_[clock_of_[id]] = current_clock_;
}

uint32_t LocalOrder::StartedAfter(OpId id, uint32_t channel) const {
  const uint32_t clock = clock_of_[id.index()];
  return clock == kNone ? 0 : clocks_[clock][channel];
}

uint32_t LocalOrder::CompletedWith(OpId done, uint32_t channel) const {
  const uint32_t own = channel_of_[done.index()] == channel ? position_[done.index()] + 1 : 0;
  return std::max(own, StartedAfter(done, channel));
}

bool LocalOrder::Precedes(OpId before) const {
  PREPOST_CHECK(current_ && op(*current_).is_send());
  return current_clock_[channel_of_[before.index()]] > position_[before.index()];
}

bool LocalOrder::IsImplied(size_t index) const {
  PREPOST_CHECK(current_ && op(*current_).is_send());
  const std::span<const OpId> after = plan_.after(op(*current_));
  const OpId wanted = after[index];
  const uint32_t channel = channel_of_[wanted.index()];
  const uint32_t needed = position_[wanted.index()] + 1;
  const uint32_t previous = previous_[current_->index()];
  if (previous != kNone && StartedAfter(OpId(previous), channel) >= needed) return true;
  return std::ranges::any_of(after, [&](OpId other) {
    return other != wanted && CompletedWith(other, channel) >= needed;
  });
}

}  // namespace prepost
