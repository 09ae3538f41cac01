// SPDX-License-Identifier: Apache-2.0
//
// GoalRanges: which blocks each message of a GOAL text carries, and the payload that they make, of
// a collective whose messages have tags that say it. Internal to ir/.
#ifndef PREPOST_IR_EXCHANGE_GOAL_RANGES_H_
#define PREPOST_IR_EXCHANGE_GOAL_RANGES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/collective.h"
#include "ir/exchange/goal_messages.h"
#include "ir/exchange/goal_rounds.h"
#include "ir/exchange/goal_text.h"
#include "ir/plan.h"

namespace prepost {

struct GoalRanges {
  std::vector<GoalRange> range_of;  ///< by message
  Payload payload;
};

/// Step 4 of goal_reader.cc for another collective than a multicast. The sizes are those of
/// GoalOptions. Errors: messages that are no whole blocks, or have bytes in a barrier, at the op's
/// line; sizes that the tags leave open, or whose memory cannot be counted (CheckMemory()).
Result<GoalRanges> FindGoalRanges(const GoalFile& file, const GoalMessages& messages,
                                  const Collective& collective,
                                  std::optional<uint64_t> message_bytes,
                                  std::optional<uint64_t> block_bytes);

}  // namespace prepost

#endif  // PREPOST_IR_EXCHANGE_GOAL_RANGES_H_
