// SPDX-License-Identifier: Apache-2.0
#include "viz/svg/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace prepost::viz {
namespace {

constexpr int kSampleSpace = 6;  ///< of a legend: from a sample to its meaning
constexpr int kEntrySpace = 18;  ///< and from there to the next sample

}  // namespace

const std::string_view kChartStyle =
    "text{fill:#222}.h{font-size:18px;font-weight:bold}.s{font-size:13px}.l{font-size:12px}"
    ".c,.n,.b{text-anchor:middle}.c{font-size:11px}.n{font-size:10px}.b{font-size:11px;font-weight:"
    "bold}"
    ".r{font-size:11px;text-anchor:end}.n,.b{fill:#000}.w{fill:#fff}.cell{fill:#f3f3f3}.root{fill:#"
    "e4e8ee}"
    ".held{fill:#444}.rest{fill:#ddd}.out{fill:#fff;stroke:#888}.done{fill:none;stroke:#000;stroke-"
    "width:2}";

int ChartLeft(std::string_view widest) {
  return kChartMargin + static_cast<int>(std::ceil(TextWidth(widest, 11))) + 10;
}

Svg StartChart(const Grid& grid, const ChartTitle& title, int right_width, std::string_view style) {
  constexpr int kWidthMin = 860;
  const double text_width = std::max(
      {TextWidth(title.headline, 19.5), TextWidth(title.subline, 13), TextWidth(title.note, 13)});
  const int width = std::max({grid.right() + right_width, kWidthMin,
                              static_cast<int>(std::ceil(text_width)) + 2 * kChartMargin});
  Svg svg(width, grid.bottom() + kChartMargin, title.headline,
          fmt::format("{}{}", kChartStyle, style));
  svg.Text("h", kChartMargin, 28, title.headline);
  svg.Text("s", kChartMargin, 48, title.subline);
  svg.Text("s", kChartMargin, 66, title.note);
  svg.Text("l", grid.right() + 10, grid.top - 8, title.right);
  return svg;
}

void Label(Svg& svg, std::string_view css_class, const Box& box, Color fill,
           std::string_view text) {
  svg.Rect("", box, fill);
  svg.Text(fmt::format("{}{}", css_class, NeedsWhiteText(fill) ? " w" : ""), box.x + box.width / 2,
           box.y + box.height / 2 + 4, text);
}

int Legend::WidthOf(int sample_width, std::string_view meaning) {
  return sample_width + kSampleSpace + static_cast<int>(std::ceil(TextWidth(meaning, 12))) +
         kEntrySpace;
}

Box Legend::Sample(int width) {
  const Box box{x_, y_, width, 16};
  x_ += width + kSampleSpace;
  return box;
}

void Legend::Meaning(std::string_view text) {
  svg_.Text("l", x_, y_ + 13, text);
  x_ += WidthOf(0, text) - kSampleSpace;
  svg_.WidenTo(x_ - kEntrySpace + kChartMargin);
}

void Legend::BeginRow() {
  x_ = kChartMargin;
  y_ += kLegendRowHeight;
}

std::string RowLabel(const PlanHeader& header, NodeId node) {
  return fmt::format("node {}{}", node.value, header.collective.IsRoot(node) ? " (root)" : "");
}

}  // namespace prepost::viz
