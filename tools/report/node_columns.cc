// SPDX-License-Identifier: Apache-2.0
#include "tools/report/node_columns.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace prepost::tools {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace

void NodeColumns::Add(const Json& run) {
  ForEachNodeOfRun(run, [&](const Figures& figures) {
    for (const auto& [name, value] : figures) {
      if (columns_.try_emplace(name, names_.size()).second) names_.push_back(name);
    }
  });
}

std::vector<std::vector<Json>> NodeColumns::LinesOf(const Json& run) const {
  std::vector<std::vector<Json>> lines;
  ForEachNodeOfRun(run, [&](const Figures& figures) {
    std::vector<Json>& line = lines.emplace_back(names_.size());
    for (const auto& [name, value] : figures) line[columns_.at(name)] = value;
  });
  return lines;
}

}  // namespace prepost::tools
