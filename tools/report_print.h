// SPDX-License-Identifier: Apache-2.0
//
// Prints what a run did, for people and for programs. Used by every subcommand that runs a plan.
#ifndef PREPOST_TOOLS_REPORT_PRINT_H_
#define PREPOST_TOOLS_REPORT_PRINT_H_

#include <iosfwd>

#include "prepost/ir/plan.h"
#include "prepost/runtime/message_sum.h"
#include "prepost/runtime/report.h"

namespace prepost::tools {

/// A table with a line per node, and a last line on the copies, which all have `sum`.
void PrintReport(const Plan& plan, const RunReport& report, const MessageSum& sum,
                 std::ostream& out);

/// The same as one JSON object, on several lines.
void PrintReportJson(const Plan& plan, const RunReport& report, const MessageSum& sum,
                     std::ostream& out);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_PRINT_H_
