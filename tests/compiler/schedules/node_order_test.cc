// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedules/node_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "compiler/compile.h"
#include "tests/support/plans.h"

namespace prepost::node_order_test {
namespace {

using ::testing::HasSubstr;

/// Hosts by rack; rack r's uplinks have `up[r]`, hosts 100.
Network TopologyOf(const std::vector<uint32_t>& rack_of, const std::vector<double>& up) {
  Network topology;
  for (const double rate : up)
    topology.racks.push_back({"r" + std::to_string(topology.racks.size()), rate, rate});
  for (const uint32_t rack : rack_of)
    topology.nodes.push_back({"h" + std::to_string(topology.nodes.size()), rack, 100, 100});
  return topology;
}

std::vector<uint32_t> NodesOf(const NodeOrder& order) {
  std::vector<uint32_t> nodes;
  for (const NodeId node : order.node_at) nodes.push_back(node.value);
  return nodes;
}

using Nodes = std::vector<uint32_t>;

TEST(NodeOrderTest, WithoutTopologyTheRootIsTurnedToTheFront) {
  const NodeOrder order = OrderNodes({.nodes = 5, .root = NodeId(3)});
  EXPECT_EQ(NodesOf(order), (Nodes{3, 4, 0, 1, 2}));
  EXPECT_TRUE(order.rack_begin.empty());
}

// Racks apart in the topology come together; the root's first, then the file's order.
TEST(NodeOrderTest, RacksAreTogetherTheRootsFirst) {
  const Spec spec{
      .nodes = 6, .root = NodeId(3), .topology = TopologyOf({0, 1, 2, 1, 0, 2}, {9, 9, 9})};
  const NodeOrder order = OrderNodes(spec);
  EXPECT_EQ(NodesOf(order), (Nodes{3, 1, 0, 4, 2, 5}));
  EXPECT_EQ(order.rack_begin, (Nodes{0, 2, 4}));
}

// Catches an order of sites that takes a narrow path where a wide one leads around it, or the long
// way where both are as wide; with few sites and with many, of which not all orders are tried.
TEST(NodeOrderTest, SitesFollowTheWidestWay) {
  for (const uint32_t sites : {5u, 20u}) {
    Network topology;
    for (uint32_t site = 0; site < sites; ++site) {
      topology.racks.push_back({.name = std::to_string(site), .up_rate = 9, .down_rate = 9});
      topology.nodes.push_back({.rack = site});
    }
    // A ring 0, 2, 4, .., 3, 1 whose way from 0 to 1 is narrow.
    std::vector<uint32_t> ring;
    for (uint32_t site = 0; site < sites; site += 2) ring.push_back(site);
    for (uint32_t site = sites - 1 - sites % 2; site < sites; site -= 2) ring.push_back(site);
    for (size_t i = 0; i < ring.size(); ++i) {
      const uint32_t from = ring[i], to = ring[(i + 1) % ring.size()];
      const double rate = i + 1 == ring.size() ? 1 : 5;
      topology.links.push_back({.from = from, .to = to, .rate = rate, .latency = 1e-3});
      topology.links.push_back({.from = to, .to = from, .rate = rate, .latency = 1e-3});
    }
    ASSERT_TRUE(topology.FindRoutes().ok());
    const NodeOrder order = OrderNodes({.nodes = sites, .topology = topology});
    std::vector<uint32_t> found;
    for (const NodeId node : order.node_at) found.push_back(topology.nodes[node.index()].rack);
    EXPECT_EQ(found, ring) << sites;
  }
}

// Where a later step is the narrowest, the ones before it need not be wide. Catches a long way that
// is as narrow in the end.
TEST(NodeOrderTest, OfEquallyNarrowWaysTheShortest) {
  Network topology;
  for (uint32_t site = 0; site < 4; ++site) {
    topology.racks.push_back({.name = std::to_string(site), .up_rate = 9, .down_rate = 9});
    topology.nodes.push_back({.rack = site});
  }
  const auto join = [&](uint32_t from, uint32_t to, double rate, double latency) {
    topology.links.push_back({.from = from, .to = to, .rate = rate, .latency = latency});
    topology.links.push_back({.from = to, .to = from, .rate = rate, .latency = latency});
  };
  join(0, 1, 9, 50e-3);  // wide and long
  join(0, 2, 5, 1e-3);
  join(1, 2, 5, 1e-3);
  join(2, 3, 1, 30e-3);
  join(1, 3, 1, 1e-3);
  ASSERT_TRUE(topology.FindRoutes().ok());
  std::vector<uint32_t> found;
  for (const NodeId node : OrderNodes({.nodes = 4, .topology = topology}).node_at)
    found.push_back(node.value);
  EXPECT_EQ(found, (std::vector<uint32_t>{0, 2, 1, 3}));
}

TEST(NodeOrderTest, FastBeforeSlowButTheRootFirst) {
  Spec spec{
      .nodes = 7, .root = NodeId(1), .topology = TopologyOf({0, 0, 0, 1, 1, 2, 2}, {5, 1, 2})};
  spec.topology->nodes[1].out_rate = 1;   // the root stays first
  spec.topology->nodes[3].out_rate = 50;  // behind its neighbour
  const NodeOrder order = OrderNodes(spec);
  EXPECT_EQ(NodesOf(order), (Nodes{1, 0, 2, 5, 6, 4, 3}));
  EXPECT_EQ(order.rack_begin, (Nodes{0, 3, 5}));
}

// Who receives slowly passes on slowly, whatever it could send. Catches one that leads a rack.
TEST(NodeOrderTest, SlowReceiversAreLastToo) {
  Spec spec{.nodes = 6, .topology = TopologyOf({0, 0, 0, 1, 1, 1}, {9, 9})};
  spec.topology->nodes[1].in_rate = 1;
  spec.topology->nodes[3].in_rate = 1;
  spec.topology->nodes[3].out_rate = 1000;
  EXPECT_EQ(NodesOf(OrderNodes(spec)), (Nodes{0, 2, 1, 4, 5, 3}));
}

// More hosts than nodes: racks without a node are no racks.
TEST(NodeOrderTest, HostsBeyondTheNodesDoNotCount) {
  const Spec spec{.nodes = 3, .topology = TopologyOf({0, 2, 2, 1, 1}, {9, 9, 9})};
  EXPECT_EQ(OrderNodes(spec).rack_begin, (Nodes{0, 1}));
}

TEST(NodeOrderTest, APinnedOrderIsKept) {
  Spec spec{.nodes = 4, .root = NodeId(2), .topology = TopologyOf({0, 0, 1, 1}, {9, 9})};
  spec.order = {NodeId(2), NodeId(3), NodeId(1), NodeId(0)};
  EXPECT_EQ(NodesOf(OrderNodes(spec)), (Nodes{2, 3, 1, 0}));
  EXPECT_EQ(OrderNodes(spec).rack_begin, (Nodes{0, 2}));
  spec.order = {NodeId(2), NodeId(1), NodeId(3), NodeId(0)};
  EXPECT_TRUE(OrderNodes(spec).rack_begin.empty());
}

TEST(NodeOrderTest, SaysWhatIsWrongWithAnOrder) {
  Spec spec{.nodes = 4, .message_bytes = 100, .topology = TopologyOf({0, 0, 1, 1}, {9, 9})};
  const auto error_of = [&](const Nodes& nodes, const char* algorithm = "chain") {
    spec.order.clear();
    for (const uint32_t node : nodes) spec.order.emplace_back(node);
    spec.algorithm = algorithm;
    return CheckSpec(spec).ToString();
  };
  EXPECT_EQ(error_of({0, 2, 1, 3}), "");
  EXPECT_EQ(error_of({0, 1, 2}), "/order: an order names each of the 4 nodes once, found 3");
  EXPECT_EQ(error_of({0, 1, 1, 3}), "/order/2: node 1 stands in the order twice");
  EXPECT_EQ(error_of({0, 1, 4, 3}), "/order/2: node 4 is out of range, the nodes are 0 to 3");
  EXPECT_EQ(error_of({1, 0, 2, 3}), "/order/0: the root, 0, comes first, found 1");
  EXPECT_EQ(error_of({0, 2, 1, 3}, "rack_circulant"),
            "/order/2: rack 'r0' is split, rack_circulant needs its nodes to be neighbours");
  EXPECT_EQ(error_of({0, 1, 3, 2}, "rack_circulant"), "");
}

TEST(NodeOrderTest, ASpecsTopologyIsChecked) {
  Spec spec{.nodes = 5, .message_bytes = 1, .topology = TopologyOf({0, 0, 1, 1}, {9, 9})};
  EXPECT_EQ(CheckSpec(spec).ToString(), "/nodes: 5 nodes are too many, the topology has 4 hosts");
  spec.nodes = 4;
  spec.topology->racks[1].up_rate = 0;
  EXPECT_THAT(CheckSpec(spec).ToString(), HasSubstr("/topology/racks/1/up_rate: a rate is"));
  spec.topology_path = "t.json";
  EXPECT_THAT(CheckSpec(spec).ToString(), HasSubstr("/topology: file 't.json' is not read yet"));
}

// The plan crosses between racks k (R - 1) times with a rack schedule, whatever nodes the hosts
// are.
TEST(NodeOrderTest, PlansUseIt) {
  Spec spec{.nodes = 8,
            .root = NodeId(5),
            .message_bytes = 60,
            .block_bytes = 10,
            .topology = TopologyOf({0, 1, 0, 1, 0, 1, 0, 1}, {9, 9})};
  for (const char* algorithm : {"rack_chain", "rack_hybrid", "rack_circulant"}) {
    spec.algorithm = algorithm;
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const auto crosses = [&](const Op& op) {
      const Channel& channel = plan.channels()[op.channel.index()];
      return op.is_send() && !op.is_credit() && channel.from.value % 2 != channel.to.value % 2;
    };
    EXPECT_EQ(std::ranges::count_if(plan.ops(), crosses), 6) << algorithm;
  }
}

}  // namespace
}  // namespace prepost::node_order_test
