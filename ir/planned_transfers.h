// SPDX-License-Identifier: Apache-2.0
//
// PlanTransfers: a list of transfers with their rounds, written down as a plan without credits or
// windows. Whoever knows all transfers of a multicast before its plan makes the plan here: a GOAL
// text (exchange/goal_reader.h), a file of rounds (compiler/rounds/).
#ifndef PREPOST_IR_PLANNED_TRANSFERS_H_
#define PREPOST_IR_PLANNED_TRANSFERS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/plan.h"

namespace prepost {

/// A block on its way from one node to another.
struct PlannedTransfer {
  uint32_t round = 0;
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t block = 0;
};

/// The transfers, by index, of which the sender of `transfer` must have completed its end before it
/// sends; each comes before `transfer` in the plan's order. Good until the next call.
using WaitsOfTransfer = std::function<std::span<const uint32_t>(uint32_t transfer)>;

struct TransferPlan {
  Plan plan;  ///< not verified; ready barrier, no credits, no send window
  std::vector<uint32_t> transfer_of_op;  ///< of each of plan.ops()
};

/// Ops stand in the plan's one global order of messages: by round, then (from, to, block). Channels
/// are numbered by (from, to). `header.rounds` is found here. Needs nodes in range, and fewer than
/// 2^31 transfers. Cost: sorting the transfers, unless they are sorted.
TransferPlan PlanTransfers(PlanHeader header, std::span<const PlannedTransfer> transfers,
                           const WaitsOfTransfer& waits_of);

}  // namespace prepost

#endif  // PREPOST_IR_PLANNED_TRANSFERS_H_
