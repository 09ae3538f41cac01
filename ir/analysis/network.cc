// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "ir/base/count.h"
#include "ir/json/rate_text.h"

namespace prepost {

const char* Name(ResourceKind kind) {
  switch (kind) {
    case ResourceKind::kNodeOut:
      return "node_out";
    case ResourceKind::kNodeIn:
      return "node_in";
    case ResourceKind::kRackUp:
      return "rack_up";
    case ResourceKind::kRackDown:
      return "rack_down";
    case ResourceKind::kCore:
      return "core";
    case ResourceKind::kLink:
      return "link";
    case ResourceKind::kPair:
      return "pair";
    case ResourceKind::kNodeBoth:
      return "node_both";
  }
  PREPOST_CHECK(false);
  return "";
}

Network Network::Uniform(uint32_t nodes) {
  Network network;
  network.nodes.resize(nodes);
  const double never = std::numeric_limits<double>::max();  // nothing leaves the only rack
  network.racks.push_back({.name = "all", .up_rate = never, .down_rate = never});
  return network;
}

Network Network::OfSites(const std::vector<uint32_t>& site_of,
                         const std::vector<std::string>& names) {
  constexpr double kEqualRate = 1;
  Network network;
  for (const uint32_t site : site_of) {
    while (network.racks.size() <= site) {
      const size_t next = network.racks.size();
      network.racks.push_back({.name = names.empty() ? fmt::format("site {}", next) : names[next],
                               .up_rate = kEqualRate,
                               .down_rate = kEqualRate});
    }
    network.nodes.push_back({.rack = site, .out_rate = kEqualRate, .in_rate = kEqualRate});
  }
  return network;
}

Network Network::WithoutNodes() const {
  return {.name = name,
          .nodes = {},
          .racks = racks,
          .core_rate = core_rate,
          .rack_latency = rack_latency,
          .core_latency = core_latency,
          .are_sites = are_sites,
          .switches = switches,
          .links = links,
          .routes = routes,
          .route_begin = route_begin,
          .route_links = route_links};
}

Result<Network> Network::First(uint32_t count) const {
  if (nodes.size() < count) {
    return Rejected(fmt::format("the topology has {}, the plan {}", Count(nodes.size(), "host"),
                                Count(count, "node")));
  }
  Network first = WithoutNodes();
  first.nodes.assign(nodes.begin(), nodes.begin() + count);
  std::ranges::copy_if(pairs, std::back_inserter(first.pairs), [&](const Pair& pair) {
    return std::max(pair.from, pair.to).value < count;
  });
  return first;
}

double Network::Link::capacity() const {
  return std::min({rate, policer ? policer->rate : rate, pace.value_or(rate)});
}

double Network::LatencyBetween(uint32_t from_rack, uint32_t to_rack) const {
  if (from_rack == to_rack) return rack_latency;
  if (links.empty()) return core_latency;
  double latency = rack_latency;
  for (const uint32_t link : LinksBetween(from_rack, to_rack)) latency += links[link].latency;
  return latency;
}

double Network::RateOf(Resource resource) const {
  switch (resource.kind) {
    case ResourceKind::kNodeOut:
      return nodes[resource.index].out_rate;
    case ResourceKind::kNodeIn:
      return nodes[resource.index].in_rate;
    case ResourceKind::kRackUp:
      return racks[resource.index].up_rate;
    case ResourceKind::kRackDown:
      return racks[resource.index].down_rate;
    case ResourceKind::kCore:
      return core_rate.value_or(std::numeric_limits<double>::infinity());
    case ResourceKind::kLink:
      return links[resource.index].capacity();
    case ResourceKind::kPair:
      return pairs[resource.index].rate;
    case ResourceKind::kNodeBoth:
      return nodes[resource.index].duplex_rate.value_or(std::numeric_limits<double>::infinity());
  }
  PREPOST_CHECK(false);
  return 0;
}

uint32_t Network::CountOf(ResourceKind kind) const {
  switch (kind) {
    case ResourceKind::kNodeOut:
    case ResourceKind::kNodeIn:
      return static_cast<uint32_t>(nodes.size());
    case ResourceKind::kRackUp:
    case ResourceKind::kRackDown:
      return static_cast<uint32_t>(racks.size());
    case ResourceKind::kCore:
      return 1;
    case ResourceKind::kLink:
      return static_cast<uint32_t>(links.size());
    case ResourceKind::kPair:
      return static_cast<uint32_t>(pairs.size());
    case ResourceKind::kNodeBoth: {
      const auto has_limit = [](const Node& node) { return node.duplex_rate.has_value(); };
      return std::ranges::any_of(nodes, has_limit) ? static_cast<uint32_t>(nodes.size()) : 0;
    }
  }
  PREPOST_CHECK(false);
  return 0;
}

ResourceRow::ResourceRow(const Network& network) {
  for (size_t kind = 0; kind < kResourceKinds.size(); ++kind)
    begin_[kind + 1] = begin_[kind] + network.CountOf(kResourceKinds[kind]);
}

Resource ResourceRow::Of(size_t position) const {
  const auto after =
      std::ranges::upper_bound(begin_, position);  // the last of equals: those have none
  const size_t kind = static_cast<size_t>(after - begin_.begin()) - 1;
  return {kResourceKinds[kind], static_cast<uint32_t>(position - begin_[kind])};
}

std::optional<uint32_t> Network::PairOf(NodeId from, NodeId to) const {
  if (pairs.empty()) return std::nullopt;
  const auto wanted = std::pair(from, to);
  const auto ends = [](const Pair& pair) { return std::pair(pair.from, pair.to); };
  const auto found = std::ranges::lower_bound(pairs, wanted, {}, ends);
  if (found == pairs.end() || ends(*found) != wanted) return std::nullopt;
  return static_cast<uint32_t>(found - pairs.begin());
}

uint32_t Network::OccupiedRacks() const {
  std::vector<bool> occupied(racks.size());
  for (const Node& node : nodes) occupied[node.rack] = true;
  return static_cast<uint32_t>(std::ranges::count(occupied, true));
}

std::string Network::Describe(Resource resource) const {
  switch (resource.kind) {
    case ResourceKind::kNodeOut:
      return fmt::format("the port out of node {}", resource.index);
    case ResourceKind::kNodeIn:
      return fmt::format("the port into node {}", resource.index);
    case ResourceKind::kRackUp:
      return fmt::format("the uplinks of {} {}", RackWord(), racks[resource.index].name);
    case ResourceKind::kRackDown:
      return fmt::format("the downlinks of {} {}", RackWord(), racks[resource.index].name);
    case ResourceKind::kCore:
      return "the core";
    case ResourceKind::kLink: {
      const Link& link = links[resource.index];
      return fmt::format("the path from {} to {}", EndName(link.from), EndName(link.to));
    }
    case ResourceKind::kPair:
      return fmt::format("the path from node {} to node {}", pairs[resource.index].from.value,
                         pairs[resource.index].to.value);
    case ResourceKind::kNodeBoth:
      return fmt::format("the port of node {} both ways", resource.index);
  }
  PREPOST_CHECK(false);
  return "";
}

namespace {

Status CheckRate(double rate, const std::string& where) {
  if (std::isfinite(rate) && rate > 0) return {};
  return Rejected(fmt::format("a rate is more than 0 bytes/s, found {}", rate), where);
}

Status CheckLatency(double seconds, const std::string& where) {
  if (std::isfinite(seconds) && seconds >= 0) return {};
  return Rejected(fmt::format("a latency is 0 s or more, found {}", seconds), where);
}

Status CheckNodes(const Network& network) {
  for (uint32_t i = 0; i < network.nodes.size(); ++i) {
    const Network::Node& node = network.nodes[i];
    if (node.rack >= network.racks.size()) {
      return Rejected(
          fmt::format("host {} is in rack {}, there are {}",
                      node.name.empty() ? fmt::to_string(i) : fmt::format("'{}'", node.name),
                      node.rack, network.racks.size()),
          "/racks");
    }
    const std::string where = fmt::format("/racks/{}/hosts", node.rack);
    for (const double rate : {node.out_rate, node.in_rate, node.duplex_rate.value_or(1)})
      PREPOST_RETURN_IF_ERROR(CheckRate(rate, where));
  }
  return {};
}

Status CheckBytes(double bytes, const std::string& where) {
  if (std::isfinite(bytes) && bytes > 0) return {};
  return Rejected(fmt::format("expected more than 0 bytes, found {}", bytes), where);
}

/// A chance at which some packet arrives.
Status CheckLoss(double loss, const std::string& where) {
  if (loss >= 0 && loss < 1) return {};
  return Rejected(
      fmt::format("a loss is the share of packets that are lost, from 0 to below 1, found {}",
                  loss),
      where);
}

Status CheckLinks(const Network& network) {
  for (size_t i = 0; i < network.links.size(); ++i) {
    const Network::Link& link = network.links[i];
    const std::string where = fmt::format("/paths/{}", i / 2);
    PREPOST_RETURN_IF_ERROR(CheckRate(link.rate, where + "/rate"));
    PREPOST_RETURN_IF_ERROR(CheckLatency(link.latency, where + "/latency"));
    PREPOST_RETURN_IF_ERROR(CheckLatency(link.jitter, where + "/jitter"));
    PREPOST_RETURN_IF_ERROR(CheckLoss(link.loss, where + "/loss"));
    if (link.queue) PREPOST_RETURN_IF_ERROR(CheckBytes(*link.queue, where + "/queue"));
    if (link.policer) {
      PREPOST_RETURN_IF_ERROR(CheckRate(link.policer->rate, where + "/police/rate"));
      PREPOST_RETURN_IF_ERROR(CheckBytes(link.policer->burst, where + "/police/burst"));
      if (link.policer->burst < link.mtu) {
        return Rejected(fmt::format("a burst of {} bytes lets no packet of {} through",
                                    link.policer->burst, link.mtu),
                        where + "/police/burst");
      }
    }
    if (!link.pace) continue;
    PREPOST_RETURN_IF_ERROR(CheckRate(*link.pace, where + "/pace"));
    const bool is_policed = link.policer && link.policer->rate < link.rate;
    const double most = is_policed ? link.policer->rate : link.rate;
    if (*link.pace <= most) continue;
    return Rejected(
        fmt::format("a pace of {} is above {}, {}: at most that helps", WriteRate(*link.pace),
                    is_policed ? "what the policer lets through" : "the path's rate",
                    WriteRate(most)),
        where + "/pace");
  }
  if (network.links.empty()) return {};
  PREPOST_CHECK(network.route_begin.size() == network.racks.size() * network.racks.size() + 1);
  return {};
}

Status CheckPairs(const Network& network) {
  const Network::Pair* last = nullptr;
  for (const Network::Pair& pair : network.pairs) {
    if (std::max(pair.from, pair.to).index() >= network.nodes.size() || pair.from == pair.to) {
      return Rejected(fmt::format("a pair of nodes {} and {}, expected two of {}", pair.from.value,
                                  pair.to.value, network.nodes.size()));
    }
    PREPOST_RETURN_IF_ERROR(CheckRate(
        pair.rate, fmt::format("from node {} to node {}", pair.from.value, pair.to.value)));
    if (last != nullptr && std::pair(pair.from, pair.to) <= std::pair(last->from, last->to)) {
      return Rejected(fmt::format("the pair of nodes {} and {} is out of order or there twice",
                                  pair.from.value, pair.to.value));
    }
    last = &pair;
  }
  return {};
}

}  // namespace

Status CheckNetwork(const Network& network) {
  for (size_t i = 0; i < network.racks.size(); ++i) {
    const std::string where = fmt::format("{}/{}", network.RacksKey(), i);
    PREPOST_RETURN_IF_ERROR(CheckRate(network.racks[i].up_rate, where + "/up_rate"));
    PREPOST_RETURN_IF_ERROR(CheckRate(network.racks[i].down_rate, where + "/down_rate"));
  }
  PREPOST_RETURN_IF_ERROR(CheckNodes(network));
  if (network.core_rate) PREPOST_RETURN_IF_ERROR(CheckRate(*network.core_rate, "/core_rate"));
  PREPOST_RETURN_IF_ERROR(CheckLatency(network.rack_latency, "/rack_latency"));
  PREPOST_RETURN_IF_ERROR(CheckLatency(network.core_latency, "/core_latency"));
  PREPOST_RETURN_IF_ERROR(CheckLinks(network));
  return CheckPairs(network);
}

Status CheckNetwork(const Network& network, uint32_t nodes) {
  if (network.nodes.size() != nodes) {
    return Rejected(
        fmt::format("a network of {} nodes for a plan of {}", network.nodes.size(), nodes));
  }
  return CheckNetwork(network);
}

}  // namespace prepost
