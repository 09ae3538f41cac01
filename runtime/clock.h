// SPDX-License-Identifier: Apache-2.0
//
// The monotonic clock that reports are made of: the same for all processes of one machine.
#ifndef PREPOST_RUNTIME_CLOCK_H_
#define PREPOST_RUNTIME_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace prepost {

/// Nanoseconds since an arbitrary fixed point (CLOCK_MONOTONIC).
inline uint64_t MonotonicNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace prepost

#endif  // PREPOST_RUNTIME_CLOCK_H_
