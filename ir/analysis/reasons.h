// SPDX-License-Identifier: Apache-2.0
//
// Reasons: why a message of a plan cannot start earlier, what waits for it, how much later it might
// start, and the chain of messages from it back to the root. For `prepost explain`.
#ifndef PREPOST_IR_ANALYSIS_REASONS_H_
#define PREPOST_IR_ANALYSIS_REASONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/analysis/event_times.h"
#include "ir/plan_tables.h"

namespace prepost {

/// Why one event waits for another. Of several that end at the same time the first one here is
/// called the cause, as it says most about the plan.
enum class WaitKind : uint8_t {
  kTransfer,       ///< a delivery: for the start of its send
  kData,           ///< a block's send, or a combine: for the block's arrival, or its being combined
  kSendWindow,     ///< a block's send: for an earlier block's delivery, by the send window
  kChannelOrder,   ///< a send: for the one before it on its channel
  kReceiveWindow,  ///< a credit: for the arrival of a block, by the receive window
  kCredit,         ///< a block's send: for the credit that says its receive is posted
  kCombineOrder,   ///< a combine: for the one before it on its channel
  kLeft,           ///< a combine: for its node's sends of the block, of what it had before
  kScratch,        ///< a credit: for the sends from the scratch buffer that it grants
  kAfter,          ///< a send or combine: for an op that its `after` names for no reason above
  kDeliveryOrder,  ///< a delivery: for the one before it on its channel
  kGranted,        ///< a credit: for the posting of the receives that it grants
  kPosted,         ///< a delivery: for the posting of its receive
  kArrived,        ///< a combine: for its own delivery
  kPostOrder,      ///< a posting: for the one before it on its channel
  kBarrier         ///< a send: for the posting of all receives everywhere
};

struct Wait {
  WaitKind kind = WaitKind::kAfter;
  std::optional<OpRef> op;  ///< the other end; none: the barrier
  uint64_t until = 0;       ///< when the wait ends (model time)
  bool is_cause = false;    ///< nothing is waited for longer
  bool is_implied = false;  ///< `after` need not name it, as it follows from the other waits
};

/// Times are those of EventTimes with the costs given to Reasons.
struct OpReasons {
  OpRef ref;
  uint32_t message = 0;
  uint64_t earliest_start = 0;  ///< of the message
  uint64_t earliest_delivery = 0;
  uint64_t latest_start = 0;
  std::vector<Wait> waits_for;
  std::vector<Wait> waited_by;  ///< `until` and the flags mean nothing here

  uint64_t slack() const { return latest_start - earliest_start; }
};

struct ChainStep {
  uint32_t message = 0;
  std::optional<WaitKind> cause;  ///< why it waits for the next step; none: it waits for nothing
};

/// Keeps a reference to the tables. Making one, and each question, costs time linear in the plan.
class Reasons {
 public:
  explicit Reasons(const PlanTables& tables);

  const EventTimes& times() const { return times_; }
  OpReasons Explain(OpRef ref) const;
  /// From `message` to what it waited for longest, and so on until one that waits for no message.
  /// It has as many blocks as block times pass until the delivery of `message`.
  std::vector<ChainStep> ChainOf(uint32_t message) const;

 private:
  using Vertex = PlanGraph::Vertex;

  WaitKind KindOf(Vertex from, Vertex to) const;
  WaitKind KindOfAfter(uint32_t from, uint32_t to) const;
  WaitKind KindOfCombineAfter(uint32_t from, uint32_t to) const;
  std::vector<Wait> WaitsFor(OpRef ref, uint32_t message) const;
  void AddImplied(uint32_t message, std::vector<Wait>* waits) const;
  std::vector<Wait> WaitedBy(OpRef ref, uint32_t message) const;
  uint64_t CompletionOf(uint32_t message) const;
  OpRef RefAt(uint32_t message, NodeId node) const;

  const PlanTables& tables_;
  EventTimes times_;
  std::vector<Vertex> cause_;  // what each vertex waits for longest, or kNone
};

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_REASONS_H_
