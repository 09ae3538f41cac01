// SPDX-License-Identifier: Apache-2.0
//
// NicCosts: what each step of a NIC costs in modelled time; and what a run that the clock cannot
// show says of that.
#ifndef PREPOST_SIM_NICS_TIME_H_
#define PREPOST_SIM_NICS_TIME_H_

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "backends/emulated/picoseconds.h"
#include "ir/base/status.h"

namespace prepost::sim {

using emulated::After;
using emulated::kNever;
using emulated::kPicosecondsPerNanosecond;
using emulated::kPicosecondsPerSecond;
using emulated::Picoseconds;

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
  Picoseconds doorbell = 0;           ///< from a host's write until its NIC knows of it
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
class TimeTrail;
class Clock;

/// Of a run in which nothing happens any more, though something should. Errors (kRejected): what
/// the clock or the network cannot show.
Status CheckWithinTime(const Clock& clock, const FluidNetwork& network);
/// Of a run that has failed: `status` says that the clock cannot show it.
bool IsBeyondTime(const Status& status);

}  // namespace prepost::sim

#endif  // PREPOST_SIM_NICS_TIME_H_
