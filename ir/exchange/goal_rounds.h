// SPDX-License-Identifier: Apache-2.0
//
// FindGoalRounds: in which rounds the messages of a GOAL text can be. Internal to ir/.
#ifndef PREPOST_IR_EXCHANGE_GOAL_ROUNDS_H_
#define PREPOST_IR_EXCHANGE_GOAL_ROUNDS_H_

#include <cstdint>
#include <span>

#include "ir/exchange/goal_messages.h"
#include "ir/exchange/goal_text.h"

namespace prepost {

/// Consecutive blocks that a message carries.
struct GoalRange {
  uint32_t block = 0;
  uint32_t count = 1;
};

/// Step 6 of goal_reader.cc: finds each message's round, `order` and `ports`. `ranges` are what the
/// messages carry, so that a rank sends a block before it receives more of it if the text says so;
/// of a multicast they are not known yet, and empty. Errors: a deadlock, at the op's line; sends
/// that carry what a rank has of a block in no order; more steps, with those of FindGoalMessages(),
/// than `budget` has. Linear in blocks of ranges and in waits, but for sorting and for blocks that
/// many peers send to a rank that sends them often.
Status FindGoalRounds(const GoalFile& file, std::span<const GoalRange> ranges,
                      GoalMessages* messages, const GoalBudget& budget = {});

}  // namespace prepost

#endif  // PREPOST_IR_EXCHANGE_GOAL_ROUNDS_H_
