// SPDX-License-Identifier: Apache-2.0
//
// Prints what a run did, for people and for programs. Used by every subcommand that runs a plan.
#ifndef PREPOST_TOOLS_REPORT_REPORT_PRINT_H_
#define PREPOST_TOOLS_REPORT_REPORT_PRINT_H_

#include <cstdint>
#include <iosfwd>

#include "ir/plan.h"
#include "runtime/run/local_group.h"

namespace prepost::tools {

/// What the outputs of a collective have been compared with.
enum class OutputCheck : uint8_t {
  kInputs,  ///< what the plan makes of all inputs
  kOutputs  ///< each other, where the plan makes them equal: nobody has all inputs
};

/// A table with a line per node of the report (all, or one of those on several machines), and a
/// last line: on their copies, which have one sum, or of another collective than a multicast on
/// nodes' outputs, which are checked as `check` says. Or the same as one JSON object, on several
/// lines.
void PrintRun(const PlanHeader& header, const LocalRun& run, OutputCheck check, bool is_json,
              std::ostream& out);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_REPORT_PRINT_H_
