// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/simulate_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ir/base/count.h"
#include "ir/base/near_name.h"
#include "ir/base/status.h"
#include "ir/base/utf8.h"
#include "ir/plan.h"
#include "planning/files/named_file.h"
#include "planning/flags/command_line.h"
#include "planning/flags/play_flags.h"
#include "planning/flags/values.h"
#include "planning/simulation/simulation_report.h"
#include "planning/text/messages.h"
#include "planning/text/plan_text.h"
#include "tools/commands/simulate_pool.h"
#include "tools/commands/simulate_seeds.h"
#include "tools/flags/sweep.h"
#include "tools/report/sweep_report.h"

namespace prepost::tools {
namespace {

/// A key is a flag that changes what is simulated, or of the profile.
Status CheckKeys(const CLI::App& command, const std::vector<SweepAxis>& axes) {
  std::vector<std::string> keys;
  for (const std::string& name : FlagsWithValues(command)) keys.push_back(name.substr(2));
  for (const char* other :
       {"sweep", "csv", "plot", "plot-y", "seeds", "jobs", "set", "message", "trace"}) {
    std::erase(keys, other);
  }
  for (const SweepAxis& axis : axes) {
    if (axis.is_setting() || std::ranges::find(keys, axis.key) != keys.end()) continue;
    return {StatusCode::kUsage,
            fmt::format("--sweep: unknown key '{}'{}; known are {}, and values of the profile such "
                        "as host.completion",
                        Printable(axis.key), DidYouMean(axis.key, keys), fmt::join(keys, ", "))};
  }
  return {};
}

/// What no row can have, whatever the other keys are.
Status CheckValues(const SweepAxis& axis) {
  const bool is_nodes = axis.key == "nodes";
  if (!is_nodes && axis.key != "block-bytes") return {};
  const auto most = static_cast<double>(is_nodes ? kNodesMax : kMessageBytesMax);
  for (const SweepValue& value : axis.values) {
    if (!value.number || (*value.number >= 1 && *value.number <= most)) continue;
    return {StatusCode::kUsage,
            fmt::format("--sweep {}: '{}' is not from 1 to {:.0f}", axis.key, value.text, most)};
  }
  return {};
}

/// Sets one field after the other of a copy of what is given. Every value is parsed and checked by
/// the flag of that name.
class RowMaker {
 public:
  explicit RowMaker(const SimulateFlags& given) : given_(given) {
    for (const char* of_all : {"--sweep", "--csv", "--plot", "--plot-y", "--jobs", "--json"})
      given_.given.Remove(of_all);
    row_.AddTo(command_);
  }

  const CLI::App& command() const { return command_; }
  /// What is given, with the values of `point`. Errors: kUsage.
  Result<SimulateFlags> Make(const std::vector<SweepAxis>& axes, const SweepPoint& point) {
    row_ = given_;
    for (size_t i = 0; i < axes.size(); ++i) {
      const std::string& value = axes[i].values[point[i]].text;
      if (axes[i].is_setting()) {
        row_.settings.push_back(axes[i].key + "=" + value);
        row_.given.Add("--set", row_.settings.back());
        continue;
      }
      if (axes[i].key == "message-bytes") {
        row_.input.size = {};
        row_.given.Remove("--message");
      }
      const std::string flag = "--" + axes[i].key;
      row_.given.Set(flag, value);
      PREPOST_RETURN_IF_ERROR(SetFlag(command_, flag, value));
    }
    return row_;
  }

