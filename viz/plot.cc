// SPDX-License-Identifier: Apache-2.0
#include "viz/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "viz/chart.h"
#include "viz/palette.h"
#include "viz/svg.h"

namespace prepost::viz {
namespace {

constexpr int kTop = 108;         ///< of the first row of panels
constexpr int kBelow = 44;        ///< a panel: its numbers and the axis' name
constexpr int kTitleHeight = 22;  ///< of a panel's title, above the name of the axis
constexpr int kPanelSpace = 20;   ///< from one panel's names to the next one's numbers
constexpr int kRowSpace = 30;     ///< between panels, for the name of the axis
constexpr int kNameHeight = 15;   ///< of a curve's name
constexpr int kSampleWidth = 40;  ///< of a curve's line beside its name: dashes can be seen
constexpr int kNamesLeft = 24;    ///< of curves' names: room for lines from their ends
constexpr int kTicksWanted = 8;

constexpr std::string_view kPlotStyle =
    ".frame{fill:none;stroke:#666}.tick{stroke:#e2e2e6;fill:none}.x{font-size:11px;"
    "text-anchor:middle}.axis{font-size:12px;text-anchor:middle}.yname{font-size:12px}"
    ".lead{stroke:#bbb;fill:none}.title{font-size:13px;font-weight:bold}";

/// How large panels are, and how many stand beside each other.
struct PanelLayout {
  int width = 0;
  int height = 0;
  int columns = 1;
};
PanelLayout LayoutOf(size_t panels) {
  if (panels <= 1) return {620, 380, 1};
  return panels <= 4 ? PanelLayout{460, 340, 2} : PanelLayout{340, 280, 3};
}

/// 0.0025 s is 2.5 ms, 65536 B are 64 KiB; without a unit just the number.
std::string NumberText(double value, const std::string& unit) {
  constexpr std::array<const char*, 5> kBinary = {"", "Ki", "Mi", "Gi", "Ti"};
  if (unit == "B" && value != 0 && std::fmod(value, 1024) == 0) {
    size_t power = 0;
    for (; power + 1 < kBinary.size() && std::fmod(value, 1024) == 0; ++power) value /= 1024;
    return fmt::format("{:.6g} {}{}", value, kBinary[power], unit);
  }
  if (unit.empty() || value == 0) return fmt::format("{:.6g}", value);
  constexpr std::array<const char*, 9> kPrefixes = {"p", "n", "µ", "m", "", "k", "M", "G", "T"};
  // A little more than the value, so that 999.9999 n is 1 µ.
  const int step = static_cast<int>(std::floor(std::log10(std::abs(value) * (1 + 1e-9)) / 3));
  const int prefix = std::clamp(step, -4, 4);
  return fmt::format("{:.4g} {}{}", value / std::pow(1000.0, prefix),
                     kPrefixes[static_cast<size_t>(prefix + 4)], unit);
}

/// One axis: which values it shows, and where.
class Scale {
 public:
  Scale(const PlotAxis& axis, double least, double most, bool from_zero) : axis_(axis) {
    if (axis.logarithmic) {
      ChooseLogarithmic(least, most);
    } else {
      ChooseLinear(from_zero ? std::min(0.0, least) : least, most);
    }
  }

  /// 0 at the lower end, 1 at the upper.
  double At(double value) const {
    const double place = axis_.logarithmic ? std::log2(value) : value;
    return (place - low_) / (high_ - low_);
  }
  const std::vector<double>& ticks() const { return ticks_; }
  std::string Text(double tick) const { return NumberText(tick, axis_.unit); }

 private:
  /// 1, 2 and 5 times powers of 10.
  void ChooseDecades(double least, double most) {
    constexpr std::array kFactors = {1.0, 2.0, 5.0};
    const auto value = [&](int i) {
      const int power = i >= 0 ? i / 3 : (i - 2) / 3;
      return kFactors[static_cast<size_t>(i - 3 * power)] * std::pow(10.0, power);
    };
    int first = 3 * static_cast<int>(std::floor(std::log10(least) + 1e-9));
    while (value(first + 1) <= least * (1 + 1e-9)) ++first;
    int last = first + 1;
    while (value(last) < most * (1 - 1e-9)) ++last;
    for (int i = first; i <= last; ++i) ticks_.push_back(value(i));
    low_ = std::log2(ticks_.front());
    high_ = std::log2(ticks_.back());
  }

