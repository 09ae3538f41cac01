// SPDX-License-Identifier: Apache-2.0
//
// Rolled plans for tests: every schedule that has one. Specs of those that know racks need some:
// WithRacks() in plans.h.
#ifndef PREPOST_TESTS_SUPPORT_ROLLED_PLANS_H_
#define PREPOST_TESTS_SUPPORT_ROLLED_PLANS_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "prepost/compiler/roll.h"
#include "prepost/compiler/schedule.h"

namespace prepost::test {

/// Every schedule that has a rolled form; of them a few with sanitizers, as in SchedulesToRun().
inline std::vector<std::string> RolledNames() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return {"chain", "binomial_tree", "binomial_pipeline", "kary_chain=3", "rack_circulant"};
#else
  std::vector<std::string> names;
  for (const Schedule* schedule : Schedules()) {
    if (schedule->rolled() != nullptr) names.emplace_back(schedule->name());
  }
  names.insert(names.end(), {"kary_chain=1", "kary_chain=3", "kary_tree=1", "kary_tree=5"});
  return names;
#endif
}

inline RolledPlan RollOrDie(const Spec& spec) {
  Result<RolledPlan> plan = Roll(spec);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  return *plan;
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_ROLLED_PLANS_H_
