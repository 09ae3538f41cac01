// SPDX-License-Identifier: Apache-2.0
//
// RandomTopology, SlowRandomPairs: networks as they come, for tests of what is computed on them.
#ifndef PREPOST_TESTS_SUPPORT_NETWORKS_H_
#define PREPOST_TESTS_SUPPORT_NETWORKS_H_

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "compiler/spec.h"
#include "ir/analysis/network.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"

namespace prepost::test {

/// Ports of `rate` bytes/s each way, and `latency` seconds between any two.
inline Network OneRack(uint32_t nodes, double rate, double latency = 0) {
  Network network = Network::Uniform(nodes);
  for (Network::Node& node : network.nodes) node.out_rate = node.in_rate = rate;
  network.rack_latency = network.core_latency = latency;
  return network;
}

/// Paths in place of the core: from every rack to an earlier one or a switch, and some more.
inline void LinkRandomly(Random& random, double rate, Network* topology) {
  const auto racks = static_cast<uint32_t>(topology->racks.size());
  topology->core_rate.reset();
  topology->core_latency = 0;
  topology->are_sites = random.Coin();
  if (random.Coin()) topology->switches.emplace_back("s");
  const auto add = [&](uint32_t from, uint32_t to) {
    Network::Link link = {.from = from,
                          .to = to,
                          .rate = rate * random.Pick(std::vector<double>{0.25, 1, 3}),
                          .latency = random.Pick(std::vector<double>{0, 1e-6, 40e-6})};
    topology->links.push_back(link);
    std::swap(link.from, link.to);
    topology->links.push_back(link);
  };
  for (uint32_t end = 1; end < racks + topology->switches.size(); ++end)
    add(random.Below(end), end);
  for (uint32_t more = random.Below(3); racks > 1 && more-- > 0;) {
    const uint32_t from = random.Below(racks), to = random.Below(racks);
    if (from != to) add(from, to);
  }
  const Status status = topology->FindRoutes();
  PREPOST_CHECK(status.ok());
}

/// Racks of so many hosts each; ToRs from narrow to never narrow, sometimes a core with a rate,
/// sometimes slow hosts, with other rates in than out, and a rack per few kinds of latency.
inline Network RandomTopology(Random& random, const std::vector<uint32_t>& rack_hosts) {
  Network topology{.name = "random"};
  const double rate = random.Pick(std::vector<double>{1e8, 1.25e9, 12.5e9});
  const bool has_slow = random.Coin();
  for (uint32_t r = 0; r < rack_hosts.size(); ++r) {
    const double up = rate * random.Pick(std::vector<double>{0.5, 1, 1.5, 4, 100});
    topology.racks.push_back(
        {.name = fmt::format("r{}", r), .up_rate = up, .down_rate = random.Coin() ? up : up / 2});
    for (uint32_t h = 0; h < rack_hosts[r]; ++h) {
      const bool is_slow = has_slow && random.Below(8) == 0;
      const double send = is_slow ? rate / random.Between(2, 5) : rate;
      topology.nodes.push_back({.name = fmt::format("h{}-{}", r, h),
                                .rack = r,
                                .out_rate = send,
                                .in_rate = is_slow && random.Coin() ? rate : send});
    }
  }
  if (random.Coin()) topology.core_rate = rate * random.Between(1, 8);
  topology.rack_latency = random.Pick(std::vector<double>{0, 1e-6, 5e-6});
  topology.core_latency = random.Pick(std::vector<double>{1e-6, 3e-6, 50e-6});
  if (random.Below(3) == 0) LinkRandomly(random, rate, &topology);
  return topology;
}

/// The same with 1 to 6 racks of 1 to `rack_hosts_max` hosts.
inline Network RandomTopology(Random& random, uint32_t rack_hosts_max) {
  std::vector<uint32_t> rack_hosts(random.Between(1, 6));
  for (uint32_t& hosts : rack_hosts) hosts = random.Between(1, rack_hosts_max);
  return RandomTopology(random, rack_hosts);
}

/// Some pairs of nodes get a rate of their own, below or above what their ports have.
inline void SlowRandomPairs(Random& random, Network* network) {
  const auto nodes = static_cast<uint32_t>(network->nodes.size());
  for (uint32_t from = 0; from < nodes; ++from) {
    for (uint32_t to = 0; to < nodes; ++to) {
      if (from == to || random.Below(4) != 0) continue;
      const double factor = random.Pick(std::vector<double>{0.125, 0.5, 0.9, 3});
      network->pairs.push_back({NodeId(from), NodeId(to), factor * network->nodes[from].out_rate});
    }
  }
}

/// A spec on a network of RandomTopology(): of all its hosts, in blocks of 10,000 bytes.
inline Spec RandomSpecOnRacks(Random& random) {
  const Network topology = RandomTopology(random, 6);
  Spec spec = RandomSpec(random, {.nodes_max = 2, .blocks_max = 20});
  spec.nodes = static_cast<uint32_t>(topology.nodes.size());
  spec.root = NodeId(random.Below(spec.nodes));
  spec.topology = topology;
  spec.block_bytes = 10'000;
  spec.message_bytes = random.Between(1, 200'000);
  return spec;
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_NETWORKS_H_
