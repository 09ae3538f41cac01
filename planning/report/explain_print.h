// SPDX-License-Identifier: Apache-2.0
//
// Why ops of a plan wait, for people and as JSON.
#ifndef PREPOST_PLANNING_REPORT_EXPLAIN_PRINT_H_
#define PREPOST_PLANNING_REPORT_EXPLAIN_PRINT_H_

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/analysis/node_summary.h"
#include "ir/analysis/reasons.h"
#include "ir/base/status.h"

namespace prepost {

/// What `explain` says: of a block whose it is and what becomes of it; of a node a summary; of an
/// op or a message its ops; and the chain that leads there.
struct Explanation {
  std::optional<uint32_t> block;
  std::optional<NodeSummary> node;
  std::vector<OpReasons> ops;
  std::vector<ChainStep> chain;
};

/// Of `what`: an op "5/12", a message "0>4:2", a node "5" or a block ":3" (op_reference.h). Errors:
/// those of ParseOpReference().
Result<Explanation> Explain(const PlanTables& tables, const Reasons& reasons,
                            const std::string& what);

/// Long lists are cut, with a line that says so.
void PrintExplanation(const PlanTables& tables, const EventTimes& times,
                      const Explanation& explanation, std::ostream& out);

nlohmann::ordered_json ExplanationJson(const PlanTables& tables, const EventTimes& times,
                                       const Explanation& explanation);

}  // namespace prepost

#endif  // PREPOST_PLANNING_REPORT_EXPLAIN_PRINT_H_
