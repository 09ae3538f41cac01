// SPDX-License-Identifier: Apache-2.0
#include "viz/svg/racks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/plans.h"
#include "tests/support/traces.h"
#include "tests/support/xml.h"
#include "viz/plan/graph.h"
#include "viz/plan/spacetime.h"
#include "viz/plan/trace_picture.h"
#include "viz/plan/tree.h"
#include "viz/svg/share_table.h"

namespace prepost::viz::racks_test {
namespace {

using test::Occurrences;
using test::PlanOf;
using test::XmlError;
using ::testing::HasSubstr;
using ::testing::Not;

/// Node i stands in rack `racks[i]`, which is called "r" and its number.
Network NetworkOf(const std::vector<uint32_t>& racks) {
  Network network = Network::Uniform(static_cast<uint32_t>(racks.size()));
  network.racks.clear();
  for (uint32_t rack = 0; rack <= *std::ranges::max_element(racks); ++rack) {
    network.racks.push_back({.name = "r" + std::to_string(rack), .up_rate = 1, .down_rate = 1});
  }
  for (size_t i = 0; i < racks.size(); ++i) network.nodes[i].rack = racks[i];
  return network;
}

struct Row {
  NodeId node;
};

std::vector<uint32_t> Arranged(const Racks& racks, uint32_t nodes, std::vector<RackBand>* bands) {
  std::vector<Row> rows;
  for (uint32_t node = nodes; node-- > 0;) rows.push_back({NodeId(node)});
  *bands = racks.Arrange(rows);
  std::vector<uint32_t> order;
  for (const Row& row : rows) order.push_back(row.node.value);
  return order;
}

// Catches rows by node only (a rack in pieces), and racks by index (node 0 not on top).
TEST(RacksTest, RowsOfARackStandTogether) {
  const Network network = NetworkOf({2, 0, 2, 1, 0});
  std::vector<RackBand> bands;
  EXPECT_EQ(Arranged(Racks(&network), 5, &bands), (std::vector<uint32_t>{0, 2, 1, 4, 3}));
  ASSERT_EQ(bands.size(), 3u);
  EXPECT_EQ(bands[1].name, "rack r0");
  EXPECT_EQ(bands[1].begin, 2u);
  EXPECT_EQ(bands[1].end, 4u);
  const std::vector<int> offsets = RackOffsets(bands);
  ASSERT_EQ(offsets.size(), 5u);
  EXPECT_EQ(offsets[0], offsets[1]);
  EXPECT_EQ(offsets[4], 3 * offsets[0]);
}

// Catches a view into the network that is not there.
TEST(RacksTest, WithoutANetworkNothingIsKnown) {
  const Racks racks(nullptr);
  std::vector<RackBand> bands;
  EXPECT_EQ(Arranged(racks, 3, &bands), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_TRUE(bands.empty());
  EXPECT_FALSE(racks.Cross(NodeId(0), NodeId(1)));
  EXPECT_EQ(racks.Style() + racks.Name(NodeId(0)) + racks.Note(1, 2), "");
}

// Catches bins that run over the end of a rack, a row more than there is room for, and bins of one
// node left over.
TEST(RacksTest, SummariesKeepRacksApart) {
  const std::vector<RackBand> bands = {{0, 125, "a"}, {125, 142, "b"}, {142, 1000, "c"}};
  const RowBins bins = BinRows(1000, bands);
  EXPECT_LE(bins.ranges.size(), kSummaryCellsMax);
  ASSERT_EQ(bins.bands.size(), 3u);
  for (size_t i = 0; i < bands.size(); ++i) {
    EXPECT_EQ(bins.ranges[bins.bands[i].begin].first, bands[i].begin);
    EXPECT_EQ(bins.ranges[bins.bands[i].end - 1].second, bands[i].end);
  }
  EXPECT_EQ(bins.size, 16u);
  EXPECT_EQ(bins.ranges[bins.bands[1].begin].second, 125u + 9);  // 17 are 9 and 8, not 16 and 1
  const std::vector<RackBand> many(100, RackBand{});
  EXPECT_TRUE(BinRows(1000, many).bands.empty());
  EXPECT_THAT(BinRows(1000, many).MixedNote(), HasSubstr("rows mix racks"));
  EXPECT_EQ(bins.MixedNote(), "");
  EXPECT_EQ(BinRows(1000, {}).size, Bins(1000).size);
}

// A chain over two racks of four crosses between nodes 3 and 4 only; each end of it is marked.
class RackPicturesTest : public testing::Test {
 protected:
  const Plan plan_ = PlanOf(8, 4, "chain");
  const Network network_ = NetworkOf({0, 0, 0, 0, 1, 1, 1, 1});
};

TEST_F(RackPicturesTest, SpacetimeMarksBothEndsOfACrossing) {
  const std::string svg = DrawSpacetime(plan_, {}, &network_);
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Occurrences(svg, "class=\"cross\""), 2u * 4 + 1);  // and once in the legend
  EXPECT_EQ(Occurrences(svg, "class=\"rack\""), 2u);
  EXPECT_THAT(svg, HasSubstr(">2 racks: 4 of 28 transfers between racks<"));
  EXPECT_THAT(svg, HasSubstr("receives block 0 from node 3 in rack r0"));
  EXPECT_THAT(svg, Not(HasSubstr("receives block 0 from node 2 in rack")));
  const std::string one =
      DrawSpacetime(plan_, {.nodes = {NodeId(4)}, .blocks = {1}, .rounds = {}}, &network_);
  EXPECT_THAT(one, HasSubstr("only block 1; 2 racks: 1 of 2 transfers between racks<"));
}

// Catches a row of both racks.
TEST_F(RackPicturesTest, ASummaryNamesTheRacks) {
  std::vector<uint32_t> racks(100, 0);
  for (uint32_t node = 91; node < 100; ++node) racks[node] = 1;
  const Network network = NetworkOf(racks);
  const Plan plan = PlanOf(100, 8, "chain");
  const std::string svg = DrawSpacetime(plan, {}, &network);
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Occurrences(svg, "class=\"rack\""), 2u);
  EXPECT_THAT(svg, HasSubstr(">91-92<"));
  EXPECT_THAT(svg, HasSubstr("8 of 792 transfers between racks"));
}

// Catches one end of a crossing left without its mark.
TEST_F(RackPicturesTest, ARunMarksThemToo) {
  const std::string svg = DrawTrace(plan_, test::IdealTrace(plan_), {}, &network_);
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Occurrences(svg, "class=\"cross\""), 2u * 4 + 1);
  EXPECT_EQ(Occurrences(svg, "class=\"rack\""), 2u);
}

