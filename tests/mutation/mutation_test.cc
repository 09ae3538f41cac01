// SPDX-License-Identifier: Apache-2.0
//
// The verification of the verifier. Plans of every schedule and ready mode are damaged, or changed
// harmlessly, in every way of mutator.h. The interpreter settles which mutants are harmful. Then:
// no harmful mutant passes; the verifier and the independent checker agree on every mutant; a
// harmless mutant is rejected only by a rule of policy. The kill table is printed.
//
// Rules of policy ask more than that nothing goes wrong: `shape` a consistent file; `causal` and
// `combine` that a node can be judged from its own program; `order` that managed queues can take
// it; `ready` and `window` what the header claims; `rounds` the bounds. `match`, `value` and
// `acyclic` are none: who breaks them does harm; but where blocks are combined `value` asks that
// ids alone show it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/schedules/schedule.h"
#include "ir/verify/verify.h"
#include "tests/mutation/kill_table.h"
#include "tests/mutation/mutator.h"
#include "tests/support/checker.h"
#include "tests/support/interpreter.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"

namespace prepost::test::mutation_test {
namespace {

/// The rules that the verifier finds broken.
std::set<Rule> BrokenRules(const Plan& plan, Depths depths) {
  const Verdict verdict = Verify(
      plan, {.send_depth = depths.send, .recv_depth = depths.recv, .diagnostics_max = 1'000'000});
  std::set<Rule> rules;
  for (const Diagnostic& diagnostic : verdict.diagnostics) rules.insert(diagnostic.rule);
  EXPECT_EQ(rules.empty(), verdict.ok());
  return rules;
}

std::string ToString(const std::set<Rule>& rules) {
  std::string text = "{";
  for (const Rule rule : rules) text += fmt::format(" {}", Name(rule));
  return text + " }";
}

/// The checker stops at `shape` and `match`, where the verifier may say more.
void ExpectAgreement(const std::set<Rule>& verifier, const std::set<Rule>& checker) {
  for (const Rule rule : {Rule::kShape, Rule::kMatch}) {
    ASSERT_EQ(verifier.contains(rule), checker.contains(rule)) << Name(rule);
    if (checker.contains(rule)) return;
  }
  ASSERT_EQ(ToString(verifier), ToString(checker));
}

/// Judges one mutant; returns whether it is harmful.
bool ExpectRightVerdict(const Plan& mutant, Depths depths, Random& random) {
  const std::set<Rule> broken = BrokenRules(mutant, depths);
  const Judgement judgement = Judge(mutant, depths);
  ExpectAgreement(broken, IndependentCheck(mutant, depths));
  if (judgement.harmful()) {
    EXPECT_FALSE(broken.empty()) << "accepted, but harmful: " << Name(judgement.harm) << ", "
                                 << judgement.detail;
    return true;
  }
  const Judgement played = Play(mutant, random, depths);
  EXPECT_FALSE(played.harmful()) << "the interpreter is wrong: " << Name(played.harm) << ", "
                                 << played.detail << "; verifier: " << ToString(broken);
  for (const Rule rule : {Rule::kMatch, Rule::kValue, Rule::kAcyclic}) {
    // Where blocks are combined, ids are the order: they may say less than what happens always.
    if (rule == Rule::kValue && !mutant.header().combine.is_none()) continue;
    EXPECT_FALSE(broken.contains(rule)) << "harmless, but rejected by " << Name(rule);
  }
  return false;
}

/// Small specs of every schedule, ready mode and send window, a few sizes each; half of them,
/// unless the run is a long one.
std::vector<Spec> BaseSpecs(Random& random) {
  constexpr uint32_t kLeast = 3, kMost = 8;
  const std::vector<Spec> smallest_specs = AllSmallSpecs({.nodes_max = 1, .blocks_max = 1});
  std::vector<std::string> labels;
  for (const Spec& spec : smallest_specs)
    labels.insert(labels.end(), kMost - kLeast + 1, "schedule=" + spec.algorithm);
  std::vector<Spec> specs;
  Sample sample(labels, TakesAllCases() ? 1 : 2);
  for (const Spec& smallest : smallest_specs) {
    for (uint32_t nodes = kLeast; nodes <= kMost; ++nodes) {
      if (!sample.Takes()) continue;
      Spec spec = smallest;
      spec.nodes = nodes;
      spec.topology.reset();
      spec.root = NodeId(random.Below(nodes));
      spec.message_bytes = spec.block_bytes * random.Between(2, 4) - random.Below(spec.block_bytes);
      specs.push_back(WithRacks(spec, random.Between(1, 3)));
    }
  }
  return specs;
}

/// Collectives other than multicast.
std::vector<Spec> AllCollectiveSpecs() {
  Random random(TestSeed());
  return WithUnevenParts(SpecsOfCollectives({.nodes_max = 6, .blocks_max = 3}), random);
}

/// A twelfth of them, unless the run is a long one.
std::vector<Spec> CollectiveSpecs() {
  const std::vector<Spec> all = AllCollectiveSpecs();
  std::vector<std::string> labels;
  for (const Spec& spec : all)
    labels.push_back(fmt::format("{}={}", Name(spec.collective), spec.algorithm));
  Sample sample(labels, TakesAllCases() ? 1 : 12);
  std::vector<Spec> specs;
  for (const Spec& spec : all) {
    if (sample.Takes() && spec.nodes >= 3) specs.push_back(spec);
  }
  return specs;
}

class MutationTest : public testing::Test {
 protected:
  /// Mutates `plan` once in every way.
  void MutateInEveryWay(const Plan& plan, std::span<const Mutator> mutators) {
    for (const Mutator& mutator : mutators) {
      Draft draft(plan);
      if (!mutator.apply(draft, random_)) continue;
      const Plan mutant = draft.Build();
      if (mutant == plan) continue;
      SCOPED_TRACE(testing::Message() << mutator.name << "\n" << Dump(mutant));
      const bool is_harmful = ExpectRightVerdict(mutant, {}, random_);
      table_.Add(mutator.name, is_harmful, BrokenRules(mutant, {}));
      const Depths depths{.send = random_.Between(1, 3), .recv = random_.Between(1, 3)};
      SCOPED_TRACE(testing::Message() << "depths " << *depths.send << ", " << *depths.recv);
      ExpectRightVerdict(mutant, depths, random_);
      if (HasFailure()) return;
    }
  }

