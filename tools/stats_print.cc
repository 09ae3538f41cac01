// SPDX-License-Identifier: Apache-2.0
#include "tools/stats_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>

#include "prepost/ir/count.h"
#include "prepost/ir/utf8.h"

namespace prepost::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRacksMax = 8;  ///< shown in text
constexpr size_t kCutsMax = 3;

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

template <typename Value>
std::string ToText(const Spread<Value>& spread) {
  return fmt::format("min {}, median {}, max {}", spread.min, spread.median, spread.max);
}

template <typename Value>
Json ToJson(const Spread<Value>& spread) {
  return {{"min", spread.min}, {"median", spread.median}, {"max", spread.max}};
}

/// Exact below 2^64; above, the nearest number of 53 bits.
Json ToJson(const ByteSum& bytes) {
  const std::optional<uint64_t> exact = bytes.ToUint64();
  return exact ? Json(*exact) : Json(bytes.ToDouble());
}

/// Of the nodes or racks of one kind.
template <typename Value>
Spread<Value> SpreadOf(const std::vector<ResourceLoad>& loads, Value ResourceLoad::*field) {
  std::vector<Value> values;
  for (const ResourceLoad& load : loads) values.push_back(load.*field);
  return SpreadOf(std::move(values));
}

Spread<uint32_t> QueuePairsOf(const Traffic& traffic) {
  std::vector<uint32_t> values;
  for (const NodeTraffic& node : traffic.nodes) values.push_back(node.queue_pairs);
  return SpreadOf(std::move(values));
}

Spread<uint32_t> BlocksOfChannels(const Traffic& traffic) {
  std::vector<uint32_t> values = traffic.channel_blocks;
  std::erase(values, 0u);
  return SpreadOf(std::move(values));
}

/// When the receivers have their last block: the first to, the last to; none for one node.
struct LastBlocks {
  uint32_t first_round = 0;
  uint32_t last_round = 0;
  NodeId first;
  NodeId last;
};
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

/// How far `found` is above `bound`.
struct Gap {
  uint64_t above = 0;
  double percent = 0;
};
Gap GapOf(uint64_t found, uint64_t bound) {
  Gap gap = {.above = found - std::min(found, bound)};
  if (bound != 0) gap.percent = 100.0 * static_cast<double>(gap.above) / static_cast<double>(bound);
  return gap;
}
std::string ToText(const Gap& gap, uint64_t bound) {
  if (gap.above == 0) return "as few as possible";
  return fmt::format("{} above the lower bound of {} ({:.1f} %)", gap.above, bound, gap.percent);
}

/// What rounds cannot be fewer than where ToRs limit them.
uint64_t LimitedBound(const PlanStats& stats) {
  const PlanHeader& header = stats.tables.plan().header();
  const double block_rate = stats.network.nodes[header.root.index()].out_rate;
  return std::max(stats.bound.rounds, LimitedRounds(stats.cuts, header.message.blocks, block_rate));
}

std::string Seconds(double seconds) {
  if (seconds == 0) return "0 s";
  if (seconds < 1e-3) return fmt::format("{:.3f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.3f} s", seconds);
}

std::string Rate(double bytes_per_second) {
  return fmt::format("{:.4g} Gbit/s", bytes_per_second * 8 / 1e9);
}

void Line(std::ostream& out, const char* label, const std::string& text) {
  out << fmt::format("{:<16}{}\n", label, text);
}

void PrintHeading(const PlanStats& stats, std::ostream& out) {
  const PlanHeader& header = stats.tables.plan().header();
  out << fmt::format("{}: {}, root {}; {} in {} of {}; ready {}, send window {}\n\n",
                     Printable(header.algorithm), Count(header.nodes, "node"), header.root.value,
                     Count(header.message.bytes, "byte"), Count(header.message.blocks, "block"),
                     header.message.block_bytes, ToString(header.ready),
                     header.send_window ? fmt::to_string(*header.send_window) : "none");
}

void PrintSize(const PlanStats& stats, std::ostream& out) {
  const Plan& plan = stats.tables.plan();
  Line(out, "size",
       fmt::format("{} on {}: {} and {}", Count(plan.ops().size(), "op"),
                   Count(plan.channels().size(), "channel"),
                   Count(stats.traffic.blocks, "block transfer"),
                   Count(stats.traffic.credits, "credit")));
  Line(out, "queue pairs",
       ToText(QueuePairsOf(stats.traffic)) + " per node, one per peer and lane");
}

