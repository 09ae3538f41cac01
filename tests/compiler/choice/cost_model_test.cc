// SPDX-License-Identifier: Apache-2.0
#include "compiler/choice/cost_model.h"

#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "ir/analysis/network_load.h"
#include "tests/support/networks.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"

namespace prepost::cost_model_test {
namespace {

using test::Random;

constexpr const char* kAlgorithms[] = {"sequential",    "chain",       "kary_chain=3",
                                       "binomial_tree", "kary_tree=2", "binomial_pipeline",
                                       "circulant",     "two_tree",    "scatter_allgather",
                                       "rack_chain",    "rack_hybrid", "rack_circulant"};

Network NetworkFor(const Spec& spec, const CostParameters& parameters = {}) {
  Result<Network> network = CostNetwork(spec, parameters);
  EXPECT_TRUE(network.ok()) << network.status().ToString();
  return *std::move(network);
}

ScheduleCost CostOf(const Spec& spec, uint64_t steps_max = CostModel::kStepsMax) {
  CostModel model(NetworkFor(spec), OrderNodes(spec), steps_max);
  return model.CostOf(*FindAlgorithm(spec.algorithm),
                      *MakePayload(*spec.message_bytes, spec.block_bytes));
}

/// The cost that MeasureLoad() finds for the compiled plan.
double SecondsOfPlan(const Spec& spec) {
  const VerifiedPlan plan = test::CompileOrDie(spec);
  return MeasureLoad(PlanTables(plan), NetworkFor(spec)).seconds;
}

// A short last block that costs a full one, a latency of the wrong kind, the overhead left out: 4
// nodes, blocks of 10, 10 and 5 bytes, 1 byte/s: 0>1 alone, then two at a time, then 2>3 of 5
// alone.
TEST(CostModelTest, ChainByHand) {
  const Spec spec{.nodes = 4, .message_bytes = 25, .block_bytes = 10, .algorithm = "chain"};
  CostModel model(NetworkFor(spec, {.rate = 1, .latency = 0.25, .block_overhead = 0.5}),
                  OrderNodes(spec));
  const ScheduleCost cost = model.CostOf(*FindAlgorithm("chain"), *MakePayload(25, 10));
  EXPECT_EQ(cost.rounds, 5u);
  EXPECT_DOUBLE_EQ(cost.seconds, 4 * 10 + 5 + 5 * 0.75);
  EXPECT_DOUBLE_EQ(cost.latency(), 5 * 0.75);
  EXPECT_EQ(cost.largest_share(), CostShare::kNodes);
  EXPECT_TRUE(cost.is_exact);
}

// Whatever the sweep over streams forgets: a round, a link, a residue, a slow node's direction.
TEST(CostModelTest, IsTheMeasuredLoadOfThePlan) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  for (int i = 0; i < 60; ++i) {
    Spec spec;
    spec.topology = test::RandomTopology(random, 7);
    spec.nodes = static_cast<uint32_t>(spec.topology->nodes.size());
    spec.root = NodeId(random.Below(spec.nodes));
    spec.block_bytes = random.Between(1, 100'000);
    spec.message_bytes = random.Below(30 * spec.block_bytes);
    for (const char* name : kAlgorithms) {
      spec.algorithm = name;
      const ScheduleCost cost = CostOf(spec);
      const double measured = SecondsOfPlan(spec);
      ASSERT_NEAR(cost.seconds, measured, 1e-9 * measured)
          << name << " n=" << spec.nodes << " bytes=" << *spec.message_bytes
          << " block=" << spec.block_bytes;
      ASSERT_TRUE(cost.is_exact);
    }
  }
}

// Where rounds are not gone through: a slope over too few rounds, or over parts of periods.
TEST(CostModelTest, EstimatesAreNear) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  for (int i = 0; i < 12; ++i) {
    Spec spec;
    spec.topology = test::RandomTopology(random, 9);
    spec.nodes = static_cast<uint32_t>(spec.topology->nodes.size());
    if (spec.nodes < 8) continue;
    spec.block_bytes = 4096;
    spec.message_bytes = uint64_t{random.Between(20'000, 50'000)} * 4096 + 1;
    for (const char* name : {"scatter_allgather", "rack_circulant"}) {
      spec.algorithm = name;
      const ScheduleCost near = CostOf(spec, /*steps_max=*/100'000);
      const ScheduleCost exact = CostOf(spec, UINT64_MAX);
      EXPECT_FALSE(near.is_exact);
      EXPECT_TRUE(exact.is_exact);
      EXPECT_NEAR(near.seconds, exact.seconds, 0.01 * exact.seconds)
          << name << " n=" << spec.nodes << " bytes=" << *spec.message_bytes;
    }
  }
}

TEST(CostModelTest, RefusesParametersThatAreNone) {
  const Spec spec{.nodes = 2};
  EXPECT_EQ(CostNetwork(spec, {.rate = 0}).status().message(),
            "a rate is more than 0 bytes/s, found 0");
  EXPECT_EQ(CostNetwork(spec, {.latency = -1}).status().message(),
            "latency and overhead are 0 s or more, found -1");
}

}  // namespace
}  // namespace prepost::cost_model_test
