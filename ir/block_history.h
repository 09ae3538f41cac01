// SPDX-License-Identifier: Apache-2.0
//
// BlockHistory: what a program has done to each block before an op, for whoever goes through a plan
// program by program: rules, and what writes plans. Internal to ir/.
#ifndef PREPOST_IR_BLOCK_HISTORY_H_
#define PREPOST_IR_BLOCK_HISTORY_H_

#include <cstdint>
#include <vector>

#include "ir/plan.h"

namespace prepost {

/// Ops are ids.
struct BlockPast {
  static constexpr uint32_t kNone = 0xffffffff;

  bool is_there = false;       ///< the node has something of the block
  uint32_t received = kNone;   ///< its last receive
  uint32_t sends = 0;          ///< in all
  uint32_t sends_since = 0;    ///< since its last receive
  uint32_t last_send = kNone;  ///< of these, as BlockHistory counts them
};

/// Blocks must be in range. Beginning a program costs nothing.
class BlockHistory {
 public:
  BlockHistory(const Roles& roles, uint32_t blocks) : roles_(roles), of_(blocks), in_(blocks, 0) {}

  void Begin(NodeId node) {
    ++program_;
    node_ = node;
    sends_.clear();
  }
  const BlockPast& Of(uint32_t block) {
    if (in_[block] != program_) {
      in_[block] = program_;
      of_[block] = {.is_there = roles_.Contributes(node_, block)};
    }
    return of_[block];
  }
  /// After Of() of the block.
  void Add(uint32_t block, uint32_t op, OpKind kind) {
    BlockPast& past = of_[block];
    if (kind == OpKind::kSend) {
      ++past.sends;
      ++past.sends_since;
      sends_.push_back({.op = op, .before = past.last_send});
      past.last_send = static_cast<uint32_t>(sends_.size()) - 1;
    } else {
      past = {.is_there = true, .received = op, .sends = past.sends};
    }
  }
  /// Of the block's sends since its last receive.
  template <typename Each>
  void ForEachSend(const BlockPast& past, const Each& each) const {
    for (uint32_t i = past.last_send; i != BlockPast::kNone; i = sends_[i].before)
      each(sends_[i].op);
  }

 private:
  struct Send {
    uint32_t op;
    uint32_t before;  // the block's send before it, by its place here
  };

  const Roles roles_;
  uint32_t program_ = 0;  // in hand, counted from 1
  NodeId node_;
  std::vector<BlockPast> of_;  // block
  std::vector<uint32_t> in_;   // block -> the program that of_ is of
  std::vector<Send> sends_;
};

}  // namespace prepost

#endif  // PREPOST_IR_BLOCK_HISTORY_H_