  const uint64_t seed_ = TestSeed();
  Random random_{seed_};
  KillTable table_;
};

TEST_F(MutationTest, NoHarmfulMutantPasses) {
  for (const Spec& spec : BaseSpecs(random_)) {
    SCOPED_TRACE(testing::Message() << "PREPOST_TEST_SEED=" << seed_ << " " << Label(spec));
    std::vector<std::string> skipped;
    if (random_.Coin()) skipped.push_back("thin");
    const VerifiedPlan plan = CompileOrDie(spec, skipped);
    MutateInEveryWay(plan, Damages());
    MutateInEveryWay(plan, HarmlessChanges());
    if (HasFailure()) return;
  }

  std::vector<std::string> kinds;
  uint32_t accepted_kinds = 0;
  for (const Mutator& mutator : Damages()) {
    kinds.push_back(mutator.name);
    const KillRow row = table_.Row(mutator.name);
    EXPECT_GT(row.harmful + row.harmless_rejected, 0u) << mutator.name << " damages nothing";
    EXPECT_EQ(row.harmful, row.harmful_rejected) << mutator.name;
  }
  for (const Mutator& mutator : HarmlessChanges()) {
    kinds.push_back(mutator.name);
    const KillRow row = table_.Row(mutator.name);
    EXPECT_GT(row.mutants, 0u) << mutator.name << " changes nothing";
    EXPECT_EQ(row.harmful, 0u) << mutator.name;
    accepted_kinds += row.harmless_accepted > 0 ? 1 : 0;
  }
  EXPECT_GE(accepted_kinds, 5u);
  uint64_t mutants = 0;
  for (const std::string& kind : kinds) mutants += table_.Row(kind).mutants;
  EXPECT_GE(Damages().size(), 20u);
  EXPECT_GE(mutants, 10'000u);
  fmt::print("PREPOST_TEST_SEED={}\n{}", seed_, table_.ToString(kinds));
}

// The same of collectives that gather and combine.
TEST_F(MutationTest, NoHarmfulMutantOfACollectivePasses) {
  for (const Spec& spec : CollectiveSpecs()) {
    SCOPED_TRACE(testing::Message() << "PREPOST_TEST_SEED=" << seed_ << " " << Label(spec));
    const VerifiedPlan plan = CompileOrDie(spec);
    MutateInEveryWay(plan, Damages());
    MutateInEveryWay(plan, CollectiveDamages());
    if (HasFailure()) return;
  }
  std::vector<std::string> kinds;
  for (const auto& mutators : {Damages(), CollectiveDamages()}) {
    for (const Mutator& mutator : mutators) kinds.push_back(mutator.name);
  }
  for (const Mutator& mutator : CollectiveDamages()) {
    const KillRow row = table_.Row(mutator.name);
    EXPECT_GT(row.harmful + row.harmless_rejected, 0u) << mutator.name << " damages nothing";
  }
  for (const std::string& kind : kinds) {
    const KillRow row = table_.Row(kind);
    EXPECT_EQ(row.harmful, row.harmful_rejected) << kind;
  }
  EXPECT_GE(table_.Total().mutants, 10'000u);
  fmt::print("PREPOST_TEST_SEED={}\n{}", seed_, table_.ToString(kinds));
}

/// Every rule stands alone somewhere: without it, some mutant would pass that none other rejects.
/// Few mutants of a sample break nothing but `replace` or `agree`, so that it goes on through all
/// small plans, in an order of the seed, until each rule has its mutant.
TEST_F(MutationTest, EachRuleIsNeededBySomeMutant) {
  std::set<Rule> alone;
  const auto mutate = [&](std::vector<Spec> specs, std::span<const Mutator> mutators) {
    random_.Shuffle(specs);
    for (const Spec& spec : specs) {
      if (alone.size() == std::size(kRules)) return;
      const VerifiedPlan plan = CompileOrDie(spec);
      for (const Mutator& mutator : mutators) {
        Draft draft(plan);
        if (!mutator.apply(draft, random_)) continue;
        const std::set<Rule> broken = BrokenRules(draft.Build(), {});
        if (broken.size() == 1) alone.insert(*broken.begin());
      }
    }
  };
  mutate(BaseSpecs(random_), Damages());
  std::vector<Mutator> all(Damages().begin(), Damages().end());
  all.insert(all.end(), CollectiveDamages().begin(), CollectiveDamages().end());
  mutate(AllCollectiveSpecs(), all);
  for (const Rule rule : kRules) EXPECT_TRUE(alone.contains(rule)) << Name(rule);
}

}  // namespace
}  // namespace prepost::test::mutation_test
