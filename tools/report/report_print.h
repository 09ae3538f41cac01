// SPDX-License-Identifier: Apache-2.0
//
// Prints what a run did, for people and for programs. Used by every subcommand that runs a plan.
#ifndef PREPOST_TOOLS_REPORT_REPORT_PRINT_H_
#define PREPOST_TOOLS_REPORT_REPORT_PRINT_H_

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <vector>

#include "ir/plan.h"
#include "runtime/files/message_sum.h"
#include "runtime/report.h"

namespace prepost::tools {

/// A table with a line per node of the report (all, or one of those on several machines), and a
/// last line on their copies, which have `sum`, as all have.
void PrintReport(const PlanHeader& header, const RunReport& report, const MessageSum& sum,
                 std::ostream& out);

/// The same as one JSON object, on several lines.
void PrintReportJson(const PlanHeader& header, const RunReport& report, const MessageSum& sum,
                     std::ostream& out);

/// What the outputs of a collective have been compared with.
enum class OutputCheck : uint8_t {
  kInputs,  ///< what the plan makes of all inputs
  kOutputs  ///< each other, where the plan makes them equal: nobody has all inputs
};

/// The same of another collective than a multicast, with the sums of nodes' outputs (by node; none:
/// it has no output, or the report has not this node), which are checked as `check` says.
void PrintOutputs(const PlanHeader& header, const RunReport& report,
                  const std::vector<std::optional<MessageSum>>& outputs, OutputCheck check,
                  std::ostream& out);
void PrintOutputsJson(const PlanHeader& header, const RunReport& report,
                      const std::vector<std::optional<MessageSum>>& outputs, OutputCheck check,
                      std::ostream& out);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_REPORT_PRINT_H_
