// SPDX-License-Identifier: Apache-2.0
//
// A plan as GOAL text, the schedules that LogGOPSim's txt2bin compiles: a rank per node, a send or
// recv per op. goal_reader.h reads it back. docs/inspect.md describes what is kept and what is
// lost.
#ifndef PREPOST_IR_EXCHANGE_GOAL_WRITER_H_
#define PREPOST_IR_EXCHANGE_GOAL_WRITER_H_

#include <cstdint>
#include <iosfwd>
#include <string>

#include "ir/plan.h"

namespace prepost {

/// Tags tell messages of one pair of ranks apart, so that a simulator matches them as the plan
/// does: a block's tag is its number, the i-th credit of a channel has kGoalCreditTag + i.
inline constexpr uint32_t kGoalCreditTag = kBlocksMax;
/// Bytes of a credit. Simulators charge (bytes - 1) times a gap, so not 0.
inline constexpr uint64_t kGoalCreditBytes = 1;

/// A combine's calc takes 1 ns for so many bytes: 4 GB/s, as ChooseCollective() assumes.
inline constexpr uint64_t kGoalCombineBytes = 4;

/// Writes `plan`, which must be valid. The caller checks `out` for I/O errors.
void WriteGoal(const Plan& plan, std::ostream& out);

/// What of `plan` GOAL has no form for, in one line.
std::string GoalLosses(const Plan& plan);

}  // namespace prepost

#endif  // PREPOST_IR_EXCHANGE_GOAL_WRITER_H_
