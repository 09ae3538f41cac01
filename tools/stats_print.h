// SPDX-License-Identifier: Apache-2.0
//
// Prints what a plan costs and how near it is to what is possible, for people and as JSON.
#ifndef PREPOST_TOOLS_STATS_PRINT_H_
#define PREPOST_TOOLS_STATS_PRINT_H_

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "prepost/ir/bounds.h"
#include "prepost/ir/event_times.h"
#include "prepost/ir/network_load.h"
#include "prepost/ir/traffic.h"

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
  std::vector<CutBound> cuts;    ///< with a topology
};

/// About 30 lines, whatever the plan's size.
void PrintStats(const PlanStats& stats, std::ostream& out);
/// A line per node.
void PrintNodes(const PlanStats& stats, std::ostream& out);
/// All of it: every node, channel and rack.
nlohmann::ordered_json StatsJson(const PlanStats& stats);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_STATS_PRINT_H_
