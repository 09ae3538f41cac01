// SPDX-License-Identifier: Apache-2.0
//
// Compile: a spec becomes a verified plan. The front door of the compiler: the command, tests and
// benchmarks use it.
#ifndef PREPOST_COMPILER_COMPILE_H_
#define PREPOST_COMPILER_COMPILE_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "compiler/spec.h"
#include "ir/plan.h"
#include "ir/verify/verify.h"

namespace prepost {

struct CompileOptions {
  /// Passes to leave out, by name ("ready", "send_window", "thin"). Leaving one out still gives a
  /// valid plan.
  std::vector<std::string> skip_passes;
  /// Dump the plan before or after these passes ("all" for every one) to `log`.
  std::vector<std::string> print_before;
  std::vector<std::string> print_after;
  /// Write each pass's and verification's time, in milliseconds, to `log`.
  bool time_passes = false;
  std::ostream* log = nullptr;  ///< not owned; needed when one of the above asks for output
};

/// Checks the spec, plays the schedule for every node, and runs the passes, verifying after each.
/// Errors: a spec that is wrong (kRejected). A plan that fails verification is a bug of ours,
/// reported as kRejected with the pass's name.
Result<VerifiedPlan> Compile(const Spec& spec, const CompileOptions& options = {});

}  // namespace prepost

#endif  // PREPOST_COMPILER_COMPILE_H_
