// SPDX-License-Identifier: Apache-2.0
#include "compiler/choice/stream_cost.h"

#include <gtest/gtest.h>

namespace prepost {
namespace {

std::vector<StreamCandidate> Candidates(uint32_t nodes) {
  std::vector<StreamCandidate> candidates;
  for (const char* const name : {"chain", "binomial_pipeline"}) {
    Result<StreamCandidate> made = MakeStreamCandidate(name, nodes);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    candidates.push_back(*std::move(made));
  }
  return candidates;
}

// The example of stream_cost.cc.
TEST(StreamCostTest, WorkedExample) {
  const StreamParameters slow = {.rate = 50e6};
  const StreamShape chain = {.nodes = 8, .blocks = 64, .rounds = 70};
  const StreamShape pipeline = {.nodes = 8, .blocks = 64, .rounds = 66, .has_fan_in = true};
  EXPECT_NEAR(StreamSeconds(chain, 16384, slow), 23.8e-3, 0.05e-3);
  EXPECT_NEAR(StreamSeconds(pipeline, 16384, slow), 24.5e-3, 0.05e-3);
}

TEST(StreamCostTest, CandidatesKnowWhoReceivesFromSeveral) {
  EXPECT_FALSE(Candidates(8)[0].has_fan_in);
  EXPECT_TRUE(Candidates(8)[1].has_fan_in);
  EXPECT_FALSE(MakeStreamCandidate("chian", 8).ok());
}

// Slow ports: the chain, whose hops are short beside a block. Fast ports and many nodes: the
// pipeline, which has few of them. Catches a rate that is not heeded.
TEST(StreamCostTest, RateDecides) {
  const auto chosen = [](uint32_t nodes, uint64_t bytes, double rate) {
    return ChooseStream(Candidates(nodes), nodes, bytes, 0, {.rate = rate});
  };
  EXPECT_EQ(chosen(8, 1 << 20, 12.5e6).candidate, 0u);
  EXPECT_EQ(chosen(32, 1 << 20, 3e6).candidate, 0u);
  EXPECT_EQ(chosen(32, 1 << 20, 1.25e9).candidate, 1u);
  EXPECT_LT(chosen(8, 1 << 20, 50e6).block_bytes, chosen(8, 256 << 20, 50e6).block_bytes);
  EXPECT_LT(chosen(8, 16 << 20, 12.5e6).block_bytes, chosen(8, 16 << 20, 1.25e9).block_bytes);
}

TEST(StreamCostTest, AnySizeAndFixedBlocks) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{16385}, uint64_t{1} << 47}) {
    const StreamChoice choice = ChooseStream(Candidates(5), 5, bytes, 0, {});
    EXPECT_GE(choice.block_bytes, kStreamBlockMin);
    EXPECT_LE(choice.block_bytes, kStreamBlockMax);
    EXPECT_EQ(ChooseStream(Candidates(5), 5, bytes, 12345, {}).block_bytes, 12345u);
  }
}

// Two sites: catches a latency that is charged for every round, a path that is taken for as fast as
// a port, and a schedule that crosses it more often than once.
TEST(StreamCostTest, LatenciesPassOnce) {
  Network topology = Network::OfSites({0, 0, 0, 1, 1, 1});
  for (Network::Node& host : topology.nodes) host.out_rate = host.in_rate = 125e6;
  for (Network::Rack& rack : topology.racks) rack.up_rate = rack.down_rate = 50e6;
  topology.core_latency = 0.03;
  const NodeOrder order = OrderNodes({.nodes = 6, .topology = topology});
  const StreamParameters parameters = ParametersFor(topology, order, 64 << 20, {});
  EXPECT_EQ(parameters.rate, 50e6);
  const StreamShape chain = {.nodes = 6, .blocks = 1024, .rounds = 1028};
  EXPECT_NEAR(StreamSeconds(chain, 64 << 10, parameters), 0.03 + 1028 * 65536 / 50e6, 0.02);
  EXPECT_EQ(StreamAlgorithms(6, 2), (std::vector<std::string>{"chain", "rack_circulant"}));
  topology.core_rate = 20e6;
  EXPECT_EQ(ParametersFor(topology, order, 64 << 20, {}).rate, 20e6);
}

// The same with a path. Catches slow start that is forgotten, or loss.
TEST(StreamCostTest, PathsAreAsTcpFillsThem) {
  Network topology = Network::OfSites({0, 0, 0, 1, 1, 1});
  for (Network::Node& host : topology.nodes) host.out_rate = host.in_rate = 125e6;
  for (Network::Rack& rack : topology.racks) rack.up_rate = rack.down_rate = 375e6;
  topology.links = {{.from = 0, .to = 1, .rate = 50e6, .latency = 0.03},
                    {.from = 1, .to = 0, .rate = 50e6, .latency = 0.03}};
  ASSERT_TRUE(topology.FindRoutes().ok());
  const NodeOrder order = OrderNodes({.nodes = 6, .topology = topology});
  const StreamParameters clean = ParametersFor(topology, order, 256 << 20, {});
  EXPECT_EQ(clean.latency, 0.03);
  EXPECT_TRUE(clean.is_path_rate);
  EXPECT_LT(clean.rate, 50e6);
  EXPECT_GT(clean.rate, 0.95 * 50e6);
  EXPECT_LT(ParametersFor(topology, order, 16 << 20, {}).rate, 0.95 * clean.rate);
  topology.links[0].loss = 1e-3;
  EXPECT_LT(ParametersFor(topology, order, 256 << 20, {}).rate, 0.8 * clean.rate);
}

}  // namespace
}  // namespace prepost
