// SPDX-License-Identifier: Apache-2.0
#include "planning/files/loaded_run.h"

#include <fmt/format.h>

#include <utility>

#include "planning/files/named_file.h"

namespace prepost {

Result<std::optional<LoadedRun>> LoadTraces(const std::vector<std::string>& paths,
                                            const Plan& plan) {
  if (paths.empty()) return std::optional<LoadedRun>();
  Result<RunTrace> trace = RunTrace::Make(plan);
  if (!trace.ok()) return trace.status();
  LoadedRun run = {
      .label = paths.size() == 1
                   ? NameOfFile(paths.front())
                   : fmt::format("{} and {} more", NameOfFile(paths.front()), paths.size() - 1),
      .trace = *std::move(trace),
      .info = {}};
  for (const std::string& path : paths) {
    const std::string executor = run.info.executor;
    const std::string failed = run.info.outcome == "completed" ? "" : run.info.outcome;
    PREPOST_RETURN_IF_ERROR(WithInput(path, [&](std::istream& in, const std::string& name) {
      return ReadTrace(in, name, plan, &run.trace, &run.info);
    }));
    if (!executor.empty() && run.info.executor != executor) {
      return Status(
          StatusCode::kRejected,
          fmt::format("it is of a run on {}, and {} of one on {}: --against puts two runs "
                      "beside each other on a page",
                      run.info.executor, paths.front(), executor),
          path);
    }
    if (!failed.empty()) run.info.outcome = failed;
  }
  return std::optional<LoadedRun>(std::move(run));
}

bool IsTrace(const std::string& path) {
  std::string begin(256, '\0');
  const Status read = WithPreview(path, [&](std::istream& in, const std::string&) {
    in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    return Status();
  });
  return read.ok() && begin.find("\"prepost.trace\"") != std::string::npos;
}

}  // namespace prepost
