// SPDX-License-Identifier: Apache-2.0
#include "tools/report/stats_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "ir/count.h"
#include "ir/utf8.h"
#include "tools/report/plan_text.h"

namespace prepost::tools {
namespace {

constexpr size_t kRacksMax = 8;  ///< shown in text
constexpr size_t kRackNameWidth = 13;
constexpr size_t kCutsMax = 3;

template <typename Value>
std::string ToText(const Spread<Value>& spread) {
  return fmt::format("min {}, median {}, max {}", spread.min, spread.median, spread.max);
}

/// Of the nodes or racks of one kind.
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

std::string SecondsText(double seconds) {
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
  out << PlanText(stats.tables.plan().header()) << "\n\n";
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
  return fmt::format("{}{}, {:.1f} % of the {}", what,
                     stats.topology ? ", " + SecondsText(burden.seconds) : "",
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
       fmt::format("{}: {}, ceil(log{} {}), as those who have a block grow {} at most in one;",
                   SecondsText(latency.seconds), Count(latency.rounds, "round"),
                   uint64_t{header.ports} + 1, header.nodes,
                   header.ports == 1 ? "to twice as many"
                                     : fmt::format("{} times", uint64_t{header.ports} + 1)));
  const std::string crossing = latency.crosses
                                   ? fmt::format(", one in which the message changes racks {}",
                                                 SecondsText(latency.crossing_seconds))
                                   : "";
  Line(out, "",
       fmt::format("each takes {} or more{}", SecondsText(latency.round_seconds), crossing));
}

void PrintTimes(const PlanStats& stats, std::ostream& out) {
  const double bound = stats.seconds_bound();
  std::string above;
  if (bound > 0) above = fmt::format(", {:.2f} times the lower bound", stats.load.seconds / bound);
  Line(
      out, "modelled time",
      fmt::format("{}, round after round, credits free{}", SecondsText(stats.load.seconds), above));
  if (stats.cuts.empty()) return;
  Line(out, "  bound",
       fmt::format("{}: what the first of these cuts takes, and latency", SecondsText(bound)));
  for (size_t i = 0; i < std::min(kCutsMax, stats.cuts.size()); ++i) {
    const CutBound& cut = stats.cuts[i];
    Line(out, i == 0 ? "  cut" : "  then",
         fmt::format("{}: {} of the message through the {}, {}", SecondsText(cut.seconds),
                     cut.copies == 1 ? "1 copy" : fmt::format("{} copies", cut.copies), cut.cut,
                     Rate(cut.rate)));
  }
  PrintLatencyBound(stats, out);
}

void PrintRacks(const PlanStats& stats, std::ostream& out) {
  const uint32_t occupied = stats.network.OccupiedRacks();
  Line(out, "topology",
       fmt::format("{}: {} in {}; a round is a block at {}", *stats.topology,
                   Count(stats.network.nodes.size(), "node"), Count(occupied, "rack"),
                   Rate(stats.network.nodes[stats.tables.plan().header().root.index()].out_rate)));
  PrintLimitedRounds(stats, out);
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

}  // namespace

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

}  // namespace prepost::tools
