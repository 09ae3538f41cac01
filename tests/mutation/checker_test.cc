// SPDX-License-Identifier: Apache-2.0
//
// Three opinions on compiled plans: the verifier, the independent checker and the interpreter. A
// compiled plan that one of them dislikes is a bug in that one or in the compiler.
#include "tests/support/checker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ir/verify/verify.h"
#include "tests/support/interpreter.h"
#include "tests/support/oracle.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"

namespace prepost::test::checker_test {
namespace {

std::vector<std::byte> MessageOf(const Plan& plan, Random& random) {
  std::vector<std::byte> message(plan.header().payload.bytes);
  std::ranges::generate(message, [&] { return static_cast<std::byte>(random.Below(256)); });
  return message;
}

void ExpectGood(const Plan& plan, Random& random) {
  const Verdict verdict = Verify(plan);
  EXPECT_TRUE(verdict.ok()) << verdict.ToString();
  EXPECT_TRUE(IndependentCheck(plan).empty());
  const Judgement judgement = Play(plan, random);
  EXPECT_FALSE(judgement.harmful()) << Name(judgement.harm) << " " << judgement.detail;
  const std::vector<std::byte> message = MessageOf(plan, random);
  const auto delivered = Deliver(plan, message, random);
  ASSERT_TRUE(delivered.ok()) << delivered.status().ToString();
  for (const auto& bytes : *delivered) EXPECT_TRUE(bytes == message);
}

TEST(CheckerTest, EverySmallPlanIsGood) {
  Random random(TestSeed());
  const std::vector<Spec> specs = AllSmallSpecs();
  Sample sample(ScheduleLabels(specs));
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(Label(spec));
    ExpectGood(CompileOrDie(spec), random);
    if (HasFailure()) return;
  }
}

TEST(CheckerTest, EveryCollectiveIsGoodExactly) {
  Random random(TestSeed());
  const std::vector<Spec> specs =
      WithUnevenParts(SpecsOfCollectives({.nodes_max = 9, .blocks_max = 3}), random);
  std::vector<std::string> labels;
  for (const Spec& spec : specs)
    labels.push_back(std::string(Name(spec.collective)) + "=" + spec.algorithm);
  Sample sample(labels);
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(Label(spec));
    const VerifiedPlan plan = CompileOrDie(spec);
    EXPECT_TRUE(IndependentCheck(plan).empty());
    for (const Judgement& judgement : {Judge(plan), Play(plan, random)})
      EXPECT_FALSE(judgement.harmful()) << Name(judgement.harm) << " " << judgement.detail;
    if (HasFailure()) return;
  }
}

TEST(CheckerTest, SmallerPlansAreGoodExactly) {
  for (const Spec& spec : AllSmallSpecs({.nodes_max = 6, .blocks_max = 3})) {
    SCOPED_TRACE(Label(spec));
    const Judgement judgement = Judge(CompileOrDie(spec));
    ASSERT_FALSE(judgement.harmful()) << Name(judgement.harm) << " " << judgement.detail;
  }
}

TEST(CheckerTest, RandomPlansAreGoodWithAndWithoutReduction) {
  const uint64_t seed = TestSeed();
  Random random(seed);
  for (int i = 0; i < 60; ++i) {
    const Spec spec = RandomSpec(random, {.nodes_max = 40, .blocks_max = 20});
    SCOPED_TRACE(testing::Message() << Label(spec) << ", PREPOST_TEST_SEED=" << seed);
    ExpectGood(CompileOrDie(spec), random);
    ExpectGood(CompileOrDie(spec, {"thin"}), random);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace prepost::test::checker_test
