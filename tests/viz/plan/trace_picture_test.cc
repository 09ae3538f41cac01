// SPDX-License-Identifier: Apache-2.0
#include "viz/plan/trace_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/plans.h"
#include "tests/support/traces.h"
#include "tests/support/xml.h"

namespace prepost::viz::trace_picture_test {
namespace {

using test::Occurrences;
using test::PlanOf;
using test::XmlError;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TracePictureTest, EveryTransferIsABarAtBothItsEnds) {
  const Plan plan = PlanOf(4, 3, "chain");
  const std::string svg = DrawTrace(plan, test::IdealTrace(plan), {});
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Occurrences(svg, "<g class=\"recv\">"), 3u * 3);
  EXPECT_EQ(Occurrences(svg, "<g class=\"send\">"), 3u * 3);
  EXPECT_THAT(svg, HasSubstr("node 2 receives block 1 from node 1, round 2: from 2.00 ms to 3.00 "
                             "ms, on time"));
  EXPECT_THAT(svg, HasSubstr("node 1 sends block 1 to node 2, round 2: from 2.00 ms to 3.00 ms<"));
  EXPECT_THAT(svg,
              HasSubstr("took 5.00 ms; against rounds of equal length, receives end on time at the "
                        "median, at worst on time"));
  EXPECT_EQ(svg, DrawTrace(plan, test::IdealTrace(plan), {}));
}

// Catches a picture that has a root's words, and combines that look like receives.
TEST(TracePictureTest, CollectivesSayWhatIsCombined) {
  Spec spec{.collective = CollectiveKind::kReduce, .nodes = 4, .root = NodeId(1)};
  spec.message_bytes = 24;
  spec.block_bytes = 8;
  spec.algorithm = "chain";
  spec.combine = {.op = CombineOp::kSum, .type = ElementType::kInt64};
  const VerifiedPlan plan = test::CompileOrDie(spec);
  const std::string svg = DrawTrace(plan, test::IdealTrace(plan), {});
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Occurrences(svg, " combines block "), 3u * 3);
  EXPECT_EQ(Occurrences(svg, " receives block "), 0u);
  EXPECT_EQ(Occurrences(svg, ">receives nothing<"), 1u);
  EXPECT_THAT(svg, HasSubstr(">+2<"));
  EXPECT_THAT(svg, HasSubstr("has its last block"));
  EXPECT_THAT(svg, Not(HasSubstr("from the start")));
}

// Bars of equal length must be equally wide, and where their rounds are.
TEST(TracePictureTest, BarsLieWhereTheirTimesAre) {
  const Plan plan = PlanOf(2, 2, "chain");
  RunTrace trace = test::IdealTrace(plan);
  const std::string svg = DrawTrace(plan, trace, {});
  // 960 pixels from x = 105 for 2 ms: block 0 in the first half, block 1 in the second.
  EXPECT_THAT(svg, HasSubstr("x=\"105\" y=\"189\" width=\"480\""));
  EXPECT_THAT(svg, HasSubstr("x=\"585\" y=\"189\" width=\"480\""));
}

// Whoever is late must be named, by how much.
TEST(TracePictureTest, TheLateNodeIsNamed) {
  const Plan plan = PlanOf(4, 1, "chain");
  RunTrace trace = test::IdealTrace(plan);
  trace.times(NodeId(2))[0].completed_ns += test::kTraceRound / 2;
  const std::string svg = DrawTrace(plan, trace, {});
  EXPECT_THAT(svg, HasSubstr("at worst 500 us late (node 2, block 0); the last one at node 3"));
}

TEST(TracePictureTest, WhatOverlapsGetsLanes) {
  const Plan plan = PlanOf(2, 2, "chain");
  RunTrace trace = test::IdealTrace(plan);
  for (OpTimes& op : trace.times(NodeId(1)))
    op = {test::kTraceStart, test::kTraceStart, test::kTraceStart + test::kTraceRound};
  const std::string svg = DrawTrace(plan, trace, {});
  EXPECT_THAT(svg, HasSubstr("y=\"189\" width=\"480\" height=\"9\""));
  EXPECT_THAT(svg, HasSubstr("y=\"199\" width=\"480\" height=\"9\""));
}