  /// Of bytes and plain numbers powers of 2, of what is in other units 1, 2 and 5; of either powers of
  /// 10 where there would be too many.
  void ChooseLogarithmic(double least, double most) {
    constexpr double kDecadesMax = 3;
    const bool is_decimal = !axis_.unit.empty() && axis_.unit != "B";
    if (is_decimal && std::log10(most / least) <= kDecadesMax) return ChooseDecades(least, most);
    const bool binary = !is_decimal && std::log2(most / least) <= kTicksWanted + 4;
    const double base = binary ? 1 : std::log2(10.0);
    double first = std::floor(std::log2(least) / base + 1e-9);
    double last = std::ceil(std::log2(most) / base - 1e-9);
    if (last <= first) last = first + 1;
    low_ = first * base;
    high_ = last * base;
    const double stride = std::ceil((last - first) / (kTicksWanted + 4));
    for (double i = first; i <= last; i += stride) {
      ticks_.push_back(binary ? std::exp2(i) : std::pow(10.0, i));
    }
  }

  /// Multiples of 1, 2 or 5 times a power of 10; of bytes, which come in powers of 2, of one of
  /// these.
  void ChooseLinear(double least, double most) {
    if (most <= least) most = least + (least == 0 ? 1 : std::abs(least));
    const double rough = (most - least) / kTicksWanted;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {5.0, 2.0, 1.0}) {
      if (factor * power >= rough) step = factor * power;
    }
    if (axis_.unit == "B") step = std::exp2(std::ceil(std::log2(std::max(rough, 1.0)) - 1e-9));
    low_ = std::floor(least / step + 1e-9) * step;
    high_ = std::ceil(most / step - 1e-9) * step;
    const auto count = static_cast<int>(std::lround((high_ - low_) / step));
    for (int i = 0; i <= count; ++i) ticks_.push_back(low_ + i * step);
  }

  const PlotAxis& axis_;
  double low_ = 0, high_ = 1;  ///< logarithms of base 2 where the axis is logarithmic
  std::vector<double> ticks_;
};

struct AxisRange {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
};

AxisRange RangeOf(const Plot& plot, double PlotPoint::*coordinate) {
  AxisRange range;
  for (const Curve& curve : plot.curves) {
    for (const PlotPoint& point : curve.points) {
      range.least = std::min(range.least, point.*coordinate);
      range.most = std::max(range.most, point.*coordinate);
    }
  }
  return range;
}

Status CheckPlot(const Plot& plot) {
  bool any = false;
  for (const Curve& curve : plot.curves) {
    PREPOST_CHECK(curve.panel < std::max<size_t>(1, plot.panels.size()));
    for (const PlotPoint& point : curve.points) {
      any = true;
      if (!std::isfinite(point.x) || !std::isfinite(point.y)) {
        return Rejected("a value to plot is not finite", curve.name);
      }
      if ((plot.x.logarithmic && point.x <= 0) || (plot.y.logarithmic && point.y <= 0)) {
        return Rejected(
            fmt::format("({:g}, {:g}) has no place on a logarithmic axis", point.x, point.y),
            curve.name);
      }
    }
  }
  if (!any) return Rejected("there is nothing to plot");
  return {};
}

class PlotPicture {
 public:
  explicit PlotPicture(const Plot& plot)
      : plot_(plot),
        layout_(LayoutOf(plot.panels.size())),
        x_(MakeScale(plot.x, RangeOf(plot, &PlotPoint::x), /*from_zero=*/false)),
        y_(MakeScale(plot.y, RangeOf(plot, &PlotPoint::y), /*from_zero=*/true)) {
    std::string widest;
    for (const double tick : y_.ticks()) {
      if (y_.Text(tick).size() > widest.size()) widest = y_.Text(tick);
    }
    double names = 0;
    for (const Curve& curve : plot_.curves) names = std::max(names, TextWidth(curve.name, 12));
    left_ = ChartLeft(widest);
    right_ = kNamesLeft + kSampleWidth + static_cast<int>(names) + 28;
    title_height_ = plot.panels.empty() ? 0 : kTitleHeight;
  }