// Catches a tree that ignores the racks, and one that marks every line.
TEST_F(RackPicturesTest, TheTreeMarksTheLineBetweenRacks) {
  const std::string svg = *DrawTree(plan_, {}, nullptr, &network_);
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Occurrences(svg, "class=\"cross\""), 1u + 1);
  EXPECT_THAT(svg, HasSubstr(">node 4, rack r1<"));
  EXPECT_THAT(svg, HasSubstr("depth 7; 2 racks: 1 of 7 transfers between racks"));
}

/// The y of the text `label`, as SVG has it (down).
double HeightOf(const std::string& svg, const std::string& label) {
  const size_t end = svg.find(">" + label + "</text>");
  EXPECT_NE(end, std::string::npos) << label;
  return std::stod(svg.substr(svg.rfind(" y=\"", end) + 4));
}

// Catches clusters upside down, of racks or inside one: dot has an order of its own.
TEST_F(RackPicturesTest, TheGraphGoesFromTopToBottom) {
  for (const std::string algorithm : {"chain", "circulant", "sequential"}) {
    const Plan plan = PlanOf(7, 3, algorithm);
    const Network network = NetworkOf({0, 0, 0, 1, 2, 2, 2});
    const std::string svg = DrawGraph(plan, {}, GraphFormat::kSvg, &network).value();
    double last = HeightOf(svg, "node 0 (root)");
    for (const std::string label :
         {"node 1", "node 2", "rack r1", "node 3", "rack r2", "node 4", "node 5", "node 6"}) {
      EXPECT_GT(HeightOf(svg, label), last) << algorithm << " " << label;
      last = HeightOf(svg, label);
    }
  }
}

// Catches credits marked as transfers.
TEST_F(RackPicturesTest, TheGraphHasAClusterPerRack) {
  const VerifiedPlan plan = test::CompileOrDie({.nodes = 8,
                                                .message_bytes = 4,
                                                .block_bytes = 1,
                                                .algorithm = "chain",
                                                .ready = *ParseReady("window=1")});
  const std::string svg = DrawGraph(plan, {}, GraphFormat::kSvg, &network_).value();
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Occurrences(svg, "class=\"edge credit\""), 28u);
  EXPECT_EQ(Occurrences(svg, "class=\"edge match cross\""), 4u);
  EXPECT_EQ(Occurrences(svg, "class=\"edge match\""), 24u);
  EXPECT_THAT(svg, HasSubstr(">rack r0<"));
  EXPECT_THAT(svg, HasSubstr(">rack r1<"));
}

// A rack's name may hold what XML and Graphviz take for their own, and be long.
TEST_F(RackPicturesTest, AHostileNameStaysText) {
  Network network = network_;
  network.racks[0].name = "</title>\\N<b>&\"'\x01\xff" + std::string(10000, 'x');
  for (const std::string& svg :
       {DrawSpacetime(plan_, {}, &network), *DrawTree(plan_, {}, nullptr, &network),
        DrawGraph(plan_, {}, GraphFormat::kSvg, &network).value()}) {
    EXPECT_EQ(XmlError(svg), "");
    EXPECT_THAT(svg, HasSubstr("\\N"));
    EXPECT_THAT(svg, Not(HasSubstr(std::string(100, 'x'))));
  }
}

}  // namespace
}  // namespace prepost::viz::racks_test
