// SPDX-License-Identifier: Apache-2.0
//
// PlanStats: all analyses of one plan, and the figures that `prepost stats` makes of them, for text
// (stats_print.h) and JSON (stats_json.h) alike.
#ifndef PREPOST_TOOLS_REPORT_STATS_FIGURES_H_
#define PREPOST_TOOLS_REPORT_STATS_FIGURES_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/analysis/bounds.h"
#include "ir/analysis/event_times.h"
#include "ir/analysis/network_load.h"
#include "ir/analysis/traffic.h"

namespace prepost::tools {

/// All analyses of one plan. `network` is Network::Uniform() unless there is a topology; then
/// seconds of `load` are bytes.
struct PlanStats {
  PlanStats(const PlanTables& tables, Network on, std::optional<std::string> topology_name);

  const PlanTables& tables;  ///< not owned
  Network network;
  std::optional<std::string> topology;
  Traffic traffic;
  NetworkLoad load;
  RoundBound bound;
  Depth depth;
  uint64_t critical_blocks = 0;  ///< block messages without slack
  // With a topology:
  std::vector<CutBound> cuts;
  RoundBound limited_bound;  ///< of rounds as links between racks limit them; 0 without racks
  LatencyBound latency_bound;

  /// What NetworkLoad::seconds and NetworkLoad::limited_rounds cannot be below.
  double seconds_bound() const {
    return (cuts.empty() ? 0 : cuts.front().seconds) + latency_bound.seconds;
  }
  uint64_t limited_rounds_bound() const { return std::max(bound.rounds, limited_bound.rounds); }
};

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

/// Of each node.
Spread<uint32_t> QueuePairsOf(const Traffic& traffic);

/// When the receivers have their last block: the first to, the last to; none for one node.
struct LastBlocks {
  uint32_t first_round = 0;
  uint32_t last_round = 0;
  NodeId first;
  NodeId last;
};
std::optional<LastBlocks> LastBlocksOf(const Traffic& traffic);

/// How far `found` is above `bound`.
struct Gap {
  uint64_t above = 0;
  double percent = 0;
};
Gap GapOf(uint64_t found, uint64_t bound);

/// What a plan's time goes into: a resource or, with a topology, the latencies of its rounds.
struct Burden {
  std::optional<Resource> resource;
  double seconds = 0;
  double busy_share = 0;
};
/// The busiest of each kind, busiest first; latency only behind what takes as long.
std::vector<Burden> BurdensOf(const PlanStats& stats);

/// How often blocks go from rack to rack.
struct Crossings {
  uint32_t min = 0;
  double mean = 0;
  uint32_t max = 0;
  uint64_t least = 0;  ///< that any plan needs
};
Crossings CrossingsOf(const PlanStats& stats);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_STATS_FIGURES_H_
