// SPDX-License-Identifier: Apache-2.0
//
// TcpDisturbance: connections of which each moves a few bytes at a time, stands still while others
// go on, and, if that is wanted, breaks at a random moment.
#ifndef PREPOST_TESTS_SUPPORT_TCP_DISTURBANCE_H_
#define PREPOST_TESTS_SUPPORT_TCP_DISTURBANCE_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "runtime/transport/tcp/tcp_hook.h"
#include "tests/support/random.h"

namespace prepost::test {

class TcpDisturbance final : public TcpHook {
 public:
  /// `moves_until_cut`: of all connections together; UINT64_MAX: none breaks. `on_cut` is called
  /// when one does, by the thread that moves.
  explicit TcpDisturbance(uint64_t seed, uint64_t moves_until_cut = UINT64_MAX,
                          std::function<void()> on_cut = {})
      : random_(seed), moves_until_cut_(moves_until_cut), on_cut_(std::move(on_cut)) {}

  size_t Limit(const TcpWay& way, size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (moves_until_cut_ != UINT64_MAX && moves_until_cut_-- == 0) {
      if (on_cut_) on_cut_();
      return kCut;
    }
    const Clock::time_point now = Clock::now();
    Clock::time_point& held_until =
        held_until_[{way.self, way.peer, way.lane, way.stream, way.is_send}];
    if (now < held_until) return 0;
    if (random_.Below(64) == 0) {
      held_until = now + std::chrono::microseconds(random_.Below(3000));
      return 0;
    }
    // Mostly something around a record or a block; a byte at a time only now and then.
    switch (random_.Below(4)) {
      case 0:
        return std::min<size_t>(bytes, 1 + random_.Below(40));
      case 1:
        return std::min<size_t>(bytes, 1 + random_.Below(5000));
      default:
        return bytes;
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  Random random_;
  uint64_t moves_until_cut_;
  const std::function<void()> on_cut_;
  std::map<std::tuple<NodeId, NodeId, Lane, uint16_t, bool>, Clock::time_point> held_until_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_TCP_DISTURBANCE_H_
