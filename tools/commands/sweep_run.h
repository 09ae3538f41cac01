// SPDX-License-Identifier: Apache-2.0
//
// RunSweep: all rows of a sweep, on several threads, in an order that does not depend on them.
#ifndef PREPOST_TOOLS_COMMANDS_SWEEP_RUN_H_
#define PREPOST_TOOLS_COMMANDS_SWEEP_RUN_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "ir/status.h"
#include "tools/flags/sweep.h"
#include "tools/report/sweep_report.h"

namespace prepost::tools {

/// Runs the row of this index. Called on several threads at once.
using SweepFunction = std::function<Result<nlohmann::ordered_json>(size_t)>;

/// Each of `rows` gets its outcome. What is rejected is the row's; any other error ends the sweep,
/// that of the first row that has one. Progress goes to a terminal. `jobs` is 1 or more.
Status RunSweep(const SweepFunction& run, unsigned jobs, std::vector<SweepRow>* rows);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_COMMANDS_SWEEP_RUN_H_
