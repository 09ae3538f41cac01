// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/plan_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ir/verify/verify.h"
#include "tests/support/draft.h"
#include "tests/support/plans.h"

namespace prepost::plan_diff_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::SizeIs;

std::vector<std::string> Names(const PlanDiff& diff) {
  std::vector<std::string> names;
  for (const DiffSection& section : diff.sections) names.push_back(section.name);
  return names;
}

Spec SpecOf(uint32_t nodes, uint32_t blocks) {
  return {.nodes = nodes, .message_bytes = blocks * 10, .block_bytes = 10};
}

TEST(PlanDiffTest, APlanIsTheSameAsItself) {
  for (const Spec& spec : test::AllSmallSpecs({.nodes_max = 5, .blocks_max = 3})) {
    const VerifiedPlan plan = test::CompileOrDie(spec);
    EXPECT_EQ(DiffPlans(plan, plan).verdict, "same") << test::Label(spec);
  }
}

// Catches comparing lists instead of orders: a reduced plan says the same in fewer words.
TEST(PlanDiffTest, ReductionMakesNoDifference) {
  for (const Spec& spec : test::AllSmallSpecs({.nodes_max = 6, .blocks_max = 3})) {
    const VerifiedPlan reduced = test::CompileOrDie(spec);
    const PlanDiff diff = DiffPlans(reduced, test::CompileOrDie(spec, {"thin"}));
    EXPECT_TRUE(diff.same()) << test::Label(spec) << ": " << diff.verdict;
  }
}

// Catches ids that are taken for more than numbers: channels renumbered, programs in another order,
// receives moved as early as their channel lets them.
TEST(PlanDiffTest, NumberingMakesNoDifference) {
  const VerifiedPlan plan = test::CompileOrDie(SpecOf(6, 5));
  test::Draft draft(plan);
  const auto channels = static_cast<uint32_t>(draft.channels.size());
  std::ranges::reverse(draft.channels);
  for (test::DraftProgram& program : draft.programs) {
    for (test::DraftOp& op : program.ops)
      op.op.channel = ChannelId(channels - 1 - op.op.channel.value);
    std::vector<uint32_t> order(program.ops.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_partition(order, [&](uint32_t i) { return !program.ops[i].op.is_send(); });
    program.Reorder(order);
  }
  std::ranges::reverse(draft.programs);
  const Plan renumbered = draft.Build();
  ASSERT_EQ(Verify(renumbered).ToString(), "");
  EXPECT_EQ(DiffPlans(plan, renumbered).verdict, "same");
  EXPECT_EQ(DiffPlans(renumbered, plan).verdict, "same");
}

// Every single difference is found, from both sides: an entry of `after` less, in every place where
// it is no other's consequence.
TEST(PlanDiffTest, EveryOrderCounts) {
  const VerifiedPlan plan = test::CompileOrDie(SpecOf(5, 4));
  test::Draft draft(plan);
  for (test::DraftSite site :
       draft.Where([](const test::DraftOp& op) { return !op.after.empty(); })) {
    for (size_t entry = 0; entry < draft.at(site).after.size(); ++entry) {
      test::Draft less = draft;
      std::vector<uint32_t>& after = less.at(site).after;
      after.erase(after.begin() + static_cast<std::ptrdiff_t>(entry));
      const PlanDiff diff = DiffPlans(plan, less.Build());
      EXPECT_EQ(diff.verdict, "same messages, different order: 1 difference");
      EXPECT_EQ(DiffPlans(less.Build(), plan).verdict, diff.verdict);
    }
  }
}

TEST(PlanDiffTest, Routes) {
  const Plan pipeline = test::PlanOf(4, 3);
  const PlanDiff diff = DiffPlans(pipeline, test::PlanOf(4, 3, "chain"), /*shown_max=*/2);
  EXPECT_EQ(diff.verdict, "different routes: 6 of 9 messages");
  ASSERT_THAT(Names(diff), Contains("only in b"));
  const DiffSection& only = diff.sections[1];
  EXPECT_EQ(only.name, "only in a");
  EXPECT_EQ(only.count, 6u);
  EXPECT_THAT(only.differences, SizeIs(2));
}

TEST(PlanDiffTest, SizesAndRoots) {
  const Plan plan = test::PlanOf(4, 3);
  EXPECT_EQ(DiffPlans(plan, test::PlanOf(5, 3)).verdict,
            "different sizes: 4 nodes and 30 bytes in 3 blocks; 5 nodes and 30 bytes in 3 blocks");
  Spec spec = SpecOf(4, 3);
  spec.root = NodeId(1);
  EXPECT_EQ(DiffPlans(plan, test::CompileOrDie(spec)).verdict, "different roots: 0, 1");
}

TEST(PlanDiffTest, BlocksOfAChannelInAnotherOrder) {
  const Plan plan = test::PlanOf(2, 3, "chain");
  test::Draft draft(plan);
  for (test::DraftProgram& program : draft.programs)
    std::swap(program.ops[0].op.block, program.ops[1].op.block);
  const PlanDiff diff = DiffPlans(plan, draft.Build());
  EXPECT_EQ(diff.verdict, "same messages, different order: 1 difference");
  EXPECT_THAT(diff.sections[0].differences, ElementsAre("0>1:1 after 0>1:0 in a, before it in b"));
}

TEST(PlanDiffTest, CreditsRoundsAndHeader) {
  Spec spec = SpecOf(3, 2);
  spec.ready = *ParseReady("window=1");
  const VerifiedPlan window = test::CompileOrDie(spec);
  spec.ready = *ParseReady("barrier");
  const VerifiedPlan barrier = test::CompileOrDie(spec);
  const PlanDiff diff = DiffPlans(window, barrier);
  EXPECT_EQ(diff.verdict, "same messages and order, different credits: 4 differences");
  EXPECT_THAT(Names(diff), ElementsAre("header", "credits"));
  spec.ready = *ParseReady("retry");
  EXPECT_EQ(DiffPlans(barrier, test::CompileOrDie(spec)).verdict,
            "same messages and order, different header");
  test::Draft late(barrier);
  for (test::DraftProgram& program : late.programs) {
    for (test::DraftOp& op : program.ops) ++op.op.round;
  }
  EXPECT_EQ(DiffPlans(barrier, late.Build()).verdict,
            "same messages and order, different rounds: 4 messages");
}

}  // namespace
}  // namespace prepost::plan_diff_test
