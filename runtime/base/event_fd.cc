// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/event_fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace prepost {

Result<EventFd> EventFd::Make() {
  auto fd = FileDescriptor::Open([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (!fd.valid()) return SystemError(StatusCode::kEnvironment, "cannot make an event", errno);
  return EventFd(std::move(fd));
}

void EventFd::Signal() const {
  const uint64_t one = 1;
  // Fails only where the program has closed the file, which its waiting end notices.
  static_cast<void>(!write(fd(), &one, sizeof one));
}

uint64_t EventFd::Take() const {
  uint64_t count = 0;
  return read(fd(), &count, sizeof count) == sizeof count ? count : 0;
}

}  // namespace prepost
