// SPDX-License-Identifier: Apache-2.0
//
// Internal to viz: the summary of a large picture: what percentage of the blocks groups of nodes
// hold at the end of each column, be the columns ranges of rounds or of time.
#ifndef PREPOST_VIZ_SHARE_TABLE_H_
#define PREPOST_VIZ_SHARE_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prepost/viz/chart.h"

namespace prepost::viz {

inline constexpr uint32_t kSummaryCellsMax = 64;  ///< rows, and columns

/// `count` things in at most kSummaryCellsMax bins of `size` each; the last may be short.
struct Bins {
  uint64_t count = 0;
  uint64_t size = 1;

  explicit Bins(uint64_t things);
  uint64_t bins() const { return (count + size - 1) / size; }
  uint64_t Begin(uint64_t bin) const { return bin * size; }
  uint64_t End(uint64_t bin) const { return count - Begin(bin) < size ? count : Begin(bin) + size; }
};

/// "3" or "3-5".
std::string Range(uint64_t first, uint64_t last);

struct ShareTable {
  struct Column {
    std::string name;     ///< above the column
    std::string meaning;  ///< "after rounds 4-7", for tooltips
  };
  struct Row {
    std::string nodes;  ///< "4-7"
    bool has_root = false;
    std::vector<uint32_t> percents;  ///< by column
    std::string end;                 ///< right of the row
  };
  ChartTitle title;
  std::string corner;     ///< names what the columns' names are
  std::string legend;     ///< what a cell's percentage is of
  std::string completed;  ///< what the frame means
  std::vector<Column> columns;
  std::vector<Row> rows;
};

/// An SVG file. Cells with the first 100 of a row are framed.
std::string DrawShareTable(const PlanHeader& header, const ShareTable& table);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_SHARE_TABLE_H_
