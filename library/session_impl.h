// SPDX-License-Identifier: Apache-2.0
//
// What a Session is inside, for its own files alone.
#ifndef PREPOST_LIBRARY_SESSION_IMPL_H_
#define PREPOST_LIBRARY_SESSION_IMPL_H_

#include <poll.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "ir/base/status.h"
#include "prepost/prepost.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/session/engine.h"

namespace prepost {

class Session::Impl {
 public:
  ~Impl() {
    if (!thread.joinable()) return;
    is_ending.store(true);
    engine->Wake();
    thread.join();
  }
  void Run() {
    constexpr std::chrono::milliseconds kFilesCheck{1000};  // as the program may close them
    constexpr int kRetryMs = 10;
    while (!is_ending.load()) {
      // For want of memory, or as a file was closed: the groups report that themselves.
      if (!engine->Poll(kFilesCheck).ok()) poll(nullptr, 0, kRetryMs);
    }
  }
  /// In a process forked since it was opened there is nothing of it but memory, in any state.
  bool is_inherited() const { return depth != ForkDepth(); }
  Status CheckProcess() const {
    if (!is_inherited()) return {};
    return UsageError("the session was opened before this process was forked, and is its parent's");
  }

  const uint32_t depth = ForkDepth();
  SessionOptions options;
  std::mutex mutex;  ///< options.members
  std::unique_ptr<Engine> engine;
  std::atomic<bool> is_ending = false;
  std::thread thread;
};

}  // namespace prepost

#endif  // PREPOST_LIBRARY_SESSION_IMPL_H_
