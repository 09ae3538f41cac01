// SPDX-License-Identifier: Apache-2.0
//
// LocalOrder: what is certain to have completed at a node before one of its sends starts, or one of
// its combines begins to combine, judged from that node's program alone. The verifier asks it
// whether a wanted order holds, the thin pass which `after` entries say nothing new.
//
// The order at a node: everything in an op's `after` completes before it starts (a combine: before
// it combines); sends of one channel start in id order; ops of one kind on one channel complete in
// id order, and each combine begins when the one before it there has completed; an op starts before
// it completes.
#ifndef PREPOST_IR_LOCAL_ORDER_H_
#define PREPOST_IR_LOCAL_ORDER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/plan.h"
#include "ir/vector_clocks.h"

namespace prepost {

/// Walks one program in id order. Needs a plan without `shape` findings; keeps a reference to it.
/// An entry of `after` costs O(log16(channels of the node)), unless what it names and the later
/// entries have different pasts: then as much as their clocks differ (VectorClocks::Join). Memory
/// is for the sends that a later op still refers to.
class LocalOrder {
 public:
  LocalOrder(const Plan& plan, const Program& program);

  /// Moves to the first op, then to the next one. Needs an op to move to.
  void Advance();

  /// Whether `before`, an op with a smaller id, has completed when the current op starts. The
  /// current op may wait.
  bool Precedes(OpId before) const;
  /// Whether entry `index` of the current op's `after` follows from its other entries and its
  /// channel.
  bool IsImplied(size_t index) const;

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  const Op& op(OpId id) const { return ops_[id.index()]; }
  /// Raises started_ to what has completed when `before`, which starts before the current op,
  /// starts.
  void JoinStart(OpId before);
  void Release(OpId id);

  const Plan& plan_;
  std::span<const Op> ops_;
  uint32_t rows_ = 0;
  std::vector<uint32_t> row_of_;    // op -> its row: the ops of its kind on its channel
  std::vector<uint32_t> position_;  // op -> its position in its row
  std::vector<uint32_t> previous_;  // op that may wait -> the one before it in its row, or kNone
  std::vector<uint32_t> last_use_;  // op that may wait -> the last one that asks for its clock
  // How many ops of each row have completed.
  VectorClocks clocks_;
  std::vector<VectorClocks::Clock> clock_of_;  // op -> when it starts, while it is needed
  // When what the current op comes after has started, and when that has completed.
  VectorClocks::Clock started_ = VectorClocks::kZero;
  VectorClocks::Clock completed_ = VectorClocks::kZero;
  std::optional<OpId> current_;
};

}  // namespace prepost

#endif  // PREPOST_IR_LOCAL_ORDER_H_
