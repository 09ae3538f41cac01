// SPDX-License-Identifier: Apache-2.0
//
// What the time of a simulation went to, in text and JSON: the last node's by cause, and the critical
// path (docs/simulate.md).
#ifndef PREPOST_TOOLS_CAUSES_PRINT_H_
#define PREPOST_TOOLS_CAUSES_PRINT_H_

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "prepost/backends/emulated/time_trail.h"
#include "prepost/backends/emulated/virtual_time.h"
#include "tools/simulation.h"

namespace prepost::tools {

/// Of a simulation that has trails; `per_node`: each node's time, too. Prints nothing of one that has
/// none.
void PrintCauses(const Simulation& simulation, bool per_node, std::ostream& out);

/// Adds to `run`, the JSON of one executor, what its trail says. `completions` are by node;
/// `has_lists` as in SimulationJson().
void AddCausesJson(const Plan& plan, const emulated::TimeTrail& trail,
                   const std::vector<emulated::Picoseconds>& completions, bool has_lists,
                   nlohmann::ordered_json* run);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_CAUSES_PRINT_H_
