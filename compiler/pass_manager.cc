// SPDX-License-Identifier: Apache-2.0
#include "compiler/pass_manager.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <ostream>

#include "compiler/passes/scratch.h"
#include "ir/base/near_name.h"
#include "ir/verify/verify.h"

namespace prepost {
namespace {

constexpr const char* kAll = "all";

/// Runs `work` and writes how long it took, if that is wanted.
template <typename Work>
auto Timed(const CompileOptions& options, const std::string& what, Work work) {
  const auto begin = std::chrono::steady_clock::now();
  auto result = work();
  if (options.time_passes && options.log != nullptr) {
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - begin;
    *options.log << fmt::format("{:>10.3f} ms  {}\n", spent.count(), what);
  }
  return result;
}

}  // namespace

Status PassManager::CheckNames() const {
  const auto known = [&](const std::string& name) {
    return std::ranges::any_of(passes_, [&](const Pass& pass) { return pass.name == name; });
  };
  std::vector<std::string> names;
  for (const Pass& pass : passes_) names.push_back(pass.name);
  for (const auto* wanted :
       {&options_.skip_passes, &options_.print_before, &options_.print_after}) {
    for (const std::string& name : *wanted) {
      const bool is_all = name == kAll && wanted != &options_.skip_passes;
      if (!is_all && !known(name)) {
        return {StatusCode::kUsage, fmt::format("no pass is called '{}'{}; the passes are {}", name,
                                                DidYouMean(name, names), fmt::join(names, ", "))};
      }
    }
  }
  return {};
}

void PassManager::Print(const Plan& plan, const std::string& pass,
                        const std::vector<std::string>& wanted, const char* when) const {
  if (options_.log == nullptr) return;
  const auto matches = [&](const std::string& name) { return name == pass || name == kAll; };
  if (std::ranges::none_of(wanted, matches)) return;
  *options_.log << fmt::format("; {} {}\n{}", when, pass, Dump(plan));
}

Result<VerifiedPlan> PassManager::VerifyAfter(Plan plan, const std::string& step) const {
  Verdict verdict;
  Result<VerifiedPlan> verified = Timed(options_, "verify after " + step,
                                        [&] { return Verified(std::move(plan), {}, &verdict); });
  if (verified.ok()) return verified;
  if (!where_of_) {
    return Rejected(fmt::format("the plan is wrong after {}:", step) + verdict.Continued());
  }
  const Diagnostic& first = verdict.diagnostics.front();
  const std::string more =
      verdict.findings == 1 ? "" : fmt::format("; {} more", verdict.findings - 1);
  return Rejected(fmt::format("{}: {}{}", Name(first.rule), first.message, more),
                  where_of_(plan, first));
}

Result<VerifiedPlan> PassManager::Run(Plan plan, bool is_complete) const {
  PREPOST_RETURN_IF_ERROR(CheckNames());
  Result<VerifiedPlan> verified =
      is_complete ? VerifyAfter(std::move(plan), "schedule") : Rejected("not verified yet");
  if (!verified.ok() && is_complete) return verified;
  for (const Pass& pass : passes_) {
    if (std::ranges::count(options_.skip_passes, pass.name) != 0) continue;
    const Plan& given = verified.ok() ? *verified : plan;
    Print(given, pass.name, options_.print_before, "before");
    Result<Plan> changed = Timed(options_, pass.name, [&] { return pass.run(given); });
    if (!changed.ok()) return changed.status();
    if (!verified.ok() || !(*changed == *verified))
      verified = VerifyAfter(*std::move(changed), pass.name);
    if (!verified.ok()) return verified;
    Print(*verified, pass.name, options_.print_after, "after");
  }
  return verified.ok() ? std::move(verified) : VerifyAfter(std::move(plan), "schedule");
}

Result<VerifiedPlan> CompletePlan(Plan plan, SpecReady ready, SpecSendWindow send_window,
                                  const CompileOptions& options, PassManager::WhereOf where_of) {
  const PlanHeader& header = plan.header();
  if (header.collective.kind != CollectiveKind::kMulticast && header.payload.bytes == 0) {
    // There is nothing that credits could hold back.
    if (ready.automatic) ready = {.automatic = false, .ready = {}};
    if (send_window.automatic) send_window = {.automatic = false, .window = {}};
  }
  PassManager passes(options, std::move(where_of));
  passes.AddAll(ready, send_window);
  // Where each receive has a buffer of its own there may be too many; with credits they are shared.
  Result<Plan> placed = AssignScratch(std::move(plan));
  return placed.ok() ? passes.Run(*std::move(placed))
                     : passes.Run(std::move(plan), /*is_complete=*/false);
}

}  // namespace prepost