void PrintRounds(const PlanStats& stats, std::ostream& out) {
  const PlanHeader& header = stats.tables.plan().header();
  Line(out, "rounds",
       fmt::format("{}, {}", header.rounds,
                   ToText(GapOf(header.rounds, stats.bound.rounds), stats.bound.rounds)));
  Line(out, "  bound", stats.bound.formula + ": " + stats.bound.because);
  Line(out, "", stats.bound.therefore);
  Line(out, "depth",
       fmt::format("{} and {}, the longest chain of messages that wait for each other",
                   Count(stats.depth.blocks, "block"), Count(stats.depth.credits, "credit")));
  if (stats.depth.blocks < header.rounds) {
    Line(out, "", "less than the rounds: nodes may run ahead of them, and then share ports");
  }
  Line(out, "critical",
       fmt::format("{} of {} {} no slack", stats.critical_blocks,
                   Count(stats.traffic.blocks, "block transfer"),
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
         fmt::format("{} blocks; most bytes at node {}: {}, {}",
                     ToText(SpreadOf(loads, &ResourceLoad::blocks)), top - loads.begin(),
                     Count(top->blocks, "block"), CountBytes(top->bytes)));
  }
}

/// How much of the plan's time a resource is busy, 0 to 1: of its rounds, or of its modelled time.
double BusyShare(const PlanStats& stats, Resource resource) {
  const ResourceLoad& load = stats.load.of(resource);
  if (stats.topology) return stats.load.seconds == 0 ? 0 : load.seconds / stats.load.seconds;
  const PlanHeader& header = stats.tables.plan().header();
  return static_cast<double>(load.blocks) /
         (static_cast<double>(header.rounds) * static_cast<double>(header.ports));
}

void PrintBottleneck(const PlanStats& stats, std::ostream& out) {
  const std::vector<Resource> busiest = Busiest(stats.load);
  if (busiest.empty()) return;
  const auto describe = [&](Resource resource) {
    const ResourceLoad& load = stats.load.of(resource);
    return fmt::format(
        "{}, {}{}, {:.1f} % of the {}", stats.network.Describe(resource),
        Count(load.blocks, "block"), stats.topology ? ", " + Seconds(load.seconds) : "",
        100 * BusyShare(stats, resource), stats.topology ? "modelled time" : "rounds");
  };
  Line(out, "bottleneck", describe(busiest.front()));
  if (busiest.size() == 1) return;
  const double next = stats.load.of(busiest[1]).seconds;
  const double ratio = next == 0 ? 1 : stats.load.of(busiest.front()).seconds / next;
  Line(out, "  next",
       fmt::format("{}; the bottleneck has {:.2f} times {}", describe(busiest[1]), ratio,
                   stats.topology ? "its time" : "its bytes"));
}

struct Crossings {
  uint32_t min = 0;
  double mean = 0;
  uint32_t max = 0;
  uint64_t least = 0;  ///< that any plan needs
};
Crossings CrossingsOf(const PlanStats& stats) {
  const std::vector<uint32_t>& all = stats.load.crossings;
  const double sum = std::accumulate(all.begin(), all.end(), 0.0);
  return {.min = std::ranges::min(all),
          .mean = sum / static_cast<double>(all.size()),
          .max = std::ranges::max(all),
          .least = uint64_t{stats.network.OccupiedRacks()} - 1};
}

void PrintTimes(const PlanStats& stats, std::ostream& out) {
  const uint64_t limited_bound = LimitedBound(stats);
  Line(out, "ToR rounds",
       fmt::format("{}, {}: a round with L blocks on a link for c costs ceil(L / c)",
                   stats.load.limited_rounds,
                   ToText(GapOf(stats.load.limited_rounds, limited_bound), limited_bound)));
  const double bound = stats.cuts.empty() ? 0 : stats.cuts.front().seconds;
  std::string above;
  if (bound > 0) above = fmt::format(", {:.2f} times the lower bound", stats.load.seconds / bound);
  Line(out, "modelled time",
       fmt::format("{}, round after round, credits free{}", Seconds(stats.load.seconds), above));
  for (size_t i = 0; i < std::min(kCutsMax, stats.cuts.size()); ++i) {
    const CutBound& cut = stats.cuts[i];
    Line(out, i == 0 ? "  bound" : "  then",
         fmt::format("{}: {} of the message through the {}, {}", Seconds(cut.seconds),
                     cut.copies == 1 ? "1 copy" : fmt::format("{} copies", cut.copies), cut.cut,
                     Rate(cut.rate)));
  }
}

void PrintRacks(const PlanStats& stats, std::ostream& out) {
  const uint32_t occupied = stats.network.OccupiedRacks();
  Line(out, "topology",
       fmt::format("{}: {} in {}; a round is a block at {}", *stats.topology,
                   Count(stats.network.nodes.size(), "node"), Count(occupied, "rack"),
                   Rate(stats.network.nodes[stats.tables.plan().header().root.index()].out_rate)));
  PrintTimes(stats, out);
  if (occupied < 2) return;
  const Crossings crossings = CrossingsOf(stats);
  Line(out, "crossings",
       fmt::format("of racks per block: min {}, mean {:.1f}, max {}, where {} would do: {}",
                   crossings.min, crossings.mean, crossings.max, crossings.least,
                   stats.load.enters_racks_once ? "each block enters each rack once"
                                                : "blocks enter racks again"));
  const std::vector<ResourceLoad>& up = stats.load.of(ResourceKind::kRackUp);
  const std::vector<ResourceLoad>& down = stats.load.of(ResourceKind::kRackDown);
  std::vector<uint32_t> order(stats.network.racks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](uint32_t rack) {
    return std::max(up[rack].seconds, down[rack].seconds);
  });
  Line(out, "racks", "blocks up (peak per round), blocks down (peak per round)");
  for (size_t i = 0; i < std::min(kRacksMax, order.size()); ++i) {
    const uint32_t rack = order[i];
    out << fmt::format("  {:<14}{} ({}), {} ({})\n", stats.network.racks[rack].name,
                       up[rack].blocks, up[rack].peak_blocks, down[rack].blocks,
                       down[rack].peak_blocks);
  }
  if (order.size() > kRacksMax) {
    out << fmt::format("  ... and {} less busy\n", order.size() - kRacksMax);
  }
}

