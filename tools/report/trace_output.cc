// SPDX-License-Identifier: Apache-2.0
#include "tools/report/trace_output.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <utility>

#include "planning/files/named_file.h"
#include "planning/flags/values.h"
#include "planning/text/messages.h"

namespace prepost::tools {

void TraceOutput::AddTo(CLI::App& command) {
  command
      .add_option(
          "--trace", path_,
          "Write when each op was posted, started and completed and when hosts woke up, for "
          "Perfetto and prepost draw")
      ->type_name("FILE")
      ->check(NameOf("a file"));
}

Status TraceOutput::Prepare(const Plan* plan, const std::vector<std::string>& read) {
  if (path_.empty()) return {};
  if (path_ == "-") {
    return {StatusCode::kUsage, "--trace: a file is needed, not stdout, where the report goes"};
  }
  for (const std::string& file : read) {
    std::error_code unknown;
    if (std::filesystem::equivalent(path_, file, unknown)) {
      return {StatusCode::kUsage, fmt::format("--trace would replace {}, which is read", file)};
    }
  }
  PREPOST_RETURN_IF_ERROR(CheckWritable(path_));
  Result<RunTrace> table = RunTrace::Make(*plan);
  if (!table.ok()) return table.status();
  table_ = std::make_shared<RunTrace>(*std::move(table));
  return {};
}

Status TraceOutput::Write(const Plan* plan, TraceInfo info, const Status& outcome) const {
  if (!table_ || outcome.code() == StatusCode::kInterrupted) return {};
  if (!outcome.ok()) info.outcome = outcome.ToString();
  AddWakeups(*table_, &info.hosts);
  PREPOST_RETURN_IF_ERROR(WriteFile(
      path_, [&](std::ostream& out) { WriteTrace(*plan, *table_, info, out); },
      OnInterrupt::kFinish));
  if (!outcome.ok()) {
    PrintNote(path_ + " holds what happened until the run failed");
  }
  return {};
}

}  // namespace prepost::tools
