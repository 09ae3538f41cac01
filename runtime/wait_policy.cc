// SPDX-License-Identifier: Apache-2.0
#include "runtime/wait_policy.h"

#include <thread>

namespace prepost {

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
  if (policy_.mode == WaitMode::kHybrid && Clock::now() - last_progress_ >= policy_.idle_max) {
    return kSleep;
  }
  std::this_thread::yield();
  return kLook;
}

}  // namespace prepost
