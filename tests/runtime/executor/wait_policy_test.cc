// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/wait_policy.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace prepost::wait_policy_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLook{0};
constexpr milliseconds kSleep{-1};

TEST(WaitPacerTest, InterruptSleepsAtOnceAndAlways) {
  WaitPacer pacer({.mode = WaitMode::kInterrupt});
  for (uint64_t progress : {0u, 0u, 1u, 1u}) EXPECT_EQ(pacer.Timeout(progress), kSleep);
}

TEST(WaitPacerTest, PollingNeverSleeps) {
  WaitPacer pacer({.mode = WaitMode::kPolling, .idle_max = milliseconds(0)});
  for (uint64_t progress : {0u, 0u, 1u, 1u}) EXPECT_EQ(pacer.Timeout(progress), kLook);
}

// Catches sessions that poll for ever though nothing has come for long.
TEST(WaitPacerTest, PollingRestsAfterItsIdleTimeWhereNothingIsUnderWay) {
  constexpr milliseconds kIdle{5};
  WaitPacer pacer({.mode = WaitMode::kPolling, .idle_max = kIdle});
  const auto before = steady_clock::now();
  EXPECT_EQ(pacer.Timeout(1, true), kLook);
  while (pacer.Timeout(1, true) == kLook)
    ASSERT_LT(steady_clock::now() - before, std::chrono::seconds(60)) << "never sleeps";
  EXPECT_GE(steady_clock::now() - before, kIdle);
  EXPECT_EQ(pacer.Timeout(1, false), kLook) << "something is under way";
  EXPECT_EQ(pacer.Timeout(2, true), kLook) << "there was progress";
}

// Catches a hybrid that sleeps at once or never, and one that does not poll again after progress.
TEST(WaitPacerTest, HybridPollsForItsIdleTimeAfterEachProgress) {
  constexpr milliseconds kIdle{5};
  WaitPacer pacer({.mode = WaitMode::kHybrid, .idle_max = kIdle});
  for (uint64_t progress = 0; progress < 3; ++progress) {
    const auto before = steady_clock::now();
    EXPECT_EQ(pacer.Timeout(progress), kLook);
    const auto after = steady_clock::now();
    // It sleeps no earlier than the idle time after progress, but where a yield let others have the
    // core.
    auto asked = steady_clock::now();
    while (pacer.Timeout(progress) == kLook) {
      asked = steady_clock::now();
      ASSERT_LT(asked - after, std::chrono::seconds(60)) << "never sleeps";
    }
    if (steady_clock::now() - asked < std::chrono::microseconds(20)) {
      EXPECT_GE(steady_clock::now() - before, kIdle);
    }
  }
}

/// Asks until it is to sleep, lets `pause` pass, and makes progress; how long it polled before.
milliseconds::rep PolledUs(WaitPacer& pacer, uint64_t& progress, std::chrono::microseconds pause) {
  const auto begin = steady_clock::now();
  while (pacer.Timeout(progress) == kLook) {
  }
  const auto polled = steady_clock::now() - begin;
  std::this_thread::sleep_for(pause);
  EXPECT_EQ(pacer.Timeout(++progress), kLook);
  return std::chrono::duration_cast<std::chrono::microseconds>(polled).count();
}

// Catches a hybrid that burns its time between rare packets, and one that never polls again.
TEST(WaitPacerTest, AnAdaptiveHybridPollsWhereThatPays) {
  WaitPacer pacer({.mode = WaitMode::kHybrid, .adapts = true});
  uint64_t progress = 0;
  EXPECT_EQ(pacer.Timeout(progress), kLook);
  for (int i = 0; i < 8; ++i) PolledUs(pacer, progress, milliseconds(1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(pacer.Timeout(progress), kSleep) << "all that came lately took a millisecond";
    PolledUs(pacer, progress, milliseconds(1));
  }
  // Until it has polled through a wait again, as all are short now; other threads may take the
  // core.
  bool has_polled = false;
  for (int i = 0; i < 1000 && !has_polled; ++i) {
    has_polled = pacer.Timeout(progress) == kLook;
    pacer.Timeout(++progress);
  }
  EXPECT_TRUE(has_polled);
}

/// A core whose time passes when a thread yields it: so long others have it each time.
steady_clock::time_point now_there;
steady_clock::duration others_take;
constexpr WaitPacer::Host kHost = {.now = [] { return now_there += std::chrono::nanoseconds(100); },
                                   .yield = [] { now_there += others_take; }};

/// How often it looks before it sleeps.
int LooksBeforeSleep(std::chrono::microseconds others, bool adapts) {
  others_take = others;
  WaitPacer pacer({.mode = WaitMode::kHybrid, .adapts = adapts}, kHost);
  EXPECT_EQ(pacer.Timeout(0), kLook);
  int looks = 0;
  while (looks < 1000 && pacer.Timeout(0) == kLook) ++looks;
  return looks;
}

// Among members that share a core, each of which has it for a moment: who sleeps each time costs
// the others a system call and itself a wake-up. Catches a hybrid that sleeps at once, and one that
// leaves its turn to a program that computes.
TEST(WaitPacerTest, AnAdaptiveHybridLetsOthersHaveTheCoreForAMillisecond) {
  using std::chrono::microseconds;
  EXPECT_EQ(LooksBeforeSleep(microseconds(100), true), 9);
  EXPECT_EQ(LooksBeforeSleep(microseconds(400), true), 2);
  EXPECT_EQ(LooksBeforeSleep(microseconds(3000), true), 0);
  EXPECT_EQ(LooksBeforeSleep(microseconds(100), false), 0);
  EXPECT_GT(LooksBeforeSleep(microseconds(0), true), 50) << "nobody else wants it";
}

// Catches waits in which others had the core that count as polled in vain: it would not poll next
// time, when the members that share the core are just as fast.
TEST(WaitPacerTest, WhatOthersHadTheCoreForIsNotPolled) {
  others_take = std::chrono::microseconds(300);
  WaitPacer pacer({.mode = WaitMode::kHybrid, .adapts = true}, kHost);
  uint64_t progress = 0;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(pacer.Timeout(++progress), kLook);
    EXPECT_EQ(pacer.Timeout(progress), kLook);
    EXPECT_EQ(pacer.Timeout(progress), kLook) << i;
  }
}

TEST(WaitPacerTest, FiftyMillisecondsByDefault) {
  EXPECT_EQ(WaitPolicy().idle_max, milliseconds(50));
  EXPECT_EQ(WaitPolicy().mode, WaitMode::kInterrupt);
}

}  // namespace
}  // namespace prepost::wait_policy_test
