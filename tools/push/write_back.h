// SPDX-License-Identifier: Apache-2.0
//
// WriteBack: brings what a receiver writes to its disk while it is being received, so that little
// is left for the end, and waits for the disk without being silent meanwhile.
#ifndef PREPOST_TOOLS_PUSH_WRITE_BACK_H_
#define PREPOST_TOOLS_PUSH_WRITE_BACK_H_

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "ir/base/status.h"
#include "runtime/base/checkpoint.h"

namespace prepost::tools {

/// The calls of the system that wait for a disk. Tests have their own.
struct DiskCalls {
  std::function<int(int file)> sync = fsync;
  std::function<int(int file, off64_t offset, off64_t bytes, unsigned flags)> sync_range =
      sync_file_range;
};

struct WriteBackOptions {
  /// Called about ten times a second while the disk is waited for. An error of it is returned when
  /// the disk has answered: nothing can end the wait.
  Checkpoint checkpoint;
  /// Called once, with what it waits for, when that takes more than ten seconds; may be empty.
  std::function<void(const std::string& text)> waiting;
  /// A disk that takes longer for one call may hang: `checkpoint` is not called for it any more.
  std::chrono::milliseconds answer_max{600'000};
  DiskCalls calls;
};

/// Of files that are written from the beginning to the end, one after the other. Used by one
/// thread.
class WriteBack {
 public:
  /// Of what is not on the disk yet there is about twice as much at most.
  static constexpr uint64_t kStepBytes = uint64_t{32} << 20;

  explicit WriteBack(WriteBackOptions options) : options_(std::move(options)) {}

  /// All before `offset` is written. Starts to write it to the disk, and waits for what was started
  /// before, once for every kStepBytes. Errors (kRejected): the disk's, for `name`; of
  /// `checkpoint`.
  Status Advance(int file, uint64_t offset, const std::string& name);
  /// Waits until the file is on the disk; the next one begins. Errors as Advance().
  Status Finish(int file, const std::string& name);
  /// Calls `call`, which waits for the disk, on another thread. Errors: of `checkpoint`.
  Status WaitFor(const std::function<void()>& call, const std::string& name);

 private:
  WriteBackOptions options_;
  bool has_ranges_ = true;  ///< the system can write parts of a file back
  bool has_said_ = false;   ///< that it waits
  uint64_t started_ = 0;    ///< all before is on its way to the disk
  uint64_t waited_ = 0;     ///< all before is there
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_WRITE_BACK_H_
