// SPDX-License-Identifier: Apache-2.0
#include "planning/text/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>

namespace prepost {

void Table::Add(std::string label, std::vector<std::string> cells, std::string note) {
  rows_.push_back({std::move(label), std::move(cells), std::move(note)});
}

void Table::Print(std::ostream& out) const {
  size_t label_width = label_min_;
  std::vector<size_t> widths;
  for (const Row& row : rows_) {
    if (!row.cells.empty()) label_width = std::max(label_width, row.label.size());
    if (row.cells.size() > widths.size()) widths.resize(row.cells.size(), cell_min_);
    for (size_t i = 0; i < row.cells.size(); ++i)
      widths[i] = std::max(widths[i], row.cells[i].size());
  }
  for (const Row& row : rows_) {
    std::string line = fmt::format("{:<{}}", row.label, label_width);
    for (size_t i = 0; i < row.cells.size(); ++i)
      line += fmt::format("{}{:>{}}", line.empty() ? "" : "  ", row.cells[i], widths[i]);
    if (!row.note.empty()) line += "  " + row.note;
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

}  // namespace prepost
