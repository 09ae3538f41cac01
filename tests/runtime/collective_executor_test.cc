// SPDX-License-Identifier: Apache-2.0
//
// The CPU executor on collectives other than multicasts: over a network that delivers in any order
// that plans allow, every output is what the inputs say, whatever the schedule and the ready mode.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/executor/executor.h"
#include "tests/support/collective_transfer.h"
#include "tests/support/fake_network.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"

namespace prepost::collective_executor_test {
namespace {

/// Until every node is done or the steps are used up, many times what is needed.
bool Play(const VerifiedPlan& plan, test::CollectiveTransfer& transfer, uint64_t seed) {
  test::FakeNetwork network(plan, seed);
  std::vector<std::unique_ptr<CpuExecutor>> executors;
  for (uint32_t node = 0; node < plan.header().nodes; ++node) {
    executors.push_back(
        std::make_unique<CpuExecutor>(plan, NodeId(node), network.At(NodeId(node))));
    executors.back()->Prepare(transfer.memory(NodeId(node)));
  }
  for (auto& executor : executors) executor->Arm();
  for (auto& executor : executors) executor->Start();
  for (size_t steps = 0; steps < 1000 + 200 * plan.ops().size(); ++steps) {
    if (network.Random(2) == 0) network.DeliverOne();
    if (network.Random(2) == 0) network.NoteOne();
    EXPECT_TRUE(executors[network.Random(executors.size())]->Poll({}).ok());
    if (std::ranges::all_of(executors, [](const auto& it) { return it->done(); })) return true;
  }
  return false;
}

// Catches combines that come too early, twice or in another place, ranges that are cut wrongly, and
// buffers that are used again too soon.
TEST(CollectiveExecutorTest, EveryOutputIsWhatTheInputsSay) {
  const uint64_t first_seed = test::TestSeed();
  test::Random random(first_seed);
  const std::vector<Spec> specs =
      test::SpecsOfExactCollectives({.nodes_max = 9, .blocks_max = 3}, random);
  test::Sample sample(test::CollectiveLabels(specs));
  uint64_t seed = first_seed;
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(spec) + " seed=" + std::to_string(++seed));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    test::CollectiveTransfer transfer(plan.header(), random);
    ASSERT_TRUE(Play(plan, transfer, seed));
    transfer.ExpectDelivered();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace prepost::collective_executor_test
