// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/expressions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ir/analysis/bounds.h"
#include "ir/analysis/reasons.h"
#include "ir/analysis/traffic.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"

namespace prepost::expressions_test {
namespace {

VerifiedPlan Compiled(CollectiveKind kind, const std::string& schedule, uint32_t nodes,
                      uint32_t blocks, CombineOp op = CombineOp::kSum) {
  Spec spec;
  spec.collective = kind;
  spec.nodes = nodes;
  spec.algorithm = schedule;
  spec.message_bytes = 4 * blocks;
  spec.block_bytes = 4;
  if (Combines(kind) && kind != CollectiveKind::kBarrier)
    spec.combine = {.op = op, .type = ElementType::kFloat32};
  return test::CompileOrDie(spec);
}

// Catches operands that are swapped or nested the other way, and a hash that depends on which came
// first.
TEST(ExpressionsTest, ByHand) {
  const VerifiedPlan chain = Compiled(CollectiveKind::kReduce, "chain", 4, 1);
  const PlanTables tables(chain);
  Expressions expressions(tables);
  const Expressions::OfBlock values = expressions.Of(0);
  EXPECT_EQ(expressions.TextOf(values.at_end[0], 100), "x0+(x1+(x2+x3))");
  EXPECT_EQ(expressions.TextOf(values.at_end[2], 100), "x2+x3");
  EXPECT_EQ(expressions.TextOf(values.at_end[0], 6), "x0+(x1...");
  EXPECT_EQ(expressions.OperandsOf(values.at_end[0]), 4u);

  const VerifiedPlan doubling =
      Compiled(CollectiveKind::kAllreduce, "doubling", 4, 1, CombineOp::kMin);
  const PlanTables of_doubling(doubling);
  Expressions minima(of_doubling);
  const Expressions::OfBlock all = minima.Of(0);
  EXPECT_EQ(minima.TextOf(all.at_end[0], 100), "min(min(x0, x1), min(x2, x3))");
  EXPECT_EQ(minima.TextOf(all.at_end[3], 100), "min(min(x3, x2), min(x1, x0))");
  EXPECT_EQ(minima.FingerprintOf(all.at_end[0]), minima.FingerprintOf(all.at_end[3]));
  EXPECT_NE(minima.FingerprintOf(all.at_end[0]), expressions.FingerprintOf(values.at_end[0]));
  EXPECT_EQ(minima.CountWanted().different, 1u);
}

// In every plan: whoever wants a block has one fingerprint, all contributions, and a way from every
// member; nothing is below its bounds. Catches a bound that is none, ranges that count once, and
// ways that lose a member.
TEST(ExpressionsTest, AllCollectives) {
  const std::vector<Spec> specs = test::SpecsOfCollectives({.nodes_max = 9, .blocks_max = 4});
  test::Sample sample(test::ScheduleLabels(specs));
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(spec));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const PlanHeader& header = plan.header();
    const PlanTables tables(plan);
    const Traffic traffic = MeasureTraffic(tables);
    const bool has_ranges = traffic.messages != traffic.blocks;
    EXPECT_GE(header.rounds, BoundRounds(header, has_ranges).rounds);
    uint64_t most = 0;
    std::vector<uint64_t> sent(header.nodes), received(header.nodes);
    for (uint32_t c = 0; c < plan.channels().size(); ++c) {
      sent[plan.channels()[c].from.index()] += traffic.channel_blocks[c];
      received[plan.channels()[c].to.index()] += traffic.channel_blocks[c];
    }
    for (uint32_t node = 0; node < header.nodes; ++node)
      most = std::max({most, sent[node], received[node]});
    EXPECT_GE(most, BoundPort(header).blocks);
    if (header.algorithm == "ring" || header.algorithm == "pairwise") {
      EXPECT_EQ(most, BoundPort(header).blocks);
    }
    if (header.combine.is_none()) continue;

    const Roles roles = header.roles();
    Expressions expressions(tables);
    const bool is_exact = header.combine.is_exact();
    for (uint32_t block = 0; block < header.payload.blocks; ++block) {
      const Expressions::OfBlock values = expressions.Of(block);
      std::set<uint64_t> fingerprints;
      for (uint32_t node = 0; node < header.nodes; ++node) {
        if (!roles.Wants(NodeId(node), block)) continue;
        fingerprints.insert(expressions.FingerprintOf(values.at_end[node]));
        const Expressions::Way way = expressions.WayOf(block, NodeId(node));
        EXPECT_EQ(way.steps.size(), roles.members() - 1);
        std::set<uint32_t> there = {way.made_at.value};
        for (const Expressions::Step& step : way.steps) {
          EXPECT_TRUE(there.contains(step.into.value));
          EXPECT_TRUE(there.insert(step.from.value).second);
        }
        if (header.collective.kind != CollectiveKind::kBarrier) {
          EXPECT_EQ(expressions.OperandsOf(values.at_end[node]), roles.members());
        }
      }
      if (!is_exact) {
        EXPECT_EQ(fingerprints.size(), 1u);
      }
    }
  }
}

// Every chain ends at a message that waits for nothing, and every reason has its place: catches a
// combine that is taken for a delivery, and waits of the kind "after" where the plan has a reason.
TEST(ExpressionsTest, EveryWaitOfACollectiveHasAReason) {
  const std::vector<Spec> specs = test::SpecsOfCollectives({.nodes_max = 6, .blocks_max = 3});
  test::Sample sample(test::ScheduleLabels(specs));
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(spec));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const PlanTables tables(plan);
    const Reasons reasons(tables);
    for (const Program& program : plan.programs()) {
      for (uint32_t op = 0; op < program.op_count; ++op) {
        const OpReasons all = reasons.Explain({.node = program.node, .op = OpId(op)});
        for (const Wait& wait : all.waits_for) {
          EXPECT_NE(wait.kind, WaitKind::kArrived);
          EXPECT_NE(wait.kind, WaitKind::kAfter) << Describe(plan, program, OpId(op));
        }
        const std::vector<ChainStep> chain = reasons.ChainOf(all.message);
        EXPECT_LE(reasons.times().StartOf(chain.back().message), 0u);
      }
    }
  }
}

}  // namespace
}  // namespace prepost::expressions_test
