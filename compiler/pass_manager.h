// SPDX-License-Identifier: Apache-2.0
//
// PassManager: runs passes in order and verifies the plan after each, so that a pass that breaks a
// plan is named.
#ifndef PREPOST_COMPILER_PASS_MANAGER_H_
#define PREPOST_COMPILER_PASS_MANAGER_H_

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "compiler/pass.h"
#include "ir/diagnostic.h"
#include "ir/verify/verify.h"

namespace prepost {

class PassManager {
 public:
  /// Where in the file that a plan is made of stands what `finding` is about.
  using WhereOf = std::function<std::string(const Plan& plan, const Diagnostic& finding)>;

  /// `options` must outlive this; see CompileOptions for what can be printed, timed and left out.
  /// With `where_of`, a plan that fails verification is the fault of the file, and the Status names
  /// the first finding and its place there.
  explicit PassManager(const CompileOptions& options, WhereOf where_of = {})
      : options_(options), where_of_(std::move(where_of)) {}

  void Add(Pass pass) { passes_.push_back(std::move(pass)); }
  /// The compiler's passes in their order: ready, send_window, thin.
  void AddAll(const SpecReady& ready, const SpecSendWindow& send_window) {
    Add(ReadyPass(ready));
    Add(SendWindowPass(send_window));
    Add(ThinPass());
  }

  /// `plan` is what the schedule made; it is verified first, unless it only becomes a plan by the
  /// first pass (not `is_complete`). Errors: unknown pass names in the options (kUsage), a pass's
  /// own, or what the verifier found after it.
  Result<VerifiedPlan> Run(Plan plan, bool is_complete = true) const;

 private:
  Status CheckNames() const;
  Result<VerifiedPlan> VerifyAfter(Plan plan, const std::string& step) const;
  void Print(const Plan& plan, const std::string& pass, const std::vector<std::string>& wanted,
             const char* when) const;

  const CompileOptions& options_;
  const WhereOf where_of_;
  std::vector<Pass> passes_;
};

/// The plan of a schedule, without credits and without scratch buffers: gets the buffers, and the
/// compiler's passes, verified after each. With `where_of` as PassManager has it. Errors: also more
/// buffers than a plan may have.
Result<VerifiedPlan> CompletePlan(Plan plan, SpecReady ready, SpecSendWindow send_window,
                                  const CompileOptions& options,
                                  PassManager::WhereOf where_of = {});

}  // namespace prepost

#endif  // PREPOST_COMPILER_PASS_MANAGER_H_
