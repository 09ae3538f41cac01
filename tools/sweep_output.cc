// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <ostream>

#include "prepost/ir/count.h"
#include "prepost/ir/rate_text.h"
#include "prepost/ir/utf8.h"
#include "prepost/version.h"
#include "prepost/viz/plot.h"
#include "tools/simulation_print.h"
#include "tools/table.h"

namespace prepost::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Executor {
  const char* key;   ///< in JSON
  const char* name;  ///< for people
  const char* variant;
};
constexpr Executor kExecutors[] = {{"offload", "preposted", "mode"}, {"cpu", "CPU-driven", "wait"}};

/// A column of the CSV, and where in the JSON it comes from.
struct Column {
  std::string name;
  std::string pointer;
};
/// Of the plan, the same for both executors.
const std::vector<Column>& PlanColumns() {
  static const std::vector<Column> columns = {{"algorithm", "/algorithm"},
                                              {"nodes", "/nodes"},
                                              {"root", "/root"},
                                              {"message_bytes", "/message_bytes"},
                                              {"block_bytes", "/block_bytes"},
                                              {"blocks", "/blocks"},
                                              {"ready", "/ready"},
                                              {"send_window", "/send_window"},
                                              {"seed", "/seed"},
                                              {"bound_seconds", "/bound_seconds"}};
  return columns;
}

/// CPU-driven over preposted: of a combination, in the rows of both executors.
const std::vector<Column>& GainColumns() {
  static const std::vector<Column> columns = {{"gain", "/gain/completion"},
                                              {"gain_known", "/gain/known"}};
  return columns;
}

/// Names of all single figures of an executor, in the order in which they come first; those in
/// objects as "outer.inner".
std::vector<Column> FigureColumns(const Sweep& sweep) {
  std::vector<Column> columns;
  const auto add = [&](const std::string& name, const std::string& pointer) {
    if (std::ranges::find(columns, name, &Column::name) == columns.end())
      columns.push_back({name, pointer});
  };
  for (const SweepRow& row : sweep.rows) {
    for (const Executor& executor : kExecutors) {
      if (!row.found.contains(executor.key)) continue;
      for (const auto& [key, value] : row.found[executor.key].items()) {
        if (key == executor.variant || value.is_array()) continue;
        if (!value.is_object()) {
          add(key, "/" + key);
          continue;
        }
        for (const auto& [inner, figure] : value.items()) {
          if (figure.is_primitive()) add(key + "." + inner, "/" + key + "/" + inner);
        }
      }
    }
  }
  return columns;
}

std::string Field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string Field(const Json& json, const std::string& pointer) {
  const Json::json_pointer at(pointer);
  if (!json.contains(at) || json[at].is_null()) return "";
  return Field(json[at].is_string() ? json[at].get<std::string>() : json[at].dump());
}

/// A number without a fraction is a whole one.
Json ValueJson(const SweepAxis& axis, size_t value) {
  constexpr double kExact = 0x1p53;
  const SweepValue& it = axis.values[value];
  if (!axis.is_numeric()) return it.text;
  if (std::floor(*it.number) == *it.number && std::abs(*it.number) < kExact)
    return static_cast<int64_t>(*it.number);
  return *it.number;
}
std::string ValueField(const SweepAxis& axis, size_t value) {
  const Json json = ValueJson(axis, value);
  return json.is_string() ? Field(json.get<std::string>()) : json.dump();
}

/// Whether a key with that column may be left to `auto`.
bool IsChosen(const Sweep& sweep, const std::string& column) {
  return std::ranges::any_of(sweep.axes, [&](const SweepAxis& axis) {
    return axis.column() == column &&
           std::ranges::find(axis.values, "auto", &SweepValue::text) != axis.values.end();
  });
}

bool IsSwept(const Sweep& sweep, const std::string& column) {
  return std::ranges::any_of(sweep.axes,
                             [&](const SweepAxis& axis) { return axis.column() == column; });
}

