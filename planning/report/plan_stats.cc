// SPDX-License-Identifier: Apache-2.0
#include "planning/report/plan_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>
#include <utility>

#include "ir/analysis/collective_bounds.h"
#include "ir/base/count.h"
#include "ir/base/utf8.h"
#include "ir/json/rate_text.h"
#include "planning/text/plan_text.h"

namespace prepost {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
struct Spread {
  Value min = 0;
  Value median = 0;  ///< of an even number: the upper of the two in the middle
  Value max = 0;
};

/// All zero without values.
template <typename Value>
Spread<Value> SpreadOf(std::vector<Value> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  return {values.front(), values[values.size() / 2], values.back()};
}

/// When the receivers have their last block: the first to, the last to; none for one node.
struct LastBlocks {
  uint32_t first_round = 0;
  uint32_t last_round = 0;
  NodeId first;
  NodeId last;
};

/// How far `found` is above `bound`.
struct Gap {
  uint64_t above = 0;
  double percent = 0;
};

/// What a plan's time goes into: a resource or, with a topology, the latencies of its rounds.
struct Burden {
  std::optional<Resource> resource;
  double seconds = 0;
  double busy_share = 0;
};

/// How often blocks go from rack to rack.
struct Crossings {
  uint32_t min = 0;
  double mean = 0;
  uint32_t max = 0;
  uint64_t least = 0;  ///< that any plan needs
};
Crossings CrossingsOf(const PlanStats& stats);

bool IsOfMulticast(const PlanStats& stats) {
  return stats.tables.plan().header().collective.kind == CollectiveKind::kMulticast;
}

/// How much of the plan's time a resource is busy, 0 to 1: of its rounds, or of its modelled time.
double BusyShare(const PlanStats& stats, Resource resource) {
  const ResourceLoad& load = stats.load.of(resource);
  if (stats.topology) return stats.load.seconds == 0 ? 0 : load.seconds / stats.load.seconds;
  const PlanHeader& header = stats.tables.plan().header();
  return static_cast<double>(load.blocks) /
         (static_cast<double>(header.rounds) * static_cast<double>(header.ports));
}

Spread<uint32_t> QueuePairsOf(const Traffic& traffic) {
  std::vector<uint32_t> values;
  for (const NodeTraffic& node : traffic.nodes) values.push_back(node.queue_pairs);
  return SpreadOf(std::move(values));
}

std::optional<LastBlocks> LastBlocksOf(const Traffic& traffic) {
  std::optional<LastBlocks> all;
  for (uint32_t i = 0; i < traffic.nodes.size(); ++i) {
    if (!traffic.nodes[i].last_round) continue;
    const uint32_t round = *traffic.nodes[i].last_round;
    if (!all) all = LastBlocks{round, round, NodeId(i), NodeId(i)};
    if (round < all->first_round) all->first_round = round, all->first = NodeId(i);
    if (round > all->last_round) all->last_round = round, all->last = NodeId(i);
  }
  return all;
}

Gap GapOf(uint64_t found, uint64_t bound) {
  Gap gap = {.above = found - std::min(found, bound)};
  if (bound != 0) gap.percent = 100.0 * static_cast<double>(gap.above) / static_cast<double>(bound);
  return gap;
}

std::vector<Burden> BurdensOf(const PlanStats& stats) {
  std::vector<Burden> burdens;
  for (const Resource resource : Busiest(stats.load)) {
    burdens.push_back({.resource = resource,
                       .seconds = stats.load.of(resource).seconds,
                       .busy_share = BusyShare(stats, resource)});
  }
  const double latency = stats.load.latency_seconds;
  if (!stats.topology || latency == 0) return burdens;
  const auto place =
      std::ranges::find_if(burdens, [&](const Burden& burden) { return burden.seconds < latency; });
  burdens.insert(
      place,
      {.resource = std::nullopt, .seconds = latency, .busy_share = latency / stats.load.seconds});
  return burdens;
}

Crossings CrossingsOf(const PlanStats& stats) {
  const std::vector<uint32_t>& all = stats.load.crossings;
  const double sum = std::accumulate(all.begin(), all.end(), 0.0);
  return {.min = std::ranges::min(all),
          .mean = sum / static_cast<double>(all.size()),
          .max = std::ranges::max(all),
          .least = uint64_t{stats.network.OccupiedRacks()} - 1};
}

template <typename Value>
Json SpreadJson(const Spread<Value>& spread) {
  return {{"min", spread.min}, {"median", spread.median}, {"max", spread.max}};
}

/// Exact below 2^64; above, the nearest number of 53 bits.
Json BytesJson(const ByteSum& bytes) {
  const std::optional<uint64_t> exact = bytes.ToUint64();
  return exact ? Json(*exact) : Json(bytes.ToDouble());
}

Json LoadJson(const PlanStats& stats, Resource resource) {
  const ResourceLoad& load = stats.load.of(resource);
  Json json = {
      {"blocks", load.blocks}, {"bytes", BytesJson(load.bytes)}, {"peak_blocks", load.peak_blocks}};
  if (stats.topology) json["seconds"] = load.seconds;
  return json;
}

Json NodesJson(const PlanStats& stats) {
  Json nodes = Json::array();
  for (uint32_t i = 0; i < stats.traffic.nodes.size(); ++i) {
    const NodeTraffic& node = stats.traffic.nodes[i];
    Json json = {{"node", i}, {"ops", node.ops}, {"queue_pairs", node.queue_pairs}};
    if (stats.topology) json["rack"] = stats.network.nodes[i].rack;
    json["peers_out"] = node.peers_out;
    json["peers_in"] = node.peers_in;
    json["out"] = LoadJson(stats, {ResourceKind::kNodeOut, i});
    json["in"] = LoadJson(stats, {ResourceKind::kNodeIn, i});
    json["last_round"] = node.last_round ? Json(*node.last_round) : Json();
    if (!stats.tables.plan().header().combine.is_none()) {
      json["combined_blocks"] = node.combined_blocks;
      json["combined_bytes"] = node.combined_bytes;
    }
    nodes.push_back(std::move(json));
  }
  return nodes;
}

Json ChannelsJson(const PlanStats& stats) {
  Json channels = Json::array();
  for (size_t c = 0; c < stats.traffic.channel_blocks.size(); ++c) {
    if (stats.traffic.channel_blocks[c] == 0) continue;
    const Channel& channel = stats.tables.plan().channels()[c];
    channels.push_back({{"from", channel.from.value},
                        {"to", channel.to.value},
                        {"lane", NumberOf(channel.lane)},
                        {"blocks", stats.traffic.channel_blocks[c]},
                        {"bytes", stats.traffic.channel_bytes[c]}});
  }
  return channels;
}

Json BottlenecksJson(const PlanStats& stats) {
  Json all = Json::array();
  for (const Burden& burden : BurdensOf(stats)) {
    Json json;
    if (burden.resource) {
      json = {{"resource", Name(burden.resource->kind)}, {"index", burden.resource->index}};
      if (burden.resource->kind == ResourceKind::kLink)
        json["name"] = stats.network.Describe(*burden.resource);
      json.update(LoadJson(stats, *burden.resource));
    } else {
      json = {{"resource", "latency"},
              {"rounds", stats.tables.plan().header().rounds},
              {"seconds", burden.seconds}};
    }
    json["busy_share"] = burden.busy_share;
    all.push_back(std::move(json));
  }
  return all;
}

Json BoundJson(const RoundBound& bound) {
  return {{"rounds", bound.rounds},
          {"formula", bound.formula},
          {"because", bound.because},
          {"therefore", bound.therefore}};
}

/// Without racks there are no links that limit anything.
Json LinksBoundJson(const RoundBound& bound) {
  return bound.rounds == 0 ? Json() : BoundJson(bound);
}

Json LatencyBoundJson(const LatencyBound& bound) {
  Json json = {{"rounds", bound.rounds}, {"round_seconds", bound.round_seconds}};
  json["crossing_seconds"] = bound.crosses ? Json(bound.crossing_seconds) : Json();
  json["seconds"] = bound.seconds;
  return json;
}

Json GapJson(uint64_t found, uint64_t bound) {
  const Gap gap = GapOf(found, bound);
  return {{"rounds", gap.above}, {"percent", gap.percent}};
}

Json TopologyJson(const PlanStats& stats) {
  const uint64_t limited_bound = stats.limited_rounds_bound();
  const Crossings crossings = CrossingsOf(stats);
  Json cuts = Json::array();
  for (const CutBound& cut : stats.cuts) {
    cuts.push_back({{"cut", cut.cut},
                    {"copies", cut.copies},
                    {"bytes_per_second", cut.rate},
                    {"seconds", cut.seconds}});
    if (!IsOfMulticast(stats)) cuts.back()["bytes"] = cut.bytes;
  }
  Json racks = Json::array();
  for (uint32_t r = 0; r < stats.network.racks.size(); ++r) {
    racks.push_back({{"rack", stats.network.racks[r].name},
                     {"up", LoadJson(stats, {ResourceKind::kRackUp, r})},
                     {"down", LoadJson(stats, {ResourceKind::kRackDown, r})}});
  }
  Json paths = Json::array();
  for (uint32_t i = 0; i < stats.network.links.size(); ++i) {
    const Network::Link& link = stats.network.links[i];
    Json path = {{"from", stats.network.EndName(link.from)},
                 {"to", stats.network.EndName(link.to)}};
    path.update(LoadJson(stats, {ResourceKind::kLink, i}));
    paths.push_back(std::move(path));
  }
  Json json = {{"name", *stats.topology},
               {"limited_rounds", stats.load.limited_rounds},
               {"limited_rounds_bound", limited_bound},
               {"limited_rounds_gap", GapJson(stats.load.limited_rounds, limited_bound)},
               {"links_bound", LinksBoundJson(stats.limited_bound)},
               {"modelled_seconds", stats.load.seconds},
               {"latency_seconds", stats.load.latency_seconds},
               {"seconds_bound", stats.seconds_bound()},
               {"latency_bound", LatencyBoundJson(stats.latency_bound)},
               {"network_bound",
                {{"seconds", stats.network_bound.seconds},
                 {"latency_seconds", stats.network_bound.latency_seconds}}},
               {"cuts", std::move(cuts)},
               {"crossings",
                {{"min", crossings.min},
                 {"mean", crossings.mean},
                 {"max", crossings.max},
                 {"needed", IsOfMulticast(stats) ? Json(crossings.least) : Json()},
                 {"enters_racks_once", stats.load.enters_racks_once}}},
               {"racks", std::move(racks)}};
  if (!paths.empty()) json["paths"] = std::move(paths);
  return json;
}

constexpr size_t kRacksMax = 8;  ///< shown in text
constexpr size_t kRackNameWidth = 13;
constexpr size_t kCutsMax = 3;

template <typename Value>
std::string ToText(const Spread<Value>& spread) {
  return fmt::format("min {}, median {}, max {}", spread.min, spread.median, spread.max);
}

/// The spread of blocks over the nodes or racks of one kind.
Spread<uint64_t> BlocksOf(const std::vector<ResourceLoad>& loads) {
  std::vector<uint64_t> values;
  for (const ResourceLoad& load : loads) values.push_back(load.blocks);
  return SpreadOf(std::move(values));
}

Spread<uint32_t> BlocksOfChannels(const Traffic& traffic) {
  std::vector<uint32_t> values = traffic.channel_blocks;
  std::erase(values, 0u);
  return SpreadOf(std::move(values));
}

std::string ToText(const Gap& gap, uint64_t bound) {
  if (gap.above == 0) return "as few as possible";
  return fmt::format("{} above the lower bound of {} ({:.1f} %)", gap.above, bound, gap.percent);
}

/// Blocks that the busiest port carries one way.
uint64_t BusiestPortOf(const PlanStats& stats) {
  uint64_t most = 0;
  for (const ResourceKind kind : {ResourceKind::kNodeOut, ResourceKind::kNodeIn}) {
    for (const ResourceLoad& load : stats.load.of(kind)) most = std::max(most, load.blocks);
  }
  return most;
}

std::string BlocksGapText(uint64_t found, uint64_t bound) {
  if (found <= bound) return "as few as possible";
  return fmt::format(
      "{:.2f} times the bound",
      static_cast<double>(found) / static_cast<double>(std::max<uint64_t>(bound, 1)));
}

void Line(std::ostream& out, const char* label, const std::string& text) {
  out << fmt::format("{:<16}{}\n", label, text);
}

void PrintHeading(const PlanStats& stats, std::ostream& out) {
  out << PlanText(stats.tables.plan().header()) << "\n\n";
}

void PrintSize(const PlanStats& stats, std::ostream& out) {
  const Plan& plan = stats.tables.plan();
  Line(out, "size",
       fmt::format("{} on {}: {} and {}", Count(plan.ops().size(), "op"),
                   Count(plan.channels().size(), "channel"),
                   Count(stats.traffic.blocks, "block transfer"),
                   Count(stats.traffic.credits, "credit")));
  if (stats.has_ranges()) {
    Line(out, "",
         fmt::format("in {}: some carry several blocks", Count(stats.traffic.messages, "message")));
  }
  if (stats.traffic.empty_blocks != 0) {
    Line(out, "",
         fmt::format("{} of the {} {} empty: each part has as many blocks as the largest",
                     stats.traffic.empty_blocks, Count(stats.traffic.blocks, "block transfer"),
                     stats.traffic.empty_blocks == 1 ? "is" : "are"));
  }
  Line(out, "queue pairs",
       ToText(QueuePairsOf(stats.traffic)) + " per node, one per peer and lane");
}

/// Of collectives other than multicast: what a port carries beside what it must, and what hosts
/// combine.
void PrintCollective(const PlanStats& stats, std::ostream& out) {
  const PlanHeader& header = stats.tables.plan().header();
  if (header.collective.kind == CollectiveKind::kMulticast) return;
  const uint64_t busiest = BusiestPortOf(stats);
  if (header.payload.bytes != 0) {
    Line(out, "through a port",
         fmt::format("{} one way at most, {}", Count(busiest, "block"),
                     BlocksGapText(busiest, stats.port_bound.blocks)));
    if (stats.bound.because != stats.port_bound.because)
      Line(out, "  bound",
           fmt::format("{}: {}", stats.port_bound.blocks, stats.port_bound.because));
  }
  if (header.combine.is_none() || header.payload.bytes == 0) return;
  uint64_t blocks = 0;
  for (const NodeTraffic& node : stats.traffic.nodes) blocks += node.combined_blocks;
  const auto most = std::ranges::max_element(stats.traffic.nodes, {}, &NodeTraffic::combined_bytes);
  Line(out, "combines",
       fmt::format("{}; most bytes at node {}: {}, {}", Count(blocks, "block"),
                   most - stats.traffic.nodes.begin(), Count(most->combined_blocks, "block"),
                   Count(most->combined_bytes, "byte")));
  Line(out, "scratch",
       fmt::format("{} of {} at each node", Count(header.scratch, "buffer"),
                   Count(header.payload.block_bytes, "byte")));
  Line(out, "expressions",
       fmt::format("{} different over {}; of block 0, by its fingerprint {:016x}:",
                   stats.expressions.different, Count(header.payload.blocks, "block"),
                   stats.expression_fingerprint));
  Line(out, "", stats.expression);
}

void PrintRounds(const PlanStats& stats, std::ostream& out) {
  const PlanHeader& header = stats.tables.plan().header();
  Line(out, "rounds",
       fmt::format("{}, {}", header.rounds,
                   ToText(GapOf(header.rounds, stats.bound.rounds), stats.bound.rounds)));
  Line(out, "  bound", stats.bound.formula + ": " + stats.bound.because);
  if (!stats.bound.therefore.empty()) Line(out, "", stats.bound.therefore);
  Line(out, "depth",
       fmt::format("{} and {}, the longest chain of messages that wait for each other",
                   Count(stats.depth.blocks, "block"), Count(stats.depth.credits, "credit")));
  if (stats.depth.blocks < header.rounds) {
    Line(out, "", "less than the rounds: nodes may run ahead of them, and then share ports");
  }
  const std::string transfers = stats.has_ranges() ? Count(stats.traffic.messages, "message")
                                                   : Count(stats.traffic.blocks, "block transfer");
  Line(out, "critical",
       fmt::format("{} of {} {} no slack", stats.critical_blocks, transfers,
                   stats.critical_blocks == 1 ? "has" : "have"));
  const std::optional<LastBlocks> last = LastBlocksOf(stats.traffic);
  if (!last) return;
  Line(out, "last block",
       fmt::format("from round {} (node {}) to round {} (node {}): skew {}", last->first_round,
                   last->first.value, last->last_round, last->last.value,
                   Count(last->last_round - last->first_round, "round")));
}

/// What the busiest has the most of; blocks where there are no bytes.
std::pair<ByteSum, uint64_t> BytesAndBlocks(const ResourceLoad& load) {
  return {load.bytes, load.blocks};
}

void PrintLoads(const PlanStats& stats, std::ostream& out) {
  const Traffic& traffic = stats.traffic;
  if (traffic.blocks == 0) return;
  const auto most = std::ranges::max_element(traffic.channel_blocks);
  const Channel& busiest =
      stats.tables.plan().channels()[static_cast<size_t>(most - traffic.channel_blocks.begin())];
  Line(out, "channels",
       fmt::format("{} blocks on those that carry any; most on {}>{}",
                   ToText(BlocksOfChannels(traffic)), busiest.from.value, busiest.to.value));
  for (const auto& [kind, label] : {std::pair(ResourceKind::kNodeOut, "out of nodes"),
                                    std::pair(ResourceKind::kNodeIn, "into nodes")}) {
    const std::vector<ResourceLoad>& loads = stats.load.of(kind);
    const auto top = std::ranges::max_element(loads, {}, BytesAndBlocks);
    Line(out, label,
         fmt::format("{} blocks; most bytes at node {}: {}, {}", ToText(BlocksOf(loads)),
                     top - loads.begin(), Count(top->blocks, "block"), CountBytes(top->bytes)));
  }
}

std::string Describe(const PlanStats& stats, const Burden& burden) {
  const std::string what =
      burden.resource
          ? fmt::format("{}, {}", stats.network.Describe(*burden.resource),
                        Count(stats.load.of(*burden.resource).blocks, "block"))
          : fmt::format("latency, {}", Count(stats.tables.plan().header().rounds, "round"));
  if (stats.has_ranges()) return what;  // rounds are of different lengths
  return fmt::format("{}{}, {:.1f} % of the {}", what,
                     stats.topology ? ", " + WriteLatency(burden.seconds) : "",
                     100 * burden.busy_share, stats.topology ? "modelled time" : "rounds");
}

void PrintBottleneck(const PlanStats& stats, std::ostream& out) {
  const std::vector<Burden> burdens = BurdensOf(stats);
  if (burdens.empty()) return;
  Line(out, "bottleneck", Describe(stats, burdens.front()));
  if (burdens.size() == 1) return;
  const double next = burdens[1].seconds;
  std::string ratio;
  if (next != 0 || burdens.front().seconds == 0) {
    ratio = fmt::format("; the bottleneck has {:.2f} times {}",
                        next == 0 ? 1 : burdens.front().seconds / next,
                        stats.topology ? "its time" : "its bytes");
  }
  Line(out, "  next", Describe(stats, burdens[1]) + ratio);
}

void PrintLimitedRounds(const PlanStats& stats, std::ostream& out) {
  const uint64_t bound = stats.limited_rounds_bound();
  Line(out, "ToR rounds",
       fmt::format("{}, {}: a round with L blocks on a link for c costs ceil(L / c)",
                   stats.load.limited_rounds,
                   ToText(GapOf(stats.load.limited_rounds, bound), bound)));
  const RoundBound& links = stats.limited_bound;
  if (links.rounds == 0) return;
  Line(out, "  bound",
       fmt::format("{}{}: {}",
                   links.rounds > stats.bound.rounds
                       ? ""
                       : fmt::format("{}, as of rounds; of links alone ", stats.bound.rounds),
                   links.formula, links.because));
  Line(out, "", links.therefore);
}

void PrintLatencyBound(const PlanStats& stats, std::ostream& out) {
  const LatencyBound& latency = stats.latency_bound;
  const PlanHeader& header = stats.tables.plan().header();
  if (latency.rounds == 0) return;
  Line(out, "  latency",
       fmt::format("{}: {}, ceil(log{} {}), as those who {} grow {} at most in one;",
                   WriteLatency(latency.seconds), Count(latency.rounds, "round"),
                   uint64_t{header.ports} + 1,
                   IsOfMulticast(stats) ? header.nodes : header.roles().members(),
                   IsOfMulticast(stats) ? "have a block" : "know of a member's part",
                   header.ports == 1 ? "to twice as many"
                                     : fmt::format("{} times", uint64_t{header.ports} + 1)));
  const std::string crossing =
      latency.crosses
          ? fmt::format(", one in which {} changes {}s {}",
                        IsOfMulticast(stats) ? "the message" : "a block", stats.network.RackWord(),
                        WriteLatency(latency.crossing_seconds))
          : "";
  Line(out, "",
       fmt::format("each takes {} or more{}", WriteLatency(latency.round_seconds), crossing));
}

/// Members are alike, mostly, and so are their ports: of those that carry the same, one is named.
void PrintCollectiveCuts(const PlanStats& stats, std::ostream& out) {
  size_t shown = 0;
  for (size_t i = 0; i < stats.cuts.size() && shown < kCutsMax; ++shown) {
    const CutBound& cut = stats.cuts[i];
    const size_t first = i;
    while (i < stats.cuts.size() && stats.cuts[i].seconds == cut.seconds &&
           stats.cuts[i].rate == cut.rate)
      ++i;
    const size_t more = i - first - 1;
    Line(out, shown == 0 ? "  cut" : "  then",
         fmt::format("{}: {}{}, {:.0f} bytes at {}", WriteLatency(cut.seconds), cut.cut,
                     more == 0 ? "" : fmt::format(" and {} more", more), cut.bytes,
                     WriteRate(cut.rate)));
  }
}

void PrintTimes(const PlanStats& stats, std::ostream& out) {
  const double bound = stats.seconds_bound();
  std::string above;
  if (bound > 0)
    above = fmt::format(", {:.2f} times the bound in rounds", stats.load.seconds / bound);
  Line(out, "modelled time",
       fmt::format("{}, round after round, credits free{}", WriteLatency(stats.load.seconds),
                   above));
  if (stats.cuts.empty()) return;
  Line(out, "  bound",
       fmt::format("{} in rounds: what the first of these cuts takes, and latency",
                   WriteLatency(bound)));
  Line(out, "  network bound",
       fmt::format("{}, also without rounds: what simulate compares with",
                   WriteLatency(stats.network_bound.seconds)));
  if (!IsOfMulticast(stats)) {
    PrintCollectiveCuts(stats, out);
    return PrintLatencyBound(stats, out);
  }
  for (size_t i = 0; i < std::min(kCutsMax, stats.cuts.size()); ++i) {
    const CutBound& cut = stats.cuts[i];
    Line(out, i == 0 ? "  cut" : "  then",
         fmt::format("{}: {} of the message through the {}, {}", WriteLatency(cut.seconds),
                     cut.copies == 1 ? "1 copy" : fmt::format("{} copies", cut.copies), cut.cut,
                     WriteRate(cut.rate)));
  }
  PrintLatencyBound(stats, out);
}

void PrintPaths(const PlanStats& stats, std::ostream& out) {
  const std::vector<ResourceLoad>& loads = stats.load.of(ResourceKind::kLink);
  std::vector<uint32_t> used;
  for (uint32_t link = 0; link < loads.size(); ++link) {
    if (loads[link].blocks != 0) used.push_back(link);
  }
  std::ranges::stable_sort(used, std::greater(),
                           [&](uint32_t link) { return loads[link].seconds; });
  Line(out, "paths",
       fmt::format("{} of {} are used, busiest first: blocks (peak per round), what they take",
                   used.size(), loads.size()));
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(kRacksMax, used.size()); ++i) {
    const Network::Link& link = stats.network.links[used[i]];
    names.push_back(Printable(
        fmt::format("{} to {}", stats.network.EndName(link.from), stats.network.EndName(link.to))));
  }
  size_t width = kRackNameWidth;
  for (const std::string& name : names) width = std::max(width, name.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const ResourceLoad& load = loads[used[i]];
    out << fmt::format("  {:<{}} {} ({}), {} at {}\n", names[i], width, load.blocks,
                       load.peak_blocks, WriteLatency(load.seconds),
                       WriteRate(stats.network.links[used[i]].capacity()));
  }
  if (used.size() > kRacksMax)
    out << fmt::format("  ... and {} less busy\n", used.size() - kRacksMax);
}

