// SPDX-License-Identifier: Apache-2.0
//
// FluidNetwork against what max-min fair sharing is: an independent reference that computes all
// rates anew whenever anything changes, in floating point, by the plainest filling.
#include "sim/network/fluid_network.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "tests/support/fluid_transfers.h"
#include "tests/support/random.h"

namespace prepost::sim::fluid_network_test {
namespace {

using test::RandomFluidNetwork;
using test::RandomTransfers;
using test::RunFluid;
using test::TimedTransfer;
using testing::HasSubstr;

/// The reference: links by name, rates by repeated search for the link that is full first.
class Reference {
 public:
  Reference(const Network& network, const std::vector<TimedTransfer>& transfers,
            PortSharing sharing)
      : network_(network), transfers_(transfers), sharing_(sharing) {}

  std::vector<double> Run() {
    std::vector<double> left, ends(transfers_.size(), -1);
    for (const TimedTransfer& it : transfers_) left.push_back(static_cast<double>(it.bytes));
    double now = 0;
    while (true) {
      std::vector<size_t> active;
      double next = std::numeric_limits<double>::infinity();
      for (size_t i = 0; i < transfers_.size(); ++i) {
        const double start = static_cast<double>(transfers_[i].start) * 1e-12;
        if (ends[i] >= 0) continue;
        if (start <= now) {
          active.push_back(i);
        } else {
          next = std::min(next, start);
        }
      }
      if (sharing_ == PortSharing::kFifo) active = FirstOfEachPort(active);
      const std::vector<double> rates = Rates(active);
      for (size_t i = 0; i < active.size(); ++i) {
        next = std::min(next, now + left[active[i]] / rates[i]);
      }
      if (std::isinf(next)) return ends;
      for (size_t i = 0; i < active.size(); ++i) {
        left[active[i]] -= rates[i] * (next - now);
        if (left[active[i]] < 1e-6 * static_cast<double>(transfers_[active[i]].bytes)) {
          ends[active[i]] = next;
          sending_.erase(transfers_[active[i]].from.value);
        }
      }
      now = next;
    }
  }

 private:
  /// Who has its port already, or else is ready longest.
  std::vector<size_t> FirstOfEachPort(const std::vector<size_t>& active) {
    std::map<uint32_t, size_t> first;
    for (const size_t i : active) {
      const TimedTransfer& it = transfers_[i];
      const auto [best, is_new] = first.try_emplace(it.from.value, i);
      const TimedTransfer& other = transfers_[best->second];
      if (!is_new && std::pair(it.start, it.queue) < std::pair(other.start, other.queue)) {
        best->second = i;
      }
    }
    for (const auto& [port, i] : first) sending_.try_emplace(port, i);
    std::vector<size_t> chosen;
    for (const auto& [port, i] : sending_) chosen.push_back(i);
    return chosen;
  }

  std::vector<Resource> PathOf(const TimedTransfer& it) const {
    std::vector<Resource> path = {{ResourceKind::kNodeOut, it.from.value},
                                  {ResourceKind::kNodeIn, it.to.value}};
    if (const auto pair = network_.PairOf(it.from, it.to)) {
      path.push_back({ResourceKind::kPair, *pair});
    }
    if (network_.CountOf(ResourceKind::kNodeBoth) != 0) {
      path.push_back({ResourceKind::kNodeBoth, it.from.value});
      path.push_back({ResourceKind::kNodeBoth, it.to.value});
    }
    const uint32_t up = network_.nodes[it.from.index()].rack;
    const uint32_t down = network_.nodes[it.to.index()].rack;
    if (up == down) return path;
    path.push_back({ResourceKind::kRackUp, up});
    path.push_back({ResourceKind::kRackDown, down});
    if (network_.core_rate) path.push_back({ResourceKind::kCore, 0});
    if (!network_.links.empty()) {
      for (const uint32_t link : network_.LinksBetween(up, down))
        path.push_back({ResourceKind::kLink, link});
    }
    return path;
  }

