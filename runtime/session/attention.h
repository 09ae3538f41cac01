// SPDX-License-Identifier: Apache-2.0
//
// Attention: for how long the thread that moves data has polled its connections without a longer
// pause, which a callback or a disk that takes its time is. The keeper's answers say so, so that a
// connection that carries nothing is told from a member that does not read it.
#ifndef PREPOST_RUNTIME_SESSION_ATTENTION_H_
#define PREPOST_RUNTIME_SESSION_ATTENTION_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "runtime/base/clock.h"

namespace prepost {

class Attention {
 public:
  /// `pause_max`: what is not a longer pause.
  explicit Attention(std::chrono::milliseconds pause_max) : pause_max_(pause_max) {}

  /// By the thread that moves data, around each wait for connections.
  void BeginWait() {
    const auto now = static_cast<int64_t>(MonotonicNs());
    const int64_t since = busy_since_ns_.load();
    if (since == 0 || now - since > pause_max_.count()) attentive_since_ns_.store(now);
    busy_since_ns_.store(0);
  }
  void EndWait() { busy_since_ns_.store(static_cast<int64_t>(MonotonicNs())); }

  /// By any thread.
  std::chrono::milliseconds Get() const {
    const auto now = static_cast<int64_t>(MonotonicNs());
    const int64_t busy_since = busy_since_ns_.load();
    const bool is_busy = busy_since != 0 && now - busy_since > pause_max_.count();
    const int64_t since = is_busy ? now : attentive_since_ns_.load();
    return std::chrono::milliseconds(std::max<int64_t>(now - since, 0) / 1'000'000);
  }

 private:
  const std::chrono::nanoseconds pause_max_;
  /// By MonotonicNs(); 0: waits for events. At first it has not polled for long.
  std::atomic<int64_t> busy_since_ns_ = 1;
  std::atomic<int64_t> attentive_since_ns_ = 0;  ///< no pause between two waits was longer
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_ATTENTION_H_
