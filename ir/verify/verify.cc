// SPDX-License-Identifier: Apache-2.0
//
// The order of work: `shape` first, since all others index by what it checks; `match`, which makes
// messages of ops; then the rest, each on its own.
#include "ir/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/base/count.h"
#include "ir/verify/rules.h"

namespace prepost {

bool Verdict::Has(Rule rule) const {
  return std::ranges::any_of(diagnostics,
                             [&](const Diagnostic& diagnostic) { return diagnostic.rule == rule; });
}

std::string Verdict::ToString() const {
  std::string lines;
  for (const Diagnostic& diagnostic : diagnostics) lines += diagnostic.ToString() + "\n";
  if (findings > diagnostics.size())
    lines += fmt::format("and {} more\n", findings - diagnostics.size());
  return lines;
}

std::string Verdict::Continued() const {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += "\n  " + diagnostic.ToString();
  if (findings > diagnostics.size())
    text += fmt::format("\n  and {} more", findings - diagnostics.size());
  return text;
}

Verdict Verify(const Plan& plan, const VerifyOptions& options) {
  Findings findings(options.diagnostics_max);
  CheckShape(plan, &findings);
  if (findings.count() != 0) return std::move(findings).Take();

  const MessageTable messages(plan);
  CheckMatch(plan, messages, &findings);
  const bool is_matched = findings.count() == 0;
  const bool combines = Combines(plan.header().collective.kind);
  if (!combines) CheckReceipts(plan, &findings);
  if (!is_matched) {
    CheckLocalOrders(plan, nullptr, &findings);
    return std::move(findings).Take();
  }
  const CreditTable credits(plan, messages);
  const MatchedPlan matched{
      .plan = plan, .messages = messages, .credits = credits, .options = options};
  if (combines) CheckValues(matched, &findings);
  CheckReady(matched, &findings);
  const uint64_t others = findings.count();
  CheckRounds(matched, &findings);
  CheckAcyclic(matched, /*has_rounds=*/findings.count() == others, &findings);
  CheckLocalOrders(plan, &matched, &findings);
  return std::move(findings).Take();
}

Result<VerifiedPlan> Verified(Plan&& plan, const VerifyOptions& options, Verdict* verdict) {
  Verdict found = Verify(plan, options);
  const bool is_valid = found.ok();
  Status status;
  if (!is_valid) status = Rejected(Count(found.findings, "finding") + ":" + found.Continued());
  if (verdict != nullptr) *verdict = std::move(found);
  if (!is_valid) return status;
  return VerifiedPlan(std::move(plan));
}

VerifiedPlan VerifiedPlan::WithPayload(const Payload& payload) const {
  PREPOST_CHECK(payload.blocks == header().payload.blocks);
  PlanHeader other = header();
  other.payload = payload;
  return VerifiedPlan(WithHeader(std::move(other)));
}

}  // namespace prepost
