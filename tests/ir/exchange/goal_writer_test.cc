// SPDX-License-Identifier: Apache-2.0
#include "ir/exchange/goal_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/draft.h"
#include "tests/support/golden.h"
#include "tests/support/plans.h"

namespace prepost::goal_writer_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

VerifiedPlan Chain(const char* ready, const char* send_window) {
  return test::CompileOrDie({.nodes = 3,
                             .message_bytes = 25,
                             .block_bytes = 10,
                             .algorithm = "chain",
                             .ready = *ParseReady(ready),
                             .send_window = *ParseSendWindow(send_window)});
}

std::string Goal(const Plan& plan) {
  std::ostringstream out;
  WriteGoal(plan, out);
  return out.str();
}

// Catches a wrong size of the short last block, tag, peer, or label.
TEST(GoalWriterTest, Golden) {
  test::ExpectGolden("exchange/chain-3.goal", Goal(Chain("barrier", "1")));
  test::ExpectGolden("exchange/chain-3-window.goal", Goal(Chain("window=1", "none")));
}

// Catches an order that only the channel of a plan gives, lost: sends start in it, which GOAL must
// be recognised.
TEST(GoalWriterTest, SendsOfAChannelStartInOrder) {
  EXPECT_THAT(Goal(Chain("barrier", "none")), HasSubstr("l2 irequires l1\nl3: send 5b"));
  EXPECT_THAT(Goal(Chain("barrier", "1")), Not(HasSubstr("irequires")));
}

// Catches a send whose block's receive is implied by another one and so not named: a reader of the
// file would not know what it forwards.
TEST(GoalWriterTest, ASendRequiresItsBlockByName) {
  test::Draft draft(Chain("barrier", "none"));
  // Node 1 now receives all blocks, then sends: "after recv b2" implies the others.
  for (test::DraftOp& op : draft.programs[1].ops) {
    if (op.op.is_send()) op.after.clear();
  }
  test::DraftProgram& middle = draft.programs[1];
  const std::vector<uint32_t> receives_first = {0, 1, 3, 2, 4, 5};
  middle.Reorder(receives_first);
  for (test::DraftOp& op : middle.ops) {
    if (op.op.is_send()) op.after = {2};
  }
  const std::string text = Goal(draft.Build());
  EXPECT_THAT(text, HasSubstr("l4 requires l3\nl4 requires l1\n"));
}

TEST(GoalWriterTest, SaysWhatIsLost) {
  EXPECT_THAT(GoalLosses(Chain("barrier", "none")), HasSubstr("no barrier"));
  EXPECT_THAT(GoalLosses(Chain("window=1", "none")), HasSubstr("tags from 16777216 up"));
  EXPECT_THAT(GoalLosses(Chain("retry", "none")), HasSubstr("no retries"));
  EXPECT_EQ(GoalLosses(test::PlanOf(1, 3)),
            "GOAL has nothing of one node, not even the size of its message");
  const VerifiedPlan one_block =
      test::CompileOrDie({.nodes = 3, .message_bytes = 7, .block_bytes = 10});
  EXPECT_THAT(GoalLosses(one_block),
              HasSubstr("no size of a full block (import takes --block-bytes 10)"));
  EXPECT_EQ(GoalLosses(test::PlanOf(3, 1)).find("full block"), std::string::npos);
}

}  // namespace
}  // namespace prepost::goal_writer_test
