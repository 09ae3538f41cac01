// SPDX-License-Identifier: Apache-2.0
//
// Compare as a library: that counts are those of the plan, whatever the hosts wait by, and that a
// comparison that cannot end is refused, interrupted or ended with a message.
#include "backends/local/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "runtime/base/event_fd.h"
#include "tests/support/plans.h"

namespace prepost::local::comparison_test {
namespace {

using testing::Each;
using testing::HasSubstr;

VerifiedPlan MakePlan(uint32_t nodes, const std::string& ready = "auto") {
  return test::CompileOrDie({.nodes = nodes,
                             .root = NodeId(nodes - 1),
                             .message_bytes = 12'345,
                             .block_bytes = 1'000,
                             .ready = *ParseReady(ready)});
}

/// What the hosts of `plan` must do, derived from the plan alone.
struct Expected {
  explicit Expected(const VerifiedPlan& plan) : program(*nic::Lower(plan)) {
    for (const Op& op : plan.ops()) ++(op.is_send() ? sends : receives);
    for (const nic::NodeProgram& node : program.nodes) {
      wqes += node.wqes();
      doorbells += node.doorbells();
      cqs += node.cqs.size();
    }
  }
  nic::QueueProgram program;
  uint64_t sends = 0;
  uint64_t receives = 0;
  uint64_t wqes = 0;
  uint64_t doorbells = 0;
  uint64_t cqs = 0;
};

void ExpectCounts(const VerifiedPlan& plan, const Comparison& comparison,
                  const CompareOptions& options) {
  const Expected expected(plan);
  for (const TransferSample& sample : comparison.of(Way::kCpuDriven)) {
    HostCounts all = sample.before;
    all += sample.at_start;
    all += sample.during;
    EXPECT_EQ(all.work_requests, expected.sends + expected.receives);
    EXPECT_EQ(all.doorbells, expected.sends) << "one each";
    EXPECT_EQ(all.cqes_read, expected.sends + expected.receives);
    EXPECT_EQ(sample.before.doorbells, 0u);
  }
  const bool sleeps = options.wait.mode != WaitMode::kPolling;
  for (const TransferSample& sample : comparison.of(Way::kPreposted)) {
    EXPECT_EQ(sample.before.work_requests, expected.wqes);
    EXPECT_EQ(sample.before.event_requests, expected.cqs + (sleeps ? plan.header().nodes : 0))
        << "errors of every CQ, and the final completion";
    EXPECT_EQ(sample.at_start, (HostCounts{.doorbells = expected.doorbells}));
    EXPECT_EQ(sample.during.cqes_read, plan.header().nodes) << "the final ones";
    EXPECT_EQ(sample.during.doorbells + sample.during.event_requests, 0u);
    EXPECT_LE(sample.during.wakeups, plan.header().nodes);
  }
}

TEST(ComparisonTest, CountsAreThoseOfThePlan) {
  for (const char* ready : {"auto", "barrier", "channel", "window=2", "retry"}) {
    for (const WaitMode wait : {WaitMode::kInterrupt, WaitMode::kPolling, WaitMode::kHybrid}) {
      SCOPED_TRACE(testing::Message() << ready << " " << Name(wait));
      const VerifiedPlan plan = MakePlan(5, ready);
      const CompareOptions options{.repetitions = 2,
                                   .wait = {.mode = wait, .idle_max = std::chrono::milliseconds(1)},
                                   .seed = test::TestSeed()};
      const Result<Comparison> comparison = Compare(plan, options);
      ASSERT_TRUE(comparison.ok()) << comparison.status().ToString();
      for (const Way way : {Way::kCpuDriven, Way::kPreposted}) {
        ASSERT_EQ(comparison->of(way).size(), 2u) << "the warm-up does not count";
        for (const TransferSample& sample : comparison->of(way)) {
          ASSERT_EQ(sample.latency_ns.size(), 5u);
          EXPECT_EQ(sample.completion_ns, std::ranges::max(sample.latency_ns));
          EXPECT_EQ(sample.skew_ns, sample.completion_ns - std::ranges::min(sample.latency_ns));
          EXPECT_THAT(sample.latency_ns, Each(testing::Gt(0u)));
        }
      }
      ExpectCounts(plan, *comparison, options);
    }
  }
}

TEST(ComparisonTest, OneNodeAndBusyThreads) {
  const Result<Comparison> comparison =
      Compare(MakePlan(1), {.repetitions = 1, .stress_threads = 2});
  ASSERT_TRUE(comparison.ok()) << comparison.status().ToString();
  EXPECT_EQ(comparison->of(Way::kPreposted)[0].during.cqes_read, 1u);
}

TEST(ComparisonTest, TooManyNodesAreRefused) {
  const Status status = Compare(MakePlan(kCompareNodesMax + 1), {}).status();
  EXPECT_EQ(status.code(), StatusCode::kRejected);
  EXPECT_EQ(status.message(),
            "the plan has 257 nodes; compare runs a thread for each, at most 256");
}

TEST(ComparisonTest, PlansThatDoNotFitAreRefused) {
  const Status status =
      Compare(MakePlan(3, "barrier"), {.lower = {.profile = {.qps = 2}}}).status();
  EXPECT_EQ(status.code(), StatusCode::kRejected);
  EXPECT_THAT(status.message(), HasSubstr("the limit is 2"));
}

// More memory than any machine has: an error, before any of it is touched.
TEST(ComparisonTest, MessagesThatDoNotFitMemoryAreRefused) {
  const VerifiedPlan plan = test::CompileOrDie(
      {.nodes = 2, .message_bytes = uint64_t{1} << 44, .block_bytes = uint64_t{1} << 30});
  const Status status = Compare(plan, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kEnvironment);
  EXPECT_THAT(status.message(), HasSubstr("a message of 17592186044416 bytes at 2 nodes"));
}

// Nobody waits for what a broken QP will never bring.
TEST(ComparisonTest, ABrokenQpEndsIt) {
  const Status status =
      Compare(MakePlan(4), {.faults = {{.node = NodeId(0), .peer = NodeId(3)}}}).status();
  EXPECT_EQ(status.code(), StatusCode::kRejected);
  EXPECT_EQ(status.message(), "node 0: QP 0<>3 blocks: QP fatal error");
}

TEST(ComparisonTest, InterruptedWhileItRuns) {
  const EventFd interrupt = *EventFd::Make();
  uint32_t pairs = 0;
  const CompareOptions options{.repetitions = 1'000'000,
                               .interrupt_fd = interrupt.fd(),
                               .progress = [&](uint32_t repetition) {
                                 pairs = repetition;
                                 if (repetition == 2) interrupt.Signal();
                               }};
  const Status status = Compare(MakePlan(4), options).status();
  EXPECT_EQ(status.code(), StatusCode::kInterrupted);
  EXPECT_EQ(pairs, 2u);
}

TEST(ComparisonTest, RatioIsOfPairs) {
  Comparison comparison;
  const auto add = [&](Way way, std::vector<uint64_t> times) {
    for (const uint64_t time : times) {
      comparison.ways[static_cast<size_t>(way)].push_back({.completion_ns = time});
    }
  };
  add(Way::kCpuDriven, {100, 300, 600});
  add(Way::kPreposted, {100, 100, 300});
  const CompareRatio ratio = RatioOf(comparison);
  EXPECT_EQ(ratio.of_medians, 3.0);
  EXPECT_EQ(ratio.of_pairs.min, 1.0);
  EXPECT_EQ(ratio.of_pairs.median, 2.0);
  EXPECT_EQ(ratio.of_pairs.max, 3.0);
}

}  // namespace
}  // namespace prepost::local::comparison_test
