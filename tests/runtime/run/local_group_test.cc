// SPDX-License-Identifier: Apache-2.0
//
// What of the launcher can be seen from inside; tests/tools/commands/run_test.cc kills and starves
// it from outside.
#include "runtime/run/local_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "compiler/compile.h"
#include "tests/support/local_nodes.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_folder.h"

namespace prepost::local_group_test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class LocalGroupTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  MappedInput Input(size_t bytes) {
    test::WriteBytes(folder_ / "image", test::RandomBytes(bytes));
    return MappedInput::Open(folder_ / "image").value();
  }
  static void ExpectNoChildren() {
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
  }
  /// How many files this process has open.
  static ptrdiff_t OpenFiles() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  }

  test::TempFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Transports, LocalGroupTest, test::AllTransports(), test::TransportName);

TEST_P(LocalGroupTest, ReportsEveryNodeAndTheSum) {
  const MappedInput input = Input(100'000);
  const VerifiedPlan plan =
      Compile({.nodes = 6, .message_bytes = 100'000, .block_bytes = 7000}).value();
  const ptrdiff_t files = OpenFiles();
  const Result<LocalRun> run = RunLocalGroup(plan, input, nullptr, {.transport = GetParam()});
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  EXPECT_EQ(run->sum, *input.Sum());
  ASSERT_EQ(run->report.nodes.size(), 6u);
  for (uint32_t node = 0; node < 6; ++node) {
    EXPECT_EQ(run->report.nodes[node].node, NodeId(node));
    EXPECT_EQ(run->report.nodes[node].bytes_received, node == 0 ? 0u : 100'000u);
    EXPECT_LE(run->report.nodes[node].elapsed_ns, run->report.elapsed_ns);
  }
  ExpectNoChildren();
  EXPECT_EQ(OpenFiles(), files);
}

// A receive that nothing is sent to (no valid plan has one): catches a run that hangs, as signs of
// life between its nodes were taken for progress, or that ends without saying where.
TEST_P(LocalGroupTest, ARunThatStandsStillSaysWho) {
  const MappedInput input = Input(10);
  PlanBuilder builder({.nodes = 2, .payload = *MakePayload(10, 10)});
  const ChannelId channel = builder.AddChannel({NodeId(0), NodeId(1), Lane::kBlocks});
  builder.BeginProgram(NodeId(0));
  builder.BeginProgram(NodeId(1));
  builder.AddOp({.channel = channel, .block = 0, .kind = OpKind::kRecv});
  const Plan plan = std::move(builder).Build();
  const Result<LocalRun> run = RunLocalGroup(Playable::Part(plan), input, nullptr,
                                             {.transport = GetParam(),
                                              .no_progress_max = milliseconds(600),
                                              .failure_max = milliseconds(800)});
  EXPECT_THAT(
      run.status().message(),
      HasSubstr("no progress for 600 ms: node 1 op 0 (recv 0>1:0) waits for node 0 to send"));
  ExpectNoChildren();
}

// In polling mode nobody sleeps, and with 12 nodes not all have a core: catches a node that keeps
// its core from the one that has work, and wake-ups that are counted though nobody waited, or that
// the trace does not have.
TEST_P(LocalGroupTest, WaitsAsItIsTold) {
  const MappedInput input = Input(100'000);
  const VerifiedPlan plan =
      Compile({.nodes = 12, .message_bytes = 100'000, .block_bytes = 1000}).value();
  for (const WaitMode mode : {WaitMode::kPolling, WaitMode::kHybrid, WaitMode::kInterrupt}) {
    SCOPED_TRACE(Name(mode));
    RunTrace trace = RunTrace::Make(plan).value();
    const Result<LocalRun> run = RunLocalGroup(
        plan, input, nullptr, {.transport = GetParam(), .wait = {.mode = mode}, .trace = &trace});
    ASSERT_TRUE(run.ok()) << run.status().ToString();
    uint64_t wakeups = 0;
    for (const NodeReport& node : run->report.nodes) {
      wakeups += node.host_wakeups;
      const std::span<const uint64_t> times = trace.wakeups(node.node);
      ASSERT_EQ(times.size(), node.host_wakeups);
      EXPECT_TRUE(std::ranges::is_sorted(times));
      if (times.empty()) continue;
      EXPECT_GE(times.front(), trace.start_ns);
      EXPECT_LE(times.back(), trace.start_ns + node.elapsed_ns);
    }
    if (mode == WaitMode::kPolling) {
      EXPECT_EQ(wakeups, 0u);
    } else if (mode == WaitMode::kInterrupt) {
      EXPECT_GT(wakeups, 0u);
    }
  }
}

// A message and copies that are in memory all the way, as the benchmark has them.
TEST_P(LocalGroupTest, TakesAMessageFromMemory) {
  NodeBuffer message = NodeBuffer::Open(NodeId(0), 100'000, nullptr).value();
  ASSERT_TRUE(message.Reserve().ok());
  std::ranges::copy(test::RandomBytes(100'000), message.bytes().begin());
  const MappedInput input =
      MappedInput::Open("/proc/self/fd/" + std::to_string(message.fd())).value();
  EXPECT_TRUE(input.is_sealed());
  const VerifiedPlan plan =
      Compile({.nodes = 4, .message_bytes = 100'000, .block_bytes = 1000}).value();
  const Result<LocalRun> run = RunLocalGroup(plan, input, nullptr, {.transport = GetParam()});
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  EXPECT_EQ(run->sum, *message.Sum());
}

TEST_P(LocalGroupTest, IsInterrupted) {
  const MappedInput input = Input(10);
  const VerifiedPlan plan = Compile({.nodes = 3, .message_bytes = 10}).value();
  const FileDescriptor interrupt(eventfd(1, 0));
  const Result<LocalRun> run = RunLocalGroup(
      plan, input, nullptr, {.transport = GetParam(), .interrupt_fd = interrupt.get()});
  EXPECT_EQ(run.status().code(), StatusCode::kInterrupted);
  ExpectNoChildren();
}

}  // namespace
}  // namespace prepost::local_group_test