Json LoadJson(const PlanStats& stats, Resource resource) {
  const ResourceLoad& load = stats.load.of(resource);
  Json json = {
      {"blocks", load.blocks}, {"bytes", ToJson(load.bytes)}, {"peak_blocks", load.peak_blocks}};
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
                        {"lane", channel.lane},
                        {"blocks", stats.traffic.channel_blocks[c]}});
  }
  return channels;
}

Json BottlenecksJson(const PlanStats& stats) {
  Json all = Json::array();
  for (const Resource resource : Busiest(stats.load)) {
    Json json = {{"resource", Name(resource.kind)}, {"index", resource.index}};
    json.update(LoadJson(stats, resource));
    json["busy_share"] = BusyShare(stats, resource);
    all.push_back(std::move(json));
  }
  return all;
}

Json GapJson(uint64_t found, uint64_t bound) {
  const Gap gap = GapOf(found, bound);
  return {{"rounds", gap.above}, {"percent", gap.percent}};
}

Json TopologyJson(const PlanStats& stats) {
  const uint64_t limited_bound = LimitedBound(stats);
  const Crossings crossings = CrossingsOf(stats);
  Json cuts = Json::array();
  for (const CutBound& cut : stats.cuts) {
    cuts.push_back({{"cut", cut.cut},
                    {"copies", cut.copies},
                    {"bytes_per_second", cut.rate},
                    {"seconds", cut.seconds}});
  }
  Json racks = Json::array();
  for (uint32_t r = 0; r < stats.network.racks.size(); ++r) {
    racks.push_back({{"rack", stats.network.racks[r].name},
                     {"up", LoadJson(stats, {ResourceKind::kRackUp, r})},
                     {"down", LoadJson(stats, {ResourceKind::kRackDown, r})}});
  }
  return {{"name", *stats.topology},
          {"limited_rounds", stats.load.limited_rounds},
          {"limited_rounds_bound", limited_bound},
          {"limited_rounds_gap", GapJson(stats.load.limited_rounds, limited_bound)},
          {"modelled_seconds", stats.load.seconds},
          {"cuts", std::move(cuts)},
          {"crossings",
           {{"min", crossings.min},
            {"mean", crossings.mean},
            {"max", crossings.max},
            {"needed", crossings.least},
            {"enters_racks_once", stats.load.enters_racks_once}}},
          {"racks", std::move(racks)}};
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
  bound = BoundRounds(header.nodes, header.message.blocks, header.ports);
  const EventTimes times(of);
  for (uint32_t m = 0; m < of.messages().size(); ++m) {
    if (!of.SendOf(m).is_credit() && times.SlackOf(m) == 0) ++critical_blocks;
  }
  if (topology) cuts = BoundSeconds(network, header.root, header.message.bytes);
}

void PrintStats(const PlanStats& stats, std::ostream& out) {
  PrintHeading(stats, out);
  PrintSize(stats, out);
  PrintRounds(stats, out);
  PrintLoads(stats, out);
  if (stats.topology) PrintRacks(stats, out);
  PrintBottleneck(stats, out);
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

Json StatsJson(const PlanStats& stats) {
  const Plan& plan = stats.tables.plan();
  const PlanHeader& header = plan.header();
  Json json = {{"algorithm", header.algorithm},
               {"nodes", header.nodes},
               {"root", header.root.value},
               {"message_bytes", header.message.bytes},
               {"block_bytes", header.message.block_bytes},
               {"blocks", header.message.blocks},
               {"ready", ToString(header.ready)},
               {"ports", header.ports}};
  json["send_window"] = header.send_window ? Json(*header.send_window) : Json();
  json["ops"] = plan.ops().size();
  json["channels"] = plan.channels().size();
  json["block_transfers"] = stats.traffic.blocks;
  json["credits"] = stats.traffic.credits;
  json["queue_pairs"] = ToJson(QueuePairsOf(stats.traffic));
  json["rounds"] = header.rounds;
  json["rounds_bound"] = {{"rounds", stats.bound.rounds},
                          {"formula", stats.bound.formula},
                          {"because", stats.bound.because},
                          {"therefore", stats.bound.therefore}};
  json["rounds_gap"] = GapJson(header.rounds, stats.bound.rounds);
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

}  // namespace prepost::tools
