// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/traffic.h"

#include <gtest/gtest.h>

#include "backends/nic/program/pairing.h"
#include "tests/support/draft.h"
#include "tests/support/plans.h"

namespace prepost::traffic_test {
namespace {

// Catches QPs counted per direction, or for channels without messages: lowering makes them.
TEST(TrafficTest, QueuePairsAreThoseOfLowering) {
  for (const Spec& spec : test::AllSmallSpecs({.nodes_max = 7, .blocks_max = 4})) {
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const Traffic traffic = MeasureTraffic(PlanTables(plan));
    for (const Program& program : plan.programs()) {
      ASSERT_EQ(traffic.nodes[program.node.index()].queue_pairs,
                nic::PairUp(plan, program).pairs.size())
          << test::Label(spec) << " node " << program.node.value;
    }
  }
}

// Programs may stand in any order: catches positions taken for nodes.
TEST(TrafficTest, ChainByHand) {
  test::Draft draft(test::PlanOf(4, 3, "chain"));
  std::swap(draft.programs[0], draft.programs[1]);
  const Plan plan = draft.Build();
  const Traffic traffic = MeasureTraffic(PlanTables(plan));
  EXPECT_EQ(traffic.blocks, 9u);
  EXPECT_EQ(traffic.credits, 0u);
  EXPECT_EQ(traffic.channel_blocks, (std::vector<uint32_t>{3, 3, 3}));
  EXPECT_EQ(traffic.channel_bytes, (std::vector<uint64_t>{30, 30, 30}));
  EXPECT_FALSE(traffic.nodes[0].last_round);
  EXPECT_EQ(traffic.nodes[1].last_round, 2u);
  EXPECT_EQ(traffic.nodes[3].last_round, 4u);
  EXPECT_EQ(traffic.nodes[0].ops, 3u);
  EXPECT_EQ(traffic.nodes[1].ops, 6u);
  EXPECT_EQ(traffic.nodes[0].peers_in, 0u);
  EXPECT_EQ(traffic.nodes[0].peers_out, 1u);
  EXPECT_EQ(traffic.nodes[3].peers_out, 0u);
}

}  // namespace
}  // namespace prepost::traffic_test
