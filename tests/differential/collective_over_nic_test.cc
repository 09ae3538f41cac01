// SPDX-License-Identifier: Apache-2.0
//
// Collectives other than multicasts, driven by CPUs over plain work requests on emulated NICs, one thread
// per node: outputs are what the inputs say, in every order of the NICs, with short rings, and behind the
// mlx5 device code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "tests/support/collective_transfer.h"
#include "tests/support/hosts.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"

namespace prepost::collective_over_nic_test {
namespace {

using emulated::SchedulerMode;
using test::NicSetting;

constexpr SchedulerMode kModes[] = {SchedulerMode::kRoundRobin, SchedulerMode::kRandom,
                                    SchedulerMode::kAdversarial};

/// Every schedule x ready mode at small n, sampled.
void PlaySmallPlans(test::SpecLimits limits, uint32_t fewer, NicSetting setting) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  setting.seed = seed;
  const std::vector<Spec> specs = test::SpecsOfExactCollectives(limits, random);
  std::vector<std::string> labels = test::CollectiveLabels(specs);
  for (size_t i = 0; i < specs.size(); ++i) labels[i] += " ready=" + ToString(specs[i].ready);
  test::Sample sample(labels, test::SampleDivisor(fewer));
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    ++setting.seed;
    setting.scheduler = kModes[setting.seed % std::size(kModes)];
    SCOPED_TRACE(
        fmt::format("{}, {} seed {}", test::Label(spec), Name(setting.scheduler), setting.seed));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    test::CollectiveTransfer transfer(plan.header(), random);
    test::PlayOnNics(plan, transfer.StagedMemory(plan), setting);
    if (!testing::Test::HasFatalFailure()) transfer.ExpectDelivered();
    if (testing::Test::HasFailure()) return;
  }
}

// Catches messages that are sent from, or received into, another room than their key's, lengths of ranges
// that are those of their first block, hosts that combine what has not
// come, and operations on elements of another size or sign.
TEST(CollectiveOverNicTest, EverySmallPlanDelivers) {
  PlaySmallPlans({.nodes_max = 7, .blocks_max = 3}, 1, {});
}

// What does not fit a ring is posted later, from where the executor said at first.
TEST(CollectiveOverNicTest, ShortRingsHoldRequestsBack) {
  PlaySmallPlans({.nodes_max = 6, .blocks_max = 4}, 2, {.ring_wqes_max = 2});
}

TEST(CollectiveOverNicTest, EverySmallPlanDeliversOverMlx5) {
  PlaySmallPlans({.nodes_max = 5, .blocks_max = 2}, 2, {.is_mlx5 = true});
}

TEST(CollectiveOverNicTest, MessagesOfManyPacketsDeliver) {
  test::Random random(test::TestSeed());
  for (const char* algorithm : {"ring", "halving", "doubling", "chain"}) {
    SCOPED_TRACE(algorithm);
    const VerifiedPlan plan =
        test::CompileOrDie({.collective = CollectiveKind::kAllreduce,
                            .combine = {.op = CombineOp::kXor, .type = ElementType::kUint32},
                            .nodes = 4,
                            .message_bytes = 300'000,
                            .block_bytes = 20'000,
                            .algorithm = algorithm});
    test::CollectiveTransfer transfer(plan.header(), random);
    test::PlayOnNics(plan, transfer.StagedMemory(plan),
                     {.scheduler = SchedulerMode::kAdversarial, .seed = test::TestSeed()});
    if (!HasFatalFailure()) transfer.ExpectDelivered();
  }
}

}  // namespace
}  // namespace prepost::collective_over_nic_test
