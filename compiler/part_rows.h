// SPDX-License-Identifier: Apache-2.0
//
// PartRows: sizes of parts as they are written down, in one list, or in rows: of an alltoall a row
// for each member that sends, in it one for each that receives.
#ifndef PREPOST_COMPILER_PART_ROWS_H_
#define PREPOST_COMPILER_PART_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/base/status.h"

namespace prepost {

/// Gathers them, from the first to the last.
class PartRows {
 public:
  /// Errors: more than any plan has.
  Status Add(uint64_t bytes);
  /// What comes next is of another row. A row without sizes is none. `line` is where the row stands
  /// in a file, from 1; 0: in none.
  void EndRow(size_t line = 0);
  /// All sizes, row after row, and begins anew. Errors: several rows that are neither of one size
  /// each nor as long as there are rows; rows count from 1, and `where` is the line of the first
  /// that is wrong, if it has one.
  Result<std::vector<uint64_t>> Take();

 private:
  std::vector<uint64_t> sizes_;
  std::vector<size_t> ends_;   // of rows, in sizes_
  std::vector<size_t> lines_;  // of rows
};

}  // namespace prepost

#endif  // PREPOST_COMPILER_PART_ROWS_H_
