// SPDX-License-Identifier: Apache-2.0
//
// Network: the network under a plan, as schedules, analyses, simulations and pictures know it: hosts'
// ports, racks, what a rack's top-of-rack switch (ToR) takes up to the core and down from it, the core.
// Node i of a plan is host i. It comes from a topology file (compiler/topology/topology_json.h), from
// what other systems know of their network (topology_import.h), or from a profile (sim/profile.h).
//
// Rates are bytes per second.
// A resource is something that carries so many bytes per second: a node's port out or in, a rack's
// uplinks (ToR to core) or downlinks, the core, what one node sends to another where that is
// limited by itself, and a port both ways where that is less than each way for itself. Switches
// forward unicast only: a block that goes to two racks crosses the core twice.
#ifndef PREPOST_IR_ANALYSIS_NETWORK_H_
#define PREPOST_IR_ANALYSIS_NETWORK_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/ids.h"
#include "ir/status.h"

namespace prepost {

enum class ResourceKind : uint8_t {
  kNodeOut,
  kNodeIn,
  kRackUp,
  kRackDown,
  kCore,
  kPair,
  kNodeBoth
};
inline constexpr std::array kResourceKinds = {
    ResourceKind::kNodeOut, ResourceKind::kNodeIn, ResourceKind::kRackUp,  ResourceKind::kRackDown,
    ResourceKind::kCore,    ResourceKind::kPair,   ResourceKind::kNodeBoth};
/// "node_out", "rack_up", ...: the word in JSON.
const char* Name(ResourceKind kind);

struct Resource {
  ResourceKind kind = ResourceKind::kNodeOut;
  uint32_t index = 0;  ///< which node, rack or pair; 0 of the core

  friend bool operator==(const Resource&, const Resource&) = default;
};

struct Network {
  struct Node {
    std::string name = {};  ///< of the host; may be empty
    uint32_t rack = 0;
    double out_rate = 1;  ///< bytes/s, of its NIC; lower at a slow node
    double in_rate = 1;
    std::optional<double> duplex_rate = {};  ///< out and in together; none: no limit but theirs

    friend bool operator==(const Node&, const Node&) = default;
  };
  struct Rack {
    std::string name;
    double up_rate = 0;  ///< bytes/s, all uplinks together
    double down_rate = 0;

    friend bool operator==(const Rack&, const Rack&) = default;
  };
  /// All that one node sends to another, together.
  struct Pair {
    NodeId from;
    NodeId to;
    double rate = 0;  ///< bytes/s

    friend bool operator==(const Pair&, const Pair&) = default;
  };

  std::string name = {};    ///< may be empty
  std::vector<Node> nodes;  ///< by node id
  std::vector<Rack> racks;  ///< one or more; some may be without nodes
  std::optional<double> core_rate;
  double rack_latency = 0;  ///< seconds one way inside a rack
  double core_latency = 0;  ///< between two racks, in all
  std::vector<Pair> pairs;  ///< those with a rate of their own, by (from, to), each once

  /// All in one rack, 1 byte/s each way: seconds are then bytes.
  static Network Uniform(uint32_t nodes);
  /// Nodes at sites, of whose networks nothing is known but that the paths between them are longer:
  /// racks of equal rates. `site_of`: of each node, a number; those that are there are 0 to their
  /// count - 1. `names`: by site; empty: "site 0" and on.
  static Network OfSites(const std::vector<uint32_t>& site_of,
                         const std::vector<std::string>& names = {});
  /// Its first `count` nodes alone. Errors: kRejected, when there are fewer.
  Result<Network> First(uint32_t count) const;

  double RateOf(Resource resource) const;  ///< of a core, or both ways, without a rate: infinity
  /// Ports both ways count where one of them has a limit.
  uint32_t CountOf(ResourceKind kind) const;
  /// Its position in `pairs`. Logarithmic.
  std::optional<uint32_t> PairOf(NodeId from, NodeId to) const;
  /// Racks that have nodes.
  uint32_t OccupiedRacks() const;
  /// "the port out of node 3", "the uplinks of rack r1", "the core", "the path from node 2
  /// to node 5", "the port of node 3 both ways".
  std::string Describe(Resource resource) const;

  friend bool operator==(const Network&, const Network&) = default;
};

/// Racks in range, rates positive and finite, latencies finite and not negative, pairs of two nodes
/// each and in order; `where` in the Status is a JSON pointer into the topology file.
Status CheckNetwork(const Network& network);
/// That, of a network for plans of `nodes` nodes.
Status CheckNetwork(const Network& network, uint32_t nodes);

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_NETWORK_H_
