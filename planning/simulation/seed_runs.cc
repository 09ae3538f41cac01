// SPDX-License-Identifier: Apache-2.0
#include "planning/simulation/seed_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include <sstream>
#include <tuple>
#include <utility>

#include "ir/json/rate_text.h"
#include "planning/simulation/simulation_report.h"
#include "planning/simulation/statistics.h"
#include "planning/text/table.h"

namespace prepost {
namespace {

using Json = nlohmann::ordered_json;

/// What --json is, in place of one run's form.
constexpr const char* kSeedRunsFormat = "prepost.simulation_statistics";
constexpr const char* kSeedRunsVersion = "1.0";

/// A figure of an executor: its key, and what stands over its column.
struct NamedFigure {
  const char* key;
  std::string head;
  double RunFigures::*value;
  std::string (*text)(double value);
};

std::string RatioText(double ratio) { return fmt::format("{:.3f}", ratio); }

std::vector<NamedFigure> FiguresIn(const SeedRuns& it) {
  return {{"completion_seconds", it.completion_head, &RunFigures::completion, WriteLatency},
          {"of_bound", "of bound", &RunFigures::of_bound, RatioText},
          {it.is_of_groups ? "aggregate_bytes_per_second" : "bandwidth_bytes_per_second",
           "bandwidth", &RunFigures::bandwidth, WriteRate},
          {"skew_seconds", "skew", &RunFigures::skew, WriteLatency},
          {"known_seconds", "all hosts know", &RunFigures::known, WriteLatency}};
}

/// An executor of the runs.
struct SeedExecutor {
  const char* key;
  const char* name;  ///< for people
  std::optional<RunFigures> SeedRun::*figures;
};
constexpr SeedExecutor kSeedExecutors[] = {{"offload", "preposted", &SeedRun::offload},
                                           {"cpu", "CPU-driven", &SeedRun::cpu}};

RunFigures SeedFiguresOf(const sim::Simulation& it, const sim::RunTimes& times) {
  RunFigures found = {.completion = sim::ToSeconds(times.completion),
                      .known = sim::ToSeconds(times.known),
                      .skew = sim::ToSeconds(times.skew())};
  if (it.bound > 0) found.of_bound = found.completion / it.bound;
  if (const double bandwidth = BandwidthOf(it, times); bandwidth > 0) found.bandwidth = bandwidth;
  return found;
}

/// Of what `figure` has of each run; none where a run has none.
std::optional<Statistics> StatisticsOf(const SeedRuns& it,
                                       const std::function<double(const SeedRun&)>& figure) {
  std::vector<double> figures;
  for (const SeedRun& run : it.runs) {
    figures.push_back(figure(run));
    if (std::isnan(figures.back())) return std::nullopt;
  }
  return Statistics::Of(std::move(figures));
}

std::optional<Statistics> StatisticsOf(const SeedRuns& it, const SeedExecutor& executor,
                                       const NamedFigure& figure) {
  return StatisticsOf(
      it, [&](const SeedRun& run) { return (run.*executor.figures).value().*figure.value; });
}

/// 0, where nothing is sent or only one executor ran, is none.
std::optional<Statistics> GainStatistics(const SeedRuns& it, double sim::Gain::*gain) {
  if (std::ranges::any_of(it.runs, [&](const SeedRun& run) { return !(run.gain.*gain > 0); }))
    return std::nullopt;
  return StatisticsOf(it, [&](const SeedRun& run) { return run.gain.*gain; });
}

Json StatisticsJson(const std::optional<Statistics>& it) {
  Json json = Json::object();
  for (const NamedStatistic& statistic : kStatistics)
    json[statistic.name] = it ? Json((*it).*statistic.value) : Json();
  return json;
}

struct StatisticsColumn {
  std::string head;
  std::optional<Statistics> statistics;
  std::string (*text)(double value);
};

/// A line for each statistic.
void PrintColumns(const std::string& label, const std::vector<StatisticsColumn>& columns,
                  std::ostream& out) {
  Table table(/*label_min=*/26, /*cell_min=*/9);
  std::vector<std::string> heads;
  for (const StatisticsColumn& column : columns) heads.push_back(column.head);
  table.Add(label, std::move(heads));
  for (const NamedStatistic& statistic : kStatistics) {
    std::vector<std::string> cells;
    for (const StatisticsColumn& column : columns) {
      cells.push_back(column.statistics ? column.text((*column.statistics).*statistic.value) : "-");
    }
    table.Add(std::string("  ") + statistic.name, std::move(cells));
  }
  table.Print(out);
}

Json SeedRunJson(const SeedRuns& it, const SeedRun& run) {
  Json json = {{"seed", run.seed}, {"bound_seconds", run.bound}};
  for (const SeedExecutor& executor : kSeedExecutors) {
    const std::optional<RunFigures>& figures = run.*executor.figures;
    if (!figures) continue;
    for (const NamedFigure& figure : FiguresIn(it)) {
      const double value = (*figures).*figure.value;
      json[executor.key][figure.key] = std::isnan(value) ? Json() : Json(value);
    }
  }
  return json;
}

}  // namespace

SeedRun SeedRun::Of(const sim::Simulation& simulation) {
  SeedRun run = {.seed = simulation.seed, .bound = simulation.bound, .gain = GainOf(simulation)};
  if (simulation.offload) run.offload = SeedFiguresOf(simulation, simulation.offload_times);
  if (simulation.cpu) run.cpu = SeedFiguresOf(simulation, simulation.cpu_times);
  return run;
}

SeedRuns::SeedRuns(const sim::Simulation& first, uint32_t count)
    : runs(count, SeedRun::Of(first)),
      common(ToJson(first, /*has_lists=*/false)),
      completion_head(first.is_of_groups   ? "groups complete"
                      : IsMulticast(first) ? "all nodes have it"
                                           : "all members done"),
      is_of_groups(first.is_of_groups) {
  for (uint32_t i = 0; i < count; ++i) runs[i].seed = first.seed + i;
  std::ostringstream text;
  PrintHead(first, text);
  head = std::move(text).str();
}

bool SeedRuns::AllAreTheSame() const {
  const auto times = [](const std::optional<RunFigures>& it) {
    return it ? std::tuple(it->completion, it->known, it->skew) : std::tuple(0.0, 0.0, 0.0);
  };
  return std::ranges::all_of(runs, [&](const SeedRun& run) {
    return times(run.offload) == times(runs.front().offload) &&
           times(run.cpu) == times(runs.front().cpu);
  });
}

void Print(const SeedRuns& it, std::ostream& out) {
  out << it.head;
  const char* between = "";
  for (const SeedExecutor& executor : kSeedExecutors) {
    if (!(it.runs.front().*executor.figures)) continue;
    out << std::exchange(between, "\n");
    const Json& run = it.common[executor.key];
    std::string label = executor.name;
    for (const char* how : {"mode", "wait"}) {
      if (run.contains(how)) label += ", " + run[how].get<std::string>();
    }
    std::vector<StatisticsColumn> columns;
    for (const NamedFigure& figure : FiguresIn(it))
      columns.push_back({figure.head, StatisticsOf(it, executor, figure), figure.text});
    PrintColumns(label, columns, out);
  }
  const std::optional<Statistics> gain = GainStatistics(it, &sim::Gain::completion);
  if (!gain) return;
  out << between;
  PrintColumns("CPU-driven / preposted",
               {{it.completion_head, gain, RatioText},
                {"all hosts know", GainStatistics(it, &sim::Gain::known), RatioText}},
               out);
}

Json ToJson(const SeedRuns& it) {
  Json json = it.common;
  json["format"] = kSeedRunsFormat;
  json["version"] = kSeedRunsVersion;
  for (const char* of_one : {"seed", "slow_paths", "offload", "cpu", "gain"}) json.erase(of_one);
  json["seeds"] = {{"first", it.runs.front().seed}, {"count", it.runs.size()}};
  json["bound_seconds"] =
      StatisticsJson(StatisticsOf(it, [](const SeedRun& run) { return run.bound; }));
  for (const SeedExecutor& executor : kSeedExecutors) {
    if (!(it.runs.front().*executor.figures)) continue;
    Json& figures = json[executor.key] = Json::object();
    for (const NamedFigure& figure : FiguresIn(it))
      figures[figure.key] = StatisticsJson(StatisticsOf(it, executor, figure));
    for (const char* how : {"mode", "wait"}) {
      if (it.common[executor.key].contains(how)) figures[how] = it.common[executor.key][how];
    }
  }
  if (it.common.contains("gain")) {
    json["gain"] = {{"completion", StatisticsJson(GainStatistics(it, &sim::Gain::completion))},
                    {"known", StatisticsJson(GainStatistics(it, &sim::Gain::known))}};
  }
  Json& runs = json["runs"] = Json::array();
  for (const SeedRun& run : it.runs) runs.push_back(SeedRunJson(it, run));
  return json;
}

}  // namespace prepost
