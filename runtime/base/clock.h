// SPDX-License-Identifier: Apache-2.0
//
// The clocks that reports are made of.
#ifndef PREPOST_RUNTIME_BASE_CLOCK_H_
#define PREPOST_RUNTIME_BASE_CLOCK_H_

#include <time.h>

#include <chrono>
#include <cstdint>

namespace prepost {

/// Nanoseconds since an arbitrary fixed point (CLOCK_MONOTONIC): the same for all processes of
/// one machine.
inline uint64_t MonotonicNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/// What a clock of processor time shows.
inline uint64_t CpuNs(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

/// Processor time that the calling thread has used.
inline uint64_t ThreadCpuNs() { return CpuNs(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace prepost

#endif  // PREPOST_RUNTIME_BASE_CLOCK_H_
