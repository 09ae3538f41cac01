// SPDX-License-Identifier: Apache-2.0
//
// CheckPlot() and PlotSweep(): the CSV of a sweep is handed to scripts/plot_sweep.py, whose text is
// part of the command (tools/CMakeLists.txt writes it into a source of the build).
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <memory>
#include <ranges>
#include <sstream>
#include <string_view>

#include "planning/files/shipped_files.h"
#include "planning/simulation/simulation_report.h"
#include "tools/report/sweep_report.h"

namespace prepost::tools {

namespace {

using Json = nlohmann::ordered_json;

/// Debian's own, which has its packages, before what stands first in PATH.
constexpr const char* kPythons[] = {"/usr/bin/python3", "python3"};
/// Exit codes of the script: one of StatusCode, or this.
constexpr int kNoMatplotlib = 3;

/// A file without a name.
struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using TemporaryFile = std::unique_ptr<std::FILE, CloseFile>;

std::string ContentOf(std::FILE* file) {
  std::string text;
  std::array<char, 1 << 16> part;
  std::rewind(file);
  while (const size_t bytes = std::fread(part.data(), 1, part.size(), file))
    text.append(part.data(), bytes);
  return text;
}

/// Runs `words` with `files` as its stdin, stdout and stderr. Its exit code; -1: it cannot be run.
int Spawn(const std::vector<std::string>& words, const std::array<TemporaryFile, 3>& files) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 3; ++i)
    posix_spawn_file_actions_adddup2(&actions, fileno(files[static_cast<size_t>(i)].get()), i);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int outcome = 0;
  if (error != 0 || waitpid(pid, &outcome, 0) != pid || !WIFEXITED(outcome)) return -1;
  constexpr int kNotFound = 127;
  return WEXITSTATUS(outcome) == kNotFound ? -1 : WEXITSTATUS(outcome);
}

/// What the script prints for these arguments and `input`. Errors: kEnvironment: no Python with
/// matplotlib; those of the script.
Result<std::string> RunScript(const std::vector<std::string>& arguments, const std::string& input) {
  for (const char* python : kPythons) {
    std::array<TemporaryFile, 3> files;
    for (TemporaryFile& file : files) {
      file.reset(std::tmpfile());
      if (file == nullptr) return EnvironmentError("--plot: no temporary file can be made");
    }
    std::fwrite(input.data(), 1, input.size(), files[0].get());
    std::rewind(files[0].get());
    // Modules are not taken from the current folder.
    std::vector<std::string> words = {
        python, "-c",
        fmt::format("import sys; sys.path[:] = filter(None, sys.path)\n{}", kPlotScript)};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const int code = Spawn(words, files);
    if (code == -1 || code == kNoMatplotlib) continue;
    std::string text = ContentOf(files[1].get());
    if (code == 0) return text;
    if (text.empty()) text = ContentOf(files[2].get());
    while (text.ends_with('\n')) text.pop_back();
    if (text.empty()) continue;
    return Status(
        code == static_cast<int>(StatusCode::kUsage) ? StatusCode::kUsage : StatusCode::kRejected,
        "--plot: " + text.substr(text.rfind('\n') + 1));
  }
  return EnvironmentError(
      "--plot: pictures are drawn by python3 with matplotlib, which is not there (on Debian the "
      "package python3-matplotlib)");
}

/// What the script gets for each axis.
Json OptionsOf(const std::vector<SweepAxis>& axes) {
  constexpr std::array kUnits = {"", "B", "s", "B/s"};
  const SweepAxis& x = axes.front();
  const bool is_alone = x.values.size() == 1 && *x.values.front().number > 0;
  Json options = {{"log", x.is_geometric || is_alone}, {"axes", Json::array()}};
  for (const SweepAxis& axis : axes) {
    options["axes"].push_back({{"key", axis.key},
                               {"column", axis.column()},
                               {"unit", kUnits[static_cast<size_t>(axis.unit)]},
                               {"numeric", axis.is_numeric},
                               {"values", axis.values.size()}});
  }
  return options;
}

std::string Dumped(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

}  // namespace

Status CheckPlot(const std::vector<SweepAxis>& axes, const std::string& executor) {
  if (!axes.front().is_numeric) {
    return {StatusCode::kUsage,
            fmt::format("--plot: {} has words; the first --sweep is the axis, and needs numbers",
                        axes.front().key)};
  }
  const bool is_swept = std::ranges::find(axes, "executor", &SweepAxis::key) != axes.end();
  Json options = OptionsOf(axes);
  options["executors"] = executor == "both" || is_swept ? 2 : 1;
  return RunScript({Dumped(options), "--check"}, "").status();
}

Result<std::string> PlotSweep(const Sweep& sweep, const std::string& y) {
  Json options = OptionsOf(sweep.axes);
  options["y"] = y;
  options["seeds"] = sweep.seeds;
  options["head"] = {
      y + " against " + sweep.axes.front().key,
      Modelled(sweep, /*has_paths=*/false) + DeviationsText(sweep.deviations, kDeviationsShownMax),
      Common(sweep)};
  std::ostringstream csv;
  WriteCsv(sweep, csv);
  return RunScript({Dumped(options)}, std::move(csv).str());
}

}  // namespace prepost::tools
