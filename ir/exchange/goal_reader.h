// SPDX-License-Identifier: Apache-2.0
//
// A plan from a GOAL text (LogGOPSim's schedules), if it is a broadcast of one message from one
// rank to all others or, where the options say so, another collective. docs/inspect.md describes
// how blocks are recognised and what is lost.
#ifndef PREPOST_IR_EXCHANGE_GOAL_READER_H_
#define PREPOST_IR_EXCHANGE_GOAL_READER_H_

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "ir/plan.h"
#include "ir/verify/verify.h"

namespace prepost {

struct GoalOptions {
  /// None: the one rank that receives nothing; of a reduce or gather, that sends nothing.
  std::optional<uint32_t> root;
  /// The size of a full block; none: that of the largest. Only a message of one block leaves it
  /// open, and of other collectives than multicasts messages of several.
  std::optional<uint64_t> block_bytes;
  CollectiveKind collective = CollectiveKind::kMulticast;
  Combine combine;  ///< of collectives that combine; of a barrier `and` where there is none
  /// Of a part, for other collectives than multicasts; none: found from the messages.
  std::optional<uint64_t> message_bytes;
};

/// A plan with the places that it comes from.
struct GoalPlan {
  Plan plan;  ///< not verified; ready barrier, no credits, no send window, no scratch buffers yet
  std::string name;
  std::vector<uint32_t> op_lines;    ///< the line of each of plan.ops()
  std::vector<size_t> op_begins;     ///< of each of plan.programs(): its first op
  std::vector<uint32_t> rank_lines;  ///< of each of plan.programs()
  std::vector<std::string> notes;    ///< what the file says and a plan cannot, a line each

  /// `diagnostic`, of `found_in`, with its place in the GOAL text: "name:12" for an op or program.
  /// `found_in` is `plan` or what passes have made of it, with credits: these are at their rank's
  /// line.
  Diagnostic AtLine(const Plan& found_in, Diagnostic diagnostic) const;
};

/// Reads one GOAL text. `name` is the file's name in messages. Errors, kRejected with "name:line":
/// what is no GOAL text; messages that do not match; a deadlock; a send whose block cannot be
/// recognised; sizes that are no message in equal blocks; calcs that combine nothing; "/combine":
/// an operation that is missing, or that does not go with the collective. Whether each rank gets
/// each block once, and not after it sends it, and what it is made of, is for Verify(). Cost:
/// linear, but for sorting, in the length of the text and the blocks of its ranges, which are
/// bounded (kRangeBlocksMax); what waits for many peers, and dealing the root's sends out to
/// blocks, costs more and is bounded by an error, in time and in memory.
Result<GoalPlan> ReadGoal(std::istream& in, const std::string& name,
                          const GoalOptions& options = {});

}  // namespace prepost

#endif  // PREPOST_IR_EXCHANGE_GOAL_READER_H_
