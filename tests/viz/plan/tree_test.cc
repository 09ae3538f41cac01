// SPDX-License-Identifier: Apache-2.0
#include "viz/plan/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/plans.h"
#include "tests/support/traces.h"
#include "tests/support/xml.h"

namespace prepost::viz::tree_test {
namespace {

using test::Occurrences;
using test::PlanOf;
using test::XmlError;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TreeTest, EveryNodeHasItsRoundAndItsSender) {
  const Plan plan = PlanOf(8, 4, "binomial_pipeline");
  const std::string svg = *DrawTree(plan, {.nodes = {}, .blocks = {1}, .rounds = {}}, nullptr);
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Occurrences(svg, "<g class=\"node\">"), 8u);
  EXPECT_EQ(Occurrences(svg, " receives block 1 from node "), 7u);
  EXPECT_EQ(Occurrences(svg, "class=\"e\""), 7u);     // a round on every line
  EXPECT_THAT(svg, HasSubstr(">receives it only<"));  // nothing is left out
  // Leaves, and the one in the legend, are hollow.
  EXPECT_EQ(Occurrences(svg, "class=\"hollow\""), Occurrences(svg, "; 0 nodes below it") + 1);
  EXPECT_THAT(svg, HasSubstr("; 1 node below it"));
  EXPECT_THAT(svg, HasSubstr("node 0 has block 1 from the start; 7 nodes below it"));
  EXPECT_EQ(svg, *DrawTree(plan, {.nodes = {}, .blocks = {1}, .rounds = {}}, nullptr));
}

TEST(TreeTest, ChainsAreDeepAndSequentialOnesWide) {
  const std::string chain = *DrawTree(PlanOf(10, 2, "chain"), {}, nullptr);
  EXPECT_THAT(chain, HasSubstr("the way of block 0: 10 nodes, depth 9"));
  EXPECT_THAT(chain, HasSubstr("node 7 receives block 0 from node 6 in round 6; 2 nodes below it"));
  const std::string wide = *DrawTree(PlanOf(10, 2, "sequential"), {}, nullptr);
  EXPECT_THAT(wide, HasSubstr("the way of block 0: 10 nodes, depth 1"));
}

TEST(TreeTest, OnlyTheWaysToTheNodesAskedFor) {
  const Plan plan = PlanOf(10, 1, "chain");
  const std::string svg =
      *DrawTree(plan, {.nodes = {NodeId(3)}, .blocks = {}, .rounds = {}}, nullptr);
  EXPECT_EQ(Occurrences(svg, "<g class=\"node\">"), 4u);
  EXPECT_THAT(svg, HasSubstr("only the ways to the nodes asked for"));
}

// Depth 999 without recursion, and a picture of bounded size that says what it leaves out.
TEST(TreeTest, LargeTreesAreCutWhereTheyAreReachedLast) {
  for (const char* algorithm : {"chain", "binomial_pipeline", "sequential"}) {
    const std::string svg = *DrawTree(PlanOf(1000, 1, algorithm), {}, nullptr);
    EXPECT_EQ(XmlError(svg), "");
    EXPECT_EQ(Occurrences(svg, "<g class=\"node\">"), kTreeNodesMax) << algorithm;
    EXPECT_THAT(svg, HasSubstr("the 256 nodes reached first are drawn"));
    EXPECT_THAT(svg, HasSubstr(">receives it only, or what is below is not drawn<"));
    EXPECT_LT(svg.size(), 300'000u) << algorithm;
  }
  const std::string chain = *DrawTree(PlanOf(1000, 1, "chain"), {}, nullptr);
  EXPECT_THAT(chain, HasSubstr(">node 255, round 254 (+744 not drawn)<"));
  EXPECT_THAT(chain, HasSubstr(">node 0 (root) (+744 not drawn)<")) << "not its children alone";
}

TEST(TreeTest, TimesStandAtTheNodes) {
  const Plan plan = PlanOf(3, 2, "chain");
  RunTrace trace = test::IdealTrace(plan);
  trace.times(NodeId(2))[0].completed_ns = 0;
  const std::string svg = *DrawTree(plan, {}, &trace);
  EXPECT_THAT(svg, HasSubstr(", measured<"));
  EXPECT_THAT(svg, HasSubstr("; the run took 3.00 ms<"));
  EXPECT_THAT(svg, HasSubstr(">node 1, 1.00 ms<"));
  EXPECT_THAT(svg, HasSubstr(">node 2, never<"));
}

TEST(TreeTest, NodesWithoutATraceHaveNotFailed) {
  const Plan plan = PlanOf(3, 2, "chain");
  RunTrace trace = test::IdealTrace(plan);
  for (OpTimes& op : trace.times(NodeId(2))) op = {};
  const std::string svg = *DrawTree(plan, {}, &trace);
  EXPECT_THAT(svg, HasSubstr("; the run took at least 3.00 ms<"));
  EXPECT_THAT(svg, HasSubstr(">node 2, no trace<"));
}

// A duration that is made up: nothing was received.
TEST(TreeTest, ARunThatReceivedNothingHasNoDuration) {
  const Plan plan = PlanOf(1, 2, "chain");
  const RunTrace trace = test::IdealTrace(plan);
  EXPECT_THAT(*DrawTree(plan, {}, &trace), Not(HasSubstr("the run took")));
}

TEST(TreeTest, OtherSelectionsAreUsageErrors) {
  const Plan plan = PlanOf(3, 2, "chain");
  EXPECT_EQ(DrawTree(plan, {.nodes = {}, .blocks = {0, 1}, .rounds = {}}, nullptr).status().code(),
            StatusCode::kUsage);
  EXPECT_EQ(
      DrawTree(plan, {.nodes = {}, .blocks = {}, .rounds = Rounds{0, 1}}, nullptr).status().code(),
      StatusCode::kUsage);
}

TEST(TreeTest, AHostileNameStaysText) {
  Plan plan = PlanOf(2, 1, "chain");
  PlanHeader header = plan.header();
  header.algorithm = "</title><script>\x01\xff&\"'" + std::string(10000, 'x');
  plan = plan.WithHeader(std::move(header));
  EXPECT_EQ(XmlError(*DrawTree(plan, {}, nullptr)), "");
}

}  // namespace
}  // namespace prepost::viz::tree_test
