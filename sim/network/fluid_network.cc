// SPDX-License-Identifier: Apache-2.0
//
// Rates count in units of 2^-b bytes/s, with b such that the fastest port has about 2^40 units:
// a share that is rounded down loses less than 2^-40 of it. What is left of a flow is in these
// units times picoseconds, of 128 bits, so it goes down exactly, and a flow ends at the first whole
// picosecond at which nothing is left. A flow alone on its links takes ceil(bytes / rate).
//
// What happens at one time happens together: Start() and TakeEnded() only note what changed, and
// rates are settled when the next event is asked for. So it does not matter whether of two flows
// that use a port one after the other the first is taken out before or after the second starts.
//
// A link whose flows' limits together are not more than its rate cannot hold up any of them. Only
// flows that share another link, directly or over others, are computed again when something
// changes (fluid_sharing.cc): in a schedule where every port has one flow, none are, and a flow
// costs a constant.
#include "sim/network/fluid_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace prepost::sim {
namespace {

constexpr int kPortBits = 40;     // of the fastest port's rate
constexpr int kSlowestBits = 16;  // of the slowest link's rate, which 2^16 flows may share
constexpr int kRateBitsMax = 48;
// Work has 127 bits: these, 40 of the picoseconds of a second, and kRateBitsMax.
constexpr uint64_t kFlowBytesMax = uint64_t{1} << 38;

}  // namespace

Result<FluidNetwork> FluidNetwork::Make(const Network& network, PortSharing sharing) {
  PREPOST_RETURN_IF_ERROR(CheckNetwork(network, static_cast<uint32_t>(network.nodes.size())));
  FluidNetwork fluid;
  fluid.nodes_ = network.CountOf(ResourceKind::kNodeOut);
  fluid.racks_ = network.CountOf(ResourceKind::kRackUp);
  fluid.has_duplex_ = network.CountOf(ResourceKind::kNodeBoth) != 0;
  double fastest = 0;
  for (const Network::Node& node : network.nodes) {
    fluid.rack_of_.push_back(node.rack);
    fastest = std::max({fastest, node.out_rate, node.in_rate});
  }
  fluid.rate_bits_ = kPortBits - 1 - (network.nodes.empty() ? 0 : std::ilogb(fastest));
  if (fluid.rate_bits_ < 0 || fluid.rate_bits_ > kRateBitsMax) {
    return Rejected(fmt::format("the fastest port has {} bytes/s, from {} up to {} can be modelled",
                                fastest, std::ldexp(1, kPortBits - 1 - kRateBitsMax),
                                std::ldexp(1, kPortBits)));
  }
  PREPOST_RETURN_IF_ERROR(fluid.TakeLatencies(network));
  for (const ResourceKind kind : kResourceKinds) {
    for (uint32_t i = 0; i < network.CountOf(kind); ++i) {
      const double units = std::ldexp(network.RateOf({kind, i}), fluid.rate_bits_);
      if (units < std::ldexp(1, kSlowestBits)) {
        return Rejected(fmt::format("{} has {} bytes/s, a port {}: too far apart to be modelled",
                                    network.Describe({kind, i}), network.RateOf({kind, i}),
                                    fastest));
      }
      const bool is_never_full = units >= static_cast<double>(kRateMax);
      fluid.links_.emplace_back().rate = is_never_full ? kRateMax : static_cast<Rate>(units);
    }
  }
  if (sharing == PortSharing::kFifo) fluid.ports_.resize(fluid.nodes_);
  fluid.levels_.resize(fluid.links_.size());
  fluid.fillings_.resize(fluid.links_.size());
  for (uint32_t i = 0; i < network.pairs.size(); ++i) {
    const Network::Pair& pair = network.pairs[i];
    fluid.pair_links_[PairKey(pair.from, pair.to)] = fluid.IndexOf({ResourceKind::kPair, i});
  }
  return fluid;
}