/// Of a multicast beside how many would do.
std::string CrossingsText(const PlanStats& stats) {
  const Crossings crossings = CrossingsOf(stats);
  const std::string word = stats.network.RackWord();
  std::string text = fmt::format("of {}s per block: min {}, mean {:.1f}, max {}", word,
                                 crossings.min, crossings.mean, crossings.max);
  if (!IsOfMulticast(stats)) return text;
  return fmt::format("{}, where {} would do: {}", text, crossings.least,
                     stats.load.enters_racks_once
                         ? fmt::format("each block enters each {} once", word)
                         : fmt::format("blocks enter {}s again", word));
}

void PrintRacks(const PlanStats& stats, std::ostream& out) {
  const uint32_t occupied = stats.network.OccupiedRacks();
  const std::string word = stats.network.RackWord();
  Line(
      out, "topology",
      fmt::format(
          "{}: {} in {}; a round is a block at {}", *stats.topology,
          Count(stats.network.nodes.size(), "node"), Count(occupied, word),
          WriteRate(
              stats.network.nodes[stats.tables.plan().header().collective.root.index()].out_rate)));
  PrintLimitedRounds(stats, out);
  PrintTimes(stats, out);
  if (occupied < 2) return;
  Line(out, "crossings", CrossingsText(stats));
  if (!stats.network.links.empty()) return PrintPaths(stats, out);
  const std::vector<ResourceLoad>& up = stats.load.of(ResourceKind::kRackUp);
  const std::vector<ResourceLoad>& down = stats.load.of(ResourceKind::kRackDown);
  std::vector<uint32_t> order(stats.network.racks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](uint32_t rack) {
    return std::max(up[rack].seconds, down[rack].seconds);
  });
  size_t width = kRackNameWidth;
  for (size_t i = 0; i < std::min(kRacksMax, order.size()); ++i)
    width = std::max(width, stats.network.racks[order[i]].name.size());
  Line(out, "racks", "busiest first: blocks up (peak per round), blocks down (peak per round)");
  for (size_t i = 0; i < std::min(kRacksMax, order.size()); ++i) {
    const uint32_t rack = order[i];
    out << fmt::format("  {:<{}} {} ({}), {} ({})\n", Printable(stats.network.racks[rack].name),
                       width, up[rack].blocks, up[rack].peak_blocks, down[rack].blocks,
                       down[rack].peak_blocks);
  }
  if (order.size() > kRacksMax) {
    out << fmt::format("  ... and {} less busy\n", order.size() - kRacksMax);
  }
}

