// SPDX-License-Identifier: Apache-2.0
//
// The rolled plan file: reading and writing JSON as ir/json/rolled_plan.schema.json describes it.
// Reading streams and is bounded, and checks the form (CheckRolled()); whether the plan is right is
// for VerifyRolled(). Writing is canonical: the same plan gives the same bytes, and reading them
// back gives the same plan.
#ifndef PREPOST_IR_JSON_ROLLED_PLAN_JSON_H_
#define PREPOST_IR_JSON_ROLLED_PLAN_JSON_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "ir/rolled/rolled_plan.h"

namespace prepost {

/// The "format" of the file, which distinguishes it from a flat plan.
inline constexpr const char* kRolledPlanFormat = "prepost.rolled_plan";

/// Reads one rolled plan from `in`; the rest as ReadPlan().
Result<RolledPlan> ReadRolledPlan(std::istream& in, const std::string& name,
                                  std::vector<std::string>* warnings = nullptr);

/// Writes `plan`, one slot a line. The caller checks `out` for I/O errors.
void WriteRolledPlan(const RolledPlan& plan, std::ostream& out);

}  // namespace prepost

#endif  // PREPOST_IR_JSON_ROLLED_PLAN_JSON_H_
