// SPDX-License-Identifier: Apache-2.0
//
// Network: what the analyses of a plan need to know of the network under it: nodes' ports, racks,
// the core. Plain numbers, so that ir/ depends on no topology file; whoever has one fills this in.
//
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
    uint32_t rack = 0;
    double out_rate = 1;  ///< bytes/s
    double in_rate = 1;
    std::optional<double> duplex_rate = {};  ///< out and in together; none: no limit but theirs
  };
  struct Rack {
    std::string name;
    double up_rate = 0;  ///< bytes/s, all uplinks together
    double down_rate = 0;
  };
  /// All that one node sends to another, together.
  struct Pair {
    NodeId from;
    NodeId to;
    double rate = 0;  ///< bytes/s
  };

  std::vector<Node> nodes;  ///< by node id
  std::vector<Rack> racks;  ///< one or more; some may be without nodes
  std::optional<double> core_rate;
  double rack_latency = 0;  ///< seconds one way inside a rack
  double core_latency = 0;  ///< between two racks, in all
  std::vector<Pair> pairs;  ///< those with a rate of their own, by (from, to), each once

  /// All in one rack, 1 byte/s each way: seconds are then bytes.
  static Network Uniform(uint32_t nodes);

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
};

/// For plans of `nodes` nodes: so many nodes, racks in range, rates positive and finite, latencies
/// finite and not negative, pairs of two nodes each and in order.
Status CheckNetwork(const Network& network, uint32_t nodes);

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_NETWORK_H_
