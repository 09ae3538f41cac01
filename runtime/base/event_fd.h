// SPDX-License-Identifier: Apache-2.0
//
// EventFd: something that one thread signals and others wait for with poll() or epoll, together
// with whatever else they wait for.
#ifndef PREPOST_RUNTIME_BASE_EVENT_FD_H_
#define PREPOST_RUNTIME_BASE_EVENT_FD_H_

#include <cstdint>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"

namespace prepost {

/// Move only; empty: fd() is -1 and nothing else may be called. Any thread may signal and take.
class EventFd {
 public:
  /// Errors: kEnvironment.
  static Result<EventFd> Make();

  EventFd() = default;

  int fd() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  /// Makes fd() readable. Where a program has closed it, nothing happens: waiters poll for that,
  /// too.
  void Signal() const;
  /// Makes it unreadable; how often it was signalled since the last time, at once.
  uint64_t Take() const;

 private:
  explicit EventFd(FileDescriptor fd) : fd_(std::move(fd)) {}

  FileDescriptor fd_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_BASE_EVENT_FD_H_
