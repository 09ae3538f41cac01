// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/plan_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <istream>
#include <string>
#include <vector>

#include "ir/json/plan_json.h"
#include "ir/json/rolled_plan_json.h"
#include "ir/verify/verify.h"
#include "runtime/files/plan_folder.h"
#include "tools/flags/file_kind.h"
#include "tools/flags/message.h"
#include "tools/flags/named_file.h"
#include "tools/flags/read_with.h"
#include "tools/report/ticker.h"

namespace prepost::tools {
namespace {

/// ReadWith() of a plan, which may take long.
template <typename ReadPlanFunction>
auto ReadPlanWith(ReadPlanFunction read, const std::string& path) {
  const Ticker ticker("reading " + path);
  return ReadWith(read, path);
}

}  // namespace

Result<Plan> ReadPlanFile(const std::string& path) {
  const Result<FileKind> kind = KindOf(path);
  if (!kind.ok()) return kind.status();
  if (*kind == FileKind::kRolledPlan) {
    return Rejected(
        fmt::format("a rolled plan, for every message size: prepost unroll {} --message-bytes N "
                    "makes the plan for one",
                    path),
        NameOfInput(path));
  }
  if (*kind == FileKind::kSpec) {
    return Rejected(fmt::format("a spec, of which prepost compile {} makes a plan", path),
                    NameOfInput(path));
  }
  if (*kind == FileKind::kPlanPart) {
    const std::string folder = std::filesystem::path(path).parent_path();
    return Rejected(fmt::format("one file of a plan in shards: name the folder that it is in, {}",
                                folder.empty() ? "." : folder),
                    NameOfInput(path));
  }
  if (!IsPlanFolder(path)) return ReadPlanWith(ReadPlan, path);
  const Ticker ticker("reading " + path);
  std::vector<std::string> warnings;
  Result<Plan> plan = ReadPlanFolder(path, &warnings);
  PrintWarnings(path, warnings);
  return plan;
}

Result<RolledPlan> ReadRolledPlanFile(const std::string& path) {
  return ReadPlanWith(ReadRolledPlan, path);
}

Result<VerifiedPlan> LoadPlan(const std::string& path) {
  Result<Plan> plan = ReadPlanFile(path);
  if (!plan.ok()) return plan.status();
  Verdict verdict;
  Result<VerifiedPlan> verified = [&] {
    const Ticker ticker("verifying " + path);
    return Verified(*std::move(plan), {}, &verdict);
  }();
  if (verified.ok()) return verified;
  const Diagnostic& first = verdict.diagnostics.front();
  const std::string more = verdict.findings == 1
                               ? ""
                               : fmt::format("; {} more, see prepost verify", verdict.findings - 1);
  return Rejected(fmt::format("the plan fails verification: {}: {}: {}{}", first.where,
                              Name(first.rule), first.message, more),
                  path);
}

}  // namespace prepost::tools