 private:
  SimulateFlags given_;
  SimulateFlags row_;
  CLI::App command_;  ///< sets row_
};

/// Parsed; values that no row can have are refused. What is wrong with others, those of the profile
/// among them, is found with their rows. Errors (kUsage): those of ParseSweep(), unknown keys.
Result<std::vector<SweepAxis>> ParseAxes(const SimulateFlags& flags, const CLI::App& command) {
  std::vector<SweepAxis> axes;
  for (const std::string& text : flags.sweep.axes) {
    Result<SweepAxis> axis = ParseSweep(text);
    if (!axis.ok()) return axis.status();
    axes.push_back(*std::move(axis));
  }
  PREPOST_RETURN_IF_ERROR(CheckKeys(command, axes));
  for (const SweepAxis& axis : axes) PREPOST_RETURN_IF_ERROR(CheckValues(axis));
  return axes;
}

/// Reads the profile, or all that are swept, and says which they are. Of values without units the
/// first one's are those of `sweep`.
Status LoadProfiles(const SimulateFlags& flags, SimulateContext* context, Sweep* sweep) {
  std::vector<std::string> paths = {flags.profile};
  const auto swept = std::ranges::find(sweep->axes, "profile", &SweepAxis::key);
  if (swept != sweep->axes.end()) {
    paths.clear();
    for (const SweepValue& value : swept->values) paths.push_back(value.text);
  }
  for (const std::string& path : paths) {
    if (path.empty()) return {StatusCode::kUsage, "--profile is required (see --help)"};
    Result<ProfileText> text = LoadProfileText(path);
    if (!text.ok()) return text.status();
    const Result<sim::Profile> profile = ProfileWith(*text, {});
    if (!profile.ok()) return profile.status();
    sweep->profiles.push_back({profile->name, path});
    for (SweepAxis& axis : sweep->axes) {
      if (axis.is_setting() && axis.unit == SweepUnit::kNone)
        axis.unit = UnitOf(ValueInProfile(*text, axis.key));
    }
    context->profiles[path] = *std::move(text);
  }
  return {};
}

/// What is wrong with a row's flags, of those that are swept by that name.
Status Swept(const Status& status, const std::vector<SweepAxis>& axes) {
  for (const SweepAxis& axis : axes) {
    const std::string flag = "--" + axis.key + ":";
    if (status.message().starts_with(flag)) {
      return {status.code(),
              fmt::format("--sweep {}:{}", axis.key, status.message().substr(flag.size()))};
    }
  }
  return status;
}

/// Rows, each with the command that gives it alone, and what all have that the profile has not.
/// Errors (kUsage): what is wrong with one of these commands is reported before any is run.
Result<std::vector<SimulateFlags>> MakeRows(const SimulateFlags& flags, RowMaker* maker,
                                            const SimulateContext& context, Sweep* sweep) {
  const std::vector<SweepAxis>& axes = sweep->axes;
  const Result<std::vector<SweepPoint>> points = PointsOf(axes);
  if (!points.ok()) return points.status();
  std::vector<std::string> settings;
  CommandLine unswept = flags.given;
  for (const SweepAxis& axis : axes) {
    unswept.Remove("--" + axis.key);
    if (!axis.is_setting()) continue;
    settings.push_back(axis.key);
    for (const ProfileSetting& it : SettingsOf(flags.settings)) {
      if (it.key() != axis.key) continue;
      return Status(StatusCode::kUsage,
                    fmt::format("--sweep {}: it is already set by {}", axis.key, it.given));
    }
  }
  sweep->deviations = FixedDeviationsOf(unswept);
  std::optional<std::string> seed;
  std::vector<SimulateFlags> rows;
  for (const SweepPoint& point : *points) {
    Result<SimulateFlags> row = maker->Make(axes, point);
    if (!row.ok()) return Swept(row.status(), axes);
    PREPOST_RETURN_IF_ERROR(Swept(row->Check(), axes));
    const Result<sim::Profile> changed =
        ProfileFor(*row, context.profiles.at(row->profile), settings);
    if (!changed.ok()) return Swept(changed.status(), axes);
    if (!seed) seed = SeedDeviationOf(*row, *changed);
    // Alone it is the command itself.
    sweep->rows.push_back({point, axes.empty() ? sweep->command : row->given.Text(), {}, {}});
    rows.push_back(*std::move(row));
  }
  if (flags.sweep.seeds) {
    sweep->deviations.push_back(SeedsText(flags));
  } else if (seed && std::ranges::find(axes, "seed", &SweepAxis::key) == axes.end()) {
    sweep->deviations.push_back(*seed);
  }
  return rows;
}

/// The plot comes last, so figures that cannot be drawn are printed nevertheless.
Status WriteSweep(const SweepFlags& flags, const Sweep& sweep) {
  if (!flags.csv.empty()) {
    PREPOST_RETURN_IF_ERROR(WriteFile(flags.csv, [&](std::ostream& out) { WriteCsv(sweep, out); }));
  }
  if (flags.is_json) {
    PrintJson(ToJson(sweep), std::cout);
  } else if (flags.csv != "-") {
    Print(sweep, std::cout);
  }
  if (flags.plot.empty()) return {};
  const Result<std::string> plot =
      PlotSweep(sweep, flags.plot_y.empty() ? "completion" : flags.plot_y);
  if (!plot.ok()) return plot.status();
  return WriteFile(flags.plot, [&](std::ostream& out) { out << *plot; });
}

/// What comes once is every row's.
Status KeepInputs(const CommandLine& row) {
  for (const char* flag : {"", "--workload", "--topology", "--device-profile", "--rules"}) {
    for (const std::string& path : row.ValuesOf(flag)) PREPOST_RETURN_IF_ERROR(KeepInput(path));
  }
  return {};
}

/// Each row of `sweep` gets its outcome, by one run. What is rejected is the row's; any other error
/// ends the sweep.
Status RunRows(const std::vector<SimulateFlags>& rows, unsigned jobs, const SimulateRow& simulate,
               std::vector<SweepRow>* found) {
  return RunEach(rows.size(), jobs, [&](size_t i) -> Status {
    const Result<Simulated> it = simulate(rows[i]);
    if (!it.ok() && it.status().code() != StatusCode::kRejected) return it.status();
    SweepRow& row = (*found)[i];
    row.status = it.status();
    if (it.ok()) row.found = prepost::ToJson(*it->simulation, rows[i].per_node);
    return {};
  });
}

/// Errors (kRejected): no row could be simulated.
Status CheckAnyRan(const Sweep& sweep) {
  if (std::ranges::any_of(sweep.rows, [](const SweepRow& row) { return row.status.ok(); }))
    return {};
  const Status& first = sweep.rows.front().status;
  if (sweep.axes.empty()) return first;
  return Rejected(fmt::format("none of the {} can be simulated; the first: {}",
                              Count(sweep.rows.size(), "combination"), first.ToString()));
}

/// With --seeds and without --sweep.
Status WriteSeeds(const SweepFlags& flags, const Sweep& sweep, const SeedRuns& runs) {
  if (runs.AllAreTheSame())
    PrintNote("all seeds give the same: what is drawn changes nothing here");
  if (!flags.csv.empty()) {
    PREPOST_RETURN_IF_ERROR(WriteFile(flags.csv, [&](std::ostream& out) { WriteCsv(sweep, out); }));
  }
  if (flags.is_json) {
    PrintJson(sweep.rows.front().found, std::cout);
  } else if (flags.csv != "-") {
    prepost::Print(runs, std::cout);
  }
  return {};
}

}  // namespace

Status CheckSweepFlags(const SweepFlags& flags) {
  if (!flags.plot_y.empty())
    PREPOST_RETURN_IF_ERROR(CheckWord("--plot-y", flags.plot_y, Words(kPlotYNames)));
  if (flags.axes.empty()) {
    const char* alone = !flags.plot.empty()     ? "--plot"
                        : !flags.plot_y.empty() ? "--plot-y"
                                                : nullptr;
    if (alone != nullptr) return {StatusCode::kUsage, fmt::format("{} is for --sweep", alone)};
    if (flags.jobs != 0 && !flags.seeds)
      return {StatusCode::kUsage, "--jobs is for --sweep and --seeds"};
  }
  if (!flags.plot_y.empty() && flags.plot.empty())
    return {StatusCode::kUsage, "--plot-y is for --plot"};
  if (!flags.plot.empty() && SuffixOf(flags.plot) != "svg")
    return {StatusCode::kUsage, "--plot: expected a file that ends with .svg"};
  if (flags.csv == "-" && flags.is_json)
    return {StatusCode::kUsage, "--csv - and --json would both write to stdout"};
  for (const std::string& file : {flags.csv, flags.plot}) {
    if (!file.empty()) PREPOST_RETURN_IF_ERROR(CheckWritable(file));
  }
  return {};
}

Status SimulateSweep(const SimulateFlags& flags, SimulateContext* context) {
  RowMaker maker(flags);
  const Result<std::vector<SweepAxis>> axes = ParseAxes(flags, maker.command());
  if (!axes.ok()) return axes.status();
  if (!flags.sweep.plot.empty()) PREPOST_RETURN_IF_ERROR(CheckPlot(*axes, flags.executor));
  PREPOST_RETURN_IF_ERROR(CheckSeeds(flags, *axes));
  if (flags.per_node && !flags.sweep.is_json && flags.sweep.csv.empty())
    return {StatusCode::kUsage, "--per-node is for --json or --csv where there is --sweep"};
  if (flags.causes && !flags.sweep.is_json && flags.sweep.csv.empty())
    return {StatusCode::kUsage, "--causes is for --json or --csv where there is --sweep"};
  Sweep sweep = {.command = flags.given.Text(),
                 .profiles = {},
                 .deviations = {},
                 .axes = *axes,
                 .seeds = flags.sweep.seeds.value_or(0),
                 .rows = {}};
  PREPOST_RETURN_IF_ERROR(LoadProfiles(flags, context, &sweep));
  const Result<std::vector<SimulateFlags>> rows = MakeRows(flags, &maker, *context, &sweep);
  if (!rows.ok()) return rows.status();
  for (const SimulateFlags& row : *rows) PREPOST_RETURN_IF_ERROR(KeepInputs(row.given));
  const SimulateRow simulate = [&](const SimulateFlags& row) {
    Result<Simulated> it = Simulate(row, context);
    if (!it.ok() && it.status().code() == StatusCode::kUsage)
      return Result<Simulated>(Swept(it.status(), *axes));
    return it;
  };
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned jobs = flags.sweep.jobs != 0 ? flags.sweep.jobs : cores;
  if (!flags.sweep.seeds) {
    PREPOST_RETURN_IF_ERROR(RunRows(*rows, jobs, simulate, &sweep.rows));
    PREPOST_RETURN_IF_ERROR(CheckAnyRan(sweep));
    return WriteSweep(flags.sweep, sweep);
  }
  const Result<std::vector<std::optional<SeedRuns>>> runs =
      SimulateSeeds(*rows, jobs, simulate, &sweep.rows);
  if (!runs.ok()) return runs.status();
  PREPOST_RETURN_IF_ERROR(CheckAnyRan(sweep));
  return axes->empty() ? WriteSeeds(flags.sweep, sweep, *runs->front())
                       : WriteSweep(flags.sweep, sweep);
}

}  // namespace prepost::tools
