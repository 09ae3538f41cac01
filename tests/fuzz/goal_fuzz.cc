// SPDX-License-Identifier: Apache-2.0
//
// A GOAL text from a stranger: refused with its name, or read as a plan that at most misses blocks,
// and that is the same when it is written and read again.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "ir/analysis/plan_diff.h"
#include "ir/exchange/goal_reader.h"
#include "ir/exchange/goal_writer.h"

namespace {

/// Verifying a million empty programs takes its time.
constexpr size_t kCheckedRanksMax = 256;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const prepost::Result<prepost::GoalPlan> read = prepost::ReadGoal(in, "goal");
  if (!read.ok()) {
    PREPOST_CHECK(read.status().where().starts_with("goal") && !read.status().message().empty());
    return 0;
  }
  const prepost::Plan& plan = read->plan;
  PREPOST_CHECK(read->op_lines.size() == plan.ops().size());
  if (plan.header().nodes > kCheckedRanksMax) return 0;
  const prepost::Verdict verdict = prepost::Verify(plan);
  for (const prepost::Diagnostic& finding : verdict.diagnostics) {
    using prepost::Rule;
    PREPOST_CHECK(finding.rule == Rule::kValue || finding.rule == Rule::kCausal ||
                  finding.rule == Rule::kRounds);
    PREPOST_CHECK(!read->AtLine(finding).where.empty());
  }
  if (!verdict.ok()) return 0;

  std::ostringstream out;
  prepost::WriteGoal(plan, out);
  std::istringstream again_in(out.str());
  const prepost::GoalOptions options{.root = plan.header().collective.root.value,
                                     .block_bytes = plan.header().payload.block_bytes};
  const auto again = prepost::ReadGoal(again_in, "again", options);
  PREPOST_CHECK(again.ok() && prepost::DiffPlans(plan, again->plan).same());
  return 0;
}