void PrintNodes(const PlanStats& stats, std::ostream& out) {
  out << fmt::format("\n{:>8} {:>8} {:>6} {:>9} {:>9} {:>15} {:>15} {:>10}\n", "node", "ops", "QPs",
                     "blocks in", "out", "bytes in", "out", "last round");
  for (uint32_t i = 0; i < stats.traffic.nodes.size(); ++i) {
    const NodeTraffic& node = stats.traffic.nodes[i];
    const ResourceLoad& in = stats.load.of({ResourceKind::kNodeIn, i});
    const ResourceLoad& sent = stats.load.of({ResourceKind::kNodeOut, i});
    out << fmt::format("{:>8} {:>8} {:>6} {:>9} {:>9} {:>15} {:>15} {:>10}\n", i, node.ops,
                       node.queue_pairs, in.blocks, sent.blocks, in.bytes.ToText(),
                       sent.bytes.ToText(),
                       node.last_round ? fmt::to_string(*node.last_round) : "-");
  }
}

}  // namespace

PlanStats::PlanStats(const PlanTables& of, Network on, std::optional<std::string> topology_name)
    : tables(of),
      network(std::move(on)),
      topology(std::move(topology_name)),
      traffic(MeasureTraffic(of)),
      load(MeasureLoad(of, network)),
      depth(DepthOf(of)) {
  const PlanHeader& header = of.plan().header();
  bound = BoundRounds(header, has_ranges());
  port_bound = BoundPort(header);
  if (!header.combine.is_none()) {
    constexpr size_t kExpressionBytesMax = 100;
    Expressions all(of);
    expressions = all.CountWanted();
    expression = all.TextOf(expressions.first, kExpressionBytesMax);
    expression_fingerprint = all.FingerprintOf(expressions.first);
  }
  const EventTimes times(of);
  for (uint32_t m = 0; m < of.messages().size(); ++m) {
    if (!of.SendOf(m).is_credit() && times.SlackOf(m) == 0) ++critical_blocks;
  }
  if (!topology) return;
  cuts = BoundSeconds(network, header);
  limited_bound =
      BoundLimitedRounds(cuts, header, network.nodes[header.collective.root.index()].out_rate);
  latency_bound = BoundLatency(network, header);
  network_bound = BoundNetwork(network, header);
}

