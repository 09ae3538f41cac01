// SPDX-License-Identifier: Apache-2.0
//
// Collectives other than multicasts over every engine (tests/support/engines.h), driven by CPUs:
// outputs are what the inputs say, and of floats the same bytes at all nodes and in every run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/collective_transfer.h"
#include "tests/support/engines.h"
#include "tests/support/sample.h"

namespace prepost::collective_test {
namespace {

using emulated::SchedulerMode;
using test::CollectiveTransfer;
using test::Engine;
using test::PlayOptions;

constexpr SchedulerMode kOrders[] = {SchedulerMode::kRoundRobin, SchedulerMode::kRandom,
                                     SchedulerMode::kAdversarial};

class CollectiveTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { PREPOST_SKIP_IF_NOT_THERE(engine_); }

  void Play(const VerifiedPlan& plan, CollectiveTransfer& transfer, const PlayOptions& options) {
    const Result<RunReport> report = engine_.Play(plan, transfer.StagedMemory(plan), options);
    ASSERT_TRUE(report.ok()) << report.status().ToString();
  }

  const Engine& engine_ = test::EngineOf(GetParam());
};

// Catches partial writes, ranges in several pieces or whose length is that of their first block, an
// empty message that is never noted, messages that are sent from, or received into, another room
// than their key's or one that the device does not know, hosts that combine what has not come,
// operations on elements of another size or sign, and what does not fit a short ring and is posted
// from elsewhere later.
TEST_P(CollectiveTest, EveryOutputIsWhatTheInputsSay) {
  test::Random random(test::TestSeed());
  const test::SpecLimits limits = {.nodes_max = std::min(engine_.limits.nodes_max, 6u),
                                   .blocks_max = 3};
  const std::vector<Spec> specs = test::SpecsOfExactCollectives(limits, random);
  const std::vector<uint32_t> rings =
      engine_.nics ? std::vector<uint32_t>{2, 32768} : std::vector<uint32_t>{32768};
  std::vector<std::string> labels;
  const std::vector<std::string> algorithms = test::CollectiveLabels(specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    for (const uint32_t ring : rings)
      labels.push_back(
          fmt::format("{} ready={} ring={}", algorithms[i], ToString(specs[i].ready), ring));
  }
  test::Sample sample(labels, test::SampleDivisor(engine_.fewer * rings.size()));
  uint64_t seed = test::TestSeed();
  for (const Spec& spec : specs) {
    for (const uint32_t ring : rings) {
      if (!sample.Takes()) continue;
      ++seed;
      SCOPED_TRACE(fmt::format("{}, seed {}, rings of {}", test::Label(spec), seed, ring));
      const VerifiedPlan plan = test::CompileOrDie(spec);
      CollectiveTransfer transfer(plan.header(), random);
      Play(plan, transfer,
           {.scheduler = kOrders[seed % std::size(kOrders)], .seed = seed, .ring_wqes_max = ring});
      if (!HasFatalFailure()) transfer.ExpectDelivered();
      if (HasFailure()) return;
    }
  }
}

/// One schedule each of those that such an allreduce may have, of all where plays are cheap.
class AllreduceTest : public CollectiveTest {
 protected:
  void ForEachSchedule(const std::vector<std::string>& algorithms, Spec spec,
                       const std::function<void(const VerifiedPlan&)>& play) {
    test::Sample sample(algorithms.size(), test::TakesAllCases() ? 1 : engine_.fewer);
    for (const std::string& algorithm : algorithms) {
      if (!sample.Takes()) continue;
      SCOPED_TRACE(algorithm);
      spec.algorithm = algorithm;
      play(test::CompileOrDie(spec));
      if (HasFailure()) return;
    }
  }
};

TEST_P(AllreduceTest, LargeBlocks) {
  const uint64_t large = engine_.large_block_bytes;
  const Spec spec = {.collective = CollectiveKind::kAllreduce,
                     .combine = {.op = CombineOp::kXor, .type = ElementType::kUint32},
                     .nodes = 4,
                     .message_bytes = large / 2 + 100,
                     .block_bytes = large / 8};
  test::Random random(test::TestSeed());
  ForEachSchedule({"ring", "halving", "doubling", "chain"}, spec, [&](const VerifiedPlan& plan) {
    CollectiveTransfer transfer(plan.header(), random);
    Play(plan, transfer, {.scheduler = SchedulerMode::kAdversarial, .seed = test::TestSeed()});
    if (!HasFatalFailure()) transfer.ExpectDelivered();
  });
}

// Sums of floats depend on the order: catches one that depends on who is first.
TEST_P(AllreduceTest, FloatsAreTheSameEverywhereAndInEveryRun) {
  const uint64_t seed = test::TestSeed();
  const Spec spec = {.collective = CollectiveKind::kAllreduce,
                     .combine = {.op = CombineOp::kSum, .type = ElementType::kBfloat16},
                     .nodes = engine_.is_library() ? 4u : 8u,
                     .message_bytes = 250,
                     .block_bytes = 64};
  ForEachSchedule(test::SchedulesOf(spec.collective, spec.nodes), spec,
                  [&](const VerifiedPlan& plan) {
                    SCOPED_TRACE(fmt::format("PREPOST_TEST_SEED={}", seed));
                    std::vector<std::byte> first;
                    for (uint64_t run = 0; run < 3; ++run) {
                      test::Random random(seed);  // the same inputs
                      CollectiveTransfer transfer(plan.header(), random);
                      Play(plan, transfer, {.scheduler = kOrders[run], .seed = seed + run});
                      if (HasFatalFailure()) return;
                      if (run == 0) first = transfer.output(NodeId(0));
                      for (uint32_t node = 0; node < spec.nodes; ++node) {
                        ASSERT_TRUE(transfer.output(NodeId(node)) == first)
                            << "node " << node << ", run " << run;
                      }
                    }
                  });
}

INSTANTIATE_TEST_SUITE_P(Engines, CollectiveTest,
                         testing::ValuesIn(test::EnginesWhere([](const Engine&) { return true; })),
                         [](const auto& it) { return it.param; });
INSTANTIATE_TEST_SUITE_P(Engines, AllreduceTest,
                         testing::ValuesIn(test::EnginesWhere([](const Engine&) { return true; })),
                         [](const auto& it) { return it.param; });

}  // namespace
}  // namespace prepost::collective_test
