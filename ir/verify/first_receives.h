// SPDX-License-Identifier: Apache-2.0
//
// FirstReceives: which op of a program receives a block first, for rules that go through a plan
// program by program. Internal to ir/.
#ifndef PREPOST_IR_VERIFY_FIRST_RECEIVES_H_
#define PREPOST_IR_VERIFY_FIRST_RECEIVES_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ir/plan.h"

namespace prepost {

/// Blocks must be in range. Beginning a program costs its ops: nothing is cleared.
class FirstReceives {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  explicit FirstReceives(uint32_t blocks) : seen_in_(blocks, 0), op_(blocks) {}

  /// Looks up those of `ops`, one program's, from now on.
  void Begin(std::span<const Op> ops) {
    ++program_;
    for (uint32_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      if (op.is_send() || op.is_credit()) continue;
      for (uint32_t block = op.block; block < op.block + op.count; ++block) {
        if (std::exchange(seen_in_[block], program_) != program_) op_[block] = i;
      }
    }
  }
  /// The op, by its id, or kNone.
  uint32_t Of(uint32_t block) const { return seen_in_[block] == program_ ? op_[block] : kNone; }

 private:
  uint32_t program_ = 0;           // in hand, counted from 1
  std::vector<uint32_t> seen_in_;  // block -> the last program that receives it
  std::vector<uint32_t> op_;       // block -> its first receive there
};

}  // namespace prepost

#endif  // PREPOST_IR_VERIFY_FIRST_RECEIVES_H_
