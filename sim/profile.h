// SPDX-License-Identifier: Apache-2.0
//
// Profile: what the model of virtual time must know of a cluster: its network, its NICs, its hosts,
// in seconds and bytes per second, and its file, of the form that
// sim/profile.schema.json describes. In the file every number says where it comes
// from. docs/simulate.md lists those that are shipped.
#ifndef PREPOST_SIM_PROFILE_H_
#define PREPOST_SIM_PROFILE_H_

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/analysis/network.h"
#include "ir/status.h"
#include "sim/virtual_time.h"

namespace prepost::emulated {

/// Hosts in equal racks. Rates are bytes/s in each direction, of payload; latencies are one way.
struct NetworkProfile {
  double host_rate = 0;          ///< > 0
  std::optional<double> duplex;  ///< of a port, both directions together; none: no limit
  double rack_latency = 0;       ///< between two hosts of a rack
  double core_latency = 0;       ///< between hosts of two racks, in all
  uint32_t rack_hosts = 0;       ///< 0: all are in one rack, and what follows is not used
  double up_rate = 0;            ///< all uplinks of a rack together
  double down_rate = 0;
  std::optional<double> core_rate;  ///< all racks together; none: never the bottleneck

  friend bool operator==(const NetworkProfile&, const NetworkProfile&) = default;
};

/// Seconds of a NIC's own work.
struct NicProfile {
  double wqe = 0;                       ///< fetches and starts one other than a WAIT
  double wait = 0;                      ///< a WAIT, once its CQE is there, in place of `wqe`
  double cqe = 0;                       ///< writes one
  double doorbell = 0;                  ///< from the host's write until the NIC fetches
  double doorbell_interval = 0;         ///< between two of a host at least
  uint32_t message_overhead_bytes = 0;  ///< on every link, per message, besides the payload
  PortSharing port_sharing = PortSharing::kPerQp;

  friend bool operator==(const NicProfile&, const NicProfile&) = default;
};

/// When something else takes a core from a host, at random.
struct PreemptionProfile {
  enum class Lengths : uint8_t { kFixed, kExponential };
  double rate = 0;    ///< per second of a core, > 0; the times between are exponential
  double length = 0;  ///< seconds, the mean
  Lengths lengths = Lengths::kFixed;

  friend bool operator==(const PreemptionProfile&, const PreemptionProfile&) = default;
};
inline constexpr std::array<std::string_view, 2> kPreemptionLengthsNames = {"fixed", "exponential"};

/// Processes that always want a host's cores.
struct NeighboursProfile {
  uint32_t count = 0;  ///< on each core
  double slice = 0;    ///< seconds, > 0 where there are any: each has one after one of ours

  friend bool operator==(const NeighboursProfile&, const NeighboursProfile&) = default;
};

/// Seconds of a host's work, and its cores.
struct HostProfile {
  uint32_t cores = 1;
  double post_send = 0;       ///< writes a send's WQE and rings the doorbell
  double post_receive = 0;    ///< writes a receive's WQE
  double poll = 0;            ///< one look at a CQ
  double completion = 0;      ///< deals with a CQE of a block, until what follows is posted
  double credit = 0;          ///< the same for one of a credit (ready_for_block)
  double interrupt = 0;       ///< from a CQE that a sleeper waits for until it looks
  double hybrid_polling = 0;  ///< how long a hybrid host looks after the last CQE
  double message_start = 0;   ///< at the root, before its first send
  double message_setup = 0;   ///< at the others, once per message, when its first block is there
  double copy_rate = 0;       ///< memcpy, bytes/s, > 0
  std::optional<PreemptionProfile> preemption;  ///< none: never
  std::optional<NeighboursProfile> neighbours;  ///< none: there are none

  friend bool operator==(const HostProfile&, const HostProfile&) = default;
};

/// What hosts do besides where blocks go over TCP.
struct TcpProfile {
  double system_call = 0;  ///< seconds, per send and per receive
  double copy_rate = 0;  ///< bytes/s between user and kernel, checksums and protocol included, > 0
  uint32_t segment_bytes = 0;  ///< copied at a time, while others are on the wire; 0: whole blocks
  double segment_calls = 0;    ///< seconds, for each that has come before a block's last

  friend bool operator==(const TcpProfile&, const TcpProfile&) = default;
};

/// Connections over which a group's members tell its leader that they have armed, and are let go.
struct ControlProfile {
  double system_call = 0;  ///< seconds of a core, per message sent or received
  /// Seconds, one way, besides the network's latency: kernels, and until the receiver's thread runs.
  double latency = 0;

  friend bool operator==(const ControlProfile&, const ControlProfile&) = default;
};

struct Profile {
  std::string name;
  std::string cluster;  ///< which, in words
  NetworkProfile network;
  NicProfile nic;
  HostProfile host;
  std::optional<TcpProfile> tcp;          ///< none: RDMA
  std::optional<ControlProfile> control;  ///< none: what the barrier takes is not known

  friend bool operator==(const Profile&, const Profile&) = default;
};

/// Limits of what a profile may say, far beyond any cluster: times can be summed in picoseconds.
inline constexpr double kProfileSecondsMax = 3600;
inline constexpr double kProfileRateMin = 1;  ///< bytes/s
inline constexpr double kProfileRateMax = 1e15;
inline constexpr double kHostRateMax = 1e12;  ///< of a port: exact shares need some units of it
inline constexpr uint32_t kMessageOverheadBytesMax = 65536;
inline constexpr uint32_t kSegmentBytesMax = 1 << 30;
inline constexpr uint32_t kProfileCoresMax = 65536;
inline constexpr uint32_t kProfileNeighboursMax = 1000;
inline constexpr double kOversubscriptionMax = 1e6;
inline constexpr double kPreemptionRateMin = 1e-9;  ///< per second
inline constexpr double kPreemptionRateMax = 1e6;

/// Reads one profile. Where values come from is for people: it must be there, and is not kept.
/// Errors: "name:line:col: /pointer: ...".
Result<Profile> ReadProfile(std::istream& in, const std::string& name,
                            std::vector<std::string>* warnings = nullptr);

/// The cluster's first `nodes` hosts, rack by rack: node i is in rack i / rack_hosts, whose links
/// are those of a whole rack also where it is not full. `nodes` is 1 or more.
Network NetworkOf(const NetworkProfile& profile, uint32_t nodes);

}  // namespace prepost::emulated

#endif  // PREPOST_SIM_PROFILE_H_
