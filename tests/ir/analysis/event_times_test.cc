// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/event_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "compiler/schedules/schedule.h"
#include "tests/support/plans.h"

namespace prepost::event_times_test {
namespace {

using test::CompileOrDie;
using test::Label;
using test::PlanOf;

/// Start times straight from what docs/plan.md says, by repetition until nothing moves: no graph.
/// `later[m]`, if given, is the earliest that message m may start.
std::vector<uint64_t> NaiveStarts(const Plan& plan, const PlanTables& tables,
                                  const std::vector<uint64_t>& later) {
  std::vector<uint64_t> start = later;
  const auto done = [&](uint32_t m) { return start[m] + (tables.SendOf(m).is_credit() ? 0 : 1); };
  const auto raise = [&](uint32_t m, uint64_t time) {
    const bool moves = time > start[m];
    if (moves) start[m] = time;
    return moves;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (const Program& program : plan.programs()) {
      for (uint32_t i = 0; i < program.op_count; ++i) {
        const uint32_t m = tables.messages().MessageOf(program.op_begin + i);
        const Op& op = plan.ops(program)[i];
        if (!op.is_send()) continue;
        for (const OpId before : plan.after(op)) {
          const uint32_t earlier = tables.messages().MessageOf(program.op_begin + before.value);
          moved |= raise(m, done(earlier));
        }
        if (m > tables.messages().ChannelBegin(op.channel)) moved |= raise(m, done(m - 1));
      }
    }
  }
  return start;
}

uint64_t EndOf(const PlanTables& tables, const std::vector<uint64_t>& start) {
  uint64_t end = 0;
  for (uint32_t m = 0; m < start.size(); ++m) {
    end = std::max(end, start[m] + (tables.SendOf(m).is_credit() ? 0 : 1));
  }
  return end;
}

// Catches a channel that carries several blocks at once (length 3), or a lost unit.
TEST(EventTimesTest, ChainByHand) {
  const Plan plan = PlanOf(4, 3, "chain");
  const PlanTables tables(plan);
  const EventTimes times(tables);
  EXPECT_EQ(times.length(), 5u);
  for (uint32_t m = 0; m < tables.messages().size(); ++m) {
    EXPECT_EQ(times.StartOf(m), tables.ChannelOf(m).from.value + tables.SendOf(m).block);
    EXPECT_EQ(times.DeliveryOf(m), times.StartOf(m) + 1);
    EXPECT_EQ(times.SlackOf(m), 0u);
  }
  EXPECT_EQ(DepthOf(tables), (Depth{.blocks = 5, .credits = 0}));
}

// Catches slack from the wrong end: 1>3 may start a round later, the root's sends may not.
TEST(EventTimesTest, SlackOfATreeByHand) {
  const Plan plan = PlanOf(5, 1, "binomial_tree");
  const PlanTables tables(plan);
  const EventTimes times(tables);
  EXPECT_EQ(times.length(), 3u);
  for (uint32_t m = 0; m < tables.messages().size(); ++m) {
    const Channel& channel = tables.ChannelOf(m);
    EXPECT_EQ(times.SlackOf(m), channel.to == NodeId(3) ? 1u : 0u);
  }
}

// Catches credits that are not counted on the chain: 0>1:0 waits for one, and each further block
// at node 2 for another.
TEST(EventTimesTest, CreditsOfTheLongestChain) {
  const VerifiedPlan plan = CompileOrDie({.nodes = 2,
                                          .message_bytes = 30,
                                          .block_bytes = 10,
                                          .algorithm = "chain",
                                          .ready = *ParseReady("window=1")});
  // credit, block, credit, block, credit, block
  EXPECT_EQ(DepthOf(PlanTables(plan)), (Depth{.blocks = 3, .credits = 3}));
}

// Catches edges that are left out or cost the wrong thing, in every mode, and slack that is too
// large (a delay by it shows) or too small (a delay by one more does not).
TEST(EventTimesTest, AgreeWithRepetition) {
  for (const Spec& spec : test::AllSmallSpecs({.nodes_max = 5, .blocks_max = 3})) {
    SCOPED_TRACE(Label(spec));
    const VerifiedPlan plan = CompileOrDie(spec);
    const PlanTables tables(plan);
    const EventTimes times(tables);
    const uint32_t messages = tables.messages().size();
    std::vector<uint64_t> later(messages, 0);
    const std::vector<uint64_t> start = NaiveStarts(plan, tables, later);
    ASSERT_EQ(times.length(), EndOf(tables, start));
    for (uint32_t m = 0; m < messages; ++m) {
      ASSERT_EQ(times.StartOf(m), start[m]);
      for (const uint64_t more : {uint64_t{0}, uint64_t{1}}) {
        later[m] = start[m] + times.SlackOf(m) + more;
        EXPECT_EQ(EndOf(tables, NaiveStarts(plan, tables, later)), times.length() + more);
      }
      later[m] = 0;
    }
  }
}

// Rounds are what the plan takes at most, and exactly where the schedule leaves no node idle.
TEST(EventTimesTest, DepthBesideRounds) {
  for (const Spec& spec : test::AllSmallSpecs()) {
    const VerifiedPlan plan = CompileOrDie(spec);
    const Depth depth = DepthOf(PlanTables(plan));
    ASSERT_LE(depth.blocks, plan.header().rounds) << Label(spec);
  }
  for (const char* algorithm : {"chain", "binomial_pipeline", "circulant", "sequential"}) {
    for (uint32_t nodes = 2; nodes <= 20; ++nodes) {
      const Plan plan = PlanOf(nodes, 7, algorithm);
      EXPECT_EQ(DepthOf(PlanTables(plan)).blocks, plan.header().rounds) << algorithm << nodes;
    }
  }
}

}  // namespace
}  // namespace prepost::event_times_test
