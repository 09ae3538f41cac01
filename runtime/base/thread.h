// SPDX-License-Identifier: Apache-2.0
//
// StartThread: a thread, or the error of a system that gives none (a limit of processes, a profile
// of system calls).
#ifndef PREPOST_RUNTIME_BASE_THREAD_H_
#define PREPOST_RUNTIME_BASE_THREAD_H_

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "ir/base/status.h"

namespace prepost {

/// `what` is the thread's noun, "the thread of a session". Errors: kEnvironment, "cannot start the
/// thread of a session (clone): Resource temporarily unavailable".
template <typename Thread = std::thread, typename Function>
Result<Thread> StartThread(const std::string& what, Function function) {
  try {
    return Thread(std::move(function));
  } catch (const std::system_error& error) {
    return EnvironmentError("cannot start " + what + " (clone): " + error.code().message());
  }
}

}  // namespace prepost

#endif  // PREPOST_RUNTIME_BASE_THREAD_H_
