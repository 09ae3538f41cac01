// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/network_load.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <numeric>

#include "ir/analysis/bounds.h"
#include "ir/verify/verify.h"
#include "tests/support/draft.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"

namespace prepost::network_load_test {
namespace {

using test::CompileOrDie;
using test::Random;

/// Racks of `size` nodes each, neighbours together; nodes at 10 bytes/s, a ToR at `tor` blocks of
/// 10 bytes per round each way.
Network Racks(uint32_t racks, uint32_t size, double tor) {
  Network network;
  for (uint32_t i = 0; i < racks * size; ++i) {
    network.nodes.push_back({.rack = i / size, .out_rate = 10, .in_rate = 10});
  }
  for (uint32_t r = 0; r < racks; ++r) {
    network.racks.push_back(
        {.name = "r" + std::to_string(r), .up_rate = 10 * tor, .down_rate = 10 * tor});
  }
  return network;
}

double MeanOf(const std::vector<uint32_t>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Catches memory that grows with the rounds of the header (17 GB here), and idle rounds that are
// left out.
TEST(NetworkLoadTest, FewMessagesInManyRounds) {
  constexpr uint32_t kLast = std::numeric_limits<uint32_t>::max() - 1;
  test::Draft draft(
      CompileOrDie({.nodes = 2, .message_bytes = 10, .block_bytes = 10, .algorithm = "chain"}));
  draft.header.rounds = kLast + 1;
  for (test::DraftProgram& program : draft.programs) program.ops[0].op.round = kLast;
  const Result<VerifiedPlan> plan = Verified(draft.Build());
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const NetworkLoad load = MeasureLoad(PlanTables(*plan), Racks(2, 1, 0.5));
  EXPECT_EQ(load.limited_rounds, uint64_t{kLast} + 2);
  EXPECT_DOUBLE_EQ(load.seconds, 2);
}

// Catches a short last block that counts in full, latencies of the wrong kind, and links that are
// charged for what stays in the rack. Only 1>2 crosses: rounds 1 to 3, of 10, 10 and 5 bytes.
TEST(NetworkLoadTest, ChainOverTwoRacksByHand) {
  const VerifiedPlan plan =
      CompileOrDie({.nodes = 4, .message_bytes = 25, .block_bytes = 10, .algorithm = "chain"});
  Network network = Racks(2, 2, 0.5);
  network.rack_latency = 0.01;
  network.core_latency = 0.1;
  network.core_rate = 20;
  const PlanTables tables(plan);
  const NetworkLoad load = MeasureLoad(tables, network);
  EXPECT_EQ(load.crossings, (std::vector<uint32_t>{1, 1, 1}));
  EXPECT_TRUE(load.enters_racks_once);
  const ResourceLoad& up = load.of({ResourceKind::kRackUp, 0});
  EXPECT_EQ(up.blocks, 3u);
  EXPECT_EQ(up.bytes, ByteSum(25));
  EXPECT_EQ(up.peak_blocks, 1u);
  EXPECT_DOUBLE_EQ(up.seconds, 5);
  EXPECT_EQ(load.of({ResourceKind::kRackDown, 1}).blocks, 3u);
  EXPECT_EQ(load.of({ResourceKind::kRackUp, 1}).blocks, 0u);
  EXPECT_EQ(load.of({ResourceKind::kRackDown, 0}).blocks, 0u);
  EXPECT_EQ(load.of({ResourceKind::kCore, 0}).bytes, ByteSum(25));
  EXPECT_EQ(load.of({ResourceKind::kNodeOut, 1}).bytes, ByteSum(25));
  EXPECT_EQ(load.of({ResourceKind::kNodeIn, 0}).bytes, ByteSum(0));
  // Rounds 1 to 3 cost 2 each, 0 and 4 cost 1.
  EXPECT_EQ(load.limited_rounds, 8u);
  EXPECT_DOUBLE_EQ(load.seconds, (1 + 0.01) + 2 * (2 + 0.1) + (1 + 0.1) + (0.5 + 0.01));
  const std::vector<Resource> busiest = Busiest(load);
  ASSERT_EQ(busiest.size(), 5u);
  EXPECT_EQ(busiest[0], (Resource{ResourceKind::kRackUp, 0}));
  EXPECT_EQ(busiest[1], (Resource{ResourceKind::kRackDown, 1}));
}

// Figures of an independent computation, in Python, of the circulant schedule over racks of
// neighbours: ToR-limited rounds, the peak load of a link, crossings per block.
TEST(NetworkLoadTest, CirculantOverRacks) {
  struct Case {
    uint32_t racks, size, blocks;
    double tor;
    uint64_t rounds;
    uint32_t peak;
    double crossings;
  };
  for (const Case& it : {Case{4, 8, 128, 1, 596, 8, 17.5}, Case{8, 8, 128, 2, 352, 8, 40.6},
                         Case{8, 16, 256, 1, 2323, 16, 71.4}, Case{8, 16, 256, 4, 631, 16, 71.4},
                         Case{16, 16, 256, 4, 683, 16, 157.4}}) {
    const Plan plan = test::PlanOf(it.racks * it.size, it.blocks, "circulant");
    const NetworkLoad load = MeasureLoad(PlanTables(plan), Racks(it.racks, it.size, it.tor));
    EXPECT_EQ(load.limited_rounds, it.rounds) << it.racks;
    EXPECT_NEAR(MeanOf(load.crossings), it.crossings, 0.05) << it.racks;
    EXPECT_FALSE(load.enters_racks_once);
    uint32_t peak = 0;
    for (const ResourceKind kind : {ResourceKind::kRackUp, ResourceKind::kRackDown}) {
      for (const ResourceLoad& link : load.of(kind)) peak = std::max(peak, link.peak_blocks);
    }
    EXPECT_EQ(peak, it.peak) << it.racks;
  }
}

// Catches bounds that are none, and loads that lose or repeat something, on networks of any shape.
TEST(NetworkLoadTest, NothingIsBelowItsBound) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int i = 0; i < 500; ++i) {
    const Spec spec = test::RandomSpec(random, {.nodes_max = 20, .blocks_max = 12});
    SCOPED_TRACE(test::Label(spec));
    const VerifiedPlan plan = CompileOrDie(spec);
    const PlanHeader& header = plan.header();
    Network network;
    const uint32_t racks = random.Between(1, 5);
    for (uint32_t r = 0; r < racks; ++r) {
      network.racks.push_back({.name = "r",
                               .up_rate = random.Between(1, 40) / 2.0,
                               .down_rate = random.Between(1, 40) / 2.0});
    }
    for (uint32_t node = 0; node < header.nodes; ++node) {
      network.nodes.push_back({.rack = random.Below(racks),
                               .out_rate = random.Between(1, 20) / 2.0,
                               .in_rate = random.Between(1, 20) / 2.0});
    }
    if (random.Coin()) network.core_rate = random.Between(1, 40) / 2.0;
    network.rack_latency = random.Between(0, 20);
    network.core_latency = random.Between(0, 20);
    ASSERT_TRUE(CheckNetwork(network, header.nodes).ok());
    const NetworkLoad load = MeasureLoad(PlanTables(plan), network);
    const std::vector<CutBound> cuts =
        BoundSeconds(network, header.collective.root, header.payload.bytes);
    EXPECT_EQ(cuts.empty(), header.nodes == 1);
    const double latency = BoundLatency(network, header).seconds;
    for (const CutBound& cut : cuts)
      EXPECT_GE(load.seconds * (1 + 1e-9), cut.seconds + latency) << cut.cut;
    EXPECT_GE(load.latency_seconds * (1 + 1e-9), latency);
    EXPECT_GE(load.seconds * (1 + 1e-9), load.latency_seconds);
    const double block_rate = network.nodes[header.collective.root.index()].out_rate;
    EXPECT_GE(load.limited_rounds, BoundLimitedRounds(cuts, header, block_rate).rounds);
    EXPECT_GE(load.limited_rounds, header.rounds);
    for (const Resource resource : Busiest(load)) {
      EXPECT_GE(load.seconds * (1 + 1e-9), load.of(resource).seconds);
    }
    ByteSum out, in;
    for (const ResourceLoad& port : load.of(ResourceKind::kNodeOut)) out += port.bytes;
    for (uint32_t node = 0; node < header.nodes; ++node) {
      const ResourceLoad& port = load.of({ResourceKind::kNodeIn, node});
      EXPECT_EQ(port.bytes,
                ByteSum(NodeId(node) == header.collective.root ? 0 : header.payload.bytes));
      in += port.bytes;
    }
    EXPECT_EQ(out, in);
  }
}

// Catches a bound that is needlessly low: where only latency costs, trees of one block are on it,
// with the root's rack first.
TEST(NetworkLoadTest, TreesReachTheBoundOfLatency) {
  for (uint32_t nodes = 1; nodes <= 40; ++nodes) {
    const VerifiedPlan plan =
        CompileOrDie({.nodes = nodes, .message_bytes = 0, .algorithm = "binomial_tree"});
    Network network = Network::Uniform(nodes);
    network.rack_latency = 3;
    const NetworkLoad load = MeasureLoad(PlanTables(plan), network);
    EXPECT_DOUBLE_EQ(load.seconds, BoundLatency(network, plan.header()).seconds) << nodes;
    EXPECT_DOUBLE_EQ(load.seconds, load.latency_seconds) << nodes;
  }
  // 0 sends to 2, the first of the other rack, and then both send inside.
  const VerifiedPlan plan =
      CompileOrDie({.nodes = 4, .message_bytes = 0, .algorithm = "binomial_tree"});
  Network network = Racks(2, 2, 1);
  network.rack_latency = 1;
  network.core_latency = 10;
  EXPECT_DOUBLE_EQ(BoundLatency(network, plan.header()).seconds, 11);
  double least = std::numeric_limits<double>::infinity();
  for (const std::array<uint32_t, 4>& rack_of :
       {std::array{0u, 0u, 1u, 1u}, std::array{0u, 1u, 0u, 1u}, std::array{0u, 1u, 1u, 0u}}) {
    for (uint32_t i = 0; i < 4; ++i) network.nodes[i].rack = rack_of[i];
    least = std::min(least, MeasureLoad(PlanTables(plan), network).seconds);
  }
  EXPECT_DOUBLE_EQ(least, 11);
}

// Of a network that belongs to another plan, or has numbers that are none.
TEST(NetworkTest, WhatIsRefused) {
  EXPECT_TRUE(CheckNetwork(Network::Uniform(3), 3).ok());
  EXPECT_FALSE(CheckNetwork(Network::Uniform(3), 4).ok());
  const auto refused = [](void (*edit)(Network&)) {
    Network network = Racks(2, 2, 1);
    EXPECT_TRUE(CheckNetwork(network, 4).ok());
    edit(network);
    return !CheckNetwork(network, 4).ok();
  };
  EXPECT_TRUE(refused([](Network& n) { n.nodes[3].rack = 2; }));
  EXPECT_TRUE(refused([](Network& n) { n.nodes[0].out_rate = 0; }));
  EXPECT_TRUE(refused([](Network& n) { n.nodes[0].in_rate = -1; }));
  EXPECT_TRUE(
      refused([](Network& n) { n.racks[1].up_rate = std::numeric_limits<double>::infinity(); }));
  EXPECT_TRUE(
      refused([](Network& n) { n.racks[0].down_rate = std::numeric_limits<double>::quiet_NaN(); }));
  EXPECT_TRUE(refused([](Network& n) { n.core_rate = 0; }));
  EXPECT_TRUE(refused([](Network& n) { n.core_latency = -1e-9; }));
}

}  // namespace
}  // namespace prepost::network_load_test
