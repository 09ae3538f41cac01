// SPDX-License-Identifier: Apache-2.0
//
// What the time of a simulation went to (causes.h), in text and JSON: the last node's by cause, the
// critical path, and what comes after it (docs/simulate.md).
#ifndef PREPOST_PLANNING_SIMULATION_CAUSES_REPORT_H_
#define PREPOST_PLANNING_SIMULATION_CAUSES_REPORT_H_

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>

#include "sim/simulation.h"

namespace prepost {

/// Prints the causes of a simulation that has trails; `is_long`: each node's time, too. Prints
/// nothing for one that has none.
void PrintCauses(const sim::Simulation& simulation, bool is_long, std::ostream& out);

/// Adds to `run`, the JSON of one executor, what its trail says; of several groups to its "groups",
/// too. `has_lists` as in ToJson(const sim::Simulation&).
void AddCausesJson(const sim::Simulation& simulation, bool is_offload, bool has_lists,
                   nlohmann::ordered_json* run);

}  // namespace prepost

#endif  // PREPOST_PLANNING_SIMULATION_CAUSES_REPORT_H_
