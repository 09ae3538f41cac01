// SPDX-License-Identifier: Apache-2.0
//
// Verify: the one place that decides whether a plan is valid. Used after every parse and every
// pass, and before a plan is run; of a shard or a member's own program what one node can break is
// checked (ir/json, compiler/verify_rolled.h). The rules are in docs/plan.md;
// an independent checker under tests/ shares no code with this one.
#ifndef PREPOST_IR_VERIFY_VERIFY_H_
#define PREPOST_IR_VERIFY_VERIFY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "ir/diagnostic.h"
#include "ir/plan.h"

namespace prepost {

struct VerifyOptions {
  /// Depths per channel, for executors that have limits: with S, the (i + S)-th send starts only
  /// after the i-th is delivered; with R, the (i + R)-th receive is posted only after the i-th is
  /// delivered.
  std::optional<uint32_t> send_depth;
  std::optional<uint32_t> recv_depth;
  /// How many findings are kept; all are counted.
  uint32_t diagnostics_max = 20;
};

struct Verdict {
  std::vector<Diagnostic>
      diagnostics;        ///< the first `diagnostics_max`, sorted by place in the file, then rule
  uint64_t findings = 0;  ///< how many there were in all

  bool ok() const { return findings == 0; }
  /// True when some finding is of `rule` (among those kept).
  bool Has(Rule rule) const;
  /// All kept findings, a line each, and "and N more".
  std::string ToString() const;
  /// The same as what a Status goes on with: each line begins with "\n  ".
  std::string Continued() const;
};

/// Checks every rule it can: `match` to `rounds` are skipped where a plan's shape leaves them
/// without meaning. Time and memory are linear in ops and `after` entries, but for wanted orders
/// that do not stand in `after`: see LocalOrder. No recursion on the plan's size; safe on any Plan,
/// however wrong.
Verdict Verify(const Plan& plan, const VerifyOptions& options = {});

/// A plan in which Verify() has found nothing: what lowers a plan or runs one takes it so. Only
/// Verified() makes one; a copy as a Plan is any plan again.
class VerifiedPlan final : public Plan {
 public:
  /// The plan for another message, of as many blocks (CHECK): of a message the rules know no more.
  VerifiedPlan WithPayload(const Payload& payload) const;

 private:
  friend Result<VerifiedPlan> Verified(Plan&& plan, const VerifyOptions& options, Verdict* verdict);
  explicit VerifiedPlan(Plan plan) : Plan(std::move(plan)) {}
};

/// `plan`, verified. Errors (kRejected): the message holds the findings, as does `verdict`, which
/// may be null; `plan` is as it was.
Result<VerifiedPlan> Verified(Plan&& plan, const VerifyOptions& options = {},
                              Verdict* verdict = nullptr);

}  // namespace prepost

#endif  // PREPOST_IR_VERIFY_VERIFY_H_
