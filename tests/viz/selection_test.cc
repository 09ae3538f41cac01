// SPDX-License-Identifier: Apache-2.0
#include "viz/selection.h"

#include <gtest/gtest.h>

namespace prepost::viz::selection_test {
namespace {

Plan HeaderOnly() {
  PlanHeader header;
  header.algorithm = "chain";
  header.nodes = 8;
  header.payload = {.bytes = 4097, .block_bytes = 1024, .blocks = 5};
  header.rounds = 11;
  return PlanBuilder(header).Build();
}

TEST(ParseRoundsTest, FirstToLast) {
  const Result<Rounds> rounds = ParseRounds("2:5");
  ASSERT_TRUE(rounds.ok());
  EXPECT_EQ(rounds->first, 2u);
  EXPECT_EQ(rounds->last, 5u);
}

TEST(ParseRoundsTest, AnythingElseIsAUsageError) {
  for (const char* text :
       {"", "3", ":", "1:", ":4", "a:b", "1:2:3", "-1:2", "1:99999999999", "1: 2", "5:2"}) {
    EXPECT_EQ(ParseRounds(text).status().code(), StatusCode::kUsage) << text;
  }
}

TEST(CheckSelectionTest, SaysWhatThePlanHas) {
  const Plan plan = HeaderOnly();
  const Status missing =
      CheckSelection(plan, {.nodes = {NodeId(8)}, .blocks = {}, .rounds = {}}).status();
  EXPECT_EQ(missing.message(), "no node 8: the plan has nodes 0 to 7");
  EXPECT_EQ(missing.code(), StatusCode::kRejected);
  EXPECT_EQ(CheckSelection(plan, {.nodes = {}, .blocks = {1, 5}, .rounds = {}}).status().message(),
            "no block 5: the plan has blocks 0 to 4");
  EXPECT_EQ(
      CheckSelection(plan, {.nodes = {}, .blocks = {}, .rounds = Rounds{0, 11}}).status().message(),
      "no round 11: the plan has rounds 0 to 10");
  EXPECT_EQ(
      CheckSelection(plan, {.nodes = {}, .blocks = {}, .rounds = Rounds{3, 1}}).status().message(),
      "rounds 3 to 1 end before they begin");
}

TEST(CheckSelectionTest, SortsAndDropsRepetitions) {
  const auto selection = CheckSelection(
      HeaderOnly(), {.nodes = {NodeId(5), NodeId(2), NodeId(5)}, .blocks = {}, .rounds = {}});
  EXPECT_EQ(Describe(*selection), "only nodes 2, 5");
}

TEST(HeadlineTest, CountsAndSizes) {
  EXPECT_EQ(Headline(HeaderOnly().header()), "chain: 8 nodes, 5 blocks, 11 rounds");
  EXPECT_EQ(Subline(HeaderOnly().header()),
            "message of 4097 bytes in blocks of 1 KiB, root 0, ready barrier, send window none");
}

}  // namespace
}  // namespace prepost::viz::selection_test
