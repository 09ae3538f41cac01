// SPDX-License-Identifier: Apache-2.0
//
// WaitPolicy: how a host waits for completions: it polls all the time (polling), sleeps until
// it is woken (interrupt), or polls for a while first (hybrid): for a fixed time, RDMC's way, or
// for as long as that has lately paid. WaitPacer turns that into the timeout of each Poll(). Every
// host that plays a plan uses it, over any transport or device.
#ifndef PREPOST_RUNTIME_EXECUTOR_WAIT_POLICY_H_
#define PREPOST_RUNTIME_EXECUTOR_WAIT_POLICY_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <thread>

namespace prepost {

enum class WaitMode : uint8_t { kPolling, kHybrid, kInterrupt };

inline constexpr std::array<std::string_view, 3> kWaitModeNames = {"polling", "hybrid",
                                                                   "interrupt"};
constexpr std::string_view Name(WaitMode mode) { return kWaitModeNames[static_cast<size_t>(mode)]; }

struct WaitPolicy {
  WaitMode mode = WaitMode::kInterrupt;
  std::chrono::milliseconds idle_max{50};  ///< how long it polls after the last progress
  /// Hybrid: no longer than what has come lately took, and not at all where it took longer than a
  /// sleep and a wake-up cost: then polling has not paid. As the kernel's virtual machines do
  /// (halt_poll_ns).
  bool adapts = false;
};

/// Used by one thread:
///     while (!executor.done()) {
///       status = executor.Poll(pacer.Timeout(executor.progress()));
///     }
class WaitPacer {
 public:
  using Clock = std::chrono::steady_clock;
  /// What it looks at and does, which tests replace.
  struct Host {
    Clock::time_point (*now)() = Clock::now;
    void (*yield)() = std::this_thread::yield;
  };

  explicit WaitPacer(const WaitPolicy& policy) : policy_(policy) {}
  WaitPacer(const WaitPolicy& policy, const Host& host) : policy_(policy), host_(host) {}

  WaitMode mode() const { return policy_.mode; }
  /// Polling: others want the core as well, as of late.
  bool is_crowded() const { return is_crowded_; }

  /// How long the next Poll() may sleep: not at all (0) or until it is woken (-1). `progress` is
  /// any count that rises with progress. `may_rest`: nothing is under way, and even polling sleeps
  /// when there was none for idle_max. A poll that brought none yields the rest of its time
  /// slice, so that hosts that share a core do not keep it from the one that has work. When
  /// somebody has taken it, hybrid sleeps at once or, where it adapts, when others have had it for
  /// a millisecond; what they had it for does not count as polled.
  std::chrono::milliseconds Timeout(uint64_t progress, bool may_rest = false);

 private:
  /// What is worth polling for: a thread that sleeps and is woken loses so much, or nearly.
  static constexpr std::chrono::microseconds kPaysMax{50};

  void Adapt(Clock::duration waited);

  WaitPolicy policy_;
  Host host_ = {};
  uint64_t progress_ = 0;
  bool started_ = false;
  bool is_crowded_ = false;
  Clock::time_point last_progress_;
  std::optional<Clock::time_point> idle_since_;  ///< where it adapts; none: there was progress
  Clock::duration gone_{0};                      ///< since then, to others
  Clock::duration window_ = kPaysMax;            ///< for how long polling pays now
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_EXECUTOR_WAIT_POLICY_H_
