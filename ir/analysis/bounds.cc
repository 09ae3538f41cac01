// SPDX-License-Identifier: Apache-2.0
//
// Rounds, with p ports. The root starts at most p blocks in a round, so some block first leaves it
// in round ceil(k/p), counted from 1, or later. From that round on those who have the block can
// grow by at most p + 1 times in each, so it takes ceil(log_(p+1) n) rounds, that one counted,
// until all n have it: ceil(k/p) - 1 + ceil(log_(p+1) n). For n = 4, k = 3, p = 1: the last block
// leaves the root in round 3, two have it after that round and four after the next: 4 = 3 - 1 + 2
// rounds.
//
// Seconds. For every cut of the network so many copies of the message must pass as there are
// receivers, or racks with receivers, behind it that share nothing: the root's port carries the
// message once at least, each receiver's once, all ports out together n - 1 times, and all ports
// both ways together 2 (n - 1) times, where ports have such a limit; a rack's downlinks carry it
// once, the uplinks of the root's rack once, all uplinks together and the core once per other rack,
// as switches do not replicate. A port carries no more than its paths from or to all other nodes
// together, where each of them has a rate of its own (Network::pairs).
//
// Latency. With p ports those who have a given block, be it the whole message, can grow by at most
// p + 1 times in a round, so at least ceil(log_(p+1) n) rounds carry something. Each of them lasts
// as long as the busiest of its ports and links and the longest of its latencies. The first of
// these add up to what every cut takes at least. The second are at least the network's lowest
// latency, that in a rack if two nodes share one or that between racks if there are several; and
// where there are several, the message changes racks in some round. So latency comes on top of the
// longest cut. It holds where rounds wait for each other, as in MeasureLoad(): without rounds one
// latency may hide behind another. For n = 4 in two racks, 1 us in a rack and 3 us between: 2
// rounds, 4 us. This is the bound in rounds.
//
// The network bound holds for whatever sends messages that flow and then arrive after the latency
// of their path. Not before the time of a cut has the last byte flowed through it, and it arrives a
// latency later: between racks that of the core, else the network's lowest. Over links into a rack
// nothing flows before the first byte can be at one of those who send over them, nor arrives before
// the least of their latencies is over; both come on top. The last byte that leaves the root must
// still come to the farthest node, by whichever way. Above: 3 us.
#include "ir/analysis/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ir/base/count.h"

namespace prepost {
namespace {

/// Collects what each cut takes, the root's port first.
class CutList {
 public:
  explicit CutList(uint64_t bytes) : bytes_(bytes) {}

  /// Without seconds.
  void Add(CutBound cut) {
    cut.is_root = cuts_.empty();
    cut.bytes = static_cast<double>(cut.copies) * static_cast<double>(bytes_);
    cut.seconds = cut.bytes / cut.rate;
    cuts_.push_back(std::move(cut));
  }
  std::vector<CutBound> Take() && {
    std::ranges::stable_sort(cuts_, std::greater(), &CutBound::seconds);
    return std::move(cuts_);
  }

