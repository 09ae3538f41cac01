// SPDX-License-Identifier: Apache-2.0
//
// ScratchUses: which receives of a program fill a scratch buffer that another one has filled
// before, and who needs what it held. Internal to ir/.
#ifndef PREPOST_IR_VERIFY_SCRATCH_USES_H_
#define PREPOST_IR_VERIFY_SCRATCH_USES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "ir/plan.h"

namespace prepost {

/// Ops are ids.
struct ScratchReuse {
  uint32_t buffer = 0;
  uint32_t op = 0;          ///< the receive that fills it again
  uint32_t holder = 0;      ///< the one that filled it before
  bool is_place = false;    ///< of that one's block
  uint32_t next_touch = 0;  ///< of the block after `holder`, as ScratchUses counts
};

/// A buffer holds what came until it is combined; where a node wants no copy of the block, the
/// first receive's buffer is the block's place from then on.
class ScratchUses {
 public:
  ScratchUses(const Roles& roles, const PlanHeader& header)
      : roles_(roles),
        holder_(header.scratch),
        past_(header.scratch == 0 ? 0 : header.payload.blocks) {}

  /// Finds the reuses of `ops`, one program's. Linear in them and the blocks that they carry.
  void Begin(NodeId node, std::span<const Op> ops) {
    ++program_;
    reuses_.clear();
    touches_.clear();
    for (uint32_t i = 0; i < ops.size(); ++i) {
      if (ops[i].is_credit()) continue;
      for (uint32_t j = 0; j < ops[i].count; ++j) Add(node, i, ops[i], j);
    }
    for (ScratchReuse& reuse : reuses_) reuse.next_touch = touches_[reuse.next_touch].next;
  }

  std::span<const ScratchReuse> reuses() const { return reuses_; }

  /// The ops that need what the buffer held: its receive and, where it was the block's place, all
  /// that touch the block from then on.
  template <typename Each>
  void ForEachUse(const ScratchReuse& reuse, const Each& each) const {
    each(reuse.holder);
    if (!reuse.is_place) return;
    for (uint32_t i = reuse.next_touch; i != kNone; i = touches_[i].next) each(touches_[i].op);
  }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  struct Touch {
    uint32_t op;
    uint32_t next = kNone;  ///< of the same block
  };
  /// Of the program that it names, or of none.
  struct BlockPast {
    uint32_t program = 0;
    uint32_t last_touch = kNone;
    bool is_placed = false;
  };
  struct Holder {
    uint32_t program = 0;
    uint32_t op = 0;
    uint32_t touch = 0;
    bool is_place = false;
  };

  /// The j-th block of op i.
  void Add(NodeId node, uint32_t i, const Op& op, uint32_t j) {
    const uint32_t block = op.block + j;
    const auto touch = static_cast<uint32_t>(touches_.size());
    touches_.push_back({.op = i});
    BlockPast& past = past_[block];
    if (past.program != program_) past = {.program = program_};
    if (past.last_touch != kNone) touches_[past.last_touch].next = touch;
    past.last_touch = touch;
    if (op.is_send()) return;
    const bool is_wanted = roles_.Wants(node, block);
    const bool is_place = !is_wanted && !past.is_placed;
    past.is_placed = true;
    if (op.scratch == kNoScratch || (is_wanted && !op.is_combine())) return;
    Holder& holder = holder_[op.scratch + j];
    if (holder.program == program_) {
      reuses_.push_back({.buffer = op.scratch + j,
                         .op = i,
                         .holder = holder.op,
                         .is_place = holder.is_place,
                         .next_touch = holder.touch});
    }
    holder = {.program = program_, .op = i, .touch = touch, .is_place = is_place};
  }

  const Roles roles_;
  uint32_t program_ = 0;  // in hand, counted from 1
  std::vector<ScratchReuse> reuses_;
  std::vector<Touch> touches_;
  std::vector<Holder> holder_;   // by buffer
  std::vector<BlockPast> past_;  // by block
};

}  // namespace prepost

#endif  // PREPOST_IR_VERIFY_SCRATCH_USES_H_
