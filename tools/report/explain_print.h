// SPDX-License-Identifier: Apache-2.0
//
// Prints why ops of a plan wait, for people and as JSON.
#ifndef PREPOST_TOOLS_REPORT_EXPLAIN_PRINT_H_
#define PREPOST_TOOLS_REPORT_EXPLAIN_PRINT_H_

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "ir/analysis/node_summary.h"
#include "ir/analysis/reasons.h"

namespace prepost::tools {

/// What `explain` says: of a block whose it is and what becomes of it; of a node a summary; of an
/// op or a message its ops; and the chain that leads there.
struct Explanation {
  std::optional<uint32_t> block;
  std::optional<NodeSummary> node;
  std::vector<OpReasons> ops;
  std::vector<ChainStep> chain;
};

/// Long lists are cut, with a line that says so.
void PrintExplanation(const PlanTables& tables, const EventTimes& times,
                      const Explanation& explanation, std::ostream& out);

nlohmann::ordered_json ExplanationJson(const PlanTables& tables, const EventTimes& times,
                                       const Explanation& explanation);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_EXPLAIN_PRINT_H_