 private:
  const uint64_t bytes_;
  std::vector<CutBound> cuts_;
};

/// What nodes' ports carry at most, each way and both ways together, by node.
struct PortRates {
  std::vector<double> out, in, both;
  bool has_duplex = false;  ///< some port carries less both ways together than each way alone
};

/// A port whose paths all have a rate of their own carries what these do together.
PortRates PortRatesOf(const Network& network) {
  const size_t nodes = network.nodes.size();
  std::vector<double> out(nodes), in(nodes);
  std::vector<size_t> ways_out(nodes), ways_in(nodes);
  for (const Network::Pair& pair : network.pairs) {
    out[pair.from.index()] += pair.rate;
    in[pair.to.index()] += pair.rate;
    ++ways_out[pair.from.index()];
    ++ways_in[pair.to.index()];
  }
  PortRates rates = {.out = std::move(out), .in = std::move(in), .both = {}};
  for (size_t i = 0; i < nodes; ++i) {
    const Network::Node& node = network.nodes[i];
    double& out_rate = rates.out[i];
    double& in_rate = rates.in[i];
    out_rate = ways_out[i] == nodes - 1 ? std::min(out_rate, node.out_rate) : node.out_rate;
    in_rate = ways_in[i] == nodes - 1 ? std::min(in_rate, node.in_rate) : node.in_rate;
    if (node.duplex_rate) {
      out_rate = std::min(out_rate, *node.duplex_rate);
      in_rate = std::min(in_rate, *node.duplex_rate);
      rates.has_duplex |= *node.duplex_rate < out_rate + in_rate;
    }
    rates.both.push_back(
        std::min(node.duplex_rate.value_or(out_rate + in_rate), out_rate + in_rate));
  }
  return rates;
}

/// The cuts between racks; needs two occupied ones.
void AddRackCuts(const Network& network, uint32_t source_rack, const std::vector<bool>& occupied,
                 CutList* cuts) {
  const uint64_t others = network.OccupiedRacks() - 1;
  const Network::Rack* slowest = nullptr;
  double up = 0;
  for (uint32_t r = 0; r < network.racks.size(); ++r) {
    if (!occupied[r]) continue;
    const Network::Rack& rack = network.racks[r];
    up += rack.up_rate;
    if (r == source_rack) continue;
    if (slowest == nullptr || rack.down_rate < slowest->down_rate) slowest = &rack;
  }
  PREPOST_CHECK(slowest != nullptr);
  const auto add = [&](std::string cut, uint64_t copies, double rate) {
    double latency = network.core_latency;
    if (!network.links.empty()) latency = LowestLatency(network);
    cuts->Add({.is_rack = true,
               .cut = std::move(cut),
               .copies = copies,
               .rate = rate,
               .latency = latency});
  };
  add(fmt::format("uplinks of the root's {} {}", network.RackWord(),
                  network.racks[source_rack].name),
      1, network.racks[source_rack].up_rate);
  add(fmt::format("downlinks of {} {}", network.RackWord(), slowest->name), 1, slowest->down_rate);
  add(fmt::format("uplinks of all {}s together", network.RackWord()), others, up);
  if (network.core_rate) add("core", others, *network.core_rate);
}

/// Seconds from the root's rack to each other, by the ways of least latency, over hosts that pass
/// on what they have; infinite to racks without nodes (Dijkstra). Cost: O(racks^2).
std::vector<double> LatenciesFrom(const Network& network, uint32_t source_rack,
                                  const std::vector<bool>& occupied) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const auto racks = static_cast<uint32_t>(network.racks.size());
  std::vector<double> latencies(racks, kNever);
  if (network.links.empty()) {
    for (uint32_t rack = 0; rack < racks; ++rack)
      if (occupied[rack]) latencies[rack] = rack == source_rack ? 0 : network.core_latency;
    return latencies;
  }
  std::vector<bool> is_settled(racks);
  latencies[source_rack] = 0;
  while (true) {
    uint32_t nearest = racks;
    for (uint32_t rack = 0; rack < racks; ++rack) {
      if (is_settled[rack] || latencies[rack] == kNever) continue;
      if (nearest == racks || latencies[rack] < latencies[nearest]) nearest = rack;
    }
    if (nearest == racks) return latencies;
    is_settled[nearest] = true;
    for (uint32_t rack = 0; rack < racks; ++rack) {
      if (!occupied[rack] || is_settled[rack]) continue;
      latencies[rack] =
          std::min(latencies[rack], latencies[nearest] + network.LatencyBetween(nearest, rack));
    }
  }
}

std::vector<bool> OccupiedBy(const Network& network) {
  std::vector<bool> occupied(network.racks.size());
  for (const Network::Node& node : network.nodes) occupied[node.rack] = true;
  return occupied;
}

/// From the root to the node that is farthest from it, by the ways of least latency.
double FarthestLatency(const Network& network, NodeId root) {
  const uint32_t source_rack = network.nodes[root.index()].rack;
  const std::vector<double> latencies = LatenciesFrom(network, source_rack, OccupiedBy(network));
  double farthest = 0, back = std::numeric_limits<double>::infinity();
  bool has_near = false;
  for (uint32_t i = 0; i < network.nodes.size(); ++i) {
    const uint32_t rack = network.nodes[i].rack;
    if (i == root.value) continue;
    if (rack == source_rack) {
      has_near = true;
      continue;
    }
    farthest = std::max(farthest, latencies[rack]);
    back = std::min(back, latencies[rack] + network.LatencyBetween(rack, source_rack));
  }
  return has_near ? std::max(farthest, std::min(network.rack_latency, back)) : farthest;
}

/// What the links into racks, and out of the root's, carry: each copy comes over one of those that
/// are last on the routes there. `latency`: nothing is on such a link before it can be at one of
/// those that send over it, nor does anything that has passed arrive before the least latency from
/// one of them.
void AddPathCuts(const Network& network, uint32_t source_rack, const std::vector<bool>& occupied,
                 CutList* cuts) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const auto racks = static_cast<uint32_t>(network.racks.size());
  const std::vector<double> latencies = LatenciesFrom(network, source_rack, occupied);
  std::vector<uint32_t> counted(network.links.size(), racks);  // at which rack last
  std::vector<double> before(network.links.size()), after(network.links.size());
  double out = 0, nearest = kNever;
  for (uint32_t to = 0; to < racks; ++to) {
    if (!occupied[to] || to == source_rack) continue;
    double in = 0;
    std::vector<uint32_t> lasts;
    for (uint32_t from = 0; from < racks; ++from) {
      if (!occupied[from] || from == to) continue;
      const uint32_t last = network.LinksBetween(from, to).back();
      if (std::exchange(counted[last], to) != to) {
        in += network.links[last].capacity();
        before[last] = after[last] = kNever;
        lasts.push_back(last);
      }
      before[last] = std::min(before[last], latencies[from]);
      after[last] = std::min(after[last], network.LatencyBetween(from, to));
    }
    double latency = kNever;
    for (const uint32_t last : lasts) latency = std::min(latency, before[last] + after[last]);
    cuts->Add({.is_rack = true,
               .cut = fmt::format("paths into {} {}", network.RackWord(), network.racks[to].name),
               .rate = in,
               .latency = latency});
    nearest = std::min(nearest, latencies[to]);
  }
  std::ranges::fill(counted, racks);
  for (uint32_t to = 0; to < racks; ++to) {
    if (!occupied[to] || to == source_rack) continue;
    const uint32_t first = network.LinksBetween(source_rack, to).front();
    if (std::exchange(counted[first], 0) == racks) out += network.links[first].capacity();
  }
  cuts->Add({.is_rack = true,
             .cut = fmt::format("paths out of the root's {} {}", network.RackWord(),
                                network.racks[source_rack].name),
             .rate = out,
             .latency = nearest});
}

}  // namespace

