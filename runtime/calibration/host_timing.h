// SPDX-License-Identifier: Apache-2.0
//
// What this machine takes for things that any host of a transfer does: copying, being woken, system
// calls, being interrupted by others. For profiles of virtual time (docs/simulate.md).
#ifndef PREPOST_RUNTIME_CALIBRATION_HOST_TIMING_H_
#define PREPOST_RUNTIME_CALIBRATION_HOST_TIMING_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "ir/base/status.h"
#include "runtime/base/clock.h"

namespace prepost {

/// Cores that this process may run on.
uint32_t UsableCores();

struct CopyTime {
  double rate = 0;  ///< bytes/s of memcpy, the median of the repetitions
  size_t bytes = 0;
  uint32_t repetitions = 0;
};
/// Copies 64 MiB, more than caches hold. Errors: kEnvironment, no memory.
Result<CopyTime> TimeCopy();

struct CombineTime {
  double rate = 0;     ///< bytes/s of results of a sum of float32, the median of the repetitions
  double seconds = 0;  ///< of a call for one element, the median of many
  size_t bytes = 0;
  uint32_t repetitions = 0;
};
/// Adds as much as TimeCopy() copies to another operand, as an executor does with a block that
/// came. Errors: kEnvironment, no memory.
Result<CombineTime> TimeCombine();

struct WakeUpTime {
  double seconds = 0;  ///< from the signal until the sleeper has returned, the median
  uint32_t samples = 0;
};
/// One thread sleeps in poll(2) on an eventfd, another signals it. Errors: kEnvironment;
Result<WakeUpTime> TimeWakeUp();

/// What took a thread's core away while it read the clock all the time.
struct Preemptions {
  /// Shorter gaps are the clock's own, and those of other hardware threads.
  static constexpr double kLeast = 5e-6;  ///< seconds
  uint64_t count = 0;
  double rate = 0;       ///< per second that the core was there
  double length = 0;     ///< seconds, the mean; 0 where there were none
  double deviation = 0;  ///< of the lengths, seconds
  double seconds = 0;    ///< the clock was read for so long
};
/// Reads, for `duration`, a clock of ns that never falls.
Preemptions CountPreemptions(std::chrono::nanoseconds duration,
                             const std::function<uint64_t()>& now = MonotonicNs);

/// How busy others keep this machine.
struct MachineUse {
  double load = 0;        ///< processes that run or want to, the mean of a minute; 0: not known
  uint64_t switches = 0;  ///< of this process' threads, so far, for somebody else to run
};
MachineUse UseOfMachine();
/// What makes times of this machine those of a busy one, or nothing: use `before` timing on one
/// thread, and `after` it, `seconds` later.
std::string WhyBusy(const MachineUse& before, const MachineUse& after, double seconds);

struct SocketTimes {
  double system_call = 0;  ///< seconds, of a send or a receive of one byte
  /// seconds, to hear of a byte (epoll_wait), receive it, and find that there is no more
  double segment_calls = 0;
  double copy_rate = 0;  ///< bytes/s of processor time, of a send or a receive of many
  uint64_t bytes = 0;
  double poll = 0;           ///< seconds, of an epoll_wait that finds nothing and does not wait
  uint32_t connections = 0;  ///< that one poll covers
};
/// Times one TCP connection of this machine to itself; polls cover several. Errors: kEnvironment.
Result<SocketTimes> TimeSockets();

}  // namespace prepost

#endif  // PREPOST_RUNTIME_CALIBRATION_HOST_TIMING_H_
