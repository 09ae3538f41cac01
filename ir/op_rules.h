// SPDX-License-Identifier: Apache-2.0
//
// OpRules: what a plan's ready mode and send window add to the transfers of a node. They are
// written once, here: the passes `ready` and `send_window` apply one of them each to a whole plan
// (WithRules()), and a rolled plan's stream applies both to one node's rounds as they come. A
// shard's verifier takes from here what peers' credits grant; the rules of the verifier check what
// is made here and share no code with it.
#ifndef PREPOST_IR_OP_RULES_H_
#define PREPOST_IR_OP_RULES_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/plan.h"

namespace prepost {

/// How many receives one credit grants of a channel on which there are `receives`.
inline uint32_t GrantsOf(const Ready& ready, uint32_t receives) {
  return ready.mode == ReadyMode::kChannel ? receives : 1;
}

/// The given channels of blocks, then those of their credits, if `ready` has any.
void AddChannels(std::span<const Channel> blocks, const Ready& ready, PlanBuilder& builder);
/// The credit channel of `blocks`, one of so many block channels.
inline ChannelId CreditChannelOf(ChannelId blocks, size_t block_channels) {
  return ChannelId::FromIndex(blocks.index() + block_channels);
}

/// The last numbers of a row.
class RecentNumbers {
 public:
  /// Remembers `count` or more.
  explicit RecentNumbers(size_t count) : numbers_(std::bit_ceil(count)) {}

  uint64_t size() const { return size_; }
  void Clear() { size_ = 0; }
  void Add(uint64_t number) { numbers_[size_++ & (numbers_.size() - 1)] = number; }
  /// The one with `index` in the whole row, if it is among the last; none for an index below 0.
  std::optional<uint64_t> At(uint64_t index) const {
    if (index >= size_ || size_ - index > numbers_.size()) return std::nullopt;
    return numbers_[index & (numbers_.size() - 1)];
  }

 private:
  std::vector<uint64_t> numbers_;  // a power of two
  uint64_t size_ = 0;
};

/// An op before the rules: a transfer's end, or a credit that is there already.
struct GivenOp {
  Op op;
  /// Given ops of the node before it, as they are numbered from 0, modulo 2^32.
  std::span<const OpId> after;
  /// How many ops of its kind on its channel no credit has granted yet: at first all. AddRound()
  /// counts it down; not read without credits.
  uint32_t* ungranted = nullptr;
};

/// For one node after the other, round by round.
class OpRules {
 public:
  using Emit = std::function<void(const Op& op, std::span<const OpId> after)>;

  /// `channels`: the plan's block channels, not owned. Ops that are `look_ahead` back or more are
  /// left out of `after`, as are given ops that are more than `given_max` back. Memory
  /// O(look_ahead).
  OpRules(std::span<const Channel> channels, const Ready& ready,
          std::optional<uint32_t> send_window, size_t look_ahead, size_t given_max, Emit emit);

  void BeginProgram();
  /// Emits the credits of a round and then its given ops, which are in the plan's order: by (from,
  /// to).
  void AddRound(std::span<const GivenOp> given);

 private:
  void AddCredits(std::span<const GivenOp> given);
  void AddGiven(const GivenOp& given, std::optional<uint64_t> credit);
  /// The op to be added next comes after the one with `number`, if that is not too far back.
  void WaitFor(std::optional<uint64_t> number);
  /// The op's number.
  uint64_t Add(const Op& op);

  const std::span<const Channel> channels_;
  const Ready ready_;
  const std::optional<uint32_t> send_window_;
  const size_t look_ahead_;
  const Emit emit_;
  uint64_t number_ = 0;                             // of the next op
  std::vector<OpId> after_;                         // of the next op
  RecentNumbers given_, receives_, sends_;          // ops: given ones; those of them with blocks
  std::vector<std::optional<uint64_t>> credit_of_;  // given op of the round -> its credit's receive
};

/// `plan`, which has no credits yet if `ready` has, with what the rules add, under `header`. Its
/// ops are in the plan's order: by round, (from, to). Linear.
Plan WithRules(const Plan& plan, PlanHeader header, const Ready& ready,
               std::optional<uint32_t> send_window);

}  // namespace prepost

#endif  // PREPOST_IR_OP_RULES_H_
