// SPDX-License-Identifier: Apache-2.0
//
// ComparisonReport: what `prepost compare` reports, by either clock, as text and as JSON.
#ifndef PREPOST_TOOLS_REPORT_COMPARISON_REPORT_H_
#define PREPOST_TOOLS_REPORT_COMPARISON_REPORT_H_

#include <array>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/local/comparison.h"
#include "backends/nic/program/lower.h"
#include "ir/plan.h"
#include "sim/simulation.h"

namespace prepost::tools {

/// A plan, both ways.
struct ComparedPlan {
  struct Line {
    std::string label;
    std::array<std::string, 2> ways;  ///< by local::Way
  };

  std::string head;
  std::vector<Line> counts;
  std::vector<Line> milliseconds;
  std::string ratio;            ///< below the tables
  nlohmann::ordered_json json;  ///< with all samples
};
ComparedPlan ComparedByClock(const PlanHeader& plan, const local::CompareOptions& options,
                             const local::Comparison& comparison, const std::string& device);
ComparedPlan ComparedInModel(const sim::Simulation& it, const nic::LowerOptions& lower);

struct ComparisonReport {
  bool is_modelled = false;
  std::string device = "emulated";
  nlohmann::ordered_json json;  ///< of all plans: the clock, the machine
  std::vector<ComparedPlan> plans;
};
/// A report of times on this machine's clock.
ComparisonReport ReportOfMachine(const std::string& device);
ComparisonReport ReportOfModel(const sim::Profile& profile, const std::string& profile_path,
                               const std::vector<std::string>& deviations);

/// Prints for each plan counts first, then times; then what they mean.
void Print(const ComparisonReport& report, std::ostream& out);
nlohmann::ordered_json ToJson(const ComparisonReport& report);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_COMPARISON_REPORT_H_
