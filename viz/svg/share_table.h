// SPDX-License-Identifier: Apache-2.0
//
// Internal to viz: the summary of a large picture: what percentage of the blocks groups of nodes
// hold at the end of each column, be the columns ranges of rounds or of time.
#ifndef PREPOST_VIZ_SVG_SHARE_TABLE_H_
#define PREPOST_VIZ_SVG_SHARE_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "viz/svg/chart.h"
#include "viz/svg/racks.h"

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

/// How a summary bins its rows: rows of two racks share no bin, unless there are more racks than
/// bins.
struct RowBins {
  uint64_t size = 1;                                ///< the most rows of a bin
  std::vector<std::pair<size_t, size_t>> ranges{};  ///< the first row of each, and that after it
  std::vector<RackBand> bands{};                    ///< of bins; none where bins mix racks
  bool mixed = false;

  /// "; rows mix racks, ...", or "".
  std::string MixedNote() const;
};

/// For `rows` rows, at least one, in the `bands` of their racks if any are known.
RowBins BinRows(size_t rows, const std::vector<RackBand>& bands);

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
  std::vector<RackBand> bands = {};  ///< of rows; none if no rack is known
  std::string style = {};            ///< CSS for `bands`, Racks::Style()
};

/// Adds a row to `table` for each of the `bins` of `nodes`, which have a `node` and `is_root`, with
/// a cell for each column that the table has: the percentage of `blocks` that the bin's nodes hold,
/// rounded down; the root counts only when alone. `held(node, column)` is how many of them one node
/// holds at the column's end, `end_of(bin)` the text right of a row.
template <typename Node>
void AddShareRows(ShareTable& table, std::span<const Node> nodes, const RowBins& bins,
                  uint64_t blocks, const std::function<uint64_t(const Node&, size_t)>& held,
                  const std::function<std::string(std::span<const Node>)>& end_of) {
  for (const auto& [begin, end] : bins.ranges) {
    const std::span<const Node> bin = nodes.subspan(begin, end - begin);
    ShareTable::Row row{.nodes = Range(bin.front().node.value, bin.back().node.value),
                        .has_root = std::ranges::any_of(bin, &Node::is_root),
                        .percents = {},
                        .end = end_of(bin)};
    for (size_t column = 0; column < table.columns.size(); ++column) {
      uint64_t all_held = 0;
      uint64_t counted = 0;
      for (const Node& node : bin) {
        if (node.is_root && bin.size() > 1) continue;
        all_held += held(node, column);
        ++counted;
      }
      row.percents.push_back(
          static_cast<uint32_t>(std::min<uint64_t>(100, all_held * 100 / (counted * blocks))));
    }
    table.rows.push_back(std::move(row));
  }
}

/// An SVG file. Cells with the first 100 of a row are framed.
std::string DrawShareTable(const PlanHeader& header, const ShareTable& table);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_SVG_SHARE_TABLE_H_
