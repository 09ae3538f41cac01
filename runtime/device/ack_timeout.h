// SPDX-License-Identifier: Apache-2.0
//
// How long a reliably connected queue pair waits for an acknowledgement before it sends again, as
// InfiniBand counts it: 4.096 us << n. On a path whose round trip is longer than that it would send
// everything again and again, and then give the peer up.
#ifndef PREPOST_RUNTIME_DEVICE_ACK_TIMEOUT_H_
#define PREPOST_RUNTIME_DEVICE_ACK_TIMEOUT_H_

#include <chrono>
#include <cstdint>

namespace prepost {

inline constexpr uint8_t kAckTimeoutMax = 31;

/// n for a path of `round_trip`: four of them, as queues and hosts take their time, and at least
/// `least`. 0 us: not known.
constexpr uint8_t AckTimeoutFor(std::chrono::microseconds round_trip, uint8_t least) {
  constexpr int64_t kUnitNs = 4096;
  uint8_t exponent = least;
  while (exponent < kAckTimeoutMax && (kUnitNs << exponent) < 4 * 1000 * round_trip.count())
    ++exponent;
  return exponent;
}

}  // namespace prepost

#endif  // PREPOST_RUNTIME_DEVICE_ACK_TIMEOUT_H_
