// SPDX-License-Identifier: Apache-2.0
//
// InterruptSignals: Ctrl-C, SIGTERM and SIGHUP as something to wait for, instead of the end of the
// process, while there are files and child processes to clean up.
#ifndef PREPOST_RUNTIME_BASE_INTERRUPT_H_
#define PREPOST_RUNTIME_BASE_INTERRUPT_H_

#include <csignal>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"

namespace prepost {

/// While it lives, these signals are held back and make fd() readable. Its destructor forgets those
/// that came and restores the signal mask. One at a time, in a process with one thread or before
/// the others start.
class InterruptSignals {
 public:
  /// Errors: kEnvironment.
  static Result<InterruptSignals> Hold();

  InterruptSignals(InterruptSignals&&) = default;
  InterruptSignals& operator=(InterruptSignals&&) = delete;
  ~InterruptSignals();

  int fd() const { return fd_.get(); }
  /// Leaves the signals held: results are there and the process is about to end, so that one that
  /// comes now comes too late.
  void HoldToTheEnd() { fd_ = FileDescriptor(); }

 private:
  InterruptSignals() = default;

  FileDescriptor fd_;  ///< empty when moved from, or held to the end
  sigset_t mask_before_ = {};
};

/// True when `fd` (of InterruptSignals; -1: none) has become readable.
bool IsInterrupted(int fd);
Status Interrupted();

}  // namespace prepost

#endif  // PREPOST_RUNTIME_BASE_INTERRUPT_H_
