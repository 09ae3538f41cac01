// SPDX-License-Identifier: Apache-2.0
//
// VirtualTime: what emulated NICs need to run in modelled time instead of as fast as they can: a
// clock, a network and what each step of a NIC costs. Times are whole picoseconds, so that sums
// and ties do not depend on an order. docs/simulate.md tells the whole model.
#ifndef PREPOST_SIM_VIRTUAL_TIME_H_
#define PREPOST_SIM_VIRTUAL_TIME_H_

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "ir/status.h"

namespace prepost::emulated {

/// A point in virtual time, counted from the start of a run, or a length of it. 2^63 are 106 days:
/// what would come later never does, and a run that needs it fails (CheckWithinTime()).
using Picoseconds = int64_t;
inline constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();
inline constexpr Picoseconds kPicosecondsPerSecond = 1'000'000'000'000;
inline constexpr Picoseconds kPicosecondsPerNanosecond = 1000;

/// `length` after `at`, neither below 0; kNever where that is beyond what can be shown.
constexpr Picoseconds After(Picoseconds at, Picoseconds length) {
  return length < kNever - at ? at + length : kNever;
}

/// To the nearest picosecond; kNever where that is beyond. `picoseconds` is 0 or more.
Picoseconds ToPicoseconds(double picoseconds);
/// As ToPicoseconds().
Picoseconds FromSeconds(double seconds);

/// What one step of a NIC or of a host may take at most, far beyond any: of a profile, too.
inline constexpr Picoseconds kStepMax = 3600 * kPicosecondsPerSecond;

/// How a NIC's port out serves those queue pairs that have something to send at the same time.
enum class PortSharing : uint8_t {
  kPerQp,  ///< all at once: max-min fair with a share for each
  /// One message after the other, in the order in which they have become ready: the first one has
  /// the port for itself until it has left, also while another link slows it down.
  kFifo
};
inline constexpr std::array<std::string_view, 2> kPortSharingNames = {"per_qp", "fifo"};

/// What a NIC's steps take. A queue is slowed down by its own steps only: a NIC works on all its
/// queues at once.
struct NicCosts {
  Picoseconds wqe = 0;                ///< a send queue's, per WQE other than WAIT
  Picoseconds wait = 0;               ///< a send queue's, per WAIT, from when its CQE is there
  Picoseconds cqe = 0;                ///< from the end of what it tells until it can be seen
  Picoseconds doorbell = 0;           ///< from a host's write until its NIC has been told
  Picoseconds doorbell_interval = 0;  ///< between two of a host at least
  /// Headers and gaps, on every link that a message passes, as if it were so much longer.
  uint32_t message_overhead_bytes = 0;
  Picoseconds rnr_timer = 10'000'000;     ///< until a message that found no receive is tried again
  Picoseconds ack_timeout = 100'000'000;  ///< until one that nobody answered is
  PortSharing port_sharing = PortSharing::kPerQp;

  friend bool operator==(const NicCosts&, const NicCosts&) = default;
};

/// Errors (kRejected): a step that takes less than nothing or more than kStepMax, timers of 0.
Status CheckCosts(const NicCosts& costs);

class FluidNetwork;
class HostHandler;
class TimeTrail;
class VirtualClock;

/// Not owned; all NICs of a fabric, and whoever acts at times of the same clock, share them.
struct VirtualTime {
  VirtualClock* clock = nullptr;  ///< null: there is no virtual time
  FluidNetwork* network = nullptr;
  NicCosts costs = {};
  /// Acts for the hosts; null: the engine stops when there is something for them to do.
  HostHandler* hosts = nullptr;
  /// Observes; null: nobody does. It changes nothing.
  TimeTrail* trail = nullptr;

  bool is_on() const { return clock != nullptr; }
};

/// Of a run in which nothing happens any more, though something should. Errors (kRejected): what the clock
/// or the network cannot show.
Status CheckWithinTime(const VirtualClock& clock, const FluidNetwork& network);
/// Of a run that has failed: `status` says that the clock cannot show it.
bool IsBeyondTime(const Status& status);

}  // namespace prepost::emulated

#endif  // PREPOST_SIM_VIRTUAL_TIME_H_
