// SPDX-License-Identifier: Apache-2.0
//
// What came out of a simulation, as text and as JSON; all of it says that it is modelled, and with
// which profile (docs/simulate.md).
#ifndef PREPOST_TOOLS_REPORT_SIMULATION_PRINT_H_
#define PREPOST_TOOLS_REPORT_SIMULATION_PRINT_H_

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/simulation.h"
#include "tools/report/table.h"

namespace prepost::tools {

/// `is_long`: with each node, and each group.
void PrintSimulation(const sim::Simulation& simulation, bool is_long, std::ostream& out);
/// `has_lists`: with what is there of each node, group and link.
nlohmann::ordered_json SimulationJson(const sim::Simulation& simulation, bool has_lists);

/// "1.5us".
std::string TimeText(emulated::Picoseconds time);
/// ", but --set host.poll=1us, --groups 3"; empty without any. Cut off after `bytes_max`.
std::string DeviationsText(const std::vector<std::string>& deviations,
                           size_t bytes_max = std::string::npos);
inline constexpr size_t kDeviationsShownMax = 200;  ///< in titles of pictures
/// A table of one column per executor.
Table SimulationTable();

/// What is told of several groups alone: times from their starts on, in rows, then group by group
/// where they are few or all are asked for.
void AddGroupTimes(const sim::Simulation& it, Table* table);
void PrintGroups(const sim::Simulation& it, bool is_long, std::ostream& out);
void AddGroupTimesJson(const sim::Simulation& it, const sim::RunTimes& times, bool has_lists,
                       nlohmann::ordered_json* run);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_SIMULATION_PRINT_H_
