// SPDX-License-Identifier: Apache-2.0
//
// NodeColumns: what a CSV has of each node, from the lists by node that a run's JSON has, and of
// several groups each of them has (docs/simulate.md).
#ifndef PREPOST_TOOLS_REPORT_NODE_COLUMNS_H_
#define PREPOST_TOOLS_REPORT_NODE_COLUMNS_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace prepost::tools {

class NodeColumns {
 public:
  /// Adds the columns of a run: "node", "node_seconds", "hosts.posts"; of several groups "group" and
  /// "groups.start_seconds", too.
  void Add(const nlohmann::ordered_json& run);

  /// In the order in which they came first.
  const std::vector<std::string>& names() const { return names_; }
  /// A line for each node of a run that was added: what it has in each column, null where nothing.
  std::vector<std::vector<nlohmann::ordered_json>> LinesOf(const nlohmann::ordered_json& run) const;

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> columns_;  ///< by name
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_NODE_COLUMNS_H_
