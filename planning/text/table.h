// SPDX-License-Identifier: Apache-2.0
//
// Table: rows of a label and some cells, for people: labels to the left, cells to the right,
// columns as wide as what stands in them.
#ifndef PREPOST_PLANNING_TEXT_TABLE_H_
#define PREPOST_PLANNING_TEXT_TABLE_H_

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace prepost {

class Table {
 public:
  /// Columns are at least so wide, so that short tables below each other are of one form.
  Table(size_t label_min, size_t cell_min) : label_min_(label_min), cell_min_(cell_min) {}

  /// `note` stands behind the cells, in the place of those that are missing.
  void Add(std::string label, std::vector<std::string> cells, std::string note = {});
  /// All rows. Cells have two blanks before them at least; none stand at the end of a line.
  void Print(std::ostream& out) const;

 private:
  struct Row {
    std::string label;
    std::vector<std::string> cells;
    std::string note;
  };
  const size_t label_min_, cell_min_;
  std::vector<Row> rows_;
};

}  // namespace prepost

#endif  // PREPOST_PLANNING_TEXT_TABLE_H_
