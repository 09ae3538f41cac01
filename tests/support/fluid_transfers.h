// SPDX-License-Identifier: Apache-2.0
//
// Transfers at given times over a FluidNetwork, and random ones: for tests of how links are shared.
#ifndef PREPOST_TESTS_SUPPORT_FLUID_TRANSFERS_H_
#define PREPOST_TESTS_SUPPORT_FLUID_TRANSFERS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "sim/network/fluid_network.h"
#include "tests/support/networks.h"
#include "tests/support/random.h"

namespace prepost::test {

using emulated::kNever;
using emulated::Picoseconds;
using sim::FluidNetwork;
using sim::PortSharing;

struct TimedTransfer {
  Picoseconds start = 0;
  NodeId from;
  NodeId to;
  uint64_t bytes = 0;
  uint32_t queue = 0;
};

/// Ends of all transfers. Expects that those of one time are reported in the order of their starts.
inline std::vector<Picoseconds> RunFluid(const Network& network,
                                         const std::vector<TimedTransfer>& transfers,
                                         PortSharing sharing = PortSharing::kPerQp) {
  FluidNetwork fluid = *FluidNetwork::Make(network, sharing);
  std::vector<Picoseconds> ends(transfers.size(), kNever);
  std::vector<size_t> order(transfers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return transfers[i].start; });
  std::vector<size_t> position(transfers.size());
  for (size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  size_t next = 0;
  Picoseconds now = 0;
  std::array<void*, 3> owners;
  while (now != kNever) {
    for (; next < order.size() && transfers[order[next]].start == now; ++next) {
      const TimedTransfer& it = transfers[order[next]];
      fluid.Start(now, {it.from, it.to, it.bytes, it.queue, &ends[order[next]]});
    }
    size_t next_position = 0;
    while (const size_t count = fluid.TakeEnded(now, owners)) {
      for (size_t i = 0; i < count; ++i) {
        auto* const end = static_cast<Picoseconds*>(owners[i]);
        *end = now;
        const size_t at = position[static_cast<size_t>(end - ends.data())];
        EXPECT_GE(at, next_position) << "at " << now << " ps";
        next_position = at + 1;
      }
    }
    const Picoseconds then = fluid.NextEvent(now);
    EXPECT_GT(then, now);
    now = then;
    if (next < order.size()) now = std::min(now, transfers[order[next]].start);
  }
  EXPECT_EQ(fluid.flows(), 0u);
  return ends;
}

/// Of up to `racks` racks, some with ports that are limited both ways, or with paths that have a
/// rate of their own.
inline Network RandomFluidNetwork(Random& random, uint32_t racks = 4) {
  const Network topology = RandomTopology(random, racks);
  const auto nodes = static_cast<uint32_t>(topology.nodes.size());
  Network network = *topology.First(nodes);
  if (random.Coin()) {
    for (Network::Node& node : network.nodes) {
      const double both = node.out_rate + node.in_rate;
      if (random.Coin()) node.duplex_rate = both * random.Between(2, 9) / 10;
    }
  }
  if (random.Coin()) return network;
  for (uint32_t from = 0; from < nodes; ++from) {
    for (uint32_t to = 0; to < nodes; ++to) {
      if (from == to || random.Below(3) != 0) continue;
      network.pairs.push_back({.from = NodeId(from),
                               .to = NodeId(to),
                               .rate = network.nodes[from].out_rate / random.Between(1, 5)});
    }
  }
  return network;
}

/// 1 to `count_max`. Some start at the same times, some have the same size: ties.
inline std::vector<TimedTransfer> RandomTransfers(Random& random, uint32_t nodes,
                                                  uint32_t count_max) {
  std::vector<TimedTransfer> transfers(random.Between(1, count_max));
  for (uint32_t i = 0; i < transfers.size(); ++i) {
    const uint32_t from = random.Below(nodes);
    transfers[i] = {.start = random.Below(4) * Picoseconds{250'000'000},
                    .from = NodeId(from),
                    .to = NodeId((from + random.Between(1, nodes - 1)) % nodes),
                    .bytes = random.Coin() ? 1'000'000 : random.Between(1, 5'000'000),
                    .queue = i};
  }
  random.Shuffle(transfers);
  return transfers;
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_FLUID_TRANSFERS_H_