/// Packets that jitter holds back hold back what comes after them: a stream, or a QP, is as late as
/// the latest of its packets.
Status FluidNetwork::TakeLatencies(const Network& network) {
  double most = std::max(network.rack_latency, network.core_latency);
  for (const Network::Link& link : network.links) most += link.latency + link.jitter;
  if (most >= 1e6)
    return Rejected(fmt::format("a latency of {} s, at most 1e6 can be modelled", most));
  rack_latency_ = FromSeconds(network.rack_latency);
  core_latency_ = FromSeconds(network.core_latency);
  links_count_ = network.CountOf(ResourceKind::kLink);
  route_begin_ = network.route_begin;
  route_links_ = network.route_links;
  for (size_t i = 0; i + 1 < route_begin_.size(); ++i) {
    double latency = network.rack_latency;
    for (uint32_t at = route_begin_[i]; at < route_begin_[i + 1]; ++at) {
      const Network::Link& link = network.links[route_links_[at]];
      latency += link.latency + link.jitter;
    }
    route_latency_.push_back(FromSeconds(latency));
  }
  return {};
}

Picoseconds FluidNetwork::Latency(NodeId from, NodeId to) const {
  if (from == to) return 0;
  const uint32_t up = rack_of_[from.index()], down = rack_of_[to.index()];
  if (up == down) return rack_latency_;
  return route_latency_.empty() ? core_latency_ : route_latency_[size_t{down} * racks_ + up];
}

FluidNetwork::Path FluidNetwork::PathOf(NodeId from, NodeId to) const {
  const uint32_t up = rack_of_[from.index()];
  const uint32_t down = rack_of_[to.index()];
  Path path = {.count = 2, .links = {from.value, nodes_ + to.value}};
  const auto add = [&](LinkIndex link) { path.links[path.count++] = link; };
  if (up != down) {
    const LinkIndex racks_at = 2 * nodes_;
    add(racks_at + up);
    add(racks_at + racks_ + down);
    if (route_begin_.empty()) {
      add(racks_at + 2 * racks_);
    } else {
      const size_t route = size_t{down} * racks_ + up;
      for (uint32_t at = route_begin_[route]; at < route_begin_[route + 1]; ++at)
        add(racks_at + 2 * racks_ + 1 + route_links_[at]);
    }
  }
  if (has_duplex_) {
    add(IndexOf({ResourceKind::kNodeBoth, from.value}));
    add(IndexOf({ResourceKind::kNodeBoth, to.value}));
  }
  if (pair_links_.empty()) return path;
  const auto pair = pair_links_.find(PairKey(from, to));
  if (pair != pair_links_.end()) add(pair->second);
  return path;
}

FluidNetwork::Rate FluidNetwork::LimitOf(const Path& path) const {
  Rate limit = kRateMax;
  for (const LinkIndex link : path.all()) limit = std::min(limit, links_[link].rate);
  return limit;
}

FluidNetwork::Work FluidNetwork::WorkOf(uint64_t bytes) const {
  return static_cast<Work>(bytes) * kPicosecondsPerSecond << rate_bits_;
}

FluidNetwork::LinkIndex FluidNetwork::IndexOf(Resource resource) const {
  switch (resource.kind) {
    case ResourceKind::kNodeOut:
      return resource.index;
    case ResourceKind::kNodeIn:
      return nodes_ + resource.index;
    case ResourceKind::kRackUp:
      return 2 * nodes_ + resource.index;
    case ResourceKind::kRackDown:
      return 2 * nodes_ + racks_ + resource.index;
    case ResourceKind::kCore:
      return 2 * nodes_ + 2 * racks_;
    case ResourceKind::kLink:
      return 2 * nodes_ + 2 * racks_ + 1 + resource.index;
    case ResourceKind::kPair:
      return 2 * nodes_ + 2 * racks_ + 1 + links_count_ + resource.index;
    case ResourceKind::kNodeBoth:
      return 2 * nodes_ + 2 * racks_ + 1 + links_count_ +
             static_cast<uint32_t>(pair_links_.size()) + resource.index;
  }
  PREPOST_CHECK(false);
  return 0;
}

std::vector<Resource> FluidNetwork::resources() const {
  std::vector<Resource> all;
  const auto add = [&](ResourceKind kind, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) all.push_back({kind, i});
  };
  add(ResourceKind::kNodeOut, nodes_);
  add(ResourceKind::kNodeIn, nodes_);
  add(ResourceKind::kRackUp, racks_);
  add(ResourceKind::kRackDown, racks_);
  add(ResourceKind::kCore, 1);
  add(ResourceKind::kLink, links_count_);
  add(ResourceKind::kPair, static_cast<uint32_t>(pair_links_.size()));
  add(ResourceKind::kNodeBoth, has_duplex_ ? nodes_ : 0);
  return all;
}

