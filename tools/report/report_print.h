// SPDX-License-Identifier: Apache-2.0
//
// Prints what a run did, for people and for programs. Used by every subcommand that runs a plan.
#ifndef PREPOST_TOOLS_REPORT_REPORT_PRINT_H_
#define PREPOST_TOOLS_REPORT_REPORT_PRINT_H_

#include <iosfwd>

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

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_REPORT_PRINT_H_
