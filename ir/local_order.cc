// SPDX-License-Identifier: Apache-2.0
//
// A row is what completes in id order: a channel's sends, its plain receives, its combines. There
// is a vector clock per send and per combine: entry r counts the ops of the node's row r that have
// completed when the op starts (a combine: begins to combine). Ids are a topological order of the
// local order (`after` names smaller ids, rows go by id), so one walk suffices. A plain receive
// completes with everything before it in its row and nothing else, so it needs no clock. A clock is
// kept until the last op that refers to it, which bounds the memory by the window of live ops.
//
// An op's predecessors are visited from the latest on: with a send window, or sends that wait
// for each other, the past of the latest send holds those of the others, and the clock is that
// one's with some entries raised. An entry of `after` is implied if it has completed when any of
// the others (or the one before in the row) starts, or stands before another in the same row; it
// has itself never completed when it starts, so it need not be left out.
#include "ir/local_order.h"

#include <llvm/ADT/DenseMap.h>

#include <ranges>
#include <utility>

namespace prepost {
namespace {

/// The node's own numbers of its rows, by op; sets `*rows` to how many there are.
std::vector<uint32_t> NumberRows(std::span<const Op> ops, uint32_t* rows) {
  llvm::DenseMap<uint32_t, uint32_t> numbers[2];  // plan's channel -> row: of combines, of others
  std::vector<uint32_t> row_of(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto [row, is_new] =
        numbers[ops[i].is_combine() ? 0 : 1].try_emplace(ops[i].channel.value, *rows);
    if (is_new) ++*rows;
    row_of[i] = row->second;
  }
  return row_of;
}

}  // namespace

LocalOrder::LocalOrder(const Plan& plan, const Program& program)
    : plan_(plan),
      ops_(plan.ops(program)),
      row_of_(NumberRows(ops_, &rows_)),
      position_(ops_.size()),
      previous_(ops_.size(), kNone),
      last_use_(ops_.size(), kNone),
      clocks_(rows_),
      clock_of_(ops_.size(), VectorClocks::kZero) {
  std::vector<uint32_t> last_op(rows_, kNone);
  std::vector<uint32_t> counts(rows_);
  for (size_t i = 0; i < ops_.size(); ++i) {
    const uint32_t id = static_cast<uint32_t>(i);
    const uint32_t row = row_of_[i];
    position_[i] = counts[row]++;
    if (ops_[i].may_wait()) {
      previous_[i] = last_op[row];
      if (previous_[i] != kNone) last_use_[previous_[i]] = id;
    }
    last_op[row] = id;
    for (OpId before : plan.after(ops_[i])) last_use_[before.index()] = id;
  }
}

void LocalOrder::JoinStart(OpId before) {
  const VectorClocks::Clock clock = clock_of_[before.index()];
  if (clock == VectorClocks::kZero) return;
  if (clocks_.At(started_, row_of_[before.index()]) > position_[before.index()]) return;
  started_ = clocks_.Join(started_, clock);
}

void LocalOrder::Release(OpId id) {
  if (last_use_[id.index()] != current_->value) return;
  clocks_.Drop(std::exchange(clock_of_[id.index()], VectorClocks::kZero));
}

void LocalOrder::Advance() {
  if (current_ && op(*current_).may_wait()) {  // the clocks that only the op just left had need of
    for (OpId before : plan_.after(op(*current_))) Release(before);
    if (previous_[current_->index()] != kNone) Release(OpId(previous_[current_->index()]));
  }
  clocks_.Drop(std::exchange(started_, VectorClocks::kZero));
  clocks_.Drop(std::exchange(completed_, VectorClocks::kZero));
  current_ = current_ ? OpId(current_->value + 1) : OpId(0);
  PREPOST_CHECK(current_->index() < ops_.size());
  const size_t id = current_->index();
  if (!ops_[id].may_wait()) return;

  const std::span<const OpId> after = plan_.after(ops_[id]);
  for (const OpId before : after | std::views::reverse) {
    if (op(before).may_wait()) JoinStart(before);
  }
  if (previous_[id] != kNone) {
    JoinStart(OpId(previous_[id]));
    if (ops_[id].is_combine()) started_ = clocks_.Raise(started_, row_of_[id], position_[id]);
  }
  completed_ = clocks_.Copy(started_);
  for (const OpId before : after)
    completed_ = clocks_.Raise(completed_, row_of_[before.index()], position_[before.index()] + 1);
  if (last_use_[id] != kNone) clock_of_[id] = clocks_.Copy(completed_);
}

bool LocalOrder::Precedes(OpId before) const {
  PREPOST_CHECK(current_ && op(*current_).may_wait());
  return clocks_.At(completed_, row_of_[before.index()]) > position_[before.index()];
}

bool LocalOrder::IsImplied(size_t index) const {
  PREPOST_CHECK(current_ && op(*current_).may_wait());
  const OpId wanted = plan_.after(op(*current_))[index];
  const uint32_t row = row_of_[wanted.index()];
  const uint32_t position = position_[wanted.index()];
  return clocks_.At(started_, row) > position || clocks_.At(completed_, row) > position + 1;
}

}  // namespace prepost