  std::vector<double> Rates(const std::vector<size_t>& active) const {
    std::vector<double> rates(active.size(), -1);
    for (size_t fixed = 0; fixed < active.size();) {
      std::optional<Resource> fullest;
      double level = std::numeric_limits<double>::infinity();
      for (const size_t i : active) {
        for (const Resource link : PathOf(transfers_[i])) {
          double rate = network_.RateOf(link);
          int open = 0;
          for (size_t j = 0; j < active.size(); ++j) {
            if (std::ranges::count(PathOf(transfers_[active[j]]), link) == 0) continue;
            if (rates[j] < 0) {
              ++open;
            } else {
              rate -= rates[j];
            }
          }
          if (open != 0 && rate / open < level) {
            level = rate / open;
            fullest = link;
          }
        }
      }
      for (size_t j = 0; j < active.size(); ++j) {
        if (rates[j] >= 0 || std::ranges::count(PathOf(transfers_[active[j]]), *fullest) == 0) {
          continue;
        }
        rates[j] = level;
        ++fixed;
      }
    }
    return rates;
  }

  const Network& network_;
  const std::vector<TimedTransfer>& transfers_;
  const PortSharing sharing_;
  std::map<uint32_t, size_t> sending_;  // by node out of which it goes
};

/// The same where node i is node `new_node[i]`.
Network Renumbered(const Network& network, const std::vector<uint32_t>& new_node) {
  Network other = network;
  for (size_t n = 0; n < new_node.size(); ++n) other.nodes[new_node[n]] = network.nodes[n];
  for (Network::Pair& pair : other.pairs) {
    pair.from = NodeId(new_node[pair.from.index()]);
    pair.to = NodeId(new_node[pair.to.index()]);
  }
  std::ranges::sort(other.pairs, {}, [](const auto& it) { return std::pair(it.from, it.to); });
  return other;
}

constexpr std::array kSharings = {PortSharing::kPerQp, PortSharing::kFifo};

TEST(FluidNetworkTest, AgreesWithPlainFilling) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 400; ++i) {
    const Network network = RandomFluidNetwork(random);
    if (network.nodes.size() < 2) continue;
    const auto transfers = RandomTransfers(random, static_cast<uint32_t>(network.nodes.size()), 12);
    const PortSharing sharing = random.Pick(kSharings);
    const std::vector<Picoseconds> ends = RunFluid(network, transfers, sharing);
    const std::vector<double> expected = Reference(network, transfers, sharing).Run();
    for (size_t t = 0; t < transfers.size(); ++t) {
      const double end = static_cast<double>(ends[t]);
      ASSERT_NEAR(end, expected[t] * 1e12, 50 + end * 1e-9)
          << "seed " << seed << " case " << i << " transfer " << t << " of " << transfers.size();
    }
  }
}

// Ties that depend on an order, and sums that do, show in the last picosecond.
TEST(FluidNetworkTest, NumbersAndOrderMakeNoDifference) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 300; ++i) {
    const Network network = RandomFluidNetwork(random);
    const auto nodes = static_cast<uint32_t>(network.nodes.size());
    if (nodes < 2) continue;
    const auto transfers = RandomTransfers(random, nodes, 12);
    std::vector<uint32_t> new_node(nodes);
    std::iota(new_node.begin(), new_node.end(), 0u);
    random.Shuffle(new_node);
    std::vector<size_t> order(transfers.size());
    std::iota(order.begin(), order.end(), size_t{0});
    random.Shuffle(order);
    const Network other = Renumbered(network, new_node);
    std::vector<TimedTransfer> others;
    for (const size_t t : order) {
      TimedTransfer it = transfers[t];
      it.from = NodeId(new_node[it.from.index()]);
      it.to = NodeId(new_node[it.to.index()]);
      others.push_back(it);
    }
    const PortSharing sharing = random.Pick(kSharings);
    const std::vector<Picoseconds> ends = RunFluid(network, transfers, sharing);
    const std::vector<Picoseconds> other_ends = RunFluid(other, others, sharing);
    for (size_t t = 0; t < order.size(); ++t) {
      ASSERT_EQ(other_ends[t], ends[order[t]]) << "seed " << seed << " case " << i;
    }
  }
}

