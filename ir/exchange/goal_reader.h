// SPDX-License-Identifier: Apache-2.0
//
// A plan from a GOAL text (LogGOPSim's schedules), if it is a broadcast of one message from one
// rank to all others. docs/inspect.md describes how blocks are recognised and what is lost.
#ifndef PREPOST_IR_EXCHANGE_GOAL_READER_H_
#define PREPOST_IR_EXCHANGE_GOAL_READER_H_

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "ir/plan.h"
#include "ir/verify/verify.h"

namespace prepost {

struct GoalOptions {
  std::optional<uint32_t> root;  ///< none: the one rank that receives nothing
  /// The size of a full block; none: that of the largest. Only a message of one block leaves it
  /// open.
  std::optional<uint64_t> block_bytes;
};

/// A plan with the places that it comes from.
struct GoalPlan {
  Plan plan;  ///< not verified; ready barrier, no credits, no send window
  std::string name;
  std::vector<uint32_t> op_lines;    ///< the line of each of plan.ops()
  std::vector<uint32_t> rank_lines;  ///< of each of plan.programs()
  std::vector<std::string> notes;    ///< what the file says and a plan cannot, a line each

  /// `diagnostic` with its place in the GOAL text: "name:12" for an op or program of the plan.
  Diagnostic AtLine(Diagnostic diagnostic) const;
};

/// Reads one GOAL text. `name` is the file's name in messages. Errors, kRejected with "name:line":
/// what is no GOAL text; messages that do not match; a deadlock; a send whose block cannot be
/// recognised; sizes that are no message in equal blocks. Whether each rank gets each block once,
/// and not after it sends it, is for Verify(). Linear, but for sorting, in the length of the text;
/// dealing the root's sends out to blocks is bounded by an error.
Result<GoalPlan> ReadGoal(std::istream& in, const std::string& name,
                          const GoalOptions& options = {});

}  // namespace prepost

#endif  // PREPOST_IR_EXCHANGE_GOAL_READER_H_
