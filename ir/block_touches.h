// SPDX-License-Identifier: Apache-2.0
//
// BlockTouches: which ops touch a block; BlockRun: these in an order in which they can happen, for
// whoever goes through a plan block by block. Internal to ir/.
#ifndef PREPOST_IR_BLOCK_TOUCHES_H_
#define PREPOST_IR_BLOCK_TOUCHES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/messages.h"
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

/// The ops of one block after the other: each node's in id order, a receive after its send. An op's
/// effect on a block is that of its place in the program, in every plan that has no findings of
/// causal and combine.
class BlockRun {
 public:
  /// Of a plan without findings of `shape` and `match`, which it keeps.
  BlockRun(const Plan& plan, const MessageTable& messages)
      : plan_(plan),
        messages_(messages),
        touches_(plan),
        next_(plan.header().nodes),
        end_(plan.header().nodes),
        has_left_(messages.size(), false) {}

  /// Nodes with ops on the block that ran last.
  std::span<const uint32_t> nodes() const { return nodes_; }

  /// `each`(touch) for every op of the block; false ends the run, also the result's meaning.
  /// Returns the first op that waits for itself, as the order of ids goes in a circle.
  template <typename Each>
  std::optional<BlockTouch> Run(uint32_t block, const Each& each) {
    const std::span<const BlockTouch> all = touches_.Of(block);
    Begin(all);
    std::vector<uint32_t> ready(nodes_);
    while (!ready.empty()) {
      const uint32_t node = ready.back();
      ready.pop_back();
      for (; next_[node] < end_[node]; ++next_[node]) {
        const BlockTouch& touch = all[next_[node]];
        const Op& op = plan_.ops()[touch.op];
        const uint32_t message = messages_.MessageOf(touch.op);
        if (!op.is_send() && !has_left_[message]) break;  // until its sender is through
        if (!each(touch)) return std::nullopt;
        if (!op.is_send()) continue;
        has_left_[message] = true;
        left_.push_back(message);
        ready.push_back(plan_.channels()[op.channel.index()].to.value);
      }
    }
    for (const uint32_t node : nodes_)
      if (next_[node] != end_[node]) return all[next_[node]];
    return std::nullopt;
  }

 private:
  void Begin(std::span<const BlockTouch> all) {
    for (const uint32_t node : nodes_) end_[node] = 0;
    nodes_.clear();
    for (const uint32_t message : left_) has_left_[message] = false;
    left_.clear();
    for (size_t i = 0; i < all.size(); ++i) {
      const uint32_t node = all[i].node;
      if (end_[node] == 0) {
        next_[node] = i;
        nodes_.push_back(node);
      }
      end_[node] = i + 1;
    }
  }

  const Plan& plan_;
  const MessageTable& messages_;
  const BlockTouches touches_;
  std::vector<size_t> next_;    // by node, of its touches of the block, the first that is not done
  std::vector<size_t> end_;     // by node, of these; 0: none
  std::vector<bool> has_left_;  // by message
  std::vector<uint32_t> left_;
  std::vector<uint32_t> nodes_;
};

}  // namespace prepost

#endif  // PREPOST_IR_BLOCK_TOUCHES_H_