std::string OneLine(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

/// "64 KiB", "1us", "chain".
std::string Readable(const SweepAxis& axis, size_t value) {
  const SweepValue& it = axis.values[value];
  if (!it.number) return it.text;
  if (axis.unit == SweepUnit::kSeconds) return WriteLatency(*it.number);
  if (axis.unit == SweepUnit::kBytesPerSecond) return WriteRate(*it.number);
  if (axis.unit != SweepUnit::kBytes) return fmt::format("{:.9g}", *it.number);
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto bytes = static_cast<uint64_t>(*it.number);
  size_t unit = 0;
  for (; unit + 1 < kUnits.size() && bytes != 0 && bytes % 1024 == 0; ++unit) bytes /= 1024;
  return fmt::format("{} {}", bytes, kUnits[unit]);
}

std::string Labelled(const SweepAxis& axis, size_t value) {
  const bool is_word = !axis.is_numeric();
  const std::string text = Readable(axis, value);
  if (axis.key == "profile") return std::filesystem::path(text).stem().string();
  return is_word && axis.key == "algorithm" ? text : axis.key + " " + text;
}

/// "modelled, with the profiles Apt and Fractus"; `has_paths`: and their files.
std::string Modelled(const Sweep& sweep, bool has_paths) {
  std::string text =
      fmt::format("modelled, with the profile{} ", sweep.profiles.size() > 1 ? "s" : "");
  for (size_t i = 0; i < sweep.profiles.size(); ++i) {
    const Sweep::Profile& it = sweep.profiles[i];
    text += i == 0 ? "" : i + 1 == sweep.profiles.size() ? " and " : ", ";
    text += has_paths ? fmt::format("{} ({})", it.name, it.path) : it.name;
  }
  return Printable(text);
}

/// Null of several: each row has its own.
Json ProfileJson(const Sweep& sweep) {
  if (sweep.profiles.size() != 1) return {};
  return {{"name", sweep.profiles[0].name}, {"file", sweep.profiles[0].path}};
}

/// NaN where there is none.
double NumberAt(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_number() ? json[key].get<double>()
                                                     : std::numeric_limits<double>::quiet_NaN();
}

double FigureOf(const Json& executor, const Json& found, const std::string& y) {
  if (y == "bandwidth" && executor.contains("aggregate_bytes_per_second"))
    return 8 * NumberAt(executor, "aggregate_bytes_per_second");
  if (y == "bandwidth")
    return 8 * NumberAt(found, "message_bytes") / NumberAt(executor, "completion_seconds");
  if (y == "of-bound") return NumberAt(executor, "of_bound");
  if (y == "skew") return NumberAt(executor, "skew_seconds");
  if (y == "known") return NumberAt(executor, "known_seconds");
  return NumberAt(executor, "completion_seconds");
}

viz::PlotAxis YAxis(const std::string& y, bool has_groups) {
  if (y == "bandwidth" && has_groups)
    return {"all messages / time until all groups are complete", "bit/s", false};
  if (y == "bandwidth") return {"the message / time until all nodes have it", "bit/s", false};
  if (y == "of-bound") return {"time until all nodes have it / lower bound", "", false};
  if (y == "skew") return {"last node's time - first node's", "s", false};
  if (y == "known") return {"time until all hosts know", "s", false};
  return {"time until all nodes have it", "s", false};
}

constexpr double kWideRange = 20;  ///< from which on an axis is logarithmic
constexpr size_t kCurvesMax = 16;

/// Of a plan's: no window is "none".
std::string TextOf(const Json& it) {
  if (it.is_null()) return "none";
  return it.is_string() ? it.get<std::string>() : it.dump();
}

/// What all rows have in common.
std::string Common(const Sweep& sweep) {
  std::string text;
  const auto add = [&](const char* key, auto write) {
    std::optional<std::string> common;
    for (const SweepRow& row : sweep.rows) {
      if (!row.status.ok()) continue;
      if (!row.found.contains(key)) return;
      const std::string one = write(row.found[key]);
      if (common && *common != one) return;
      common = one;
    }
    if (common) text += (text.empty() ? "" : ", ") + *common;
  };
  const auto text_after = [](const char* before) {
    return [before](const Json& it) { return before + TextOf(it); };
  };
  const auto count_of = [](const char* noun) {
    return [noun](const Json& it) { return Count(it.get<uint64_t>(), noun); };
  };
  add("workload", text_after(""));
  add("algorithm", text_after(""));
  add("nodes", count_of("node"));
  add("root", text_after("root "));
  add("message_bytes", count_of("byte"));
  add("block_bytes", text_after("blocks of "));
  add("ready", text_after("ready "));
  add("send_window", text_after("send window "));
  return text;
}

/// Of an executor that all axes but the first leave as it is, one curve.
void MergeEqual(const char* name, std::vector<viz::Curve>* curves) {
  const auto is_of_it = [&](const viz::Curve& curve) { return curve.name.starts_with(name); };
  const auto first = std::ranges::find_if(*curves, is_of_it);
  if (first == curves->end()) return;
  const auto same = [&](const viz::Curve& curve) {
    return std::ranges::equal(curve.points, first->points, [](const auto& a, const auto& b) {
      return a.x == b.x && a.y == b.y;
    });
  };
  if (!std::ranges::all_of(*curves,
                           [&](const viz::Curve& it) { return !is_of_it(it) || same(it); }))
    return;
  first->name = name;
  curves->erase(std::remove_if(first + 1, curves->end(), is_of_it), curves->end());
}

/// What a row of the table says of both executors.
void AddFound(const Json& found, std::vector<std::string>* cells) {
  const auto cell = [](double number, auto text) {
    return std::isnan(number) ? std::string("-") : text(number);
  };
  const auto ratio = [&](double number) {
    return cell(number, [](double it) { return fmt::format("{:.3f}", it); });
  };
  for (const Executor& executor : kExecutors) {
    const Json run = found.contains(executor.key) ? found[executor.key] : Json::object();
    cells->push_back(cell(NumberAt(run, "completion_seconds"), WriteLatency));
    cells->push_back(ratio(NumberAt(run, "of_bound")));
  }
  const Json gain = found.contains("gain") ? found["gain"] : Json::object();
  cells->push_back(ratio(NumberAt(gain, "completion")));
  cells->push_back(ratio(NumberAt(gain, "known")));
}

}  // namespace

