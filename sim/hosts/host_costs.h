// SPDX-License-Identifier: Apache-2.0
//
// HostCosts: what hosts that drive their NICs themselves take in virtual time, and what keeps them
// from it. docs/simulate.md has the model.
#ifndef PREPOST_SIM_HOSTS_HOST_COSTS_H_
#define PREPOST_SIM_HOSTS_HOST_COSTS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "sim/nics/time.h"

namespace prepost::sim {

inline constexpr uint32_t kNeighboursMax = 1000;

/// Times of one core, 0 or more. Rates are bytes/s; 0: it takes no time.
struct HostCosts {
  uint32_t cores = 1;                ///< 1 or more; executor i of a host runs on core i mod cores
  Picoseconds post_send = 0;         ///< writes a WQE and rings the doorbell
  Picoseconds post_receive = 0;      ///< writes a WQE
  Picoseconds poll = 0;              ///< one poll of the CQ, whatever it finds
  Picoseconds completion = 0;        ///< deals with the CQE of a block
  Picoseconds credit = 0;            ///< the same of a credit
  Picoseconds interrupt = 0;         ///< from the CQE that a sleeper has asked for until it polls
  Picoseconds hybrid_polling = 0;    ///< how long a hybrid host polls for the next CQE
  Picoseconds message_start = 0;     ///< at the root, before its first send
  Picoseconds message_setup = 0;     ///< elsewhere, with the first block's CQE
  double copy_rate = 0;              ///< memcpy, for what is said to be copied
  Picoseconds combine = 0;           ///< a block's combining, besides its bytes
  double combine_rate = 0;           ///< of the bytes of results
  double first_block_copy_rate = 0;  ///< RDMC copies a message's first block into place in the end
  Picoseconds system_call = 0;       ///< TCP: per send, and per receive that has completed
  double system_copy_rate = 0;       ///< TCP: of the bytes of those
  /// TCP: copied at a time, while others are on the wire; 0: blocks are copied as a whole
  uint32_t segment_bytes = 0;
  /// TCP: the calls for each of them that has come before a block's last
  Picoseconds segment_calls = 0;
  /// Something else takes a core at random: times between are exponential.
  double preemptions_per_second = 0;  ///< 0, or 1e-9 to 1e9
  Picoseconds preemption_length = 0;
  bool preemption_lengths_vary = false;  ///< exponential with that mean
  /// Processes on each core that always want it: after a slice without sleep, each has one.
  uint32_t neighbours = 0;  ///< at most kNeighboursMax
  Picoseconds slice = 0;    ///< > 0 where there are any

  /// Whether blocks go over TCP.
  bool is_tcp() const { return system_copy_rate != 0; }

  friend bool operator==(const HostCosts&, const HostCosts&) = default;
};

/// Errors (kRejected): what is out of range.
Status CheckCosts(const HostCosts& costs);

/// All cores of a host stand still.
struct HostDelay {
  NodeId host;
  Picoseconds at = 0;
  Picoseconds length = 0;
};

/// Of one host, in place of what HostCosts says of all; so are neighbours.
struct HostPreemptions {
  NodeId host;
  double per_second = 0;
  Picoseconds length = 0;
  bool lengths_vary = false;
};

struct HostNeighbours {
  NodeId host;
  uint32_t count = 0;
  Picoseconds slice = 0;
};

/// What keeps the hosts of a run from their work, besides HostCosts. Not owned.
struct HostNoise {
  std::span<const HostDelay> delays = {};
  // Of these hosts, each once and rising; of the others, HostCosts says.
  std::span<const HostPreemptions> preemptions = {};
  std::span<const HostNeighbours> neighbours = {};
  uint64_t seed = 1;  ///< of preemptions
};

/// Errors (kRejected): what is not of a host below `hosts`, out of range, or not rising.
Status CheckNoise(const HostNoise& noise, size_t hosts);

/// What `bytes` take at `rate` bytes/s, to the nearest picosecond; 0 at the rate 0; kNever where it
/// is beyond what can be shown.
Picoseconds TimeOf(uint64_t bytes, double rate);

}  // namespace prepost::sim

#endif  // PREPOST_SIM_HOSTS_HOST_COSTS_H_
