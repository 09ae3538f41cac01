// SPDX-License-Identifier: Apache-2.0
//
// PlanOutput: where a subcommand writes the plan that it made, and in which form.
#ifndef PREPOST_TOOLS_FLAGS_PLAN_OUTPUT_H_
#define PREPOST_TOOLS_FLAGS_PLAN_OUTPUT_H_

#include <string>

#include "ir/plan.h"
#include "ir/rolled/rolled_plan.h"
#include "ir/status.h"
#include "tools/flags/cli_forward.h"

namespace prepost::tools {

struct PlanOutput {
  std::string path = "-";
  std::string encoding = "auto";
  bool dump = false;

  /// -o, --encoding and --dump.
  void AddTo(CLI::App& command);
  /// What does not go together or cannot be written, before the plan is made.
  Status Check() const;
  /// The same for a rolled plan, which has one encoding. Errors: kUsage: another is asked for.
  Status CheckRolled() const;

  Status Write(const Plan& plan) const;
  Status Write(const RolledPlan& plan) const;
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_PLAN_OUTPUT_H_
