// SPDX-License-Identifier: Apache-2.0
#include "tools/report/sweep_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <ostream>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ir/base/count.h"
#include "ir/base/utf8.h"
#include "ir/collective.h"
#include "ir/json/rate_text.h"
#include "ir/version.h"
#include "ir/words.h"
#include "planning/simulation/simulation_report.h"
#include "planning/simulation/statistics.h"
#include "planning/text/table.h"

namespace prepost::tools {
namespace {

using Json = nlohmann::ordered_json;

struct SweptExecutor {
  const char* key;      ///< in JSON
  const char* variant;  ///< of it, in JSON
  const char* name;     ///< for people
};
constexpr SweptExecutor kSweptExecutors[] = {{"offload", "mode", "preposted"},
                                             {"cpu", "wait", "CPU-driven"}};

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

/// The text of a plan's value: no window is "none".
std::string TextOf(const Json& it) {
  if (it.is_null()) return "none";
  return it.is_string() ? it.get<std::string>() : it.dump();
}

/// NaN where there is none.
double NumberAt(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_number() ? json[key].get<double>()
                                                     : std::numeric_limits<double>::quiet_NaN();
}

/// Figures by name.
using Figures = std::vector<std::pair<std::string, Json>>;

/// `value` itself, or those in it as "name.inner".
void AddFigures(const std::string& name, const Json& value, Figures* figures) {
  if (value.is_primitive()) figures->emplace_back(name, value);
  if (!value.is_object()) return;
  for (const auto& [inner, figure] : value.items()) {
    if (figure.is_primitive()) figures->emplace_back(name + "." + inner, figure);
  }
}

/// Calls `use` with the figures of each node of `nodes`, a run or a group, after `before`.
template <typename Use>
void ForEachNode(const Json& nodes, const Figures& before, Use use) {
  constexpr std::array kLists = {"node_host",          "node_seconds", "node_known_seconds",
                                 "node_final_seconds", "hosts",        "time_by_cause"};
  const size_t count = nodes.contains("node_seconds") ? nodes["node_seconds"].size() : 0;
  for (size_t i = 0; i < count; ++i) {
    Figures figures = before;
    figures.emplace_back("node", i);
    for (const char* list : kLists) {
      if (nodes.contains(list)) AddFigures(list, nodes[list][i], &figures);
    }
    // It stands before the others.
    std::erase_if(figures, [](const auto& it) { return it.first == "time_by_cause.node"; });
    use(figures);
  }
}

template <typename Use>
void ForEachNodeOfRun(const Json& run, Use use) {
  if (!run.contains("groups")) return ForEachNode(run, {}, use);
  const Json& groups = run["groups"];
  for (size_t g = 0; g < groups.size(); ++g) {
    Figures figures = {{"group", g}};
    for (const auto& [key, value] : groups[g].items()) AddFigures("groups." + key, value, &figures);
    ForEachNode(groups[g], figures, use);
  }
}

/// What a CSV has of each node, from the lists by node that a run's JSON has, and of several groups
/// each of them has (docs/simulate.md).
class NodeColumns {
 public:
  /// Adds the columns of a run: "node", "node_seconds", "hosts.posts"; of several groups "group"
  /// and "groups.start_seconds", too.
  void Add(const Json& run) {
    ForEachNodeOfRun(run, [&](const Figures& figures) {
      for (const auto& [name, value] : figures) {
        if (columns_.try_emplace(name, names_.size()).second) names_.push_back(name);
      }
    });
  }

