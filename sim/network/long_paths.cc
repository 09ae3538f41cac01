// SPDX-License-Identifier: Apache-2.0
#include "sim/network/long_paths.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "sim/nics/time.h"

namespace prepost::sim {
namespace {

uint64_t KeyOf(NodeId from, NodeId to) { return uint64_t{from.value} << 32 | to.value; }

/// The path between two hosts, if it is of that kind.
std::optional<Network::Link> LongPathOf(const Network& network, NodeId from, NodeId to) {
  const uint32_t up = network.nodes[from.index()].rack, down = network.nodes[to.index()].rack;
  if (network.links.empty() || up == down) return std::nullopt;
  Network::Link path = PathOf(network, network.LinksBetween(up, down));
  path.rate = std::min(
      {path.rate, network.nodes[from.index()].out_rate, network.nodes[to.index()].in_rate});
  return IsLong(path) ? std::optional(path) : std::nullopt;
}

}  // namespace

Network WithLongPairs(Network network, std::span<const Group> groups, bool is_tcp) {
  if (network.links.empty()) return network;
  std::set<std::pair<NodeId, NodeId>> added;
  for (const Group& group : groups) {
    for (const Channel& channel : group.plan->channels())
      added.emplace(group.HostOf(channel.from), group.HostOf(channel.to));
  }
  for (const auto& [from, to] : added) {
    if (from == to) continue;
    const std::optional<Network::Link> path = LongPathOf(network, from, to);
    if (!path || (!is_tcp && path->loss == 0)) continue;
    const double in_flight = path->rate * 2 * path->latency / path->mtu;  // packets
    const double kept = is_tcp ? 1 : 1 / (1 + path->loss * in_flight);
    const double rate = path->capacity() * kept;
    if (const std::optional<uint32_t> pair = network.PairOf(from, to)) {
      network.pairs[*pair].rate = std::min(network.pairs[*pair].rate, rate);
      continue;
    }
    network.pairs.push_back({from, to, rate, /*is_given=*/false});
    // They stay in order.
    const auto by_ends = [](const Network::Pair& it) { return std::pair(it.from, it.to); };
    std::ranges::inplace_merge(network.pairs, network.pairs.end() - 1, {}, by_ends);
  }
  return network;
}

LongPaths::LongPaths(const Network& network, uint64_t seed, Clock* clock, FluidNetwork* fluid)
    : clock_(clock), fluid_(fluid) {
  std::map<std::vector<uint32_t>, uint32_t> routes;
  for (const Network::Pair& pair : network.pairs) {
    const std::optional<Network::Link> path = LongPathOf(network, pair.from, pair.to);
    if (!path) continue;
    const auto links = network.LinksBetween(network.nodes[pair.from.index()].rack,
                                            network.nodes[pair.to.index()].rack);
    const auto route =
        routes.try_emplace({links.begin(), links.end()}, routes.size()).first->second;
    place_of_[KeyOf(pair.from, pair.to)] = connections_.size();
    connections_.push_back({.from = pair.from,
                            .to = pair.to,
                            .most = pair.rate,
                            .route = route,
                            .streams = TcpStreams(*path, seed + KeyOf(pair.from, pair.to))});
  }
  windows_.resize(routes.size());
}

LongPaths::Connection* LongPaths::Find(NodeId from, NodeId to) {
  const auto found = place_of_.find(KeyOf(from, to));
  return found == place_of_.end() ? nullptr : &connections_[found->second];
}

void LongPaths::Schedule(Connection* it) {
  it->is_due = true;
  windows_[it->route] += it->streams.window();
  const double rate = std::min(it->streams.rate(), it->most);
  fluid_->SetPairRate(clock_->now(), it->from, it->to, rate);
  const Picoseconds round_trip = FromSeconds(it->streams.RoundTrip(windows_[it->route]));
  clock_->Schedule(After(clock_->now(), round_trip), *this, {.subject = it});
}

void LongPaths::Begin(NodeId from, NodeId to) {
  Connection* it = Find(from, to);
  if (it == nullptr) return;
  ++it->flows;
  it->is_used = true;
  if (!it->is_due) Schedule(it);
}

void LongPaths::End(NodeId from, NodeId to) {
  if (Connection* it = Find(from, to); it != nullptr) --it->flows;
}

/// A round trip of a connection is over.
void LongPaths::OnTime(const TimedEvent& event) {
  Connection* it = static_cast<Connection*>(event.subject);
  it->is_due = false;
  const double all = windows_[it->route];
  windows_[it->route] -= it->streams.window();
  if (!std::exchange(it->is_used, it->flows != 0)) return;
  it->streams.Step(all);
  Schedule(it);
}

}  // namespace prepost::sim
