// SPDX-License-Identifier: Apache-2.0
//
// Sweeps of prepost simulate: each row is what the command alone prints that has its values.
#ifndef PREPOST_TOOLS_COMMANDS_SIMULATE_SWEEP_H_
#define PREPOST_TOOLS_COMMANDS_SIMULATE_SWEEP_H_

#include "ir/base/status.h"
#include "planning/simulation/simulate.h"
#include "tools/flags/simulate_flags.h"

namespace prepost::tools {

/// Errors (kUsage): what only goes with --sweep and stands alone; files that cannot be written.
Status CheckSweepFlags(const SweepFlags& flags);

/// Runs all rows and writes what --json, --csv and --plot ask for, or a table. Errors: kUsage: what
/// is wrong with the command, before anything is run; kRejected: no row can be simulated.
Status SimulateSweep(const SimulateFlags& flags, SimulateContext* context);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_COMMANDS_SIMULATE_SWEEP_H_
