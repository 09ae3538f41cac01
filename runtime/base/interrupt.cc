// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/interrupt.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

namespace prepost {

Result<InterruptSignals> InterruptSignals::Hold() {
  InterruptSignals held;
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, &held.mask_before_);
  held.fd_ = FileDescriptor(signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!held.fd_.valid()) {
    const int error = errno;
    sigprocmask(SIG_SETMASK, &held.mask_before_, nullptr);
    return SystemError(StatusCode::kEnvironment, "cannot watch for signals", error);
  }
  return held;
}

InterruptSignals::~InterruptSignals() {
  if (!fd_.valid()) return;
  signalfd_siginfo came;
  while (read(fd_.get(), &came, sizeof(came)) > 0) {
  }
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

bool IsInterrupted(int fd) {
  pollfd wait = {.fd = fd, .events = POLLIN, .revents = 0};
  return fd >= 0 && poll(&wait, 1, 0) > 0;
}

Status Interrupted() { return {StatusCode::kInterrupted, "interrupted"}; }

}  // namespace prepost
