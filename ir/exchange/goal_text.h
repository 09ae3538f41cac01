// SPDX-License-Identifier: Apache-2.0
//
// GoalFile: a GOAL text, read but not yet understood as a multicast or another collective: ranks
// with their ops and the order between them. Internal to ir/.
#ifndef PREPOST_IR_EXCHANGE_GOAL_TEXT_H_
#define PREPOST_IR_EXCHANGE_GOAL_TEXT_H_

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "ir/base/status.h"

namespace prepost {

struct GoalOp {
  enum class Kind : uint8_t { kSend, kRecv, kCalc };
  Kind kind = Kind::kCalc;
  uint32_t rank = 0;
  uint32_t peer = 0;   ///< not of a calc
  uint64_t bytes = 0;  ///< of a calc: its nanoseconds
  uint32_t tag = 0;
  uint32_t line = 0;
};

/// "later requires earlier" (it has completed), or "irequires" (it has started). Ops are indices of
/// GoalFile::ops.
struct GoalOrder {
  uint32_t later = 0;
  uint32_t earlier = 0;
  bool is_start = false;

  friend auto operator<=>(const GoalOrder&, const GoalOrder&) = default;
};

struct GoalFile {
  std::string name;  ///< in messages

  struct Rank {
    uint32_t op_begin = 0;
    uint32_t op_end = 0;
    uint32_t line = 0;  ///< 0: the file does not mention it
  };
  std::vector<Rank> ranks;
  std::vector<GoalOp> ops;
  std::vector<GoalOrder> orders;  ///< sorted by `later`

  /// The orders in which an op is the later one.
  std::span<const GoalOrder> OrdersOf(uint32_t later) const;
  /// kRejected, at the line of an op.
  Status At(uint32_t op, std::string message) const;
};

/// Reads the text form, as LogGOPSim's txt2bin does: num_ranks, rank R { ... }, labelled or not
/// send, recv and calc, requires, irequires, comments; cpu and nic are skipped. Labels must be
/// defined before they are named. Bounded: line length, ranks, 32-bit counts. Errors: kRejected,
/// "name:line: ...".
Result<GoalFile> ReadGoalText(std::istream& in, const std::string& name);

}  // namespace prepost

#endif  // PREPOST_IR_EXCHANGE_GOAL_TEXT_H_
