// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/wait_policy.h"

#include <gtest/gtest.h>

#include <chrono>

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

TEST(WaitPacerTest, FiftyMillisecondsByDefault) {
  EXPECT_EQ(WaitPolicy().idle_max, milliseconds(50));
  EXPECT_EQ(WaitPolicy().mode, WaitMode::kInterrupt);
}

}  // namespace
}  // namespace prepost::wait_policy_test
