// SPDX-License-Identifier: Apache-2.0
//
// The rules of a valid plan, one function each, as Verify() calls them; docs/plan.md describes them
// in words. Internal to ir/.
#ifndef PREPOST_IR_VERIFY_RULES_H_
#define PREPOST_IR_VERIFY_RULES_H_

#include "ir/credits.h"
#include "ir/messages.h"
#include "ir/plan.h"
#include "ir/verify/findings.h"
#include "ir/verify/verify.h"

namespace prepost {

/// shape. All others index by what it checks, so they need a plan without its findings.
void CheckShape(const Plan& plan, Findings* findings);
/// match. What compares channels needs a plan without its findings too.
void CheckMatch(const Plan& plan, const MessageTable& messages, Findings* findings);
/// value, of collectives that do not combine.
void CheckReceipts(const Plan& plan, Findings* findings);

/// A plan whose sends and receives match, with what the rules below look up in it.
struct MatchedPlan {
  const Plan& plan;
  const MessageTable& messages;
  const CreditTable& credits;
  const VerifyOptions& options;
};

/// value, agree, and of replace what comes, of collectives that combine. `causal` and `combine` say
/// that the order at each node is that of its ids.
void CheckValues(const MatchedPlan& matched, Findings* findings);
/// ready, but for the order at each node.
void CheckReady(const MatchedPlan& matched, Findings* findings);
/// rounds.
void CheckRounds(const MatchedPlan& matched, Findings* findings);
/// acyclic and order. `has_rounds`: the plan has no findings of `rounds`.
void CheckAcyclic(const MatchedPlan& matched, bool has_rounds, Findings* findings);
/// causal, combine, scratch, window, and the parts of replace and ready that are an order at a
/// node. `matched` is null for a plan with `match` findings.
void CheckLocalOrders(const Plan& plan, const MatchedPlan* matched, Findings* findings);

}  // namespace prepost

#endif  // PREPOST_IR_VERIFY_RULES_H_