std::vector<UsedLink> FluidNetwork::UsedLinks() const {
  std::vector<UsedLink> links;
  for (const Resource resource : resources()) {
    const LinkUse use = UseOf(resource);
    if (use.bytes != 0 && !links_[IndexOf(resource)].has_rates) links.push_back({resource, use});
  }
  return links;
}

LinkUse FluidNetwork::UseOf(Resource resource) const {
  const Link& link = links_[IndexOf(resource)];
  // Bytes of a whole run, so they are divided before they have rate_bits_, too.
  const Work bytes = static_cast<Work>(link.bytes) * kPicosecondsPerSecond;
  const Work time =
      (bytes / link.rate << rate_bits_) + (bytes % link.rate << rate_bits_) / link.rate;
  return {.bytes = link.bytes, .busy = time < kNever ? static_cast<Picoseconds>(time) : kNever};
}

Picoseconds FluidNetwork::TimeAlone(NodeId from, NodeId to, uint64_t bytes) const {
  const Path path = PathOf(from, to);
  const auto has_rates = [&](LinkIndex link) { return links_[link].has_rates; };
  if (std::ranges::any_of(path.all(), has_rates)) return kNever;
  const Rate limit = LimitOf(path);
  const Work time = (WorkOf(bytes) + limit - 1) / limit;
  return time < kNever ? static_cast<Picoseconds>(time) : kNever;
}

Status FluidNetwork::CheckShares() const {
  if (!crowded_) return {};
  return Rejected(fmt::format(
      "more messages at once on one link of {} bytes/s than its rate can be divided among: {}",
      std::ldexp(static_cast<double>(links_[*crowded_].rate), -rate_bits_),
      links_[*crowded_].rate));
}

FluidNetwork::FlowIndex FluidNetwork::NewFlow() {
  if (free_flows_.empty()) {
    PREPOST_CHECK(flows_.size() < kUnsettled / kPathLinks);
    flows_.emplace_back();
    return static_cast<FlowIndex>(flows_.size() - 1);
  }
  const FlowIndex index = free_flows_.back();
  free_flows_.pop_back();
  return index;
}

void FluidNetwork::Start(Picoseconds now, const Message& message) {
  const auto [from, to, bytes, queue, owner] = message;
  PREPOST_CHECK(from != to && bytes != 0 && bytes <= kFlowBytesMax && owner != nullptr);
  const FlowIndex index = NewFlow();
  Flow& flow = flows_[index];
  flow.owner = owner;
  flow.path = PathOf(from, to);
  flow.bottleneck = kUnsettled;
  flow.finish = WorkOf(bytes);
  flow.bytes = bytes;
  flow.number = started_++;
  if (ports_.empty()) {
    Enter(index);
    new_flows_.push_back(index);
    return;
  }
  std::vector<Waiting>& waiting = ports_[from.index()].waiting;
  waiting.push_back({now, queue, flow.number, index});
  std::ranges::push_heap(waiting, std::greater());
  NotePort(from.value);
}

/// Another message may have the port when all that happens now has happened.
void FluidNetwork::NotePort(LinkIndex index) {
  if (std::exchange(ports_[index].is_changed, true)) return;
  changed_ports_.push_back(index);
}

/// Who is first on a port that is free has it.
void FluidNetwork::TakePorts() {
  for (const LinkIndex index : changed_ports_) {
    Port& port = ports_[index];
    port.is_changed = false;
    if (port.is_taken || port.waiting.empty()) continue;
    port.is_taken = true;
    std::ranges::pop_heap(port.waiting, std::greater());
    const FlowIndex flow = port.waiting.back().flow;
    port.waiting.pop_back();
    Enter(flow);
    new_flows_.push_back(flow);
  }
  changed_ports_.clear();
}