TEST(TracePictureTest, AFailedRunShowsHowFarItCame) {
  const Plan plan = PlanOf(3, 2, "chain");
  RunTrace trace = test::IdealTrace(plan);
  trace.times(NodeId(2))[1] = {};
  trace.times(NodeId(1)).back().completed_ns = 0;
  const std::string svg = DrawTrace(plan, trace, {});
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_THAT(svg, HasSubstr("3 of 4 receives completed"));
  EXPECT_THAT(svg, HasSubstr(", never completed"));
  EXPECT_THAT(svg, HasSubstr(">never</text>"));
  RunTrace nothing = std::move(*RunTrace::Make(plan));
  const std::string empty = DrawTrace(plan, nothing, {});
  EXPECT_EQ(XmlError(empty), "");
  EXPECT_THAT(empty, HasSubstr("no receive of these completed"));
}

// Some nodes' traces of a run that succeeded: what is not known has not failed, and the scale is
// the run's as far as it is known.
TEST(TracePictureTest, NodesWithoutATraceAreNamed) {
  const Plan plan = PlanOf(4, 3, "chain");
  const auto without = [&](std::vector<uint32_t> nodes) {
    RunTrace trace = test::IdealTrace(plan);
    for (const uint32_t node : nodes) std::ranges::fill(trace.times(NodeId(node)), OpTimes{});
    return DrawTrace(plan, trace, {});
  };
  const std::string some = without({1, 3});
  EXPECT_THAT(some, HasSubstr("no trace of nodes 1, 3; took at least 5.00 ms; "));
  EXPECT_THAT(some, HasSubstr("; known: 3 of 9 receives<"));
  EXPECT_EQ(Occurrences(some, ">no trace<"), 2u);
  EXPECT_THAT(some, Not(HasSubstr("never")));
  EXPECT_THAT(without({1, 2, 3}), HasSubstr(">no trace of nodes 1, 2, 3; known: 0 of 9 receives<"));
}

// Catches rounds on the axis that were not asked for, and marks that are explained and not shown.
TEST(TracePictureTest, OnlyTheRoundsAskedForAndWhatIsThere) {
  const Plan plan = PlanOf(3, 20, "chain");
  const auto selection =
      CheckSelection(plan, {.nodes = {NodeId(2)}, .blocks = {}, .rounds = Rounds{11, 13}});
  RunTrace trace = test::IdealTrace(plan);
  for (OpTimes& op : trace.times(NodeId(2))) op.started_ns -= test::kTraceRound;
  const std::string svg = DrawTrace(plan, trace, *selection);
  EXPECT_EQ(Occurrences(svg, "class=\"t\""), 3u);
  EXPECT_THAT(svg, HasSubstr(">receives block 2, "));
  EXPECT_THAT(svg, Not(HasSubstr(">sends the block")));
  EXPECT_THAT(svg, Not(HasSubstr(">never completed<")));
}

TEST(TracePictureTest, SelectionsNarrowIt) {
  const Plan plan = PlanOf(6, 4, "chain");
  const auto selection =
      CheckSelection(plan, {.nodes = {NodeId(2)}, .blocks = {1}, .rounds = Rounds{1, 3}});
  const std::string svg = DrawTrace(plan, test::IdealTrace(plan), *selection);
  EXPECT_EQ(Occurrences(svg, "<g class=\"recv\">"), 1u);
  EXPECT_EQ(Occurrences(svg, "<g class=\"send\">"), 1u);
  EXPECT_THAT(svg, HasSubstr("only node 2; only block 1; only rounds 1 to 3; took 8.00 ms"));
}

TEST(TracePictureTest, MoreIsSummarisedAndBounded) {
  const Plan plan = PlanOf(300, 5, "binomial_pipeline");
  const std::string svg = DrawTrace(plan, test::IdealTrace(plan), {});
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_THAT(svg, HasSubstr("summary: a cell is 5 nodes at one time"));
  EXPECT_EQ(Occurrences(svg, "<g class=\"recv\">"), 0u);
  EXPECT_EQ(Occurrences(svg, "class=\"done\""), 60u + 1);  // each group has all blocks once
  EXPECT_LT(svg.size(), 1u << 20);
}

TEST(TracePictureTest, OneNodeAndOtherBoundaryCases) {
  for (const uint32_t nodes : {1u, 2u}) {
    const Plan plan = PlanOf(nodes, 0, "chain");
    EXPECT_EQ(XmlError(DrawTrace(plan, test::IdealTrace(plan), {})), "");
  }
}

TEST(TracePictureTest, AHostileNameStaysText) {
  Plan plan = PlanOf(2, 1, "chain");
  PlanHeader header = plan.header();
  header.algorithm = "</title><script>\x01\xff&\"'" + std::string(10000, 'x');
  plan = plan.WithHeader(std::move(header));
  const std::string svg = DrawTrace(plan, test::IdealTrace(plan), {});
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
}

}  // namespace
}  // namespace prepost::viz::trace_picture_test
