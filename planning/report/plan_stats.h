// SPDX-License-Identifier: Apache-2.0
//
// PlanStats: what `prepost stats` reports: all analyses of one plan, as text and as JSON.
#ifndef PREPOST_PLANNING_REPORT_PLAN_STATS_H_
#define PREPOST_PLANNING_REPORT_PLAN_STATS_H_

#include <algorithm>
#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/analysis/bounds.h"
#include "ir/analysis/event_times.h"
#include "ir/analysis/expressions.h"
#include "ir/analysis/network_load.h"
#include "ir/analysis/traffic.h"

namespace prepost {

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
  PortBound port_bound;
  Expressions::Count expressions;  ///< where the plan combines
  std::string expression;          ///< that of the first block
  uint64_t expression_fingerprint = 0;
  Depth depth;
  uint64_t critical_blocks = 0;  ///< block messages without slack
  // With a topology:
  std::vector<CutBound> cuts;
  RoundBound limited_bound;  ///< of rounds as links between racks limit them; 0 without racks
  LatencyBound latency_bound;
  NetworkBound network_bound;

  /// In rounds: what NetworkLoad::seconds and NetworkLoad::limited_rounds cannot be below.
  double seconds_bound() const {
    return (cuts.empty() ? 0 : cuts.front().seconds) + latency_bound.seconds;
  }
  /// Whether messages carry several blocks.
  bool has_ranges() const { return traffic.messages != traffic.blocks; }
  uint64_t limited_rounds_bound() const { return std::max(bound.rounds, limited_bound.rounds); }
};

/// `per_node`: and a table of the nodes.
void Print(const PlanStats& stats, bool per_node, std::ostream& out);
/// All of it, with every node and channel.
nlohmann::ordered_json ToJson(const PlanStats& stats);

}  // namespace prepost

#endif  // PREPOST_PLANNING_REPORT_PLAN_STATS_H_
