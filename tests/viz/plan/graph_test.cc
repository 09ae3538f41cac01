// SPDX-License-Identifier: Apache-2.0
#include "viz/plan/graph.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/messages.h"
#include "tests/support/plans.h"
#include "tests/support/xml.h"

namespace prepost::viz::graph_test {
namespace {

using test::Occurrences;
using test::XmlError;

VerifiedPlan MakePlan(uint32_t nodes, uint32_t blocks, const std::string& ready = "auto") {
  return test::CompileOrDie({.nodes = nodes,
                             .message_bytes = blocks * 1024,
                             .block_bytes = 1024,
                             .ready = *ParseReady(ready)});
}

std::string Svg(const Plan& plan, const Selection& selection = {}) {
  return DrawGraph(plan, selection, GraphFormat::kSvg).value();
}

class GraphReadyTest : public testing::TestWithParam<const char*> {};

TEST_P(GraphReadyTest, EveryOpAfterAndMatchIsDrawnOnce) {
  const Plan plan = MakePlan(6, 3, GetParam());
  const std::string svg = Svg(plan);
  EXPECT_EQ(XmlError(svg), "");
  for (const Program& program : plan.programs()) {
    const uint32_t node = program.node.value;
    EXPECT_EQ(Occurrences(svg, fmt::format("<g id=\"n{}\" class=\"cluster\"", node)), 1u);
    for (uint32_t id = 0; id < program.op_count; ++id) {
      EXPECT_EQ(Occurrences(svg, fmt::format("<g id=\"n{}o{}\"", node, id)), 1u);
      for (OpId before : plan.after(plan.ops(program)[id])) {
        EXPECT_EQ(
            Occurrences(svg, fmt::format("<g id=\"n{0}o{1}_n{0}o{2}\"", node, before.value, id)),
            1u);
      }
    }
  }
  EXPECT_EQ(Occurrences(svg, "class=\"edge after\""), plan.after_count());
  EXPECT_EQ(Occurrences(svg, "class=\"edge match\"") + Occurrences(svg, "class=\"edge credit\""),
            MessageTable(plan).size());
}

INSTANTIATE_TEST_SUITE_P(Modes, GraphReadyTest,
                         testing::Values("barrier", "channel", "window=1", "window=2"));

/// The y of the text `label`, as SVG has it (down).
double HeightOf(const std::string& svg, const std::string& label) {
  const size_t end = svg.find(">" + label + "</text>");
  EXPECT_NE(end, std::string::npos) << label;
  const size_t y = svg.rfind(" y=\"", end);
  return std::stod(svg.substr(y + 4));
}

TEST(GraphTest, NodesStandInOrderBelowTheRounds) {
  const std::string svg = Svg(MakePlan(13, 10));
  double above = HeightOf(svg, "round 0");
  for (uint32_t node = 0; node < 13; ++node) {
    const double height = HeightOf(svg, fmt::format("node {}{}", node, node == 0 ? " (root)" : ""));
    EXPECT_GT(height, above) << node;
    above = height;
  }
}

TEST(GraphTest, TheSameBytesEachTime) {
  EXPECT_EQ(Svg(MakePlan(8, 4)), Svg(MakePlan(8, 4)));
  const auto dot = [] { return DrawGraph(MakePlan(8, 4), {}, GraphFormat::kDot).value(); };
  EXPECT_EQ(dot(), dot());
}

TEST(GraphTest, DotTextHasClustersAndDashedMatches) {
  const Plan plan = MakePlan(4, 2, "barrier");
  const std::string dot = DrawGraph(plan, {}, GraphFormat::kDot).value();
  EXPECT_EQ(dot.rfind("digraph plan {", 0), 0u) << dot.substr(0, 40);
  EXPECT_EQ(Occurrences(dot, "subgraph cluster_n"), 4u);
  EXPECT_EQ(Occurrences(dot, "style=dashed"), 3u * 2);
  EXPECT_EQ(dot.find("pos="), std::string::npos);
}

TEST(GraphTest, TooManyOpsAreRefusedWithTheFlagsThatNarrow) {
  const Status status = DrawGraph(MakePlan(16, 20), {}, GraphFormat::kSvg).status();
  EXPECT_EQ(status.code(), StatusCode::kRejected);
  EXPECT_EQ(status.message(),
            "a graph of 1200 ops at 16 nodes is not readable, the limit is 500 of either: narrow "
            "it with --node, "
            "--block or --rounds first:last, or use --view spacetime");
}

TEST(GraphTest, ASelectionShowsItsMessagesWithPeersAndCredits) {
  const Plan plan = MakePlan(16, 20);
  const auto selection = CheckSelection(plan, {.nodes = {NodeId(5)}, .blocks = {7}, .rounds = {}});
  const std::string svg = Svg(plan, *selection);
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Occurrences(svg, "recv b7 from"), Occurrences(svg, "class=\"edge match\""));
  EXPECT_EQ(Occurrences(svg, "class=\"edge match\""), Occurrences(svg, "class=\"edge credit\""));
  EXPECT_EQ(Occurrences(svg, "class=\"cluster\""), 1 + Occurrences(svg, "class=\"edge match\""));
  EXPECT_NE(svg.find("only node 5; only block 7: "), std::string::npos);
}

TEST(GraphTest, OneNodeIsAClusterWithoutOps) {
  const std::string svg = Svg(MakePlan(1, 3));
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Occurrences(svg, "class=\"cluster\""), 1u);
  EXPECT_NE(svg.find("nothing is sent"), std::string::npos);
}

TEST(GraphTest, AHostileNameStaysText) {
  Plan plan = MakePlan(2, 1);
  PlanHeader header = plan.header();
  header.algorithm = "</td>\"]; <script>\\N\x01\xff&'";
  plan = plan.WithHeader(std::move(header));
  const std::string svg = Svg(plan);
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;"), std::string::npos);
  EXPECT_TRUE(DrawGraph(plan, {}, GraphFormat::kDot).ok());
}

}  // namespace
}  // namespace prepost::viz::graph_test
