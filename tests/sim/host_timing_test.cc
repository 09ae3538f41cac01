// SPDX-License-Identifier: Apache-2.0
//
// What calibrate is made of. How long things take is not tested, only that every step is timed and
// that times can be what they are called.
#include "runtime/calibration/host_timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "compiler/compile.h"
#include "sim/calibration/executor_timing.h"

namespace {

/// Calls of epoll_wait() from now on that a signal interrupts.
std::atomic<int> interrupts_left = 0;
/// What each of them takes at least.
std::atomic<uint64_t> wait_ns = 0;

}  // namespace

/// In place of the C library's, which waits so, too.
extern "C" int epoll_wait(int fd, epoll_event* events, int events_max, int timeout_ms) {
  if (interrupts_left.load() > 0 && interrupts_left.fetch_sub(1) > 0) {
    errno = EINTR;
    return -1;
  }
  for (const uint64_t start = prepost::MonotonicNs(); prepost::MonotonicNs() - start < wait_ns;) {
  }
  return epoll_pwait(fd, events, events_max, timeout_ms, nullptr);
}

namespace prepost::host_timing_test {
namespace {

using sim::ExecutorTimes;
using sim::TimedTransport;
using sim::TimeExecutor;

VerifiedPlan ChainOf(uint32_t nodes, ReadyMode mode) {
  Spec spec;
  spec.nodes = nodes;
  spec.algorithm = "chain";
  spec.message_bytes = 100 * 64;
  spec.block_bytes = 64;
  spec.ready = {.automatic = false,
                .ready = {.mode = mode, .window = mode == ReadyMode::kWindow ? 1u : 0u}};
  spec.send_window = {.automatic = false, .window = 1};
  Result<VerifiedPlan> plan = Compile(spec);
  PREPOST_CHECK(plan.ok());
  return *std::move(plan);
}

class ExecutorTimingOverTest : public testing::TestWithParam<TimedTransport> {};

// Catches a step that is not timed, or timed with those inside of it: a send or a receive is a part
// of what a transfer of 100 blocks takes all together.
TEST_P(ExecutorTimingOverTest, TimesEveryStep) {
  const VerifiedPlan plan = ChainOf(3, ReadyMode::kWindow);
  const Result<ExecutorTimes> times = TimeExecutor(plan, /*transfers=*/5, GetParam());
  ASSERT_TRUE(times.ok()) << times.status().ToString();
  // Of each: two hops, five transfers. A few completions come together and are not counted.
  EXPECT_GE(times->samples, 5 * 100u);
  EXPECT_GT(times->poll, 0);
  EXPECT_GE(times->completion, 0);
  EXPECT_GE(times->credit, 0);
  // A post may take less than what reading the clock varies by.
  EXPECT_GE(times->post_send, 0);
  EXPECT_GE(times->post_receive, 0);
  EXPECT_LT(std::max(times->post_send, times->post_receive), 1e-3);
  EXPECT_GT(times->start, 0);
}

// Catches a number that is made up where the plan never takes the step.
TEST_P(ExecutorTimingOverTest, SaysWhatThePlanDoesNotDo) {
  const VerifiedPlan plan = ChainOf(3, ReadyMode::kBarrier);
  const Result<ExecutorTimes> times = TimeExecutor(plan, 1, GetParam());
  EXPECT_FALSE(times.ok());
  EXPECT_EQ(times.status().ToString(), "the plan has no completions of credits");
}

TEST_P(ExecutorTimingOverTest, StopsWhenAsked) {
  const VerifiedPlan plan = ChainOf(3, ReadyMode::kWindow);
  int calls = 0;
  const Result<ExecutorTimes> times = TimeExecutor(plan, 1, GetParam(), [&calls]() -> Status {
    return ++calls < 10 ? Status() : Rejected("enough");
  });
  EXPECT_FALSE(times.ok());
  EXPECT_EQ(times.status().message(), "enough");
}

// Catches system calls of polls that count as the executor's work, and so twice: here each takes a
// hundred times as long as that.
TEST(ExecutorTimingTest, OverTcpSystemCallsAreApart) {
  constexpr uint64_t kLongNs = 50'000;
  wait_ns = kLongNs;
  const Result<ExecutorTimes> times =
      TimeExecutor(ChainOf(3, ReadyMode::kWindow), /*transfers=*/1, TimedTransport::kTcp);
  wait_ns = 0;
  ASSERT_TRUE(times.ok()) << times.status().ToString();
  EXPECT_LT(times->poll, kLongNs / 2 * 1e-9);
  EXPECT_LT(times->poll + times->completion, kLongNs / 2 * 1e-9);
  EXPECT_LT(times->poll + times->credit, kLongNs / 2 * 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Transports, ExecutorTimingOverTest,
                         testing::Values(TimedTransport::kNics, TimedTransport::kTcp),
                         [](const testing::TestParamInfo<TimedTransport>& it) {
                           return it.param == TimedTransport::kNics ? "nics" : "tcp";
                         });

TEST(HostTimingTest, TimesWhatItSays) {
  EXPECT_GE(UsableCores(), 1u);
  const Result<CopyTime> copy = TimeCopy();
  ASSERT_TRUE(copy.ok()) << copy.status().ToString();
  EXPECT_GT(copy->rate, 0);
  const Result<CombineTime> combine = TimeCombine();
  ASSERT_TRUE(combine.ok()) << combine.status().ToString();
  EXPECT_GT(combine->rate, 0);
  EXPECT_GT(combine->seconds, 0);
  EXPECT_LT(combine->seconds, static_cast<double>(combine->bytes) / combine->rate);
  const Result<WakeUpTime> wake_up = TimeWakeUp();
  ASSERT_TRUE(wake_up.ok()) << wake_up.status().ToString();
  EXPECT_GT(wake_up->seconds, 0);
  EXPECT_GE(wake_up->samples, 1000u);
  const Result<SocketTimes> sockets = TimeSockets();
  ASSERT_TRUE(sockets.ok()) << sockets.status().ToString();
  EXPECT_GT(sockets->system_call, 0);
  EXPECT_GT(sockets->segment_calls, sockets->system_call / 2);
  EXPECT_GT(sockets->copy_rate, 0);
  EXPECT_GT(sockets->poll, 0);
  EXPECT_LT(sockets->poll, sockets->segment_calls) << "which have such a look in them";
}

// Catches a byte that stays on the connection because the wait for it was not taken up again: the
// next one comes together with it.
TEST(HostTimingTest, WaitsOnWhenASignalComes) {
  interrupts_left = 3;
  const Result<SocketTimes> sockets = TimeSockets();
  EXPECT_TRUE(sockets.ok()) << sockets.status().ToString();
  EXPECT_LE(interrupts_left.exchange(0), 0) << "nothing was waited for";
}

// Catches measuring for the wrong time, and gaps that add up to more than was measured.
TEST(HostTimingTest, CountsPreemptionsForAsLongAsItIsTold) {
  const Preemptions none = CountPreemptions(std::chrono::milliseconds(0));
  EXPECT_EQ(none.count, 0u);
  EXPECT_EQ(none.seconds, 0);
  EXPECT_GE(CountPreemptions(std::chrono::microseconds(100)).seconds, 100e-6);
  const Preemptions found = CountPreemptions(std::chrono::milliseconds(120));
  EXPECT_GE(found.seconds, 0.12);
  EXPECT_LE(static_cast<double>(found.count) * found.length, found.seconds * 1.000001);
  EXPECT_GE(found.length, found.count == 0 ? 0 : Preemptions::kLeast);
  EXPECT_GE(found.rate * found.seconds, static_cast<double>(found.count) * 0.999999);
}

// A clock that stands still for 100 us after each 300 us that it goes: in 4 s that are 10,000
// times, and 3 s are left. Catches a rate by elapsed time, which models the core as away less often
// than it is.
TEST(HostTimingTest, RateOfPreemptionsIsOfTheTimeThatTheCoreIsThere) {
  uint64_t now = 0;
  uint64_t ticks = 0;
  const auto clock = [&] { return now += ++ticks % 300 == 0 ? 101'000u : 1000u; };
  const Preemptions found = CountPreemptions(std::chrono::seconds(4), clock);
  EXPECT_NEAR(found.seconds, 4, 1e-3);
  EXPECT_NEAR(static_cast<double>(found.count), 10'000, 2);
  EXPECT_NEAR(found.length, 101e-6, 1e-9);
  EXPECT_NEAR(found.rate, 10'000 / (4 - 10'000 * 101e-6), 2);
  EXPECT_NEAR(found.deviation, 0, 1e-9);
}

TEST(HostTimingTest, SaysWhyAMachineIsBusy) {
  const MachineUse idle = {.load = 0.05, .switches = 7};
  EXPECT_EQ(WhyBusy(idle, {.load = 0.9, .switches = 40}, 5), "");  // the load is its own by then
  EXPECT_EQ(WhyBusy({.load = 2.25, .switches = 7}, idle, 5), "its load was 2.25 before");
  EXPECT_EQ(WhyBusy(idle, {.load = 0.05, .switches = 207}, 5),
            "others took the core 200 times in 5.00 s");
  EXPECT_EQ(WhyBusy({.load = 1, .switches = 0}, {.load = 1, .switches = 21}, 0.1),
            "its load was 1.00 before, and others took the core 21 times in 100 ms");
  EXPECT_GE(UseOfMachine().load, 0);
}

}  // namespace
}  // namespace prepost::host_timing_test