  std::string Draw() {
    const auto panels = static_cast<int>(std::max<size_t>(1, plot_.panels.size()));
    const Box last_column = AreaOf(std::min(panels, layout_.columns) - 1);
    const Box last_row = AreaOf(panels - 1);
    const Grid grid{.left = left_,
                    .top = kTop,
                    .cell_width = last_column.x + last_column.width - left_,
                    .cell_height = last_row.y + last_row.height + kBelow - kTop,
                    .columns = 1,
                    .rows = 1};
    std::string style(kPlotStyle);
    for (size_t i = 0; i < plot_.curves.size(); ++i) {
      style += fmt::format(".k{}{{stroke:{};fill:none;stroke-width:2{}}}", i, Hex(ColorOf(i)),
                           plot_.curves[i].is_dashed ? ";stroke-dasharray:7 4" : "");
    }
    Svg svg = StartChart(
        grid,
        {.headline = plot_.headline, .subline = plot_.subline, .note = plot_.note, .right = ""},
        right_, style);
    for (int panel = 0; panel < panels; ++panel) DrawPanel(svg, panel);
    return std::move(svg).Finish();
  }

 private:
  static Scale MakeScale(const PlotAxis& axis, AxisRange range, bool from_zero) {
    return Scale(axis, range.least, range.most, from_zero);
  }
  /// Where a panel's curves are.
  Box AreaOf(int panel) const {
    const int column_width = left_ + layout_.width + right_ + kPanelSpace - kChartMargin;
    const int row_height = layout_.height + kBelow + kRowSpace + title_height_;
    return {left_ + panel % layout_.columns * column_width,
            kTop + title_height_ + panel / layout_.columns * row_height, layout_.width,
            layout_.height};
  }
  /// Not the yellow end, which is faint on white.
  Color ColorOf(size_t curve) const {
    uint32_t count = 1;
    for (size_t i = 0; i < plot_.curves.size(); ++i) count = std::max(count, NumberOf(i) + 1);
    return BlockColor(NumberOf(curve), count + count / 4 + 1);
  }
  uint32_t NumberOf(size_t curve) const {
    return plot_.curves[curve].color.value_or(static_cast<uint32_t>(curve));
  }
  int X(double x) const { return area_.x + static_cast<int>(std::lround(x_.At(x) * area_.width)); }
  int Y(double y) const {
    return area_.y + area_.height - static_cast<int>(std::lround(y_.At(y) * area_.height));
  }
  Point At(const PlotPoint& point) const { return {X(point.x), Y(point.y)}; }

  void DrawPanel(Svg& svg, int panel) {
    area_ = AreaOf(panel);
    const auto index = static_cast<size_t>(panel);
    if (index < plot_.panels.size())
      svg.Text("title", area_.x, area_.y - 10 - kTitleHeight, plot_.panels[index]);
    DrawAxes(svg);
    std::vector<size_t> curves;
    for (size_t i = 0; i < plot_.curves.size(); ++i) {
      if (plot_.panels.empty() || plot_.curves[i].panel == index) curves.push_back(i);
    }
    for (const size_t curve : curves) DrawCurve(svg, curve);
    DrawNames(svg, curves);
  }

  /// Every so many ticks have their number: as many as there is room for.
  size_t NumberStride() const {
    constexpr double kSpace = 3;
    const std::vector<double>& ticks = x_.ticks();
    const auto is_room = [&](size_t stride) {
      for (size_t i = stride; i < ticks.size(); i += stride) {
        const double widths =
            TextWidth(x_.Text(ticks[i - stride]), 11) + TextWidth(x_.Text(ticks[i]), 11);
        if (X(ticks[i]) - X(ticks[i - stride]) < widths / 2 + kSpace) return false;
      }
      return true;
    };
    size_t stride = 1;
    while (!is_room(stride)) ++stride;
    return stride;
  }

