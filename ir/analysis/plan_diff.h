// SPDX-License-Identifier: Apache-2.0
//
// DiffPlans: how two plans differ in what they mean: their multicast, who sends which block to
// whom, and what each node waits for. Ids of ops and channels, which only number these, make no
// difference, nor does the generator.
#ifndef PREPOST_IR_ANALYSIS_PLAN_DIFF_H_
#define PREPOST_IR_ANALYSIS_PLAN_DIFF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/plan.h"

namespace prepost {

/// Differences of one kind; the first few in words.
struct DiffSection {
  std::string name;  ///< "header", "only in a", "only in b", "order", "credits" or "rounds"
  uint64_t count = 0;
  std::vector<std::string> differences;
};

struct PlanDiff {
  /// "same", or the weightiest difference: "different sizes: ...", "different routes: 12 of 448
  /// messages", "same messages, different order: ...", ...
  std::string verdict;
  std::vector<DiffSection> sections;  ///< those with differences

  bool same() const { return sections.empty(); }
};

/// Compares valid plans. `shown_max` differences of each section are put in words, all are counted.
/// Costs what verifying local orders costs (verify.h).
PlanDiff DiffPlans(const Plan& a, const Plan& b, uint32_t shown_max = 20);

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_PLAN_DIFF_H_
