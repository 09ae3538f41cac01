// SPDX-License-Identifier: Apache-2.0
//
// PlaySchedule: asks every node what it does in each round, and writes it down as a plan without
// credits or windows; the passes add those.
#ifndef PREPOST_COMPILER_SCHEDULES_SCHEDULE_PLAYER_H_
#define PREPOST_COMPILER_SCHEDULES_SCHEDULE_PLAYER_H_

#include <functional>
#include <memory>

#include "compiler/schedules/schedule.h"
#include "ir/plan.h"

namespace prepost {

/// The part of one of the plan's nodes; its peers are the plan's nodes too.
using NodeSource = std::function<std::unique_ptr<NodeSchedule>(NodeId node)>;

/// `header`: nodes, root and message as they are; its rounds are found here, its ready mode becomes
/// barrier, its send window none. `source` is asked twice for each node. What a schedule says is
/// written down whether or not it is right. Errors: ops beyond twice what a right plan has.
Result<Plan> PlaySchedule(PlanHeader header, const NodeSource& source);

}  // namespace prepost

#endif  // PREPOST_COMPILER_SCHEDULES_SCHEDULE_PLAYER_H_