/// Nodes of one rack, 10 GB/s each way, but for `slow` with 4 GB/s.
Network FourNodes(std::optional<uint32_t> slow = {}) {
  Network network = Network::Uniform(4);
  for (Network::Node& node : network.nodes) node.out_rate = node.in_rate = 10e9;
  if (slow) network.nodes[*slow].out_rate = 4e9;
  return network;
}

// One after the other on a port: never shared, whichever is reported first.
TEST(FluidNetworkTest, AFlowAloneTakesItsBytesOverTheRate) {
  const std::vector<TimedTransfer> transfers = {{0, NodeId(0), NodeId(1), 1000},
                                                {100'000, NodeId(0), NodeId(2), 999},
                                                {100'000, NodeId(3), NodeId(1), 1},
                                                {0, NodeId(1), NodeId(0), 1000}};
  EXPECT_EQ(RunFluid(FourNodes(), transfers),
            (std::vector<Picoseconds>{100'000, 199'900, 100'100, 100'000}));
  FluidNetwork fluid = *FluidNetwork::Make(FourNodes());
  EXPECT_EQ(fluid.TimeAlone(NodeId(0), NodeId(1), 7), 700);
  Network odd = FourNodes();
  odd.nodes[0].out_rate = 3e9;  // 1 byte in 333 1/3 ps
  EXPECT_EQ(RunFluid(odd, {{0, NodeId(0), NodeId(1), 1}, {5, NodeId(0), NodeId(1), 3}}),
            (std::vector<Picoseconds>{662, 1334}));
}

// The example of fluid_sharing.cc: both ports full, and then a slow one.
TEST(FluidNetworkTest, SharesAreMaxMinFair) {
  const std::vector<TimedTransfer> transfers = {{0, NodeId(0), NodeId(2), 10'000},
                                                {0, NodeId(0), NodeId(3), 10'000},
                                                {0, NodeId(1), NodeId(3), 16'000}};
  EXPECT_EQ(RunFluid(FourNodes(), transfers),
            (std::vector<Picoseconds>{2'000'000, 2'000'000, 2'600'000}));
  EXPECT_EQ(RunFluid(FourNodes(0), transfers),
            (std::vector<Picoseconds>{5'000'000, 5'000'000, 2'000'000}));
}

// Two messages at once out of one port: both end at 2 T, or one at T and the other at 2 T.
TEST(FluidNetworkTest, APortSendsOneAfterTheOther) {
  std::vector<TimedTransfer> both = {{0, NodeId(0), NodeId(1), 10'000, 7},
                                     {0, NodeId(0), NodeId(2), 10'000, 3}};
  EXPECT_EQ(RunFluid(FourNodes(), both), (std::vector<Picoseconds>{2'000'000, 2'000'000}));
  EXPECT_EQ(RunFluid(FourNodes(), both, PortSharing::kFifo),
            (std::vector<Picoseconds>{2'000'000, 1'000'000}));
  both[1].start = 1;  // the queue counts between those ready at one time only
  EXPECT_EQ(RunFluid(FourNodes(), both, PortSharing::kFifo),
            (std::vector<Picoseconds>{1'000'000, 2'000'000}));
}

// The first one has its port alone while a path of its own, or a port into which others send, slows
// it.
TEST(FluidNetworkTest, TheFirstOfAPortHoldsUpOthersThatCouldGo) {
  Network network = FourNodes();
  network.pairs.push_back({.from = NodeId(0), .to = NodeId(1), .rate = 2e9});
  const std::vector<TimedTransfer> transfers = {{0, NodeId(0), NodeId(1), 4000, 0},
                                                {0, NodeId(0), NodeId(2), 10'000, 1},
                                                {0, NodeId(3), NodeId(2), 30'000, 0}};
  EXPECT_EQ(RunFluid(network, transfers),
            (std::vector<Picoseconds>{2'000'000, 2'000'000, 4'000'000}));
  EXPECT_EQ(RunFluid(network, transfers, PortSharing::kFifo),
            (std::vector<Picoseconds>{2'000'000, 4'000'000, 4'000'000}));
}

// All that node 0 sends to node 1 has 4 GB/s, whatever else is there; what that leaves others have.
TEST(FluidNetworkTest, APairHasARateOfItsOwn) {
  Network network = FourNodes();
  network.pairs.push_back({.from = NodeId(0), .to = NodeId(1), .rate = 4e9});
  EXPECT_EQ(RunFluid(network, {{0, NodeId(0), NodeId(1), 4000},
                               {0, NodeId(0), NodeId(1), 4000},
                               {0, NodeId(0), NodeId(2), 6000},
                               {0, NodeId(1), NodeId(0), 10'000}}),
            (std::vector<Picoseconds>{2'000'000, 2'000'000, 1'000'000, 1'000'000}));
  FluidNetwork fluid = *FluidNetwork::Make(network);
  EXPECT_EQ(fluid.TimeAlone(NodeId(0), NodeId(1), 4), 1000);
  EXPECT_EQ(fluid.resources().back(), (Resource{ResourceKind::kPair, 0}));
}

// Out of and into node 0 together 15 GB/s: each way alone it has its 10, and what one way cannot
// use the other has. Catches bytes that are lost or sent twice when a rate changes, beside flows
// that it does not touch and that share its ports.
TEST(FluidNetworkTest, APairsRateMayChange) {
  Network network = FourNodes();
  const double port = network.nodes[0].out_rate;
  network.pairs = {{NodeId(0), NodeId(1), port}};
  FluidNetwork fluid = *FluidNetwork::Make(network);
  int first = 0, second = 0;
  std::array<void*, 2> owners = {};
  Picoseconds now = 0;
  // The next end; up to there others are found to have become later.
  const auto next_end = [&]() -> void* {
    while (true) {
      now = fluid.NextEvent(now);
      if (now == kNever) return nullptr;
      if (fluid.TakeEnded(now, owners) != 0) return owners[0];
    }
  };
  const auto go_on_to = [&](Picoseconds to) {
    while (fluid.NextEvent(now) <= to) {
      now = fluid.NextEvent(now);
      EXPECT_EQ(fluid.TakeEnded(now, owners), 0u) << now;
    }
    now = to;
  };
  const Picoseconds second_of_time = kPicosecondsPerSecond;
  const auto bytes = static_cast<uint64_t>(port);  // a second of it
  fluid.Start(0, {.from = NodeId(0), .to = NodeId(1), .bytes = bytes, .owner = &first});
  EXPECT_EQ(fluid.NextEvent(0), second_of_time);
  go_on_to(second_of_time / 2);
  fluid.SetPairRate(now, NodeId(0), NodeId(1), port / 4);
  // A half is left, and has a quarter of the port; half a second later three eighths. The other has
  // three quarters from then on.
  go_on_to(second_of_time);
  fluid.Start(now, {.from = NodeId(0), .to = NodeId(2), .bytes = bytes, .owner = &second});
  go_on_to(second_of_time * 2);
  // Of the first an eighth is left, of the second a quarter, and each has half of the port.
  fluid.SetPairRate(now, NodeId(0), NodeId(1), port);
  EXPECT_EQ(next_end(), &first);
  EXPECT_EQ(now, second_of_time * 9 / 4);
  EXPECT_EQ(next_end(), &second);
  EXPECT_EQ(now, second_of_time * 19 / 8);
}

TEST(FluidNetworkTest, APortMayHaveLessForBothWaysThanForEach) {
  Network network = FourNodes();
  network.nodes[0].duplex_rate = 15e9;
  const TimedTransfer out = {0, NodeId(0), NodeId(1), 15'000};
  EXPECT_EQ(RunFluid(network, {out}), (std::vector<Picoseconds>{1'500'000}));
  EXPECT_EQ(RunFluid(network, {out, {0, NodeId(2), NodeId(0), 15'000}}),
            (std::vector<Picoseconds>{2'000'000, 2'000'000}));
  EXPECT_EQ(RunFluid(network, {out, {0, NodeId(2), NodeId(3), 15'000}}),
            (std::vector<Picoseconds>{1'500'000, 1'500'000}));
  network.nodes[2].out_rate = 5e9;
  EXPECT_EQ(RunFluid(network, {out, {0, NodeId(2), NodeId(0), 7'500}}),
            (std::vector<Picoseconds>{1'500'000, 1'500'000}));
  const FluidNetwork fluid = *FluidNetwork::Make(network);
  EXPECT_EQ(fluid.resources().back(), (Resource{ResourceKind::kNodeBoth, 3}));
  network.nodes[1].duplex_rate = 0;
  EXPECT_THAT(FluidNetwork::Make(network).status().ToString(),
              HasSubstr("a rate is more than 0 bytes/s, found 0"));
}

// Catches hosts of two racks that are as near to each other as those of one.
TEST(FluidNetworkTest, LatenciesAreThoseOfRacks) {
  Network network = FourNodes();
  network.racks = {{"a", 1e9, 1e9}, {"b", 1e9, 1e9}};
  network.nodes[2].rack = network.nodes[3].rack = 1;
  network.rack_latency = 1e-6;
  network.core_latency = 3e-6;
  const FluidNetwork fluid = *FluidNetwork::Make(network);
  EXPECT_EQ(fluid.Latency(NodeId(0), NodeId(1)), 1'000'000);
  EXPECT_EQ(fluid.Latency(NodeId(3), NodeId(2)), 1'000'000);
  EXPECT_EQ(fluid.Latency(NodeId(1), NodeId(2)), 3'000'000);
  EXPECT_EQ(fluid.Latency(NodeId(2), NodeId(2)), 0);
}

// The first one's end is put off by another that shares its port for a while, to when one that
// started later ends, too; RunFluid() checks the order.
TEST(FluidNetworkTest, WhatEndsAtOneTimeIsInTheOrderOfStarts) {
  EXPECT_EQ(RunFluid(FourNodes(), {{0, NodeId(0), NodeId(1), 1000},
                                   {10'000, NodeId(3), NodeId(2), 1000},
                                   {20'000, NodeId(0), NodeId(3), 100}}),
            (std::vector<Picoseconds>{110'000, 110'000, 40'000}));
}

TEST(FluidNetworkTest, LinksCountBytesAndWhatTheseTake) {
  FluidNetwork fluid = *FluidNetwork::Make(FourNodes());
  int owner = 0;
  std::array<void*, 8> owners;
  fluid.Start(0, {NodeId(0), NodeId(1), 1000, 0, &owner});
  fluid.Start(0, {NodeId(0), NodeId(2), 3000, 0, &owner});
  const Picoseconds now = fluid.NextEvent(0);
  EXPECT_EQ(now, 200'000);
  EXPECT_EQ(fluid.TakeEnded(now, owners), 1u);
  EXPECT_EQ(fluid.UseOf({ResourceKind::kNodeIn, 2}).bytes, 0u);
  EXPECT_EQ(fluid.NextEvent(now), 400'000);
  EXPECT_EQ(fluid.TakeEnded(400'000, owners), 1u);
  EXPECT_EQ(fluid.UseOf({ResourceKind::kNodeOut, 0}).bytes, 4000u);
  EXPECT_EQ(fluid.UseOf({ResourceKind::kNodeOut, 0}).busy, 400'000);
  // Half of the rate all the time, or all of it for half of the time, is the same use.
  EXPECT_EQ(fluid.UseOf({ResourceKind::kNodeIn, 1}).busy, 100'000);
  EXPECT_EQ(fluid.UseOf({ResourceKind::kNodeIn, 2}).busy, 300'000);
  EXPECT_EQ(fluid.UseOf({ResourceKind::kNodeOut, 1}).busy, 0);
  EXPECT_EQ(fluid.UseOf({ResourceKind::kCore, 0}).bytes, 0u);
}

// A link of few units of rate and more flows than those: all end, and it is reported.
TEST(FluidNetworkTest, TellsOfLinksThatTooManyShare) {
  Network network = Network::Uniform(2);
  for (Network::Node& node : network.nodes) node.out_rate = node.in_rate = 1e9;
  network.nodes[1].in_rate = 64;  // of 2^-10 bytes/s
  for (const size_t flows : {size_t{65'536}, size_t{65'537}}) {
    FluidNetwork fluid = *FluidNetwork::Make(network);
    char owner = 0;
    for (size_t i = 0; i < flows; ++i) fluid.Start(0, {NodeId(0), NodeId(1), 1, 0, &owner});
    Picoseconds now = 0;
    std::vector<void*> owners(flows);
    while (fluid.flows() != 0) {
      now = fluid.NextEvent(now);
      ASSERT_NE(now, kNever);
      fluid.TakeEnded(now, owners);
    }
    if (flows == 65'536) {
      EXPECT_TRUE(fluid.CheckShares().ok());
      EXPECT_EQ(now, 1024 * kPicosecondsPerSecond);
    } else {
      EXPECT_EQ(fluid.CheckShares().ToString(),
                "more messages at once on one link of 64 bytes/s than its rate can be divided "
                "among: 65536");
    }
  }
}

TEST(FluidNetworkTest, RefusesWhatItCannotCount) {
  const auto error = [](const Network& network) {
    return FluidNetwork::Make(network).status().ToString();
  };
  Network network = FourNodes();
  network.nodes[2].in_rate = 1;
  EXPECT_THAT(error(network), HasSubstr("the port into node 2 has 1 bytes/s, a port 10000000000"));
  network = FourNodes();
  for (Network::Node& node : network.nodes) node.out_rate = 2e12;
  EXPECT_THAT(error(network), HasSubstr("the fastest port has 2000000000000 bytes/s"));
  network = FourNodes();
  network.rack_latency = 1e7;
  EXPECT_THAT(error(network), HasSubstr("a latency of 10000000 s"));
  network.rack_latency = -1;
  EXPECT_THAT(error(network), HasSubstr("/rack_latency: a latency is 0 s or more"));
  network = FourNodes();
  network.pairs = {{NodeId(0), NodeId(4), 1e9}};
  EXPECT_EQ(error(network), "a pair of nodes 0 and 4, expected two of 4");
  network.pairs = {{NodeId(2), NodeId(2), 1e9}};
  EXPECT_EQ(error(network), "a pair of nodes 2 and 2, expected two of 4");
  network.pairs = {{NodeId(0), NodeId(1), 0}};
  EXPECT_EQ(error(network), "from node 0 to node 1: a rate is more than 0 bytes/s, found 0");
  network.pairs = {{NodeId(0), NodeId(1), 1}};
  EXPECT_THAT(error(network), HasSubstr("the path from node 0 to node 1 has 1 bytes/s"));
  network.pairs = {{NodeId(0), NodeId(1), 1e9}, {NodeId(0), NodeId(1), 1e9}};
  EXPECT_EQ(error(network), "the pair of nodes 0 and 1 is out of order or there twice");
}

}  // namespace
}  // namespace prepost::sim::fluid_network_test
