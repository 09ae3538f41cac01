// SPDX-License-Identifier: Apache-2.0
//
// GoalBlocks: which block each message of a GOAL text carries, and the message that the blocks
// make. Internal to ir/.
#ifndef PREPOST_IR_EXCHANGE_GOAL_BLOCKS_H_
#define PREPOST_IR_EXCHANGE_GOAL_BLOCKS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/exchange/goal_messages.h"
#include "ir/exchange/goal_text.h"
#include "ir/plan.h"

namespace prepost {

struct GoalBlocks {
  std::vector<uint32_t> block_of;  ///< message -> block
  Payload payload;
};

/// Step 4 of goal_reader.cc, of a multicast. `block_bytes` as in GoalOptions. Errors: a send whose
/// block cannot be recognised, sizes that are no message in equal blocks; at the op's line.
Result<GoalBlocks> FindGoalBlocks(const GoalFile& file, const GoalMessages& messages, uint32_t root,
                                  std::optional<uint64_t> block_bytes);

}  // namespace prepost

#endif  // PREPOST_IR_EXCHANGE_GOAL_BLOCKS_H_