namespace {

/// The lowest latency between two racks that have nodes.
double LowestCrossing(const Network& network) {
  if (network.links.empty()) return network.core_latency;
  const std::vector<bool> occupied = OccupiedBy(network);
  double lowest = std::numeric_limits<double>::infinity();
  for (uint32_t from = 0; from < network.racks.size(); ++from) {
    for (uint32_t to = 0; to < network.racks.size(); ++to) {
      if (from != to && occupied[from] && occupied[to])
        lowest = std::min(lowest, network.LatencyBetween(from, to));
    }
  }
  return lowest;
}

}  // namespace

double LowestLatency(const Network& network) {
  const size_t nodes = network.nodes.size();
  const uint32_t racks = network.OccupiedRacks();
  if (nodes < 2) return 0;
  double lowest = racks < nodes ? network.rack_latency : std::numeric_limits<double>::infinity();
  if (racks == 1) return lowest;
  return std::min(lowest, LowestCrossing(network));
}

NetworkBound BoundNetwork(const Network& network, NodeId root, uint64_t bytes) {
  const std::vector<CutBound> cuts = BoundSeconds(network, root, bytes);
  if (cuts.empty()) return {};
  const double farthest = FarthestLatency(network, root), lowest = LowestLatency(network);
  NetworkBound bound;
  for (const CutBound& cut : cuts) {
    const double latency = cut.is_root ? farthest : cut.is_rack ? cut.latency : lowest;
    if (cut.seconds + latency > bound.seconds)
      bound = {.seconds = cut.seconds + latency, .latency_seconds = latency};
  }
  return bound;
}