void Print(const PlanStats& stats, bool per_node, std::ostream& out) {
  PrintHeading(stats, out);
  PrintSize(stats, out);
  PrintRounds(stats, out);
  PrintCollective(stats, out);
  PrintLoads(stats, out);
  if (stats.topology) PrintRacks(stats, out);
  PrintBottleneck(stats, out);
  if (per_node) PrintNodes(stats, out);
}

Json ToJson(const PlanStats& stats) {
  const Plan& plan = stats.tables.plan();
  const PlanHeader& header = plan.header();
  Json json = PlanJson(header);
  json["ports"] = header.ports;
  json["ops"] = plan.ops().size();
  json["channels"] = plan.channels().size();
  json["block_transfers"] = stats.traffic.blocks;
  if (header.payload.is_uneven()) json["empty_block_transfers"] = stats.traffic.empty_blocks;
  json["credits"] = stats.traffic.credits;
  json["queue_pairs"] = SpreadJson(QueuePairsOf(stats.traffic));
  json["rounds"] = header.rounds;
  json["rounds_bound"] = BoundJson(stats.bound);
  json["rounds_gap"] = GapJson(header.rounds, stats.bound.rounds);
  if (header.collective.kind != CollectiveKind::kMulticast) {
    json["messages"] = stats.traffic.messages;
    json["port_blocks"] = BusiestPortOf(stats);
    json["port_bound"] = {{"blocks", stats.port_bound.blocks},
                          {"because", stats.port_bound.because}};
  }
  if (!header.combine.is_none()) {
    json["expressions"] = {{"different", stats.expressions.different},
                           {"first", stats.expression},
                           {"fingerprint", fmt::format("{:016x}", stats.expression_fingerprint)}};
  }
  json["depth"] = {{"blocks", stats.depth.blocks}, {"credits", stats.depth.credits}};
  json["critical_block_transfers"] = stats.critical_blocks;
  const std::optional<LastBlocks> last = LastBlocksOf(stats.traffic);
  json["last_block"] = last ? Json{{"first_round", last->first_round},
                                   {"first_node", last->first.value},
                                   {"last_round", last->last_round},
                                   {"last_node", last->last.value},
                                   {"skew", last->last_round - last->first_round}}
                            : Json();
  json["busiest"] = BottlenecksJson(stats);
  if (stats.topology) json["topology"] = TopologyJson(stats);
  json["per_node"] = NodesJson(stats);
  json["per_channel"] = ChannelsJson(stats);
  return json;
}

}  // namespace prepost
