// SPDX-License-Identifier: Apache-2.0
//
// FileSync: writes messages that were received into mappings of files out to these files, one after
// another, on a thread of its own, since a disk may take long.
#ifndef PREPOST_RUNTIME_SESSION_FILE_SYNC_H_
#define PREPOST_RUNTIME_SESSION_FILE_SYNC_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "ir/base/status.h"

namespace prepost {

/// Functions are one thread's.
class FileSync {
 public:
  /// `notify` is called by the thread when there are results. Errors: kEnvironment.
  static Result<std::unique_ptr<FileSync>> Start(std::function<void()> notify);
  /// End(), and waits for what is being written.
  ~FileSync();

  /// All pages that `memory` has a part of. It may be unmapped at any time, which is an error.
  void Add(std::span<const std::byte> memory);
  /// Those that have come, in the order of Add(). Errors: kEnvironment.
  std::vector<Status> TakeResults();
  /// Nothing more is begun, and no result comes any more.
  void End();
  /// After End(): the thread is through.
  bool is_over();

 private:
  explicit FileSync(std::function<void()> notify) : notify_(std::move(notify)) {}
  void Run();

  const std::function<void()> notify_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::span<const std::byte>> waiting_;  ///< under mutex_, as are the following
  std::vector<Status> results_;
  bool is_ending_ = false;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_FILE_SYNC_H_