void WriteSweepCsv(const Sweep& sweep, std::ostream& out) {
  out << fmt::format("# {}, by {}\n", Modelled(sweep, /*has_paths=*/true), kGenerator);
  out << "# " << Printable(sweep.command) << "\n";
  const std::vector<Column> figures = FigureColumns(sweep);
  std::string line;
  const auto add = [&](const std::string& field) { line += (line.empty() ? "" : ",") + field; };
  const auto end = [&] {
    out << line << "\n";
    line.clear();
  };
  for (const SweepAxis& axis : sweep.axes) add(Field(axis.column()));
  for (const Column& it : PlanColumns()) {
    if (!IsSwept(sweep, it.name)) add(it.name);
    if (IsChosen(sweep, it.name)) add("chosen_" + it.name);
  }
  for (const char* name : {"executor", "variant", "error"}) add(name);
  for (const Column& it : figures) add(Field(it.name));
  for (const Column& it : GainColumns()) add(it.name);
  end();
  for (const SweepRow& row : sweep.rows) {
    for (const Executor& executor : kExecutors) {
      const bool is_failed = !row.status.ok();
      if (is_failed && &executor != kExecutors) break;
      if (!is_failed && !row.found.contains(executor.key)) continue;
      const Json nothing;
      const Json& run = is_failed ? nothing : row.found[executor.key];
      for (size_t i = 0; i < sweep.axes.size(); ++i) add(ValueField(sweep.axes[i], row.point[i]));
      for (const Column& it : PlanColumns()) {
        if (!IsSwept(sweep, it.name) || IsChosen(sweep, it.name))
          line += "," + Field(row.found, it.pointer);
      }
      line += "," + std::string(is_failed ? "" : executor.key);
      line += "," + Field(run, std::string("/") + executor.variant);
      line += "," + Field(OneLine(row.status.ok() ? "" : row.status.ToString()));
      for (const Column& it : figures) line += "," + Field(run, it.pointer);
      for (const Column& it : GainColumns()) line += "," + Field(row.found, it.pointer);
      end();
    }
  }
}

nlohmann::ordered_json SweepJson(const Sweep& sweep) {
  Json json = {{"modelled", true},
               {"generator", kGenerator},
               {"command", sweep.command},
               {"profile", ProfileJson(sweep)},
               {"deviations", sweep.deviations},
               {"sweep", Json::array()},
               {"rows", Json::array()}};
  for (const SweepAxis& axis : sweep.axes) {
    Json values = Json::array();
    for (size_t i = 0; i < axis.values.size(); ++i) values.push_back(ValueJson(axis, i));
    json["sweep"].push_back(
        {{"key", axis.key}, {"column", axis.column()}, {"values", std::move(values)}});
  }
  for (const SweepRow& row : sweep.rows) {
    Json values = Json::object();
    for (size_t i = 0; i < sweep.axes.size(); ++i) {
      values[sweep.axes[i].column()] = ValueJson(sweep.axes[i], row.point[i]);
    }
    Json& entry = json["rows"].emplace_back(Json{{"values", std::move(values)}});
    entry["error"] = row.status.ok() ? Json() : Json(row.status.ToString());
    entry["simulation"] = row.found;
  }
  return json;
}

