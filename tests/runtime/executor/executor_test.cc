// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/support/fake_network.h"
#include "tests/support/node_memory.h"
#include "tests/support/op_trace.h"
#include "tests/support/plans.h"

namespace prepost::executor_test {
namespace {

using test::CompileOrDie;
using test::FakeNetwork;
using test::OpTrace;
using test::Transfer;

class Group {
 public:
  Group(const VerifiedPlan& plan, uint64_t seed)
      : plan_(plan), network_(plan, seed), transfer_(plan.header()), trace_(plan) {
    for (uint32_t node = 0; node < plan.header().nodes; ++node) {
      executors_.push_back(std::make_unique<CpuExecutor>(
          plan, NodeId(node), network_.At(NodeId(node)), trace_.Observer()));
      executors_.back()->Prepare(test::MemoryOf(transfer_, NodeId(node), plan.header().roles()));
    }
  }

  /// In retry mode a node starts as soon as it has armed, whatever the others have done.
  void Start() {
    const bool barrier = plan_.header().ready.mode != ReadyMode::kRetry;
    for (auto& executor : executors_) {
      executor->Arm();
      if (!barrier) executor->Start();
    }
    for (auto& executor : executors_) {
      if (barrier) executor->Start();
    }
  }

  /// Until every node is done or the steps are used up, many times what is needed.
  bool Play() {
    Start();
    for (size_t steps = 0; steps < 1000 + 200 * plan_.ops().size(); ++steps) {
      if (network_.Random(2) == 0) network_.DeliverOne();
      if (network_.Random(2) == 0) network_.NoteOne();
      EXPECT_TRUE(executors_[network_.Random(executors_.size())]->Poll({}).ok());
      if (std::ranges::all_of(executors_, [](const auto& e) { return e->done(); })) return true;
    }
    return false;
  }

  const CpuExecutor& At(uint32_t node) const { return *executors_[node]; }
  FakeNetwork& network() { return network_; }
  const Transfer& transfer() const { return transfer_; }
  OpTrace& trace() { return trace_; }

 private:
  const VerifiedPlan& plan_;
  FakeNetwork network_;
  Transfer transfer_;
  OpTrace trace_;
  std::vector<std::unique_ptr<CpuExecutor>> executors_;
};

// Catches sends that start too early or never, receives posted after their grant, and blocks in the
// wrong place.
TEST(CpuExecutorTest, DeliversInPlanOrderWhateverCompletesFirst) {
  uint64_t seed = 0;
  for (const Spec& spec : test::SpecsForExecutors({.nodes_max = 7, .blocks_max = 4})) {
    SCOPED_TRACE(test::Label(spec) + " seed=" + std::to_string(++seed));
    const VerifiedPlan plan = CompileOrDie(spec);
    Group group(plan, seed);
    ASSERT_TRUE(group.Play());
    group.transfer().ExpectDelivered();
    group.trace().ExpectPlanOrder();
    const bool may_be_early = plan.header().ready.mode == ReadyMode::kRetry;
    EXPECT_TRUE(may_be_early || group.network().early() == 0);
    if (HasFailure()) return;
  }
}

// Catches receives that are posted long before their credit: the window is what bounds a node's
// open receives.
TEST(CpuExecutorTest, KeepsToTheReceiveWindow) {
  for (uint32_t window : {1u, 2u}) {
    Spec spec = {.nodes = 6, .message_bytes = 400, .block_bytes = 10};
    spec.ready = {.automatic = false, .ready = {.mode = ReadyMode::kWindow, .window = window}};
    const VerifiedPlan plan = CompileOrDie(spec);
    Group group(plan, /*seed=*/window);
    ASSERT_TRUE(group.Play());
    for (uint32_t node = 1; node < 6; ++node) {
      EXPECT_LE(group.network().open_blocks_max(NodeId(node)), window);
    }
  }
}

TEST(CpuExecutorTest, CountsPostsCompletionsAndBytes) {
  Spec spec = {.nodes = 3, .message_bytes = 25, .block_bytes = 10, .algorithm = "chain"};
  spec.ready = {.automatic = false, .ready = {}};
  const VerifiedPlan plan = CompileOrDie(spec);
  Group group(plan, /*seed=*/1);
  ASSERT_TRUE(group.Play());
  const NodeReport relay = group.At(1).report();
  EXPECT_EQ(relay.node, NodeId(1));
  EXPECT_EQ(relay.host_posts, 6u);         // 3 receives, 3 sends
  EXPECT_EQ(relay.host_posts_during, 3u);  // the sends
  EXPECT_EQ(relay.host_completions, 6u);
  EXPECT_EQ(relay.bytes_received, 25u);
}

// Catches a report that names the wrong op or nothing when a run stands still.
TEST(CpuExecutorTest, SaysWhatItWaitsFor) {
  Spec spec = {.nodes = 3, .message_bytes = 20, .block_bytes = 10, .algorithm = "chain"};
  spec.ready = {.automatic = false, .ready = {}};
  const VerifiedPlan plan = CompileOrDie(spec);
  Group group(plan, /*seed=*/1);
  group.Start();
  EXPECT_THAT(group.At(0).Waiting(1),
              ::testing::HasSubstr("(send 0>1:0) waits for delivery at node 1"));
  EXPECT_THAT(group.At(1).Waiting(9),
              ::testing::AllOf(::testing::HasSubstr("(recv 0>1:0) waits for node 0 to send"),
                               ::testing::HasSubstr("(send 1>2:0) waits for op 0")));
  EXPECT_EQ(group.At(1).Waiting(0), "");
}

}  // namespace
}  // namespace prepost::executor_test
