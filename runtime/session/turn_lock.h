// SPDX-License-Identifier: Apache-2.0
//
// TurnLock: held by the thread that uses what belongs to the turning thread alone. Whoever only
// tries never waits, and may be the thread that holds it.
#ifndef PREPOST_RUNTIME_SESSION_TURN_LOCK_H_
#define PREPOST_RUNTIME_SESSION_TURN_LOCK_H_

#include <atomic>

namespace prepost {

/// For std::unique_lock. Recursive lock() waits for ever.
class TurnLock {
 public:
  bool try_lock() { return !is_held_.test_and_set(std::memory_order_acquire); }
  void lock() {
    while (!try_lock()) is_held_.wait(true, std::memory_order_relaxed);
  }
  void unlock() {
    is_held_.clear(std::memory_order_release);
    is_held_.notify_one();
  }

 private:
  std::atomic_flag is_held_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_TURN_LOCK_H_