RoundBound BoundRounds(uint32_t nodes, uint32_t blocks, uint32_t ports) {
  if (nodes == 1)
    return {.formula = "0", .because = "one node has it all", .therefore = "nothing is sent"};
  uint64_t growths = 0;
  for (uint64_t holders = 1; holders < nodes; holders *= uint64_t{ports} + 1) ++growths;
  const uint64_t last = (uint64_t{blocks} + ports - 1) / ports;
  RoundBound bound = {.rounds = last - 1 + growths};
  const bool is_one = ports == 1;
  const std::string rounds_of_root =
      is_one ? fmt::to_string(blocks) : fmt::format("ceil({} / {})", blocks, ports);
  bound.formula = fmt::format("{} - 1 + ceil(log{} {}) = {}", rounds_of_root, uint64_t{ports} + 1,
                              nodes, bound.rounds);
  bound.because = fmt::format("the root starts {} per round, so it alone has some block for {};",
                              Count(ports, "block"), Count(last - 1, "round"));
  bound.therefore =
      fmt::format("from then on those who have it grow {} at most in a round{}",
                  is_one ? "to twice as many" : fmt::format("{} times", uint64_t{ports} + 1),
                  is_one ? " (Bar-Noy and Kipnis 1994)" : "");
  return bound;
}

