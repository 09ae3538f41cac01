// SPDX-License-Identifier: Apache-2.0
//
// What came out of a simulation, as text and as JSON; all of it says that it is modelled, and with
// which profile (docs/simulate.md).
#ifndef PREPOST_PLANNING_SIMULATION_SIMULATION_REPORT_H_
#define PREPOST_PLANNING_SIMULATION_SIMULATION_REPORT_H_

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/trace/trace_file.h"
#include "sim/simulation.h"

namespace prepost {

/// `is_long`: with each node, and each group.
void Print(const sim::Simulation& simulation, bool is_long, std::ostream& out);
/// `has_lists`: with what is there of each node, group and link.
nlohmann::ordered_json ToJson(const sim::Simulation& simulation, bool has_lists);

/// What stands above the figures: the profile, what differs from it, and what is sent.
void PrintHead(const sim::Simulation& simulation, std::ostream& out);
/// "all nodes have it after".
const char* CompletionText(const sim::Simulation& simulation);
/// Whether all groups are of multicasts.
bool IsMulticast(const sim::Simulation& simulation);
/// All messages' bytes per second; 0 where no time passes, or there are none.
double BandwidthOf(const sim::Simulation& simulation, const sim::RunTimes& times);

/// What the hosts of the only group did, as traces say it.
std::vector<TraceHost> HostsOf(const sim::Simulation& simulation, bool is_offload);

/// "with the barrier, 70us before both", of GainWithBarrier().
std::string BarrierText(const sim::Simulation& simulation);
/// "1.5us".
std::string TimeText(sim::Picoseconds time);
/// ", but --set host.poll=1us, --groups 3"; empty without any. Cut off after `bytes_max`.
std::string DeviationsText(const std::vector<std::string>& deviations,
                           size_t bytes_max = std::string::npos);
inline constexpr size_t kDeviationsShownMax = 200;  ///< in titles of pictures

}  // namespace prepost

#endif  // PREPOST_PLANNING_SIMULATION_SIMULATION_REPORT_H_
