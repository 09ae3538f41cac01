// SPDX-License-Identifier: Apache-2.0
//
// Internal to viz: what pictures with a row per node have in common: title lines, legend, where
// rows and columns lie, and labelled boxes.
#ifndef PREPOST_VIZ_SVG_CHART_H_
#define PREPOST_VIZ_SVG_CHART_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/plan.h"
#include "viz/svg/svg.h"

namespace prepost::viz {

inline constexpr int kChartMargin = 16;
/// Above the first row: three lines of text, the legend, the columns' names.
inline constexpr int kChartHeaderHeight = 132;
inline constexpr int kLegendRowHeight = 22;
/// CSS of the classes that Chart, Label() and Legend use.
extern const std::string_view kChartStyle;

/// Where the rows and columns lie.
struct Grid {
  int left = 0;
  int top = 0;
  int cell_width = 0;
  int cell_height = 0;
  int columns = 0;
  int rows = 0;
  std::vector<int> offsets = {};  ///< by row: pixels that it stands lower, rising; empty: none

  Box Cell(int row, int column) const {
    return {left + column * cell_width, top + row * cell_height + Offset(row), cell_width,
            cell_height};
  }
  int right() const { return left + columns * cell_width; }
  int bottom() const { return top + rows * cell_height + Offset(rows - 1); }

 private:
  int Offset(int row) const { return offsets.empty() ? 0 : offsets[static_cast<size_t>(row)]; }
};

/// Pixels left of the first column, for row labels no wider than `widest`.
int ChartLeft(std::string_view widest);

/// The lines above a chart and the name of what stands right of it.
struct ChartTitle {
  std::string headline;
  std::string subline;
  std::string note;
  std::string right;
};

/// Room right of most charts, for when a row has its blocks.
inline constexpr int kChartRight = 110;

/// A picture of the size that `grid`, `right_width` pixels right of it and the title need, with the
/// title drawn. `style` is appended to kChartStyle.
Svg StartChart(const Grid& grid, const ChartTitle& title, int right_width = kChartRight,
               std::string_view style = "");

/// A filled box with a centred text that reads on it.
void Label(Svg& svg, std::string_view css_class, const Box& box, Color fill, std::string_view text);

/// Draws legend entries from left to right, each a sample and its meaning; the picture is widened
/// to hold them.
class Legend {
 public:
  explicit Legend(Svg& svg) : svg_(svg) {}
  Box Sample(int width);
  void Meaning(std::string_view text);
  /// What follows stands kLegendRowHeight lower; the caller leaves room for that.
  void BeginRow();
  /// Pixels from an entry to the next.
  static int WidthOf(int sample_width, std::string_view meaning);

 private:
  Svg& svg_;
  int x_ = kChartMargin;
  int y_ = 78;
};

/// "node 3", "node 0 (root)".
std::string RowLabel(const PlanHeader& header, NodeId node);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_SVG_CHART_H_
