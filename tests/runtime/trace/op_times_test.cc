// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/op_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "runtime/base/clock.h"

namespace prepost::op_times_test {
namespace {

using ::testing::ElementsAre;
using Kind = OpEvent::Kind;

/// Node 0 sends two blocks to node 1 and one to node 2. The programs stand in the order 2, 0, 1,
/// and have 1, 3 and 2 ops.
Plan UnsortedPlan() {
  PlanBuilder builder({.nodes = 3, .payload = *MakePayload(2000, 1000)});
  const ChannelId to_1 = builder.AddChannel({NodeId(0), NodeId(1), Lane::kBlocks});
  const ChannelId to_2 = builder.AddChannel({NodeId(0), NodeId(2), Lane::kBlocks});
  builder.BeginProgram(NodeId(2));
  builder.AddOp({.channel = to_2, .block = 0, .kind = OpKind::kRecv});
  builder.BeginProgram(NodeId(0));
  builder.AddOp({.channel = to_1, .block = 0, .kind = OpKind::kSend});
  builder.AddOp({.channel = to_1, .block = 1, .kind = OpKind::kSend});
  builder.AddOp({.channel = to_2, .block = 0, .kind = OpKind::kSend});
  builder.BeginProgram(NodeId(1));
  builder.AddOp({.channel = to_1, .block = 0, .kind = OpKind::kRecv});
  builder.AddOp({.channel = to_1, .block = 1, .kind = OpKind::kRecv});
  return std::move(builder).Build();
}

// Catches a table indexed by the position of the program instead of its node, ops of one node that
// land on another's, and times under the wrong event.
TEST(RunTraceTest, EachEventHasItsOwnPlace) {
  const Plan plan = UnsortedPlan();
  RunTrace trace = RunTrace::Make(plan).value();
  const size_t op_counts[] = {3, 2, 1};
  uint64_t time_ns = 0;
  for (uint32_t node = 0; node < 3; ++node) {
    ASSERT_EQ(trace.times(NodeId(node)).size(), op_counts[node]) << node;
    for (uint32_t op = 0; op < op_counts[node]; ++op) {
      const OpTimes& times = trace.times(NodeId(node))[op];
      EXPECT_EQ(times.posted_ns + times.started_ns + times.completed_ns, 0u) << node << ' ' << op;
      for (const Kind kind : {Kind::kPost, Kind::kStart, Kind::kComplete}) {
        trace.Record({NodeId(node), OpId(op), kind}, ++time_ns);
      }
    }
  }
  time_ns = 0;
  for (uint32_t node = 0; node < 3; ++node) {
    for (const OpTimes& times : std::as_const(trace).times(NodeId(node))) {
      EXPECT_EQ(times.posted_ns, ++time_ns);
      EXPECT_EQ(times.started_ns, ++time_ns);
      EXPECT_EQ(times.completed_ns, ++time_ns);
    }
  }
}

// Catches an observer that records the time at which it was made.
TEST(RunTraceTest, TheObserverRecordsTheTimeOfItsCall) {
  const Plan plan = UnsortedPlan();
  RunTrace trace = RunTrace::Make(plan).value();
  const OpObserver observe = trace.Observer();
  const uint64_t before_ns = MonotonicNs();
  observe({NodeId(1), OpId(1), Kind::kComplete});
  const uint64_t after_ns = MonotonicNs();
  EXPECT_GE(trace.times(NodeId(1))[1].completed_ns, before_ns);
  EXPECT_LE(trace.times(NodeId(1))[1].completed_ns, after_ns);
  EXPECT_EQ(trace.times(NodeId(1))[1].posted_ns, 0u);
}

// Catches a table of which each process has its own copy, and one that a move leaves behind.
TEST(RunTraceTest, AForkedProcessRecordsForItsParent) {
  const Plan plan = UnsortedPlan();
  RunTrace made = RunTrace::Make(plan).value();
  RunTrace trace = std::move(made);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    trace.Record({NodeId(2), OpId(0), Kind::kStart}, 77);
    trace.Record({.node = NodeId(1), .op = {}, .kind = Kind::kWakeup}, 78);
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(trace.times(NodeId(2))[0].started_ns, 77u);
  EXPECT_THAT(trace.wakeups(NodeId(1)), ElementsAre(78));
}

// Catches wake-ups of one node among another's, or taken for something of op 0, and such that are
// written behind the table.
TEST(RunTraceTest, WakeupsAreKeptInOrderAsFarAsThereIsRoom) {
  const Plan plan = UnsortedPlan();
  RunTrace trace = RunTrace::Make(plan).value();
  for (uint32_t node = 0; node < 3; ++node) EXPECT_TRUE(trace.wakeups(NodeId(node)).empty());
  const auto wake = [&](uint32_t node, uint64_t time_ns) {
    trace.Record({.node = NodeId(node), .op = {}, .kind = Kind::kWakeup}, time_ns);
  };
  for (uint64_t i = 1; i <= kWakeupTimesMax; ++i) wake(1, i);  // room is shared by three
  wake(2, 7);
  wake(0, 8);
  wake(2, 9);
  EXPECT_THAT(trace.wakeups(NodeId(0)), ElementsAre(8));
  EXPECT_THAT(trace.wakeups(NodeId(2)), ElementsAre(7, 9));
  const std::span<const uint64_t> first = trace.wakeups(NodeId(1));
  ASSERT_EQ(first.size(), kWakeupTimesMax / 3);
  for (size_t i = 0; i < first.size(); ++i) ASSERT_EQ(first[i], i + 1);
  for (uint32_t node = 0; node < 3; ++node) {
    for (const OpTimes& times : trace.times(NodeId(node)))
      EXPECT_EQ(times.posted_ns + times.started_ns + times.completed_ns, 0u);
  }
}

// A plan for one node has no ops: catches a table that cannot be empty.
TEST(RunTraceTest, APlanWithoutOpsHasNoTimes) {
  PlanBuilder builder({.nodes = 1, .payload = *MakePayload(1000, 1000)});
  builder.BeginProgram(NodeId(0));
  const Plan plan = std::move(builder).Build();
  const Result<RunTrace> trace = RunTrace::Make(plan);
  ASSERT_TRUE(trace.ok()) << trace.status().ToString();
  EXPECT_TRUE(trace->times(NodeId(0)).empty());
}

}  // namespace
}  // namespace prepost::op_times_test
