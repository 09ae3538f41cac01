// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/wait_policy.h"

#include <algorithm>
#include <utility>

namespace prepost {
namespace {

/// A yield that takes so long has let somebody else have the core.
constexpr std::chrono::microseconds kOthersMin{20};
/// And so long in all, somebody who does not wait as well: who sleeps is woken before its turn
/// comes.
constexpr std::chrono::microseconds kOthersMax{1000};
/// One that takes so long has switched to another thread and back.
constexpr std::chrono::nanoseconds kSwitchMin{1500};

}  // namespace

std::chrono::milliseconds WaitPacer::Timeout(uint64_t progress, bool may_rest) {
  constexpr std::chrono::milliseconds kLook{0};
  constexpr std::chrono::milliseconds kSleep{-1};
  if (policy_.mode == WaitMode::kInterrupt) return kSleep;
  if (!started_ || progress != progress_) {
    started_ = true;
    progress_ = progress;
    if (!policy_.adapts || policy_.mode == WaitMode::kPolling) {
      last_progress_ = host_.now();
    } else if (idle_since_) {
      Adapt(host_.now() - *std::exchange(idle_since_, std::nullopt) - std::exchange(gone_, {}));
    }
    return kLook;
  }
  if (policy_.mode == WaitMode::kPolling) {
    if (may_rest && host_.now() - last_progress_ >= policy_.idle_max) return kSleep;
    const Clock::time_point before = host_.now();
    host_.yield();
    is_crowded_ = host_.now() - before >= kSwitchMin;
    return kLook;
  }
  const Clock::time_point before = host_.now();
  if (policy_.adapts && !idle_since_) idle_since_ = before;
  const Clock::time_point since = policy_.adapts ? *idle_since_ : last_progress_;
  const Clock::duration waited = before - since - (policy_.adapts ? gone_ : Clock::duration(0));
  const Clock::duration limit =
      policy_.adapts ? std::min<Clock::duration>(window_, policy_.idle_max) : policy_.idle_max;
  if (waited >= limit) return kSleep;
  host_.yield();
  const Clock::duration gone = host_.now() - before;
  if (gone < kOthersMin) return kLook;
  gone_ += gone;
  return policy_.adapts && gone_ < kOthersMax ? kLook : kSleep;
}

/// It has waited so long for the last progress, polling or not.
void WaitPacer::Adapt(Clock::duration waited) {
  constexpr std::chrono::microseconds kLeast{5};
  if (waited > kPaysMax) {
    window_ = window_ / 2 < kLeast ? Clock::duration(0) : window_ / 2;
  } else {
    window_ = std::clamp<Clock::duration>(2 * window_, kLeast, kPaysMax);
  }
}

}  // namespace prepost
