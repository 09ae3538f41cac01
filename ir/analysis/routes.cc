// SPDX-License-Identifier: Apache-2.0
//
// Routes over the links of a network. Between two racks that have a link it is that one, as a
// network between sites does not send packets over a third. Towards each rack, what is left of the
// way from everywhere else is found backwards from there (Dijkstra), by latency and then by links.
// On the way from a rack each step takes one of the links that come nearer by what they cost; where
// there are several, as between the levels of a fat tree, the pair of racks decides which, so that
// pairs spread over all of them and a pair always takes the same.
//
// Example: leaves 0 and 1 under spines 2 and 3, four links of 1 us: from 0 to 1 both ways are 2 us
// long; 0 + 1 is odd, so the second is taken, over 3.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <unordered_map>
#include <utility>

#include "ir/analysis/network.h"

namespace prepost {
namespace {

/// Picoseconds, so that sums are exact, and links.
using Cost = std::pair<uint64_t, uint32_t>;
constexpr Cost kUnreached = {std::numeric_limits<uint64_t>::max(), 0};
constexpr double kLatencyMax = 3600;             // seconds, of a link
constexpr uint64_t kWayMax = uint64_t{1} << 60;  // of a way: what is longer is none

class RouteFinder {
 public:
  explicit RouteFinder(const Network& network)
      : network_(network),
        racks_(static_cast<uint32_t>(network.racks.size())),
        ends_(racks_ + static_cast<uint32_t>(network.switches.size())),
        out_(ends_),
        left_(ends_) {}

  Status CheckLinks() {
    if (network_.links.size() % 2 != 0 || network_.links.size() > kLinksMax)
      return Rejected(fmt::format("more than {} paths", kLinksMax / 2), "/paths");
    for (uint32_t i = 0; i < network_.links.size(); ++i) {
      const Network::Link& link = network_.links[i];
      const std::string where = fmt::format("/paths/{}", i / 2);
      if (std::max(link.from, link.to) >= ends_ || link.from == link.to)
        return Rejected("a path is between two racks, sites or switches", where + "/between");
      if (!(link.latency >= 0 && link.latency <= kLatencyMax)) {
        return Rejected(
            fmt::format("a latency is from 0 s to {} s, found {}", kLatencyMax, link.latency),
            where + "/latency");
      }
      out_[link.from].push_back(i);
      const auto [best, is_new] = best_between_.emplace(KeyOf(link.from, link.to), i);
      if (!is_new && CostOf(i) < CostOf(best->second)) best->second = i;
    }
    return {};
  }

  /// From all racks to this one; `ways` by rack.
  Status FindTo(uint32_t to, std::vector<std::vector<uint32_t>>* ways) {
    Measure(to);
    ListNearer();
    for (uint32_t from = 0; from < racks_; ++from) {
      std::vector<uint32_t>& way = (*ways)[from];
      way.clear();
      if (left_[from] == kUnreached) {
        return Rejected(fmt::format("no path leads from {} {} to {}", network_.RackWord(),
                                    network_.racks[from].name, network_.racks[to].name),
                        "/paths");
      }
      if (const auto direct = best_between_.find(KeyOf(from, to)); direct != best_between_.end()) {
        way.push_back(direct->second);
        continue;
      }
      for (uint32_t at = from; at != to; at = network_.links[way.back()].to)
        way.push_back(NextLink(at, from + to));
      if (const Status status = CheckLength(from, to, way.size()); !status.ok()) return status;
    }
    return {};
  }

  /// The fastest links along a given route, one way.
  Status Along(const Network::Route& route, size_t index, std::vector<uint32_t>* way) const {
    const std::string where = fmt::format("/routes/{}", index);
    way->clear();
    std::vector<uint32_t> stops = {route.from};
    stops.insert(stops.end(), route.over.begin(), route.over.end());
    stops.push_back(route.to);
    if (std::ranges::max(stops) >= ends_ || std::max(route.from, route.to) >= racks_ ||
        route.from == route.to)
      return Rejected("a route is between two racks or sites, over switches, racks or sites",
                      where);
    for (size_t i = 0; i + 1 < stops.size(); ++i) {
      const auto found = best_between_.find(KeyOf(stops[i], stops[i + 1]));
      if (found == best_between_.end()) {
        return Rejected(fmt::format("no path is between {} and {}", network_.EndName(stops[i]),
                                    network_.EndName(stops[i + 1])),
                        where + "/over");
      }
      way->push_back(found->second);
    }
    if (const Status status = CheckLength(route.from, route.to, way->size()); !status.ok())
      return Rejected(status.message(), where);
    return {};
  }

