// SPDX-License-Identifier: Apache-2.0
//
// Lateness: how late this machine wakes threads while a fault is played. Tests hold faults to the
// documented time where it wakes them in time, whatever runs beside them, and otherwise to twice
// that.
#ifndef PREPOST_TESTS_SUPPORT_LATENESS_H_
#define PREPOST_TESTS_SUPPORT_LATENESS_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

namespace prepost::test {

/// From construction on.
class Lateness {
 public:
  Lateness() : thread_([this] { Watch(); }) {}
  Lateness(const Lateness&) = delete;
  Lateness& operator=(const Lateness&) = delete;
  ~Lateness() {
    ended_ = true;
    thread_.join();
  }

  /// Of `what`, which `took` so long: `documented` and kSlack are allowed where no thread was woken
  /// later than kOnTime, otherwise `documented` twice; and `before`, which nothing makes longer.
  /// Prints all that.
  void ExpectInTime(const std::string& what, std::chrono::nanoseconds took,
                    std::chrono::milliseconds documented,
                    std::chrono::milliseconds before = std::chrono::milliseconds(0)) const {
    const int factor = most_ms_ <= kOnTime.count() ? 1 : 2;
    const auto allowed = before + (factor == 1 ? documented + kSlack : 2 * documented);
    const auto took_ms = std::chrono::duration_cast<std::chrono::milliseconds>(took);
    const std::string text = fmt::format(
        "{}: the last member heard after {} ms, {} ms allowed (factor {}: threads were woken up to "
        "{} "
        "ms late)",
        what, took_ms.count(), allowed.count(), factor, most_ms_.load());
    std::cout << text << std::endl;
    EXPECT_LT(took, allowed) << text;
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// A report of a failure passes some four threads, each of which waits for the one before: as
  /// late as this they use up less than kSlack.
  static constexpr std::chrono::milliseconds kOnTime{50};
  /// For the operating system, where nothing else runs.
  static constexpr std::chrono::milliseconds kSlack{250};

  void Watch() {
    constexpr std::chrono::milliseconds kStep{5};
    while (!ended_) {
      const Clock::time_point due = Clock::now() + kStep;
      std::this_thread::sleep_until(due);
      const auto late = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - due);
      most_ms_ = std::max(most_ms_.load(), late.count());
    }
  }

  std::atomic<bool> ended_ = false;
  std::atomic<std::chrono::milliseconds::rep> most_ms_ = 0;
  std::thread thread_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_LATENESS_H_
