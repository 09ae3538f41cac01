// SPDX-License-Identifier: Apache-2.0
//
// Picoseconds: modelled time, of an engine whose steps take some (engine.h, "Timing"). Times are
// whole numbers, so that sums and ties do not depend on an order.
#ifndef PREPOST_BACKENDS_EMULATED_PICOSECONDS_H_
#define PREPOST_BACKENDS_EMULATED_PICOSECONDS_H_

#include <cstdint>
#include <limits>

namespace prepost::emulated {

/// A point in modelled time, counted from the start of a run, or a length of it. 2^63 are 106 days:
/// what would come later never does.
using Picoseconds = int64_t;
inline constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();
inline constexpr Picoseconds kPicosecondsPerSecond = 1'000'000'000'000;
inline constexpr Picoseconds kPicosecondsPerNanosecond = 1000;

/// `length` after `at`, neither below 0; kNever where that is beyond what can be shown.
constexpr Picoseconds After(Picoseconds at, Picoseconds length) {
  return length < kNever - at ? at + length : kNever;
}

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_PICOSECONDS_H_
