// SPDX-License-Identifier: Apache-2.0
#include "viz/plan/spacetime.h"

#include <gtest/gtest.h>

#include "tests/support/plans.h"
#include "tests/support/xml.h"
#include "viz/svg/svg.h"

namespace prepost::viz::spacetime_test {
namespace {

using test::Occurrences;
using test::PlanOf;
using test::XmlError;

TEST(SpacetimeTest, EveryTransferIsSaidAtBothItsEnds) {
  const Plan plan = PlanOf(8, 4);
  const std::string svg = DrawSpacetime(plan, {});
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Occurrences(svg, "receives block "), 7u * 4 + 1);  // and once in the legend
  EXPECT_EQ(Occurrences(svg, "sends block "), 7u * 4 + 1);
  EXPECT_NE(svg.find("round 3: node 2 receives block 0 from node 3, sends block 1 to node 3; it "
                     "then has 2 of 4 blocks"),
            std::string::npos);
  EXPECT_NE(svg.find("binomial_pipeline: 8 nodes, 4 blocks, 6 rounds"), std::string::npos);
  EXPECT_NE(svg.find("node 0 (root)"), std::string::npos);
  EXPECT_EQ(Occurrences(svg, "class=\"done\""), 7u + 1);
}

TEST(SpacetimeTest, OnlyWhatIsThereIsExplained) {
  const Plan plan = PlanOf(4, 3, "chain");
  const std::string root = DrawSpacetime(plan, {.nodes = {NodeId(0)}, .blocks = {}, .rounds = {}});
  EXPECT_EQ(Occurrences(root, ">sends block 2<"), 1u);
  EXPECT_EQ(Occurrences(root, ">receives block 2<"), 0u);
  EXPECT_EQ(Occurrences(root, ">has its last block<"), 0u);
  const std::string last = DrawSpacetime(plan, {.nodes = {NodeId(3)}, .blocks = {}, .rounds = {}});
  EXPECT_EQ(Occurrences(last, ">sends block 2<"), 0u);
  EXPECT_EQ(Occurrences(last, ">has its last block<"), 1u);
  EXPECT_EQ(Occurrences(DrawSpacetime(PlanOf(1, 3), {}), "held<"), 0u);
}

TEST(SpacetimeTest, TheSameBytesEachTime) {
  const Plan plan = PlanOf(13, 10);
  EXPECT_EQ(DrawSpacetime(plan, {}), DrawSpacetime(PlanOf(13, 10), {}));
}

TEST(SpacetimeTest, SixtyFourNodesAndBlocksAreDrawnInFull) {
  const std::string svg = DrawSpacetime(PlanOf(64, 64), {});
  EXPECT_EQ(Occurrences(svg, "receives block "), 63u * 64 + 1);
  EXPECT_EQ(svg.find("summary"), std::string::npos);
}

TEST(SpacetimeTest, MoreIsSummarisedAndSaysSo) {
  const std::string svg = DrawSpacetime(PlanOf(100, 200), {});
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_NE(svg.find("summary: a cell is 2 nodes x 4 rounds; --rounds first:last and --node"),
            std::string::npos);
  EXPECT_EQ(Occurrences(svg, "receives block "), 0u);
  EXPECT_EQ(Occurrences(svg, "class=\"done\""), 50u + 1);  // each row completes once
}

// Catches a picture that is as wide as its columns only: the legend's end was cut off.
TEST(SpacetimeTest, ASummaryIsAsWideAsItsLegend) {
  const std::string svg = DrawSpacetime(PlanOf(1000, 8), {});
  constexpr std::string_view kWidth = "width=\"";
  const size_t at = svg.find(kWidth) + kWidth.size();
  const double width = std::stod(svg.substr(at, svg.find('"', at) - at));
  const size_t last = svg.find("now all of them have every");
  ASSERT_NE(last, std::string::npos);
  const size_t x = svg.rfind("x=\"", last) + 3;
  const std::string text = svg.substr(last, svg.find('<', last) - last);
  EXPECT_GE(width, std::stod(svg.substr(x)) + TextWidth(text, 12));
}

TEST(SpacetimeTest, NarrowingASummaryGivesDetail) {
  const Plan plan = PlanOf(100, 200);
  const auto selection = CheckSelection(
      plan, {.nodes = {NodeId(7), NodeId(3)}, .blocks = {}, .rounds = Rounds{20, 29}});
  const std::string svg = DrawSpacetime(plan, *selection);
  EXPECT_NE(svg.find("only nodes 3, 7; only rounds 20 to 29"), std::string::npos);
  EXPECT_EQ(Occurrences(svg, "<title>round "), 2u * 10);
  EXPECT_NE(svg.find("round 29: node 7 "), std::string::npos);
}

TEST(SpacetimeTest, OneBlockCanBeFollowed) {
  const Plan plan = PlanOf(8, 4);
  const std::string svg = DrawSpacetime(plan, {.nodes = {}, .blocks = {2}, .rounds = {}});
  EXPECT_EQ(Occurrences(svg, "receives block 2"), 7u + 1);
  EXPECT_EQ(Occurrences(svg, "receives block 1"), 0u);
  EXPECT_NE(svg.find("it then has 1 of 1 block"), std::string::npos);
}

TEST(SpacetimeTest, OneNodeHasNothingToDraw) {
  const std::string svg = DrawSpacetime(PlanOf(1, 3), {});
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_NE(svg.find("nothing is sent"), std::string::npos);
}

TEST(SpacetimeTest, AnEmptyMessageIsOneBlock) {
  EXPECT_EQ(Occurrences(DrawSpacetime(PlanOf(4, 0), {}), "<title>round "), 4u * 2);
}

TEST(SpacetimeTest, ManyRoundsWithoutPipeline) {
  EXPECT_EQ(XmlError(DrawSpacetime(PlanOf(70, 30, "sequential"), {})), "");
}

TEST(SpacetimeTest, AHostileNameStaysText) {
  Plan plan = PlanOf(2, 1);
  PlanHeader header = plan.header();
  header.algorithm = "</title><script>\x01\xff&\"'" + std::string(10000, 'x');
  plan = plan.WithHeader(std::move(header));
  const std::string svg = DrawSpacetime(plan, {});
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_LT(svg.size(), 10000u);
}

}  // namespace
}  // namespace prepost::viz::spacetime_test
