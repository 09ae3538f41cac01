// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/bounds.h"

#include <gtest/gtest.h>

#include "compiler/schedules/schedule.h"

namespace prepost::bounds_test {
namespace {

PlanHeader Blocks(uint32_t blocks) {
  PlanHeader header;
  header.payload.blocks = blocks;
  return header;
}
PlanHeader Nodes(size_t nodes, uint32_t ports = 1) {
  PlanHeader header;
  header.nodes = static_cast<uint32_t>(nodes);
  header.ports = ports;
  return header;
}

// By hand; catches a floor for a ceiling, and a doubling where ports triple.
TEST(BoundRoundsTest, ByHand) {
  EXPECT_EQ(BoundRounds(1, 7, 1).rounds, 0u);
  EXPECT_EQ(BoundRounds(2, 7, 1).rounds, 7u);
  EXPECT_EQ(BoundRounds(8, 8, 1).rounds, 10u);
  EXPECT_EQ(BoundRounds(9, 8, 1).rounds, 11u);
  EXPECT_EQ(BoundRounds(9, 4, 2).rounds, 3u);   // 2 rounds of the root, and 1 more to triple to 9
  EXPECT_EQ(BoundRounds(10, 5, 2).rounds, 5u);  // 3, and 2 more
  EXPECT_EQ(BoundRounds(1u << 20, 1u << 24, 1).rounds, (1u << 24) - 1 + 20u);
  EXPECT_EQ(BoundRounds(5, 1, 0xffffffff).rounds, 1u);  // catches ports + 1 that wraps
  EXPECT_EQ(BoundRounds(8, 8, 1).formula, "8 - 1 + ceil(log2 8) = 10");
}

// No schedule is below the bound, and these two are on it.
TEST(BoundRoundsTest, Schedules) {
  for (const Schedule* schedule : Schedules()) {
    const bool is_optimal =
        schedule->name() == "binomial_pipeline" || schedule->name() == "circulant";
    for (uint32_t nodes = 1; nodes <= 70; ++nodes) {
      for (uint32_t blocks = 1; blocks <= 20; ++blocks) {
        const uint64_t bound = BoundRounds(nodes, blocks, 1).rounds;
        const uint64_t rounds = schedule->Rounds({.nodes = nodes, .blocks = blocks});
        EXPECT_GE(rounds, bound) << schedule->name() << " " << nodes << " " << blocks;
        if (is_optimal) {
          EXPECT_EQ(rounds, bound) << schedule->name() << " " << nodes;
        }
      }
    }
  }
}

// Catches copies counted per node instead of per rack, the root's own downlinks and port in, and
// racks without nodes.
TEST(BoundSecondsTest, ByHand) {
  Network network;
  network.racks = {{.name = "a", .up_rate = 20, .down_rate = 1},
                   {.name = "b", .up_rate = 5, .down_rate = 4},
                   {.name = "empty", .up_rate = 1, .down_rate = 1}};
  network.nodes = {{.rack = 1, .out_rate = 10, .in_rate = 10},
                   {.rack = 0, .out_rate = 10, .in_rate = 1},  // the root
                   {.rack = 0, .out_rate = 10, .in_rate = 5},
                   {.rack = 1, .out_rate = 20, .in_rate = 10}};
  network.core_rate = 8;
  const std::vector<CutBound> cuts = BoundSeconds(network, NodeId(1), 100);
  const auto seconds = [&](std::string_view cut) {
    for (const CutBound& it : cuts) {
      if (it.cut == cut) return it.seconds;
    }
    ADD_FAILURE() << "no cut " << cut;
    return 0.0;
  };
  EXPECT_EQ(cuts.size(), 7u);
  EXPECT_DOUBLE_EQ(seconds("port out of the root, node 1"), 10);
  EXPECT_DOUBLE_EQ(seconds("port into node 2"), 20);
  EXPECT_DOUBLE_EQ(seconds("ports out of all nodes together"), 6);
  EXPECT_DOUBLE_EQ(seconds("uplinks of the root's rack a"), 5);
  EXPECT_DOUBLE_EQ(seconds("downlinks of rack b"), 25);
  EXPECT_DOUBLE_EQ(seconds("uplinks of all racks together"), 4);
  EXPECT_DOUBLE_EQ(seconds("core"), 12.5);
  EXPECT_EQ(cuts.front().cut, "downlinks of rack b");
  // 10 blocks at 10 bytes/s: 4 bytes/s carry 0.4 of a block per round.
  const RoundBound links = BoundLimitedRounds(cuts, Blocks(10), 10);
  EXPECT_EQ(links.rounds, 25u);
  EXPECT_EQ(links.formula, "ceil(1 x 10 / 0.4) = 25");
  EXPECT_EQ(links.because, "10 blocks must pass the downlinks of rack b;");
  EXPECT_EQ(links.therefore, "a round, which is a block at the root's port, carries 0.4 of them");
}

// Catches a limit both ways that is counted once per copy, or for nodes that have none.
TEST(BoundSecondsTest, PortsWithALimitBothWays) {
  Network network = Network::Uniform(4);
  for (Network::Node& node : network.nodes) node.out_rate = node.in_rate = 10;
  for (const uint32_t i : {0u, 1u, 2u}) network.nodes[i].duplex_rate = 12;
  const std::vector<CutBound> cuts = BoundSeconds(network, NodeId(0), 100);
  EXPECT_EQ(cuts.front().cut, "ports of all nodes together, each copy out and in");
  EXPECT_DOUBLE_EQ(cuts.front().seconds, 3 * 100 * 2 / (12 * 3 + 20.0));
  network.nodes[3].duplex_rate = 8;  // less than its port in
  EXPECT_DOUBLE_EQ(BoundSeconds(network, NodeId(0), 100).front().seconds, 600.0 / 44);
  network.nodes[3].duplex_rate = 5;
  EXPECT_EQ(BoundSeconds(network, NodeId(0), 100).front().cut, "port into node 3");
}

TEST(BoundSecondsTest, OneRackHasNoRackCuts) {
  const std::vector<CutBound> cuts = BoundSeconds(Network::Uniform(4), NodeId(0), 100);
  ASSERT_EQ(cuts.size(), 3u);
  EXPECT_DOUBLE_EQ(cuts.front().seconds, 100);
  EXPECT_EQ(BoundLimitedRounds(cuts, Blocks(10), 1).rounds, 0u);
  EXPECT_TRUE(BoundSeconds(Network::Uniform(1), NodeId(0), 100).empty());
}

// Each rack but the root's needs a copy of its own. Catches copies that the words do not say.
TEST(BoundSecondsTest, CopiesThroughTheCore) {
  Network network;
  for (uint32_t r = 0; r < 3; ++r) {
    network.racks.push_back({.name = "r", .up_rate = 10, .down_rate = 10});
    network.nodes.push_back({.rack = r, .out_rate = 1, .in_rate = 1});
  }
  network.core_rate = 0.5;
  const RoundBound links = BoundLimitedRounds(BoundSeconds(network, NodeId(0), 7), Blocks(7), 1);
  EXPECT_EQ(links.rounds, 28u);
  EXPECT_EQ(links.formula, "ceil(2 x 7 / 0.5) = 28");
  EXPECT_EQ(links.because, "7 blocks must pass the core 2 times, as switches do not replicate;");
}

// By hand: two racks, 1 s in a rack and 10 s between. Catches a crossing for every round or none,
// latencies of links that nobody has, and rounds that ports make fewer.
// A port whose every path is slow carries what they do together; with one that is not, all of it.
TEST(BoundSecondsTest, PathsWithRatesOfTheirOwn) {
  Network network = Network::Uniform(3);
  const auto longest = [&] { return BoundSeconds(network, NodeId(0), 12).front(); };
  EXPECT_EQ(longest().seconds, 12);
  network.pairs = {{NodeId(0), NodeId(1), 0.25}, {NodeId(0), NodeId(2), 0.5}};
  EXPECT_EQ(longest().seconds, 16);
  EXPECT_EQ(longest().cut, "port out of the root, node 0");
  network.pairs = {{NodeId(0), NodeId(1), 0.25}};
  EXPECT_EQ(longest().seconds, 12) << "there is a way by node 2";
  network.pairs = {{NodeId(0), NodeId(2), 0.25}, {NodeId(1), NodeId(2), 0.25}};
  EXPECT_EQ(longest().seconds, 24);
  EXPECT_EQ(longest().cut, "port into node 2");
}

/// Three sites in a row: the root's has two nodes, then one, then one.
Network ThreeSites() {
  Network network = Network::OfSites({0, 0, 1, 2}, {"a", "b", "c"});
  network.are_sites = true;
  for (Network::Node& node : network.nodes) node.out_rate = node.in_rate = 100;
  for (Network::Rack& rack : network.racks) rack.up_rate = rack.down_rate = 1000;
  const auto join = [&](uint32_t from, uint32_t to, double rate, double latency) {
    network.links.push_back({.from = from, .to = to, .rate = rate, .latency = latency});
    network.links.push_back({.from = to, .to = from, .rate = rate, .latency = latency});
  };
  join(0, 1, 20, 3);
  join(1, 2, 10, 4);
  const Status status = network.FindRoutes();
  PREPOST_CHECK(status.ok());
  return network;
}

// T >= bytes / inflow of the site + the least latency that nothing gets around: what b passes on
// may flow while nothing comes from a any more, and a's own was on the path to c before b had
// anything.
TEST(BoundSecondsTest, PathsIntoSites) {
  Network network = ThreeSites();
  const std::vector<CutBound> cuts = BoundSeconds(network, NodeId(0), 200);
  EXPECT_EQ(cuts[0].cut, "paths into site c");
  EXPECT_DOUBLE_EQ(cuts[0].seconds, 20);
  EXPECT_DOUBLE_EQ(cuts[0].latency, 4);
  EXPECT_DOUBLE_EQ(cuts[1].seconds, 10);  // out of a; into b also what leaves c
  const NetworkBound bound = BoundNetwork(network, NodeId(0), 200);
  EXPECT_DOUBLE_EQ(bound.seconds, 24);
  EXPECT_DOUBLE_EQ(bound.latency_seconds, 4);
  network.links[2].policer = Network::Policer{.rate = 5, .burst = 1};
  EXPECT_DOUBLE_EQ(BoundNetwork(network, NodeId(0), 200).seconds, 44);
  EXPECT_DOUBLE_EQ(LowestLatency(network), 0);
  // Two sites behind one link, one near it: what the near one passes on may go while nothing comes
  // from the root any more. The root's own flow is on the link from 0 on, the near one's arrives 1
  // later.
  Network shared = Network::OfSites({0, 1, 2}, {"root", "near", "far"});
  for (Network::Node& node : shared.nodes) node.out_rate = node.in_rate = 1000;
  for (Network::Rack& rack : shared.racks) rack.up_rate = rack.down_rate = 1000;
  shared.links = {{.from = 0, .to = 1, .rate = 1000, .latency = 90},
                  {.from = 1, .to = 0, .rate = 1000, .latency = 90},
                  {.from = 1, .to = 2, .rate = 1, .latency = 1},
                  {.from = 2, .to = 1, .rate = 1, .latency = 1}};
  ASSERT_TRUE(shared.FindRoutes().ok());
  const std::vector<CutBound> far = BoundSeconds(shared, NodeId(0), 100);
  EXPECT_EQ(far[0].cut, "paths into rack far");
  EXPECT_DOUBLE_EQ(far[0].latency, 1);
  EXPECT_DOUBLE_EQ(BoundLatency(network, Nodes(3)).crossing_seconds, 3);
}

TEST(BoundLatencyTest, ByHand) {
  const auto bound = [](const std::vector<uint32_t>& rack_of, double in_rack, double between,
                        uint32_t ports = 1) {
    Network network = Network::Uniform(static_cast<uint32_t>(rack_of.size()));
    network.racks.resize(4, network.racks.front());
    for (size_t i = 0; i < rack_of.size(); ++i) network.nodes[i].rack = rack_of[i];
    network.rack_latency = in_rack;
    network.core_latency = between;
    EXPECT_TRUE(CheckNetwork(network, static_cast<uint32_t>(rack_of.size())).ok());
    return BoundLatency(network, Nodes(network.nodes.size(), ports));
  };
  EXPECT_EQ(bound({0}, 1, 10).rounds, 0u);
  EXPECT_DOUBLE_EQ(bound({0}, 1, 10).seconds, 0);
  EXPECT_DOUBLE_EQ(bound({0, 0}, 1, 10).seconds, 1);
  EXPECT_DOUBLE_EQ(bound({0, 3}, 1, 10).seconds, 10);
  EXPECT_DOUBLE_EQ(bound({2, 2, 2, 2, 2}, 1, 10).seconds, 3);
  EXPECT_DOUBLE_EQ(bound({2, 2, 1, 2, 2}, 1, 10).seconds, 2 + 10);
  EXPECT_DOUBLE_EQ(bound({0, 1, 2, 3}, 1, 10).seconds, 20);  // nobody shares a rack
  EXPECT_DOUBLE_EQ(bound({0, 1, 2, 2}, 10, 1).seconds, 2);   // racks slower than the core
  EXPECT_DOUBLE_EQ(bound({0, 0, 0, 0, 0, 0, 0, 0, 0}, 1, 10, 2).seconds, 2);  // tripled twice
}

// By hand: what the last byte out of the root, or through another cut, must still do.
TEST(BoundsTest, NetworkBoundHasLatencyOnce) {
  const auto bound = [](const std::vector<uint32_t>& rack_of, double in_rack, double between) {
    Network network;
    for (int r = 0; r < 4; ++r)
      network.racks.push_back({.name = "r", .up_rate = 5, .down_rate = 5});
    for (const uint32_t rack : rack_of)
      network.nodes.push_back({.rack = rack, .out_rate = 10, .in_rate = 10});
    network.rack_latency = in_rack;
    network.core_latency = between;
    return BoundNetwork(network, NodeId(0), 100);
  };
  EXPECT_EQ(bound({0}, 1, 10).seconds, 0);
  EXPECT_DOUBLE_EQ(bound({0, 0, 0, 0}, 3, 50).seconds, 10 + 3);   // and not twice 3
  EXPECT_DOUBLE_EQ(bound({0, 0, 1, 1}, 3, 50).seconds, 20 + 50);  // an uplink's 20, then the core
  EXPECT_DOUBLE_EQ(bound({0, 0, 1, 1}, 3, 50).latency_seconds, 50);
  // The way out and back is shorter than that inside.
  EXPECT_DOUBLE_EQ(bound({0, 0, 1}, 300, 20).latency_seconds, 40);
  EXPECT_DOUBLE_EQ(bound({0, 0, 1}, 300, 20).seconds, 10 + 40);
}

}  // namespace
}  // namespace prepost::bounds_test
