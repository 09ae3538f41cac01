// SPDX-License-Identifier: Apache-2.0
//
// prepost simulate --seeds: each row of a sweep, or the only one, with one seed after the other.
#ifndef PREPOST_TOOLS_COMMANDS_SIMULATE_SEEDS_H_
#define PREPOST_TOOLS_COMMANDS_SIMULATE_SEEDS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "planning/simulation/seed_runs.h"
#include "planning/simulation/simulate.h"
#include "tools/flags/simulate_flags.h"
#include "tools/report/sweep_report.h"

namespace prepost::tools {

/// What does not go together with --seeds, where that is given. Errors: kUsage.
Status CheckSeeds(const SimulateFlags& flags, const std::vector<SweepAxis>& axes);

/// "seeds 1 to 20".
std::string SeedsText(const SimulateFlags& flags);

/// Simulates one row with one seed; called on several threads at once.
using SimulateRow = std::function<Result<Simulated>(const SimulateFlags&)>;

/// Runs each of `rows` with all seeds of --seeds, and those in which nothing is drawn with the
/// first one only. Each of `found`, one per row, gets its outcome; what is rejected is the row's.
/// Returns what each row that has not failed gave. Errors: any other of a run, kUsage: nothing is
/// drawn in any row.
Result<std::vector<std::optional<SeedRuns>>> SimulateSeeds(const std::vector<SimulateFlags>& rows,
                                                           unsigned jobs,
                                                           const SimulateRow& simulate,
                                                           std::vector<SweepRow>* found);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_COMMANDS_SIMULATE_SEEDS_H_
