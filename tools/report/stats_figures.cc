// SPDX-License-Identifier: Apache-2.0
#include "tools/report/stats_figures.h"

#include <numeric>

namespace prepost::tools {
namespace {

/// How much of the plan's time a resource is busy, 0 to 1: of its rounds, or of its modelled time.
double BusyShare(const PlanStats& stats, Resource resource) {
  const ResourceLoad& load = stats.load.of(resource);
  if (stats.topology) return stats.load.seconds == 0 ? 0 : load.seconds / stats.load.seconds;
  const PlanHeader& header = stats.tables.plan().header();
  return static_cast<double>(load.blocks) /
         (static_cast<double>(header.rounds) * static_cast<double>(header.ports));
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
  if (!topology) return;
  cuts = BoundSeconds(network, header.root, header.message.bytes);
  limited_bound =
      BoundLimitedRounds(cuts, header.message.blocks, network.nodes[header.root.index()].out_rate);
  latency_bound = BoundLatency(network, header.ports);
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

}  // namespace prepost::tools
