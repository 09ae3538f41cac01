// SPDX-License-Identifier: Apache-2.0
//
// LocalOrder: what is certain to have completed at a node before one of its sends starts, judged
// from that node's program alone. The verifier asks it whether a wanted order holds, the thin
// pass which `after` entries say nothing new.
//
// The order at a node: everything in a send's `after` completes before it starts; sends of one
// channel start in id order; ops of one channel complete in id order; a send starts before it
// completes.
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
  /// current op is a send.
  bool Precedes(OpId before) const;
  /// Whether entry `index` of the current op's `after` follows from its other entries and its
  /// channel.
  bool IsImplied(size_t index) const;

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  const Op& op(OpId id) const { return ops_[id.index()]; }
  /// Raises started_ to what has completed when `send`, which starts before the current op, starts.
  void JoinStart(OpId send);
  void Release(OpId id);

  const Plan& plan_;
  std::span<const Op> ops_;
  uint32_t channels_ = 0;
  std::vector<uint32_t> channel_of_;  // op -> the node's own number of its channel
  std::vector<uint32_t> position_;    // op -> its position on its channel
  std::vector<uint32_t> previous_;    // send -> the send before it on its channel, or kNone
  std::vector<uint32_t> last_use_;    // send -> the last op that asks for its clock, or kNone
  // How many ops of each of the node's channels have completed, by the node's own channel numbers.
  VectorClocks clocks_;
  std::vector<VectorClocks::Clock> clock_of_;  // send -> when it starts, while it is needed
  // When what the current op comes after has started, and when that has completed.
  VectorClocks::Clock started_ = VectorClocks::kZero;
  VectorClocks::Clock completed_ = VectorClocks::kZero;
  std::optional<OpId> current_;
};

}  // namespace prepost

#endif  // PREPOST_IR_LOCAL_ORDER_H_
