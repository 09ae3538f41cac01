// SPDX-License-Identifier: Apache-2.0
//
// Network: the network under a plan, as schedules, analyses, simulations and pictures know it:
// hosts' ports, racks, and what is between racks: either one core, to which each rack's top-of-rack
// switch (ToR) has uplinks, and downlinks from it, or links, such as paths between sites or cables
// between switches, over which routes lead from rack to rack. Node i of a plan is host i. It comes
// from a topology file (compiler/topology/topology_json.h), from what other systems know of their
// network (topology_import.h), or from a profile (sim/cluster/profile.h).
//
// Rates are bytes per second.
// A resource is something that carries so many bytes per second: a node's port out or in, a rack's
// uplinks (ToR to core) or downlinks, the core, a link one way, what one node sends to another
// where that is limited by itself, and a port both ways where that is less than each way for
// itself. Switches forward unicast only: a block that goes to two racks crosses the core twice.
#ifndef PREPOST_IR_ANALYSIS_NETWORK_H_
#define PREPOST_IR_ANALYSIS_NETWORK_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "ir/ids.h"

namespace prepost {

enum class ResourceKind : uint8_t {
  kNodeOut,
  kNodeIn,
  kRackUp,
  kRackDown,
  kCore,
  kLink,
  kPair,
  kNodeBoth
};
inline constexpr std::array kResourceKinds = {
    ResourceKind::kNodeOut, ResourceKind::kNodeIn, ResourceKind::kRackUp, ResourceKind::kRackDown,
    ResourceKind::kCore,    ResourceKind::kLink,   ResourceKind::kPair,   ResourceKind::kNodeBoth};
/// "node_out", "rack_up", ...: the word in JSON.
const char* Name(ResourceKind kind);

struct Resource {
  ResourceKind kind = ResourceKind::kNodeOut;
  uint32_t index = 0;  ///< which node, rack, link or pair; 0 of the core

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
  /// Drops what comes faster than `rate` bytes/s, but for `burst` bytes.
  struct Policer {
    double rate = 0;
    double burst = 0;

    friend bool operator==(const Policer&, const Policer&) = default;
  };
  /// A link one way; the same the other way is beside it. Ends are racks, or switches without
  /// hosts: racks.size() + their position in `switches`.
  struct Link {
    uint32_t from = 0;
    uint32_t to = 0;
    double rate = 0;     ///< bytes/s
    double latency = 0;  ///< seconds one way
    double jitter = 0;   ///< seconds that packets may come later
    double loss = 0;     ///< of packets, by chance; < 1
    std::optional<Policer> policer = {};
    std::optional<double> pace = {};   ///< bytes/s that senders keep to, together
    std::optional<double> queue = {};  ///< bytes that may wait before it; none: rate x round trip
    uint32_t streams = 0;  ///< of a TCP connection; 0: as many as sessions open by themselves
    uint32_t mtu = 1500;   ///< bytes of a packet

    /// What it carries in the long run: the least of rate, policer and pace.
    double capacity() const;
    friend bool operator==(const Link&, const Link&) = default;
  };
  /// From one rack to another over these switches or racks, and back.
  struct Route {
    uint32_t from = 0;
    uint32_t to = 0;
    std::vector<uint32_t> over;

    friend bool operator==(const Route&, const Route&) = default;
  };
  /// All that one node sends to another, together.
  struct Pair {
    NodeId from;
    NodeId to;
    double rate = 0;  ///< bytes/s
    bool is_given =
        true;  ///< somebody says so; else it follows from links (sim/network/long_paths.h)

    friend bool operator==(const Pair&, const Pair&) = default;
  };

  std::string name = {};    ///< may be empty
  std::vector<Node> nodes;  ///< by node id
  std::vector<Rack> racks;  ///< one or more; some may be without nodes
  std::optional<double> core_rate;
  double rack_latency = 0;                 ///< seconds one way inside a rack
  double core_latency = 0;                 ///< between two racks, in all, where there are no links
  bool are_sites = false;                  ///< the racks are called sites
  std::vector<std::string> switches = {};  ///< without hosts
  std::vector<Link> links = {};    ///< two and two each other's way back; none: there is a core
  std::vector<Route> routes = {};  ///< those that are given; others are shortest
  /// What FindRoutes() has found: the links to rack a from rack b are those of route_links from
  /// route_begin[a * racks + b] to the next.
  std::vector<uint32_t> route_begin = {};
  std::vector<uint32_t> route_links = {};
  std::vector<Pair> pairs;  ///< those with a rate of their own, by (from, to), each once

