// SPDX-License-Identifier: Apache-2.0
//
// The interpreter against brute force: on tiny plans and all kinds of mutants of them, Judge says
// what a search through every interleaving says.
#include "tests/support/interpreter.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/mutation/mutator.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"

namespace prepost::test::interpreter_test {
namespace {

constexpr size_t kStatesMax = 20'000;

class InterpreterTest : public testing::Test {
 protected:
  void CompareWithSearch(const Plan& plan, Depths depths = {}) {
    const Judgement judged = Judge(plan, depths);
    const Judgement played = Play(plan, random_, depths);
    EXPECT_TRUE(judged.harmful() || !played.harmful()) << Name(played.harm) << "\n" << Dump(plan);
    const std::optional<Judgement> explored = Explore(plan, kStatesMax, depths);
    if (!explored) {
      ++unexplored_;
      return;
    }
    ++seen_[judged.harm];
    ASSERT_EQ(judged.harmful(), explored->harmful())
        << "judged: " << Name(judged.harm) << ", explored: " << Name(explored->harm) << "\n"
        << Dump(plan);
  }

  const uint64_t seed_ = TestSeed();
  Random random_{seed_};
  std::map<Harm, uint32_t> seen_;
  uint32_t unexplored_ = 0;
};

TEST_F(InterpreterTest, JudgesAsEveryInterleavingDoes) {
  const std::vector<Spec> specs = AllSmallSpecs({.nodes_max = 4, .blocks_max = 2});
  // A quarter of what others take: each of its cases is a search of thousands of interleavings.
  Sample sample(ScheduleLabels(specs), SampleDivisor(4));
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(testing::Message() << "PREPOST_TEST_SEED=" << seed_ << " " << Label(spec));
    const VerifiedPlan plan = CompileOrDie(spec);
    CompareWithSearch(plan);
    for (const Mutator& mutator : Damages()) {
      Draft draft(plan);
      // Every other kind each time: all meet all plans often enough.
      if (random_.Coin() || !mutator.apply(draft, random_)) continue;
      SCOPED_TRACE(mutator.name);
      CompareWithSearch(draft.Build());
      CompareWithSearch(draft.Build(), {.send = 1, .recv = random_.Between(1, 2)});
      if (HasFailure()) return;
    }
  }
  for (const Harm harm :
       {Harm::kNone, Harm::kUnplayable, Harm::kBytes, Harm::kWrongBlock, Harm::kMissing,
        Harm::kTwice, Harm::kDeadlock, Harm::kNotHeld, Harm::kNotPosted}) {
    EXPECT_GT(seen_[harm], 0u) << Name(harm);
    RecordProperty(Name(harm), static_cast<int>(seen_[harm]));
  }
  EXPECT_LT(unexplored_, seen_[Harm::kNone]);
}

}  // namespace
}  // namespace prepost::test::interpreter_test
