// SPDX-License-Identifier: Apache-2.0
//
// Profile: what the model of virtual time must know of a cluster: its network, its NICs, its hosts,
// and its file, of the form that sim/cluster/profile.schema.json describes. In the file every
// number says where it comes from. docs/simulate.md lists those that are shipped.
#ifndef PREPOST_SIM_CLUSTER_PROFILE_H_
#define PREPOST_SIM_CLUSTER_PROFILE_H_

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/analysis/network.h"
#include "ir/base/status.h"
#include "sim/hosts/host_costs.h"
#include "sim/nics/time.h"

namespace prepost::sim {

/// Connections over which a group's members tell its leader that they have armed, and are let go.
struct ControlProfile {
  double system_call = 0;  ///< seconds of a core, per message sent or received
  /// Seconds, one way, besides the network's latency: kernels, and until the receiver's thread
  /// runs.
  double latency = 0;

  friend bool operator==(const ControlProfile&, const ControlProfile&) = default;
};

struct Profile {
  std::string name;
  std::string cluster;  ///< which, in words
  /// One host in one rack; all others are like them. Rates are of payload.
  Network network = Network::Uniform(1);
  uint32_t rack_hosts = 0;  ///< of each rack; 0: all are in one, whose links are not used
  NicCosts nic;
  HostCosts host;
  bool is_tcp = false;                    ///< blocks go over TCP, with its costs in `host`
  std::optional<ControlProfile> control;  ///< none: what the barrier takes is not known

  double host_rate() const { return network.nodes[0].out_rate; }
  /// Of every host's port, each way.
  void SetHostRate(double rate) { network.nodes[0].out_rate = network.nodes[0].in_rate = rate; }
  /// The cluster's first `nodes` hosts, rack by rack: node i is in rack i / rack_hosts, whose links
  /// are those of a whole rack also where it is not full. `nodes` is 1 or more.
  Network NetworkOf(uint32_t nodes) const;

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
inline constexpr double kOversubscriptionMax = 1e6;
inline constexpr double kPreemptionRateMin = 1e-9;  ///< per second
inline constexpr double kPreemptionRateMax = 1e6;

/// Reads one profile. Where values come from is for people: it must be there, and is not kept.
/// Errors: "name:line:col: /pointer: ...".
Result<Profile> ReadProfile(std::istream& in, const std::string& name,
                            std::vector<std::string>* warnings = nullptr);

}  // namespace prepost::sim

#endif  // PREPOST_SIM_CLUSTER_PROFILE_H_