  /// All in one rack, 1 byte/s each way: seconds are then bytes.
  static Network Uniform(uint32_t nodes);
  /// Nodes at sites, of whose networks nothing is known but that the paths between them are longer:
  /// racks of equal rates. `site_of`: of each node, a number; those that are there are 0 to their
  /// count - 1. `names`: by site; empty: "site 0" and on.
  static Network OfSites(const std::vector<uint32_t>& site_of,
                         const std::vector<std::string>& names = {});
  /// All but its nodes and pairs.
  Network WithoutNodes() const;
  /// Its first `count` nodes alone. Errors: kRejected, when there are fewer.
  Result<Network> First(uint32_t count) const;

  /// Fills in the routes between all racks over `links`: those given; where racks have a link
  /// between them, that; else the way of least latency, then of fewest links; of equal ones each
  /// pair takes one, and pairs take different ones. Cost: O(racks x links). Errors: kRejected, with
  /// the place in the file: links or routes that do not hold together, a rack that none leads to,
  /// more than kRouteLinksMax links on the way.
  Status FindRoutes();
  std::span<const uint32_t> LinksBetween(uint32_t from_rack, uint32_t to_rack) const {
    const size_t at = size_t{to_rack} * racks.size() + from_rack;
    return std::span(route_links).subspan(route_begin[at], route_begin[at + 1] - route_begin[at]);
  }
  /// Seconds one way between two hosts of racks: rack_latency of one rack; of two that of the core,
  /// or of the links between them and rack_latency.
  double LatencyBetween(uint32_t from_rack, uint32_t to_rack) const;
  double Latency(NodeId from, NodeId to) const {
    return LatencyBetween(nodes[from.index()].rack, nodes[to.index()].rack);
  }
  /// Calls `add` with every resource that a block takes from one node to another.
  template <typename AddResource>
  void ForEachOnWay(NodeId from, NodeId to, AddResource add) const {
    const uint32_t up = nodes[from.index()].rack, down = nodes[to.index()].rack;
    add(Resource{ResourceKind::kNodeOut, from.value});
    add(Resource{ResourceKind::kNodeIn, to.value});
    if (up != down) {
      add(Resource{ResourceKind::kRackUp, up});
      add(Resource{ResourceKind::kRackDown, down});
      if (links.empty()) {
        add(Resource{ResourceKind::kCore, 0});
      } else {
        for (const uint32_t link : LinksBetween(up, down)) add(Resource{ResourceKind::kLink, link});
      }
    }
    if (const std::optional<uint32_t> pair = PairOf(from, to))
      add(Resource{ResourceKind::kPair, *pair});
  }
  /// "rack" or "site", and the key of their list in the topology file.
  const char* RackWord() const { return are_sites ? "site" : "rack"; }
  const char* RacksKey() const { return are_sites ? "/sites" : "/racks"; }
  /// Of a rack or switch, an end of a link.
  const std::string& EndName(uint32_t end) const {
    return end < racks.size() ? racks[end].name : switches[end - racks.size()];
  }
  double RateOf(Resource resource) const;  ///< of a core, or both ways, without a rate: infinity
  /// Ports both ways count where one of them has a limit.
  uint32_t CountOf(ResourceKind kind) const;
  /// Its position in `pairs`. Logarithmic.
  std::optional<uint32_t> PairOf(NodeId from, NodeId to) const;
  /// Racks that have nodes.
  uint32_t OccupiedRacks() const;
  /// "the port out of node 3", "the uplinks of rack r1", "the core", "the path from site a to b",
  /// "the path from node 2 to node 5", "the port of node 3 both ways".
  std::string Describe(Resource resource) const;

  friend bool operator==(const Network&, const Network&) = default;
};

/// What a route has at most.
inline constexpr size_t kRouteLinksMax = 16;
/// Links of all routes together, links, and racks with routes between them.
inline constexpr size_t kRoutesLinksMax = size_t{1} << 25;
inline constexpr size_t kLinksMax = size_t{1} << 20;
inline constexpr size_t kLinkedRacksMax = 4096;

/// The resources of a network in one row, by kind and index.
class ResourceRow {
 public:
  explicit ResourceRow(const Network& network);

  size_t size() const { return begin_.back(); }
  size_t At(Resource resource) const {
    return begin_[static_cast<size_t>(resource.kind)] + resource.index;
  }
  Resource Of(size_t position) const;

 private:
  std::array<size_t, kResourceKinds.size() + 1> begin_ = {};
};

/// Racks in range, rates positive and finite, latencies finite and not negative, pairs of two nodes
/// each and in order, routes found where there are links; `where` in the Status is a JSON pointer
/// into the topology file.
Status CheckNetwork(const Network& network);
/// That, of a network for plans of `nodes` nodes.
Status CheckNetwork(const Network& network, uint32_t nodes);

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_NETWORK_H_