  /// In the order in which they came first.
  const std::vector<std::string>& names() const { return names_; }
  /// A line for each node of a run that was added: what it has in each column, null where nothing.
  std::vector<std::vector<Json>> LinesOf(const Json& run) const {
    std::vector<std::vector<Json>> lines;
    ForEachNodeOfRun(run, [&](const Figures& figures) {
      std::vector<Json>& line = lines.emplace_back(names_.size());
      for (const auto& [name, value] : figures) line[columns_.at(name)] = value;
    });
    return lines;
  }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> columns_;  ///< by name
};

/// Whether a row is of another collective than a multicast.
bool HasOtherCollectives(const Sweep& sweep) {
  return std::ranges::any_of(sweep.rows,
                             [](const SweepRow& row) { return row.found.contains("collective"); });
}

/// Whether a root says something about `found`: not if it is of a collective that has none.
bool RowHasRoot(const Json& found) {
  if (!found.contains("collective")) return true;
  const auto kind = EnumeratorOf<CollectiveKind>(found["collective"].get<std::string>());
  return !kind || HasRoot(*kind);
}

/// A column of the CSV, and where in the JSON it comes from.
struct Column {
  std::string name;
  std::string pointer;
};
/// Columns of the plan, the same for both executors.
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

/// Of each statistic of the figure at `pointer`: "gain.mean".
std::vector<Column> StatisticColumns(const std::string& name, const std::string& pointer) {
  std::vector<Column> columns;
  for (const NamedStatistic& it : kStatistics) {
    columns.push_back(
        {fmt::format("{}.{}", name, it.name), fmt::format("{}/{}", pointer, it.name)});
  }
  return columns;
}

/// CPU-driven over preposted, and the barrier: of a combination, in the rows of both executors.
const std::vector<Column>& GainColumnsOfOne() {
  static const std::vector<Column> columns = {
      {"gain", "/gain/completion"},
      {"gain_known", "/gain/known"},
      {"barrier_seconds", "/barrier_seconds"},
      {"gain_with_barrier", "/gain/with_barrier/completion"},
      {"gain_known_with_barrier", "/gain/with_barrier/known"}};
  return columns;
}

/// The same; of several seeds with statistics, and without the gain with the barrier.
std::vector<Column> GainColumns(const Sweep& sweep) {
  if (sweep.seeds == 0) return GainColumnsOfOne();
  std::vector<Column> columns = {{"barrier_seconds", "/barrier_seconds"}};
  for (const auto& [name, pointer] :
       {std::pair("gain", "/gain/completion"), {"gain_known", "/gain/known"}}) {
    std::ranges::move(StatisticColumns(name, pointer), std::back_inserter(columns));
  }
  return columns;
}

constexpr const char* kExecutor = "executor";  ///< which one a line is of

bool IsSwept(const Sweep& sweep, const std::string& column) {
  return std::ranges::any_of(sweep.axes,
                             [&](const SweepAxis& axis) { return axis.column() == column; });
}

/// The column of what rows have, where `column` may be swept: that itself, or beside it, where it
/// may be left open, by `auto` or as `both` executors. Empty: what is swept says it.
std::string FoundColumn(const Sweep& sweep, const std::string& column) {
  if (!IsSwept(sweep, column)) return column;
  const char* const open = column == kExecutor ? "both" : "auto";
  const bool is_open = std::ranges::any_of(sweep.axes, [&](const SweepAxis& axis) {
    return axis.column() == column &&
           std::ranges::find(axis.values, open, &SweepValue::text) != axis.values.end();
  });
  return is_open ? "chosen_" + column : "";
}

/// Those of PlanColumns() that the axes do not set.
std::vector<Column> FoundColumns(const Sweep& sweep) {
  std::vector<Column> columns;
  if (HasOtherCollectives(sweep) && !IsSwept(sweep, "collective"))
    columns.push_back({"collective", "/collective"});
  for (const Column& it : PlanColumns()) {
    if (sweep.seeds != 0 && it.name == "seed") {
      columns.insert(columns.end(), {{"first_seed", "/seeds/first"}, {"seeds", "/seeds/count"}});
    } else if (sweep.seeds != 0 && it.name == "bound_seconds") {
      std::ranges::move(StatisticColumns(it.name, it.pointer), std::back_inserter(columns));
    } else if (const std::string name = FoundColumn(sweep, it.name); !name.empty()) {
      columns.push_back({name, it.pointer});
    }
  }
  return columns;
}

/// Names of all single figures of an executor, in the order in which they come first; those in
/// objects as "outer.inner". What is swept is none of them: it has its column.
std::vector<Column> FigureColumns(const Sweep& sweep) {
  std::vector<Column> columns;
  const auto add = [&](const std::string& name, const std::string& pointer) {
    if (std::ranges::find(columns, name, &Column::name) == columns.end())
      columns.push_back({name, pointer});
  };
  for (const SweepRow& row : sweep.rows) {
    for (const SweptExecutor& executor : kSweptExecutors) {
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
  std::erase_if(columns, [&](const Column& it) { return IsSwept(sweep, it.name); });
  return columns;
}

std::string Field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string Field(const Json& json) {
  if (json.is_null()) return "";
  return Field(json.is_string() ? json.get<std::string>() : json.dump());
}
std::string Field(const Json& json, const std::string& pointer) {
  const Json::json_pointer at(pointer);
  return json.contains(at) ? Field(json[at]) : "";
}

/// A number without a fraction is a whole one.
Json ValueJson(const SweepAxis& axis, size_t value) {
  constexpr double kExact = 0x1p53;
  const SweepValue& it = axis.values[value];
  if (!axis.is_numeric) return it.text;
  if (std::floor(*it.number) == *it.number && std::abs(*it.number) < kExact)
    return static_cast<int64_t>(*it.number);
  return *it.number;
}
std::string ValueField(const SweepAxis& axis, size_t value) {
  const Json json = ValueJson(axis, value);
  return json.is_string() ? Field(json.get<std::string>()) : json.dump();
}

std::string OneLine(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

/// Null of several: each row has its own.
Json ProfileJson(const Sweep& sweep) {
  if (sweep.profiles.size() != 1) return {};
  return {{"name", sweep.profiles[0].name}, {"file", sweep.profiles[0].path}};
}

/// A row's figures over both executors; `is_cpu`: of the second alone.
void AddFound(const Json& found, bool is_cpu, std::vector<std::string>* cells) {
  const auto cell = [](double number, auto text) {
    return std::isnan(number) ? std::string("-") : text(number);
  };
  const auto ratio = [&](double number) {
    return cell(number, [](double it) { return fmt::format("{:.3f}", it); });
  };
  for (const SweptExecutor& executor : kSweptExecutors) {
    if (is_cpu && executor.key != std::string_view("cpu")) continue;
    const Json run = found.contains(executor.key) ? found[executor.key] : Json::object();
    cells->push_back(cell(NumberAt(run, "completion_seconds"), WriteLatency));
    cells->push_back(ratio(NumberAt(run, "of_bound")));
  }
  if (is_cpu) return;
  const Json gain = found.contains("gain") ? found["gain"] : Json::object();
  cells->push_back(ratio(NumberAt(gain, "completion")));
  cells->push_back(ratio(NumberAt(gain, "known")));
}

/// What is swept, as people read it.
std::vector<std::string> ValueCells(const Sweep& sweep, const SweepRow& row) {
  std::vector<std::string> cells;
  for (size_t i = 0; i < sweep.axes.size(); ++i) {
    std::string value = Readable(sweep.axes[i], row.point[i]);
    if (const std::string column = sweep.axes[i].column();
        value == "auto" && row.found.contains(column))
      value += fmt::format(" ({})", TextOf(row.found[column]));
    cells.push_back(Printable(value));
  }
  return cells;
}

/// A line per executor with the statistics of its completion, after `values`.
void AddSeeds(const Json& found, const std::vector<std::string>& values, Table* table) {
  for (const SweptExecutor& executor : kSweptExecutors) {
    if (!found.contains(executor.key)) continue;
    std::vector<std::string> cells = values;
    cells.emplace_back(executor.name);
    const Json& completion = found[executor.key]["completion_seconds"];
    for (const NamedStatistic& it : kStatistics)
      cells.push_back(WriteLatency(completion[it.name].get<double>()));
    table->Add("", std::move(cells));
  }
}

}  // namespace

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
  add("collective", text_after(""));
  add("combine", [](const Json& it) { return TextOf(it["op"]) + ":" + TextOf(it["type"]); });
  add("algorithm", text_after(""));
  add("nodes", count_of("node"));
  if (std::ranges::all_of(sweep.rows, [](const SweepRow& row) { return RowHasRoot(row.found); }))
    add("root", text_after("root "));
  add("message_bytes", count_of("byte"));
  add("block_bytes", text_after("blocks of "));
  add("ready", text_after("ready "));
  add("send_window", text_after("send window "));
  return text;
}

void WriteCsv(const Sweep& sweep, std::ostream& out) {
  out << fmt::format("# {}, by {}\n", Modelled(sweep, /*has_paths=*/true), kGenerator);
  out << "# " << Printable(sweep.command) << "\n";
  const std::vector<Column> plan = FoundColumns(sweep), figures = FigureColumns(sweep),
                            gains = GainColumns(sweep);
  const std::string executor_column = FoundColumn(sweep, kExecutor);
  NodeColumns nodes;
  for (const SweepRow& row : sweep.rows) {
    for (const SweptExecutor& executor : kSweptExecutors) {
      if (row.found.contains(executor.key)) nodes.Add(row.found[executor.key]);
    }
  }
  std::vector<std::string> line;
  const auto end = [&] { out << fmt::format("{}\n", fmt::join(std::exchange(line, {}), ",")); };
  for (const SweepAxis& axis : sweep.axes) line.push_back(Field(axis.column()));
  for (const Column& it : plan) line.push_back(it.name);
  if (!executor_column.empty()) line.push_back(executor_column);
  line.insert(line.end(), {"variant", "error"});
  for (const Column& it : figures) line.push_back(Field(it.name));
  for (const Column& it : gains) line.push_back(it.name);
  line.insert(line.end(), nodes.names().begin(), nodes.names().end());
  end();
  for (const SweepRow& row : sweep.rows) {
    for (const SweptExecutor& executor : kSweptExecutors) {
      const bool is_failed = !row.status.ok();
      if (is_failed && &executor != kSweptExecutors) break;
      if (!is_failed && !row.found.contains(executor.key)) continue;
      const Json nothing;
      const Json& run = is_failed ? nothing : row.found[executor.key];
      for (size_t i = 0; i < sweep.axes.size(); ++i)
        line.push_back(ValueField(sweep.axes[i], row.point[i]));
      for (const Column& it : plan) line.push_back(Field(row.found, it.pointer));
      if (!executor_column.empty()) line.emplace_back(is_failed ? "" : executor.key);
      line.push_back(Field(run, std::string("/") + executor.variant));
      line.push_back(Field(OneLine(row.status.ok() ? "" : row.status.ToString())));
      for (const Column& it : figures) line.push_back(Field(run, it.pointer));
      for (const Column& it : gains) line.push_back(Field(row.found, it.pointer));
      const std::vector<std::string> of_run = line;
      std::vector<std::vector<Json>> of_nodes = nodes.LinesOf(run);
      if (of_nodes.empty()) of_nodes.emplace_back(nodes.names().size());
      for (const std::vector<Json>& figures_of_node : of_nodes) {
        line = of_run;
        for (const Json& figure : figures_of_node) line.push_back(Field(figure));
        end();
      }
    }
  }
}

nlohmann::ordered_json ToJson(const Sweep& sweep) {
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

void Print(const Sweep& sweep, std::ostream& out) {
  out << fmt::format("{}{}\n", Modelled(sweep, /*has_paths=*/true),
                     DeviationsText(sweep.deviations));
  if (const std::string common = Common(sweep); !common.empty()) out << Printable(common) << "\n";
  const bool has_groups = std::ranges::any_of(
      sweep.rows, [](const SweepRow& row) { return row.found.contains("groups"); });
  // Other collectives than multicasts are CPU-driven, so what preposted queues take has no place.
  const bool has_others = HasOtherCollectives(sweep);
  const bool is_cpu = has_others && std::ranges::none_of(sweep.rows, [](const SweepRow& row) {
                        return row.found.contains("offload");
                      });
  out << (has_groups   ? "all groups are complete at"
          : has_others ? "all members are done after"
                       : "all nodes have it after")
      << (sweep.seeds != 0 ? fmt::format(", {} seeds each\n\n", sweep.seeds)
                           : "\nof bound: of the network bound\n\n");
  Table table(/*label_min=*/0, /*cell_min=*/8);
  std::vector<std::string> heads;
  for (const SweepAxis& axis : sweep.axes) heads.push_back(axis.key);
  if (sweep.seeds != 0) {
    heads.emplace_back("");
    for (const NamedStatistic& it : kStatistics) heads.emplace_back(it.name);
  } else if (is_cpu) {
    heads.insert(heads.end(), {"CPU-driven", "of bound"});
  } else {
    heads.insert(heads.end(),
                 {"preposted", "of bound", "CPU-driven", "of bound", "gain", "known gain"});
  }
  table.Add("", std::move(heads));
  for (const SweepRow& row : sweep.rows) {
    std::vector<std::string> cells = ValueCells(sweep, row);
    if (!row.status.ok()) {
      table.Add("", std::move(cells), Printable(OneLine(row.status.ToString())));
    } else if (sweep.seeds != 0) {
      AddSeeds(row.found, cells, &table);
    } else {
      AddFound(row.found, is_cpu, &cells);
      table.Add("", std::move(cells));
    }
  }
  table.Print(out);
}

}  // namespace prepost::tools
