// SPDX-License-Identifier: Apache-2.0
//
// GoalMessages: which send of a GOAL text goes to which recv, and what waits for what. In which
// rounds that can be is for goal_rounds.h. Internal to ir/.
#ifndef PREPOST_IR_EXCHANGE_GOAL_MESSAGES_H_
#define PREPOST_IR_EXCHANGE_GOAL_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "ir/exchange/goal_text.h"

namespace prepost {

/// An index that is none.
inline constexpr uint32_t kGoalNone = 0xffffffff;

/// What finding waits and rounds may cost, in steps and in bytes: a text that is linear in what it
/// says costs a few of each per op, whatever its size; others are made to cost more.
struct GoalBudget {
  uint64_t per_op = 256;
  uint64_t free_ops = uint64_t{1} << 20;  ///< that a text may have besides

  uint64_t CostMax(uint64_t ops) const { return per_op * (ops + free_ops); }
};

/// What is wrong with an op at which it is spent.
inline constexpr const char* kGoalTooMuch = "too much that waits for too many peers at once";

/// A send and the recv that takes it, both indices of GoalFile::ops.
struct GoalMessage {
  uint32_t send;
  uint32_t recv;
  uint32_t round = 0;  ///< by FindGoalRounds()
};

struct GoalMessages {
  std::vector<uint32_t> sequence;  ///< all ops, each rank's in an order it can have
  std::vector<uint32_t> place;     ///< op -> its place in it
  /// Those with data, in the order of their senders and, of one sender, in its order.
  std::vector<GoalMessage> messages;
  std::vector<uint32_t> message_of;  ///< op -> message; kGoalNone: calcs and synchronisation
  /// Message -> those of its sender that have completed when it starts: the last of each channel,
  /// of its sends, receives and combines each, without what its sends and combines waited for.
  std::vector<std::vector<uint32_t>> waits;
  /// The same with what these waited for, of receives and combines alone: by their sender, those
  /// that take before those that combine. Empty of a multicast.
  std::vector<std::vector<uint32_t>> received;
  /// Where values are combined, else empty: message -> the calc that combines what it brings, its
  /// recv itself in a text without calcs, or kGoalNone; and those of its receiver that have
  /// completed when it does.
  std::vector<uint32_t> calc_of;
  std::vector<std::vector<uint32_t>> combine_waits;
  std::vector<uint32_t>
      order;           ///< all messages, each behind those it waits for; by FindGoalRounds()
  uint32_t ports = 1;  ///< by FindGoalRounds(): messages of a rank in a round, one way
  uint64_t steps = 0;  ///< of finding waits and rounds, beside sorting: what the budget is for
  std::vector<std::string> notes;  ///< what a plan cannot say, a line each
};

/// Steps 1, 2, 3 and 5 of goal_reader.cc. Where `kind` combines, calcs do. Errors: requirements
/// that are a cycle, messages that do not match, calcs that combine nothing, or something twice;
/// more steps or bytes than `budget` has; at the op's line.
Result<GoalMessages> FindGoalMessages(const GoalFile& file, CollectiveKind kind,
                                      const GoalBudget& budget = {});

}  // namespace prepost

#endif  // PREPOST_IR_EXCHANGE_GOAL_MESSAGES_H_
