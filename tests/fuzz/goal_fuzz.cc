// SPDX-License-Identifier: Apache-2.0
//
// A GOAL text from a stranger: refused with its name, or read as a plan that at most misses blocks,
// and that is the same when it is written and read again. A first line "// allreduce" has it read
// as one, in which blocks may also be made of the wrong contributions.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "compiler/passes/scratch.h"
#include "ir/analysis/plan_diff.h"
#include "ir/exchange/goal_reader.h"
#include "ir/exchange/goal_writer.h"
#include "ir/words.h"

namespace {

/// Verifying a million empty programs takes its time.
constexpr size_t kCheckedRanksMax = 256;
/// And a million blocks of one range.
constexpr uint32_t kCheckedBlocksMax = 1 << 16;

/// What the first line says.
prepost::GoalOptions OptionsOf(const std::string& text) {
  prepost::GoalOptions options;
  for (const prepost::CollectiveKind kind : prepost::kEnumerators<prepost::CollectiveKind>) {
    if (text.starts_with(std::string("// ") + prepost::Name(kind) + "\n"))
      options.collective = kind;
  }
  if (prepost::Combines(options.collective))
    options.combine = {.op = prepost::CombineOp::kSum, .type = prepost::ElementType::kUint8};
  return options;
}

int CheckCollective(const prepost::GoalPlan& read, prepost::GoalOptions options) {
  const prepost::PlanHeader& header = read.plan.header();
  if (header.payload.blocks > kCheckedBlocksMax) return 0;
  const prepost::Result<prepost::Plan> plan = prepost::AssignScratch(prepost::Plan(read.plan));
  if (!plan.ok()) return 0;
  const prepost::Verdict verdict = prepost::Verify(*plan);
  for (const prepost::Diagnostic& finding : verdict.diagnostics) {
    using prepost::Rule;
    PREPOST_CHECK(finding.rule == Rule::kValue || finding.rule == Rule::kCausal ||
                  finding.rule == Rule::kRounds || finding.rule == Rule::kReplace);
    PREPOST_CHECK(!read.AtLine(*plan, finding).where.empty());
  }
  if (!verdict.ok()) return 0;
  std::ostringstream out;
  prepost::WriteGoal(*plan, out);
  std::istringstream again_in(out.str());
  options.root = header.collective.root.value;
  options.message_bytes = header.payload.bytes;
  options.block_bytes = header.payload.block_bytes;
  const auto again = prepost::ReadGoal(again_in, "again", options);
  PREPOST_CHECK(again.ok());
  const prepost::Result<prepost::Plan> placed = prepost::AssignScratch(prepost::Plan(again->plan));
  PREPOST_CHECK(placed.ok() && prepost::Verify(*placed).ok());
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::istringstream in(text);
  const prepost::GoalOptions given = OptionsOf(text);
  const prepost::Result<prepost::GoalPlan> read = prepost::ReadGoal(in, "goal", given);
  if (!read.ok()) {
    PREPOST_CHECK(read.status().where().starts_with("goal") && !read.status().message().empty());
    return 0;
  }
  const prepost::Plan& plan = read->plan;
  PREPOST_CHECK(read->op_lines.size() == plan.ops().size());
  if (plan.header().nodes > kCheckedRanksMax) return 0;
  if (given.collective != prepost::CollectiveKind::kMulticast) return CheckCollective(*read, given);
  const prepost::Verdict verdict = prepost::Verify(plan);
  for (const prepost::Diagnostic& finding : verdict.diagnostics) {
    using prepost::Rule;
    PREPOST_CHECK(finding.rule == Rule::kValue || finding.rule == Rule::kCausal ||
                  finding.rule == Rule::kRounds);
    PREPOST_CHECK(!read->AtLine(plan, finding).where.empty());
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