namespace {

uint64_t CeilOfQuotient(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

}  // namespace

PortBound BoundPort(const PlanHeader& header) {
  const uint64_t members = header.roles().members();
  const uint64_t part = header.payload.blocks / header.payload.parts;
  if (members == 1) return {.blocks = 0, .because = "one member has it all"};
  switch (header.collective.kind) {
    case CollectiveKind::kMulticast:
    case CollectiveKind::kReduce:
      return {.blocks = part, .because = "the root's: every block once"};
    case CollectiveKind::kAllreduce:
      return {.blocks = CeilOfQuotient(2 * part * (members - 1), header.nodes),
              .because =
                  "each block needs 2(n - 1) messages: n - 1 until one member can have all of "
                  "it, n - 1 until all have (Harary and Schwenk 1974)"};
    case CollectiveKind::kReduceScatter:
      return {.blocks = CeilOfQuotient(members * part * (members - 1), header.nodes),
              .because = "each block needs n - 1 messages until a member has all of it"};
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAlltoall:
      return {.blocks = part * (members - 1),
              .because = "each member must be sent all parts but one"};
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      return {.blocks = part * (members - 1), .because = "the root's: all parts but its own"};
    case CollectiveKind::kBarrier:
      return {.blocks = 0, .because = "nothing is carried"};
  }
  PREPOST_CHECK(false);
  return {};
}

RoundBound BoundRounds(const PlanHeader& header, bool has_ranges) {
  const CollectiveKind kind = header.collective.kind;
  const uint32_t members = header.roles().members();
  if (kind == CollectiveKind::kMulticast || members == 1)
    return BoundRounds(members, header.payload.blocks, header.ports);
  if (kind == CollectiveKind::kReduce && !has_ranges) {
    RoundBound bound = BoundRounds(members, header.payload.blocks, header.ports);
    bound.because = "a multicast backwards in time: " + bound.because;
    return bound;
  }
  uint64_t growths = 0;
  for (uint64_t knowing = 1; knowing < members; knowing *= uint64_t{header.ports} + 1) ++growths;
  const std::string growth = fmt::format(
      "those who know of a member's part grow {} at most in a round",
      header.ports == 1 ? "to twice as many" : fmt::format("{} times", uint64_t{header.ports} + 1));
  const std::string logarithm = fmt::format("ceil(log{} {})", uint64_t{header.ports} + 1, members);
  const PortBound port = BoundPort(header);
  const uint64_t busy = CeilOfQuotient(port.blocks, header.ports);
  if (has_ranges || busy <= growths) {
    return {.rounds = growths,
            .formula = fmt::format("{} = {}", logarithm, growths),
            .because = growth,
            .therefore =
                has_ranges ? "messages carry several blocks: their bytes are bounded below" : ""};
  }
  return {
      .rounds = busy,
      .formula = header.ports == 1
                     ? fmt::format("{} through a port", Count(port.blocks, "block"))
                     : fmt::format("ceil({} / {}) = {}", port.blocks, header.ports, busy),
      .because = port.because,
      .therefore = fmt::format("more than the {} = {} in which {}", logarithm, growths, growth)};
}

uint64_t CeilOf(double rounds) {
  constexpr double kRoundingSlack = 1e-9;
  const double whole = std::ceil(rounds - kRoundingSlack * std::max(rounds, 1.0));
  return whole < 0x1p64 ? static_cast<uint64_t>(whole) : UINT64_MAX;
}

RoundBound BoundLimitedRounds(const std::vector<CutBound>& cuts, const PlanHeader& header,
                              double block_rate) {
  const Collective& it = header.collective;
  const uint32_t per_part = header.payload.blocks / header.payload.parts;
  const CutBound* slowest = nullptr;
  RoundBound bound;
  for (const CutBound& cut : cuts) {
    const double blocks = static_cast<double>(cut.copies) * per_part;
    const uint64_t rounds = CeilOf(blocks * block_rate / cut.rate);
    if (!cut.is_rack || rounds <= bound.rounds) continue;
    slowest = &cut;
    bound.rounds = rounds;
  }
  if (slowest == nullptr) return {};
  const uint64_t copies = slowest->copies;
  const double per_round = slowest->rate / block_rate;
  if (it.kind == CollectiveKind::kMulticast) {
    bound.formula =
        fmt::format("ceil({} x {} / {:.4g}) = {}", copies, per_part, per_round, bound.rounds);
    bound.because = fmt::format(
        "{} must pass the {}{};", Count(per_part, "block"), slowest->cut,
        copies == 1 ? "" : fmt::format(" {} times, as switches do not replicate", copies));
  } else {
    bound.formula =
        fmt::format("ceil({} / {:.4g}) = {}", copies * per_part, per_round, bound.rounds);
    bound.because = fmt::format("{} must go {};", Count(copies * per_part, "block"), slowest->cut);
  }
  bound.therefore = fmt::format(
      "a round, which is a block at {} port, carries {:.4g} of them",
      HasRoot(it.kind) ? "the root's" : fmt::format("node {}'s", it.root.value), per_round);
  return bound;
}

LatencyBound BoundLatency(const Network& network, const PlanHeader& header) {
  LatencyBound bound = {.rounds = BoundRounds(header.roles().members(), 1, header.ports).rounds};
  if (bound.rounds == 0) return bound;
  // Whether members share a rack is not asked for where nodes help: less is bounded.
  bound.crosses = header.collective.helpers == 0 && network.OccupiedRacks() > 1;
  bound.round_seconds = LowestLatency(network);
  bound.crossing_seconds = bound.crosses ? LowestCrossing(network) : 0;
  const auto rounds = static_cast<double>(bound.rounds);
  bound.seconds = bound.crosses ? (rounds - 1) * bound.round_seconds + bound.crossing_seconds
                                : rounds * bound.round_seconds;
  return bound;
}

std::vector<CutBound> BoundSeconds(const Network& network, NodeId root, uint64_t bytes) {
  if (network.nodes.size() == 1) return {};
  const PortRates rates = PortRatesOf(network);
  CutList cuts(bytes);
  double out = 0, both = 0;
  uint32_t slowest = root.value == 0 ? 1 : 0;
  std::vector<bool> occupied(network.racks.size());
  for (uint32_t i = 0; i < network.nodes.size(); ++i) {
    out += rates.out[i];
    both += rates.both[i];
    occupied[network.nodes[i].rack] = true;
    if (i != root.value && rates.in[i] < rates.in[slowest]) slowest = i;
  }
  cuts.Add({.cut = fmt::format("port out of the root, node {}", root.value),
            .rate = rates.out[root.index()]});
  cuts.Add({.cut = fmt::format("port into node {}", slowest), .rate = rates.in[slowest]});
  cuts.Add(
      {.cut = "ports out of all nodes together", .copies = network.nodes.size() - 1, .rate = out});
  if (rates.has_duplex) {
    cuts.Add({.cut = "ports of all nodes together, each copy out and in",
              .copies = network.nodes.size() - 1,
              .rate = both / 2});
  }
  const uint32_t source_rack = network.nodes[root.index()].rack;
  if (std::ranges::count(occupied, true) > 1) {
    AddRackCuts(network, source_rack, occupied, &cuts);
    if (!network.links.empty()) AddPathCuts(network, source_rack, occupied, &cuts);
  }
  return std::move(cuts).Take();
}

}  // namespace prepost
