// SPDX-License-Identifier: Apache-2.0
//
// Prints comparisons, for people and for programs.
#ifndef PREPOST_TOOLS_REPORT_COMPARE_PRINT_H_
#define PREPOST_TOOLS_REPORT_COMPARE_PRINT_H_

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "backends/local/comparison.h"
#include "backends/nic/program/lower.h"
#include "ir/plan.h"

namespace prepost::tools {

/// What was compared, and what came out.
struct ComparedPlan {
  PlanHeader plan;
  local::CompareOptions options;
  local::Comparison comparison;
};

/// The first two lines of either clock: the plan, and how both ways carry it.
std::string ComparedHead(const PlanHeader& plan, const nic::LowerOptions& lower,
                         std::string_view wait);

/// Counts first, then times, then what they mean; one table after the other.
void PrintComparisons(const std::vector<ComparedPlan>& compared, std::ostream& out);

/// The same with all samples, as one JSON object.
void PrintComparisonsJson(const std::vector<ComparedPlan>& compared, std::ostream& out);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_COMPARE_PRINT_H_
