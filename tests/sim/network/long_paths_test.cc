// SPDX-License-Identifier: Apache-2.0
//
// Plans over long paths in virtual time: what TCP's windows and lost packets of RDMA take, against
// the closed forms and the model of a connection alone.
#include "sim/network/long_paths.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "compiler/compile.h"
#include "ir/analysis/bounds.h"
#include "sim/runs/cpu_driven.h"
#include "sim/runs/preposted.h"
#include "sim/simulation.h"

namespace prepost::sim {
namespace {

constexpr double kMegabit = 1e6 / 8;

Network TwoSites(Network::Link path) {
  Network network = Network::OfSites({0, 0, 0, 1, 1, 1});
  for (Network::Node& node : network.nodes) node.out_rate = node.in_rate = 1000 * kMegabit;
  for (Network::Rack& rack : network.racks) rack.up_rate = rack.down_rate = 3000 * kMegabit;
  path.from = 0;
  path.to = 1;
  network.links.push_back(path);
  std::swap(path.from, path.to);
  network.links.push_back(path);
  const Status status = network.FindRoutes();
  PREPOST_CHECK(status.ok());
  return network;
}

VerifiedPlan ChainOver(const Network& network, uint64_t bytes) {
  const Spec spec = {.nodes = static_cast<uint32_t>(network.nodes.size()),
                     .message_bytes = bytes,
                     .block_bytes = 256 << 10,
                     .algorithm = "chain",
                     .topology = network};
  return *Compile(spec);
}

double SecondsOverTcp(const Network& network, uint64_t bytes, uint64_t seed = 1) {
  const VerifiedPlan plan = ChainOver(network, bytes);
  const std::array groups = {Group{.plan = &plan}};
  const HostCosts host = {.copy_rate = 1e10, .system_call = 1'000'000, .system_copy_rate = 1e10};
  const auto run = RunCpuDriven(groups, WithLongPairs(network, groups, /*is_tcp=*/true),
                                {.host = host, .wait = WaitMode::kPolling, .seed = seed});
  PREPOST_CHECK(run.ok());
  Picoseconds last = 0;
  for (const auto& node : run->groups[0].nodes) last = std::max(last, node.received);
  return ToSeconds(last);
}

// Catches a window that holds nothing up, that never opens, or that restarts with every block.
TEST(LongPathsTest, AChainTakesWhatItsPathTakes) {
  for (const uint32_t streams : {1u, 8u}) {
    const Network::Link path = {
        .rate = 400 * kMegabit, .latency = 0.03, .streams = streams, .mtu = 9000};
    const Network network = TwoSites(path);
    for (const uint64_t bytes : {uint64_t{16} << 20, uint64_t{128} << 20}) {
      const double alone = TcpSecondsOf(path, bytes) + path.latency;
      const double seconds = SecondsOverTcp(network, bytes);
      EXPECT_NEAR(seconds / alone, 1, 0.05) << streams << " " << bytes;
      EXPECT_GT(seconds, BoundNetwork(network, NodeId(0), bytes).seconds);
    }
  }
}

TEST(LongPathsTest, LossCostsMoreWithOneStream) {
  Network::Link path = {
      .rate = 400 * kMegabit, .latency = 0.06, .loss = 5e-4, .streams = 1, .mtu = 9000};
  const uint64_t bytes = 128 << 20;
  const double one = SecondsOverTcp(TwoSites(path), bytes);
  EXPECT_NE(one, SecondsOverTcp(TwoSites(path), bytes, /*seed=*/2));
  path.streams = 8;
  EXPECT_LT(SecondsOverTcp(TwoSites(path), bytes), 0.9 * one);
}

// Catches a slow path that is as fast as TCP finds it, and one whose end is beyond the clock.
TEST(LongPathsTest, SlowPairsStaySlow) {
  Network network = TwoSites({.rate = 400 * kMegabit, .latency = 0.03, .mtu = 9000});
  const uint64_t bytes = 16 << 20;
  const double free = SecondsOverTcp(network, bytes);
  network.pairs = {{NodeId(2), NodeId(3), 40 * kMegabit}};
  EXPECT_GT(SecondsOverTcp(network, bytes), 5 * free);
  const Network far = TwoSites({.rate = 1e3, .latency = 3600});
  const VerifiedPlan plan = ChainOver(far, uint64_t{1} << 34);
  const std::array groups = {Group{.plan = &plan}};
  const HostCosts host = {.copy_rate = 1e10, .system_call = 1'000'000, .system_copy_rate = 1e10};
  EXPECT_FALSE(
      RunCpuDriven(groups, WithLongPairs(far, groups, /*is_tcp=*/true), {.host = host}).ok());
}

// Two nodes, one message: bytes / (rate / (1 + p BDP / MTU)) and a latency.
TEST(LongPathsTest, ReliableQueuePairsGoBack) {
  const Network::Link path = {.rate = 500 * kMegabit, .latency = 0.03, .loss = 1e-4, .mtu = 4096};
  const Network network = *TwoSites(path).First(6);
  const VerifiedPlan plan = ChainOver(network, 256 << 20);
  const std::array groups = {Group{.plan = &plan}};
  const Network with = WithLongPairs(network, groups, /*is_tcp=*/false);
  ASSERT_EQ(with.pairs.size(), 1u);
  const double kept = 1 / (1 + 1e-4 * path.rate * 0.06 / 4096);
  EXPECT_NEAR(with.pairs[0].rate, path.rate * kept, 1);
  EXPECT_EQ(WithLongPairs(TwoSites({.rate = 1e6, .latency = 0.03}), groups, false).pairs.size(),
            0u);
}

}  // namespace
}  // namespace prepost::sim
