// SPDX-License-Identifier: Apache-2.0
//
// BlockTouches: which ops touch a block, for rules that go through a plan block by block. Internal
// to ir/.
#ifndef PREPOST_IR_VERIFY_TOUCHES_H_
#define PREPOST_IR_VERIFY_TOUCHES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "ir/plan.h"

namespace prepost {

struct BlockTouch {
  uint32_t op = 0;  ///< index into Plan::ops()
  uint32_t node = 0;
};

/// Those of all blocks, each block's program after program, in id order within. Needs a plan
/// without `shape` findings. Linear in ops and the blocks that they carry.
class BlockTouches {
 public:
  explicit BlockTouches(const Plan& plan) : begin_(plan.header().payload.blocks + size_t{1}) {
    const auto for_each = [&](auto&& touch) {
      for (const Program& program : plan.programs()) {
        for (uint32_t i = program.op_begin; i < program.op_begin + program.op_count; ++i) {
          const Op& op = plan.ops()[i];
          if (op.is_credit()) continue;
          for (uint32_t block = op.block; block < op.block + op.count; ++block)
            touch(block, BlockTouch{.op = i, .node = program.node.value});
        }
      }
    };
    for_each([&](uint32_t block, const BlockTouch&) { ++begin_[block + 1]; });
    for (size_t block = 1; block < begin_.size(); ++block) begin_[block] += begin_[block - 1];
    all_.resize(begin_.back());
    std::vector<size_t> next(begin_.begin(), begin_.end() - 1);
    for_each([&](uint32_t block, const BlockTouch& touch) { all_[next[block]++] = touch; });
  }

  std::span<const BlockTouch> Of(uint32_t block) const {
    return std::span(all_).subspan(begin_[block], begin_[block + 1] - begin_[block]);
  }

 private:
  std::vector<size_t> begin_;  // block -> its first
  std::vector<BlockTouch> all_;
};

}  // namespace prepost

#endif  // PREPOST_IR_VERIFY_TOUCHES_H_
