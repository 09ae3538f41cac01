// SPDX-License-Identifier: Apache-2.0
#include "viz/svg/share_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>

namespace prepost::viz {
namespace {

void DrawLegend(Svg& svg, const ShareTable& table) {
  Legend legend(svg);
  for (uint32_t percent : {0u, 25u, 50u, 75u, 100u}) {
    Label(svg, "n", legend.Sample(28), ShareColor(percent), fmt::to_string(percent));
  }
  legend.Meaning(table.legend);
  Box done = legend.Sample(24);
  svg.Rect("done", {done.x + 1, done.y + 1, done.width - 2, done.height - 2});
  legend.Meaning(table.completed);
}

void DrawRow(Svg& svg, const ShareTable& table, const Grid& grid, int index) {
  const ShareTable::Row& row = table.rows[static_cast<size_t>(index)];
  const int base = grid.Cell(index, 0).y + grid.cell_height / 2 + 4;
  svg.Text("r", grid.left - 8, base, fmt::format("{}{}", row.nodes, row.has_root ? " (root)" : ""));
  uint32_t before = 0;
  for (size_t column = 0; column < row.percents.size(); ++column) {
    const uint32_t percent = row.percents[column];
    const Box cell = grid.Cell(index, static_cast<int>(column));
    const Box inner{cell.x + 1, cell.y + 1, cell.width - 1, cell.height - 1};
    svg.BeginGroup("", fmt::format("nodes {}, {}: {}% of the blocks", row.nodes,
                                   table.columns[column].meaning, percent));
    Label(svg, "n", inner, ShareColor(percent), fmt::to_string(percent));
    if (percent == 100 && before < 100) svg.Rect("done", inner);
    svg.EndGroup();
    before = percent;
  }
  svg.Text("l", grid.right() + 10, base, row.end);
}

uint64_t CeilDivide(uint64_t count, uint64_t size) { return (count + size - 1) / size; }

}  // namespace

Bins::Bins(uint64_t things)
    : count(things), size(std::max<uint64_t>(1, CeilDivide(things, kSummaryCellsMax))) {}

RowBins BinRows(size_t rows, const std::vector<RackBand>& bands) {
  const bool mixed = bands.size() > kSummaryCellsMax;
  const std::vector<RackBand> one = {{.begin = 0, .end = rows, .name = {}}};
  const std::vector<RackBand>& parts = bands.empty() || mixed ? one : bands;
  const auto bins_of = [](const RackBand& part, uint64_t size) {
    return CeilDivide(part.end - part.begin, size);
  };
  const auto are_too_many = [&](uint64_t size) {
    uint64_t count = 0;
    for (const RackBand& part : parts) count += bins_of(part, size);
    return count > kSummaryCellsMax;
  };
  const auto sizes = std::views::iota(uint64_t{1}, uint64_t{rows} + 1);
  const uint64_t size_max = *std::ranges::partition_point(sizes, are_too_many);
  RowBins bins{.mixed = mixed};
  for (const RackBand& part : parts) {
    const size_t first = bins.ranges.size();
    const uint64_t size = CeilDivide(part.end - part.begin, bins_of(part, size_max));
    for (size_t begin = part.begin; begin < part.end; begin += size) {
      bins.ranges.emplace_back(begin, std::min<size_t>(part.end, begin + size));
    }
    bins.size = std::max(bins.size, size);
    if (&parts == &bands) {
      bins.bands.push_back({.begin = first, .end = bins.ranges.size(), .name = part.name});
    }
  }
  return bins;
}

std::string RowBins::MixedNote() const {
  return mixed ? fmt::format("; rows mix racks, as there are more than {}", kSummaryCellsMax) : "";
}

std::string Range(uint64_t first, uint64_t last) {
  return first == last ? fmt::to_string(first) : fmt::format("{}-{}", first, last);
}

std::string DrawShareTable(const PlanHeader& header, const ShareTable& table) {
  double widest_name = 0;
  for (const ShareTable::Column& column : table.columns) {
    widest_name = std::max(widest_name, TextWidth(column.name, 11));
  }
  double right_width = 0;
  for (const ShareTable::Row& row : table.rows) {
    right_width = std::max(right_width, TextWidth(row.end, 12));
  }
  const Grid grid{.left = ChartLeft(fmt::format("{0}-{0} (root)", header.nodes - 1)),
                  .top = kChartHeaderHeight,
                  .cell_width = std::max(26, static_cast<int>(std::ceil(widest_name)) + 6),
                  .cell_height = 18,
                  .columns = static_cast<int>(table.columns.size()),
                  .rows = static_cast<int>(table.rows.size()),
                  .offsets = RackOffsets(table.bands)};
  const int right =
      std::max(kChartRight, static_cast<int>(std::ceil(right_width)) + 10 + kChartMargin);
  Svg svg = StartChart(grid, table.title, right, table.style);
  DrawLegend(svg, table);
  svg.Text("r", grid.left - 8, grid.top - 8, table.corner);
  for (int column = 0; column < grid.columns; ++column) {
    svg.Text("c", grid.Cell(0, column).x + grid.cell_width / 2, grid.top - 8,
             table.columns[static_cast<size_t>(column)].name);
  }
  DrawRackHeadings(svg, grid, table.bands);
  for (int row = 0; row < grid.rows; ++row) DrawRow(svg, table, grid, row);
  return std::move(svg).Finish();
}

}  // namespace prepost::viz
