// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/wait_policy.h"

#include <thread>

namespace prepost {
namespace {

/// A yield that takes so long has let somebody else have the core.
constexpr std::chrono::microseconds kOthersMin{20};

}  // namespace

std::chrono::milliseconds WaitPacer::Timeout(uint64_t progress) {
  constexpr std::chrono::milliseconds kLook{0};
  constexpr std::chrono::milliseconds kSleep{-1};
  if (policy_.mode == WaitMode::kInterrupt) return kSleep;
  if (!started_ || progress != progress_) {
    started_ = true;
    progress_ = progress;
    if (policy_.mode == WaitMode::kHybrid) last_progress_ = Clock::now();
    return kLook;
  }
  if (policy_.mode == WaitMode::kPolling) {
    std::this_thread::yield();
    return kLook;
  }
  const Clock::time_point before = Clock::now();
  if (before - last_progress_ >= policy_.idle_max) return kSleep;
  std::this_thread::yield();
  return Clock::now() - before >= kOthersMin ? kSleep : kLook;
}

}  // namespace prepost
