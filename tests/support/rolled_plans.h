// SPDX-License-Identifier: Apache-2.0
//
// Rolled plans for tests: every schedule that has one, and specs for them.
#ifndef PREPOST_TESTS_SUPPORT_ROLLED_PLANS_H_
#define PREPOST_TESTS_SUPPORT_ROLLED_PLANS_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/roll.h"
#include "compiler/schedules/schedule.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"

namespace prepost::test {

/// Every schedule that has a rolled form.
inline std::vector<std::string> AllRolledNames() {
  std::vector<std::string> names;
  for (const Schedule* schedule : Schedules()) {
    if (schedule->rolled() != nullptr) names.emplace_back(schedule->name());
  }
  names.insert(names.end(), {"kary_chain=1", "kary_chain=3", "kary_tree=1", "kary_tree=5"});
  return names;
}
/// With sanitizers a third of them, as in SchedulesToRun().
inline std::vector<std::string> RolledNames() { return Turns(AllRolledNames()); }

constexpr uint64_t kRolledBlockBytes = 10;

/// Racks, if the schedule knows them, are of 2, 3, 4, 1, .. nodes as there are more of these.
inline Spec RolledSpec(const std::string& algorithm, uint32_t nodes, uint32_t blocks = 1) {
  return WithRacks({.nodes = nodes,
                    .root = NodeId(nodes / 3),
                    .message_bytes = blocks * kRolledBlockBytes - 3,
                    .block_bytes = kRolledBlockBytes,
                    .algorithm = algorithm},
                   1 + nodes % 4);
}

inline RolledPlan RollOrDie(const Spec& spec) {
  Result<RolledPlan> plan = Roll(spec);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  return *plan;
}

/// One node of a plan of 2^32 rounds, `rounds` of which pass between what it receives and sends,
/// however many blocks there are.
inline RolledPlan WithGap(int64_t rounds) {
  RolledPlan alone = *Roll({.nodes = 9, .block_bytes = 10, .algorithm = "chain"}, NodeId(5));
  alone.rounds = {.constant = int64_t{1} << 32};
  Segment& recv = alone.programs[0].segments[0];
  Segment send = recv;
  recv.slots[0].send.reset();
  recv.to = {.per_block = 1, .constant = 4};
  recv.from = {.constant = 4};
  recv.slots[0].recv->offset = {.constant = -4};
  send.slots[0].recv.reset();
  send.from = {.per_block = 1, .constant = 4 + rounds};
  send.to = {.per_block = 2, .constant = 4 + rounds};
  send.slots[0].send->offset = {.per_block = -1, .constant = -4 - rounds};
  alone.programs[0].segments.push_back(send);
  return alone;
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_ROLLED_PLANS_H_
