// SPDX-License-Identifier: Apache-2.0
//
// LocalOrder: what is certain to have completed at a node before one of its sends starts, judged
// from that node's program alone. The verifier asks it whether a wanted order holds, the reduce
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

#include "prepost/ir/plan.h"

namespace prepost {

/// Walks one program in id order. Needs a plan without `shape` findings; keeps a reference to it.
/// Per op it costs O(channels of the node x entries of `after`), and memory for the sends that a
/// later op still refers to.
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
  /// How many ops of each of the node's channels have completed; indexed by the node's own channel
  /// numbers.
  using Clock = std::vector<uint32_t>;
  static constexpr uint32_t kNone = 0xffffffff;

  const Op& op(OpId id) const { return ops_[id.index()]; }
  /// Ops of `channel` (node's number) that have completed when `done` has.
  uint32_t CompletedWith(OpId done, uint32_t channel) const;
  /// Ops of `channel` that have completed when send `id` starts.
  uint32_t StartedAfter(OpId id, uint32_t channel) const;
  void Join(OpId send);
  void Release(OpId id);

  const Plan& plan_;
  std::span<const Op> ops_;
  std::vector<uint32_t> channel_of_;  // op -> the node's own number of its channel
  std::vector<uint32_t> position_;    // op -> its position on its channel
  std::vector<uint32_t> previous_;    // send -> the send before it on its channel, or kNone
  std::vector<uint32_t> last_use_;    // send -> the last op that asks for its clock, or kNone
  // send -> its clock in clocks_, or kNone: all zero, or no longer needed
  std::vector<uint32_t> clock_of_;
  std::vector<Clock> clocks_;
  std::vector<uint32_t> free_clocks_;
  Clock current_clock_;
  std::optional<OpId> current_;
};

}  // namespace prepost

#endif  // PREPOST_IR_LOCAL_ORDER_H_