/// Puts the flow on its links.
void FluidNetwork::Enter(FlowIndex index) {
  Flow& flow = flows_[index];
  flow.limit = LimitOf(flow.path);
  for (uint32_t i = 0; i < flow.path.count; ++i) {
    Link& link = links_[flow.path.links[i]];
    flow.positions[i] = static_cast<uint32_t>(link.hops.size());
    link.hops.push_back(static_cast<Hop>(index * kPathLinks + i));
    ChangeDemand(flow.path.links[i], flow.limit);
    // Only a flow that was alone can have had all of it.
    if (link.hops.size() != 2) continue;
    Flow& other = flows_[FlowOf(link.hops.front())];
    if (other.may_reach_limit) SetMayReachLimit(other, MayReachLimit(other));
  }
  SetMayReachLimit(flow, MayReachLimit(flow));
}

void FluidNetwork::Leave(FlowIndex index) {
  Flow& flow = flows_[index];
  if (!ports_.empty()) {
    ports_[flow.path.links[0]].is_taken = false;
    NotePort(flow.path.links[0]);
  }
  SetMayReachLimit(flow, false);
  for (uint32_t i = 0; i < flow.path.count; ++i) {
    Link& link = links_[flow.path.links[i]];
    const Hop last = link.hops.back();
    link.hops[flow.positions[i]] = last;
    flows_[FlowOf(last)].positions[last % kPathLinks] = flow.positions[i];
    link.hops.pop_back();
    link.bytes += flow.bytes;
    ChangeDemand(flow.path.links[i], -flow.limit);
  }
  for (const LinkIndex link : flow.path.all()) {
    if (links_[link].hops.size() != 1) continue;
    Flow& other = flows_[FlowOf(links_[link].hops.front())];
    if (!other.may_reach_limit) SetMayReachLimit(other, MayReachLimit(other));
  }
}

void FluidNetwork::ChangeDemand(LinkIndex index, Rate by) {
  Link& link = links_[index];
  if (link.NeedsSharing()) --sharing_links_;
  link.demand += by;
  if (!link.NeedsSharing()) return;
  ++sharing_links_;
  if (link.is_changed) return;
  link.is_changed = true;
  changed_links_.push_back(index);
}

/// A link that is as slow as the flow's limit and full gives it less, as others get something.
bool FluidNetwork::MayReachLimit(const Flow& flow) const {
  return std::ranges::none_of(flow.path.all(), [&](LinkIndex link) {
    return links_[link].rate == flow.limit && links_[link].IsFull();
  });
}

void FluidNetwork::SetMayReachLimit(Flow& flow, bool may) {
  if (flow.may_reach_limit == may) return;
  flow.may_reach_limit = may;
  for (const LinkIndex link : flow.path.all()) links_[link].limited += may ? 1 : -1u;
}

void FluidNetwork::SetPairRate(Picoseconds now, NodeId from, NodeId to, double bytes_per_second) {
  const LinkIndex index = pair_links_.at(PairKey(from, to));
  Link& link = links_[index];
  link.has_rates = true;
  const double units = std::max(std::ldexp(bytes_per_second, rate_bits_), 1.0);
  const Rate rate = units < static_cast<double>(kRateMax) ? static_cast<Rate>(units) : kRateMax;
  if (rate == link.rate) return;
  if (link.NeedsSharing()) --sharing_links_;
  link.rate = rate;
  if (link.NeedsSharing()) ++sharing_links_;
  for (const Hop hop : link.hops) {
    // As if what is left of it began now.
    Flow& flow = flows_[FlowOf(hop)];
    const bool is_new = flow.bottleneck == kUnsettled;
    SetApart(FlowOf(hop), now);
    SetMayReachLimit(flow, false);
    for (const LinkIndex it : flow.path.all()) ChangeDemand(it, -flow.limit);
    flow.limit = LimitOf(flow.path);
    for (const LinkIndex it : flow.path.all()) ChangeDemand(it, flow.limit);
    if (!is_new) new_flows_.push_back(FlowOf(hop));
  }
  for (const Hop hop : link.hops) {
    Flow& flow = flows_[FlowOf(hop)];
    SetMayReachLimit(flow, MayReachLimit(flow));
  }
}

Picoseconds FluidNetwork::NextEvent(Picoseconds now) {
  Settle(now);
  return ends_.next_at();
}

}  // namespace prepost::sim
