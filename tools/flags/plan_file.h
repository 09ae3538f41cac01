// SPDX-License-Identifier: Apache-2.0
//
// The plans that arguments name: in any encoding, flat or rolled, from files, folders of shards and
// pipes.
#ifndef PREPOST_TOOLS_FLAGS_PLAN_FILE_H_
#define PREPOST_TOOLS_FLAGS_PLAN_FILE_H_

#include <string>

#include "ir/plan.h"
#include "ir/rolled/rolled_plan.h"
#include "ir/status.h"
#include "ir/verify/verify.h"

namespace prepost::tools {

/// Reads a plan ("-": stdin), prints warnings to stderr; does not verify it.
Result<Plan> ReadPlanFile(const std::string& path);
/// Reads a rolled plan; the same.
Result<RolledPlan> ReadRolledPlanFile(const std::string& path);
/// Reads a plan and verifies it; the Status holds the first finding and how many more there are.
Result<VerifiedPlan> LoadPlan(const std::string& path);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_PLAN_FILE_H_