void PrintSweep(const Sweep& sweep, std::ostream& out) {
  out << fmt::format("{}{}\n", Modelled(sweep, /*has_paths=*/true),
                     DeviationsText(sweep.deviations));
  if (const std::string common = Common(sweep); !common.empty()) out << Printable(common) << "\n";
  const bool has_groups = std::ranges::any_of(
      sweep.rows, [](const SweepRow& row) { return row.found.contains("groups"); });
  out << (has_groups ? "all groups are complete at\n\n" : "all nodes have it after\n\n");
  Table table(/*label_min=*/0, /*cell_min=*/8);
  std::vector<std::string> heads;
  for (const SweepAxis& axis : sweep.axes) heads.push_back(axis.key);
  for (const char* head : {"preposted", "of bound", "CPU-driven", "of bound", "gain", "known gain"})
    heads.emplace_back(head);
  table.Add("", std::move(heads));
  for (const SweepRow& row : sweep.rows) {
    std::vector<std::string> cells;
    for (size_t i = 0; i < sweep.axes.size(); ++i) {
      std::string value = Readable(sweep.axes[i], row.point[i]);
      if (const std::string column = sweep.axes[i].column();
          value == "auto" && row.found.contains(column))
        value += fmt::format(" ({})", TextOf(row.found[column]));
      cells.push_back(Printable(value));
    }
    std::string error;
    if (!row.status.ok()) {
      error = Printable(OneLine(row.status.ToString()));
    } else {
      AddFound(row.found, &cells);
    }
    table.Add("", std::move(cells), std::move(error));
  }
  table.Print(out);
}

Result<std::string> PlotSweep(const Sweep& sweep, const std::string& y) {
  const SweepAxis& x = sweep.axes.front();
  PREPOST_CHECK(x.is_numeric());
  constexpr std::array kUnits = {"", "B", "s", "bit/s"};
  const double scale = x.unit == SweepUnit::kBytesPerSecond ? 8 : 1;  // as in the table
  const bool is_alone = x.values.size() == 1 && *x.values.front().number > 0;
  const bool has_groups = std::ranges::any_of(
      sweep.rows, [](const SweepRow& row) { return row.found.contains("groups"); });
  viz::Plot plot = {.headline = y + " against " + x.key,
                    .subline = Modelled(sweep, /*has_paths=*/false) +
                               DeviationsText(sweep.deviations, kDeviationsShownMax),
                    .note = Common(sweep),
                    .x = {x.key, kUnits[static_cast<size_t>(x.unit)], x.is_geometric || is_alone},
                    .y = YAxis(y, has_groups),
                    .curves = {}};
  std::vector<std::string> colors;  // what all axes but the first are
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const Executor& executor : kExecutors) {
    for (const SweepRow& row : sweep.rows) {
      if (!row.status.ok() || !row.found.contains(executor.key)) continue;
      std::string others;
      for (size_t i = 1; i < sweep.axes.size(); ++i)
        others += ", " + Labelled(sweep.axes[i], row.point[i]);
      const std::string name = executor.name + others;
      const double value = FigureOf(row.found[executor.key], row.found, y);
      if (!std::isfinite(value)) continue;
      auto curve = std::ranges::find(plot.curves, name, &viz::Curve::name);
      if (curve == plot.curves.end()) {
        auto color = std::ranges::find(colors, others);
        if (color == colors.end()) color = colors.insert(color, others);
        plot.curves.push_back({.name = name,
                               .points = {},
                               .color = static_cast<uint32_t>(color - colors.begin()),
                               .is_dashed = &executor != kExecutors});
        curve = plot.curves.end() - 1;
      }
      curve->points.push_back({scale * *x.values[row.point[0]].number, value});
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  for (viz::Curve& curve : plot.curves)
    std::ranges::stable_sort(curve.points, {}, &viz::PlotPoint::x);
  for (const Executor& executor : kExecutors) MergeEqual(executor.name, &plot.curves);
  for (viz::Curve& curve : plot.curves) {
    const bool is_merged =
        colors.size() > 1 && (curve.name == kExecutors[0].name || curve.name == kExecutors[1].name);
    if (is_merged) curve.color = static_cast<uint32_t>(colors.size());
  }
  if (plot.curves.size() > kCurvesMax) {
    return Rejected(
        fmt::format("--plot: {} curves, the limit is {}: sweep fewer values, or one "
                    "executor",
                    plot.curves.size(), kCurvesMax));
  }
  plot.y.logarithmic = least > 0 && most > kWideRange * least;
  Result<std::string> svg = viz::DrawPlot(plot);
  if (!svg.ok()) return Rejected("--plot: " + svg.status().ToString());
  return svg;
}

}  // namespace prepost::tools
