// SPDX-License-Identifier: Apache-2.0
//
// Topology: the network that a multicast is compiled for: hosts in racks, their NICs' rates, what a
// rack's top-of-rack switch (ToR) takes up to the core and down from it, the core, and latencies.
// Node i of a plan is host i. It comes from a JSON file or a section of the spec
// (topology_json.h), or from what other systems know of their network (topology_import.h).
//
// Rates are bytes per second in each direction; a ToR's are those of all its uplinks together.
// Switches forward unicast only: a block that goes to two racks crosses the core twice.
#ifndef PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_H_
#define PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/status.h"

namespace prepost {

struct TopologyRack {
  std::string name;
  double up_rate = 0;    ///< to the core, bytes/s, > 0
  double down_rate = 0;  ///< from the core, bytes/s, > 0

  friend bool operator==(const TopologyRack&, const TopologyRack&) = default;
};

struct TopologyHost {
  std::string name;
  uint32_t rack = 0;     ///< index into Topology::racks
  double send_rate = 0;  ///< of its NIC, bytes/s, > 0; lower at a slow node
  double recv_rate = 0;  ///< the same for what it receives

  friend bool operator==(const TopologyHost&, const TopologyHost&) = default;
};

struct Topology {
  std::string name;
  std::vector<TopologyRack> racks;
  std::vector<TopologyHost> hosts;
  std::optional<double> core_rate;  ///< all racks together, bytes/s; none: never the bottleneck
  double rack_latency = 0;          ///< seconds one way between two hosts of one rack
  double core_latency = 0;          ///< seconds one way between hosts of two racks, in all

  friend bool operator==(const Topology&, const Topology&) = default;
};

/// Nodes at sites, of whose networks nothing is known but that the paths between them are longer:
/// racks of equal rates. `site_of`: of each node, a number; those that are there are 0 to their
/// count - 1. `names`: by site; empty: "site 0" and on.
Topology TopologyOfSites(const std::vector<uint32_t>& site_of,
                         const std::vector<std::string>& names = {});

/// Rates and latencies are finite, rates are positive, racks exist, no name is there twice, no rack
/// is empty; `where` in the Status is a JSON pointer into the file form.
Status CheckTopology(const Topology& topology);

}  // namespace prepost

#endif  // PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_H_
