// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/plan_output.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "ir/json/plan_json.h"
#include "ir/json/rolled_plan_json.h"
#include "runtime/files/plan_folder.h"
#include "runtime/interrupt.h"
#include "tools/flags/command.h"
#include "tools/flags/named_file.h"
#include "tools/flags/number_check.h"
#include "tools/report/ticker.h"

namespace prepost::tools {
namespace {

/// People read no plan of more ops than this line by line, so these are written in columns.
constexpr size_t kRowsOpsMax = 100'000;

constexpr const char* kAuto = "auto";
constexpr const char* kRows = "rows";
constexpr const char* kColumns = "columns";
constexpr const char* kShards = "shards";

Status WriteShards(const Plan& plan, const std::string& path) {
  const Result<InterruptSignals> signals = InterruptSignals::Hold();
  if (!signals.ok()) return signals.status();
  const Ticker ticker("writing " + path);
  return WritePlanFolder(plan, path, signals->fd());
}

}  // namespace

void PlanOutput::AddTo(CLI::App& command) {
  command
      .add_option("-o,--output", path,
                  "Plan file to write, - for stdout; with --encoding shards a folder [-]")
      ->type_name("PLAN")
      ->check(NameOf("a file"));
  command
      .add_option("--encoding", encoding,
                  "rows: an op a line; columns: an array per field, a quarter of the size and read "
                  "many times as fast; shards: a folder with a file per node; auto: rows up to "
                  "100000 ops, else columns [auto]")
      ->type_name("E");
  command.add_flag("--dump", dump, "Write one line per op for people instead of JSON");
}

Status PlanOutput::Check() const {
  PREPOST_RETURN_IF_ERROR(CheckWord("--encoding", encoding, {kAuto, kRows, kColumns, kShards}));
  if (dump && encoding != kAuto)
    return {StatusCode::kUsage, "--encoding is for JSON, --dump writes none"};
  if (encoding != kShards) return {};
  if (path == "-") {
    return {StatusCode::kUsage, "--encoding shards writes a folder: name it with -o"};
  }
  return CheckPlanFolder(path);
}

Status PlanOutput::CheckRolled() const {
  if (encoding == kAuto) return {};
  return {StatusCode::kUsage,
          fmt::format("--encoding {} is for plans of one message size", encoding)};
}

Status PlanOutput::Write(const Plan& plan) const {
  if (encoding == kShards) return WriteShards(plan, path);
  const bool is_columns =
      encoding == kColumns || (encoding == kAuto && plan.ops().size() > kRowsOpsMax);
  return WriteFile(path, [&](std::ostream& out) {
    if (dump) {
      out << Dump(plan);
    } else {
      WritePlan(plan, out, is_columns ? PlanEncoding::kColumns : PlanEncoding::kRows);
    }
  });
}

Status PlanOutput::Write(const RolledPlan& plan) const {
  return WriteFile(path, [&](std::ostream& out) {
    if (dump) {
      out << Dump(plan);
    } else {
      WriteRolledPlan(plan, out);
    }
  });
}

}  // namespace prepost::tools
