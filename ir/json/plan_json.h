// SPDX-License-Identifier: Apache-2.0
//
// The plan file: reading and writing JSON as ir/json/plan.schema.json describes it. Reading streams
// and is bounded (no DOM, limited nesting, 32-bit counts); it checks the form of the file, not the
// rules of a plan (verify.h does). Writing is canonical: the same plan gives the same bytes, and
// reading them back gives the same plan.
#ifndef PREPOST_IR_JSON_PLAN_JSON_H_
#define PREPOST_IR_JSON_PLAN_JSON_H_

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "ir/plan.h"

namespace prepost {

/// Reads one plan from `in`. `name` is the file's name in messages. Keys that start with "x-" are
/// skipped. A newer minor version adds a line to `*warnings` (may be null), a newer major one is
/// refused. Errors: "name:line:col: /pointer: ...".
Result<Plan> ReadPlan(std::istream& in, const std::string& name,
                      std::vector<std::string>* warnings = nullptr);

/// How a file holds ops and channels. Reading, whichever it is, gives the same plan.
enum class PlanEncoding : uint8_t {
  kRows,    ///< an object each, an op a line: for people
  kColumns  ///< an array per field: a quarter of the size, and read many times as fast
};

/// Writes `plan`. The caller checks `out` for I/O errors.
void WritePlan(const Plan& plan, std::ostream& out, PlanEncoding encoding = PlanEncoding::kRows);

}  // namespace prepost

#endif  // PREPOST_IR_JSON_PLAN_JSON_H_
