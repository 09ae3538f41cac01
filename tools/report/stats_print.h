// SPDX-License-Identifier: Apache-2.0
//
// Prints what a plan costs and how near it is to what is possible, for people.
#ifndef PREPOST_TOOLS_REPORT_STATS_PRINT_H_
#define PREPOST_TOOLS_REPORT_STATS_PRINT_H_

#include <iosfwd>

#include "tools/report/stats_figures.h"

namespace prepost::tools {

/// About 30 lines, whatever the plan's size.
void PrintStats(const PlanStats& stats, std::ostream& out);
/// A line per node.
void PrintNodes(const PlanStats& stats, std::ostream& out);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_STATS_PRINT_H_