  void DrawAxes(Svg& svg) const {
    const int bottom = area_.y + area_.height;
    std::vector<Line> lines;
    for (const double tick : x_.ticks()) {
      lines.push_back({{X(tick), area_.y}, {X(tick), bottom}});
    }
    for (const double tick : y_.ticks()) {
      lines.push_back({{area_.x, Y(tick)}, {area_.x + area_.width, Y(tick)}});
    }
    svg.Lines("tick", lines);
    svg.Rect("frame", area_);
    const size_t stride = NumberStride();
    for (size_t i = 0; i < x_.ticks().size(); i += stride)
      svg.Text("x", X(x_.ticks()[i]), bottom + 16, x_.Text(x_.ticks()[i]));
    for (const double tick : y_.ticks()) svg.Text("r", area_.x - 6, Y(tick) + 4, y_.Text(tick));
    svg.Text("axis", area_.x + area_.width / 2, bottom + 36, plot_.x.name);
    svg.Text("yname", area_.x - left_ + kChartMargin, area_.y - 10, plot_.y.name);
  }

  void DrawCurve(Svg& svg, size_t index) const {
    const Curve& curve = plot_.curves[index];
    std::vector<Line> lines;
    for (size_t i = 1; i < curve.points.size(); ++i) {
      lines.push_back({At(curve.points[i - 1]), At(curve.points[i])});
    }
    if (!lines.empty()) svg.Lines(fmt::format("k{}", index), lines);
    for (const PlotPoint& point : curve.points) {
      const Point at = At(point);
      svg.BeginGroup("point",
                     fmt::format("{}: {}, {}", curve.name, x_.Text(point.x), y_.Text(point.y)));
      svg.Rect("", {at.x - 3, at.y - 3, 6, 6}, ColorOf(index));
      svg.EndGroup();
    }
  }

  /// Right of the panel, at the curves' ends, pushed apart where these are close.
  void DrawNames(Svg& svg, const std::vector<size_t>& curves) const {
    struct Name {
      size_t curve;
      Point end;
      int y;
    };
    std::vector<Name> names;
    for (const size_t i : curves) {
      if (plot_.curves[i].points.empty()) continue;
      const Point end = At(plot_.curves[i].points.back());
      names.push_back({i, end, end.y});
    }
    std::ranges::stable_sort(names, {}, &Name::y);
    for (size_t i = 1; i < names.size(); ++i) {
      names[i].y = std::max(names[i].y, names[i - 1].y + kNameHeight);
    }
    int lowest = area_.y + area_.height;
    for (size_t i = names.size(); i-- > 0; lowest -= kNameHeight) {
      names[i].y = std::min(names[i].y, lowest);
    }
    const int left = area_.x + area_.width + kNamesLeft;
    for (const Name& name : names) {
      svg.Lines("lead", std::array{Line{name.end, {left - 4, name.y}}});
      svg.Lines(fmt::format("k{}", name.curve),
                std::array{Line{{left, name.y}, {left + kSampleWidth, name.y}}});
      svg.Rect("", {left + kSampleWidth / 2 - 3, name.y - 3, 6, 6}, ColorOf(name.curve));
      svg.Text("l", left + kSampleWidth + 6, name.y + 4, plot_.curves[name.curve].name);
    }
  }

  const Plot& plot_;
  const PanelLayout layout_;
  Scale x_;
  Scale y_;
  int left_ = 0;          ///< of a panel's area: its numbers
  int right_ = 0;         ///< of its area: curves' names
  int title_height_ = 0;  ///< 0: none
  Box area_;              ///< of the panel that is drawn
};

}  // namespace

Result<std::string> DrawPlot(const Plot& plot) {
  PREPOST_RETURN_IF_ERROR(CheckPlot(plot));
  return PlotPicture(plot).Draw();
}

double GrowthExponent(const Curve& curve) {
  double x_sum = 0, y_sum = 0, xx_sum = 0, xy_sum = 0;
  const auto count = static_cast<double>(curve.points.size());
  for (const PlotPoint& point : curve.points) {
    const double x = std::log(point.x), y = std::log(point.y);
    x_sum += x;
    y_sum += y;
    xx_sum += x * x;
    xy_sum += x * y;
  }
  const double spread = count * xx_sum - x_sum * x_sum;
  return spread <= 1e-12 ? 0 : (count * xy_sum - x_sum * y_sum) / spread;
}

}  // namespace prepost::viz