 private:
  Status CheckLength(uint32_t from, uint32_t to, size_t links) const {
    if (links <= kRouteLinksMax) return {};
    return Rejected(
        fmt::format("the way from {} to {} has {} paths, the limit is {}",
                    network_.racks[from].name, network_.racks[to].name, links, kRouteLinksMax),
        "/paths");
  }

  Cost CostOf(uint32_t link) const {
    return {static_cast<uint64_t>(std::llround(network_.links[link].latency * 1e12)), 1};
  }
  static Cost Sum(Cost a, Cost b) { return {a.first + b.first, a.second + b.second}; }

  /// What is left to `to` from everywhere, into left_. Links are there both ways, and cost the
  /// same.
  void Measure(uint32_t to) {
    std::ranges::fill(left_, kUnreached);
    using Reached = std::pair<Cost, uint32_t>;
    std::priority_queue<Reached, std::vector<Reached>, std::greater<>> open;
    left_[to] = {0, 0};
    open.emplace(left_[to], to);
    while (!open.empty()) {
      const auto [cost, at] = open.top();
      open.pop();
      if (cost != left_[at]) continue;
      for (const uint32_t link : out_[at]) {
        const uint32_t next = network_.links[link].to;
        const Cost there = Sum(cost, CostOf(link));
        if (there >= left_[next] || there.first > kWayMax) continue;
        left_[next] = there;
        open.emplace(there, next);
      }
    }
  }

  /// By end, the links that come nearer by what they cost.
  void ListNearer() {
    nearer_.clear();
    nearer_begin_.assign(1, 0);
    for (uint32_t at = 0; at < ends_; ++at) {
      for (const uint32_t link : out_[at]) {
        const Cost rest = left_[network_.links[link].to];
        if (rest != kUnreached && Sum(rest, CostOf(link)) == left_[at]) nearer_.push_back(link);
      }
      nearer_begin_.push_back(static_cast<uint32_t>(nearer_.size()));
    }
  }
  uint32_t NextLink(uint32_t at, uint32_t pair) const {
    const uint32_t begin = nearer_begin_[at], count = nearer_begin_[at + 1] - begin;
    PREPOST_CHECK(count != 0);
    return nearer_[begin + pair % count];
  }
  static uint64_t KeyOf(uint32_t from, uint32_t to) { return uint64_t{from} << 32 | to; }

  const Network& network_;
  const uint32_t racks_;
  const uint32_t ends_;
  std::vector<std::vector<uint32_t>> out_;               // links, by the end where they begin
  std::unordered_map<uint64_t, uint32_t> best_between_;  // the link of least cost, by KeyOf()
  std::vector<Cost> left_;                               // by end
  std::vector<uint32_t> nearer_, nearer_begin_;          // of ListNearer()
};

}  // namespace

Status Network::FindRoutes() {
  route_begin.clear();
  route_links.clear();
  if (links.empty()) return {};
  RouteFinder finder(*this);
  PREPOST_RETURN_IF_ERROR(finder.CheckLinks());
  const size_t count = racks.size();
  if (count > kLinkedRacksMax) {
    return Rejected(
        fmt::format("{} {}s are too many to find all routes between them, the limit is {}", count,
                    RackWord(), kLinkedRacksMax),
        RacksKey());
  }
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> given;  // by to, from
  for (size_t i = 0; i < routes.size(); ++i) {
    const Route& route = routes[i];
    const Route back = {
        .from = route.to, .to = route.from, .over = {route.over.rbegin(), route.over.rend()}};
    PREPOST_RETURN_IF_ERROR(finder.Along(route, i, &given[{route.to, route.from}]));
    PREPOST_RETURN_IF_ERROR(finder.Along(back, i, &given[{route.from, route.to}]));
  }
  std::vector<std::vector<uint32_t>> ways(count);
  route_begin.push_back(0);
  for (uint32_t to = 0; to < count; ++to) {
    PREPOST_RETURN_IF_ERROR(finder.FindTo(to, &ways));
    for (uint32_t from = 0; from < count; ++from) {
      const auto said = given.find({to, from});
      const std::vector<uint32_t>& way = said == given.end() ? ways[from] : said->second;
      route_links.insert(route_links.end(), way.begin(), way.end());
      route_begin.push_back(static_cast<uint32_t>(route_links.size()));
    }
    if (route_links.size() > kRoutesLinksMax)
      return Rejected(fmt::format("all routes together have more than {} paths", kRoutesLinksMax),
                      "/paths");
  }
  return {};
}

}  // namespace prepost
