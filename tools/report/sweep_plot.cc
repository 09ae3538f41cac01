// SPDX-License-Identifier: Apache-2.0
//
// PlotSweep(): a sweep's figures over its first axis.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "tools/report/plot_panels.h"
#include "tools/report/simulation_print.h"
#include "tools/report/sweep_output.h"
#include "tools/report/sweep_text.h"
#include "viz/plot.h"

namespace prepost::tools {
namespace {

using Json = nlohmann::ordered_json;

/// What the values of an axis are called in the names of curves and panels.
struct AxisLabels {
  std::string key;  ///< "nodes ", or nothing where values say it alone
  std::vector<std::string> values;
};

/// As people read them, a file by its stem; all as they are given if two would be called alike.
AxisLabels LabelsOf(const SweepAxis& axis) {
  const bool is_alone = axis.key == "profile" || (!axis.is_numeric && axis.key == "algorithm");
  AxisLabels labels = {.key = is_alone ? "" : axis.key + " ", .values = {}};
  std::vector<std::string>& values = labels.values;
  for (size_t i = 0; i < axis.values.size(); ++i) {
    const std::string text = Readable(axis, i);
    values.push_back(axis.key == "profile" ? std::filesystem::path(text).stem().string() : text);
  }
  if (std::set<std::string>(values.begin(), values.end()).size() < values.size())
    std::ranges::transform(axis.values, values.begin(), &SweepValue::text);
  return labels;
}

double FigureOf(const Json& executor, const Json& found, const std::string& y) {
  if (y == "bandwidth" && executor.contains("aggregate_bytes_per_second"))
    return 8 * NumberAt(executor, "aggregate_bytes_per_second");
  if (y == "bandwidth")
    return 8 * NumberAt(found, "message_bytes") / NumberAt(executor, "completion_seconds");
  if (y == "of-bound") return NumberAt(executor, "of_bound");
  if (y == "skew") return NumberAt(executor, "skew_seconds");
  if (y == "known") return NumberAt(executor, "known_seconds");
  return NumberAt(executor, "completion_seconds");
}

viz::PlotAxis YAxis(const std::string& y, bool has_groups) {
  if (y == "bandwidth" && has_groups)
    return {"all messages / time until all groups are complete", "bit/s", false};
  if (y == "bandwidth") return {"the message / time until all nodes have it", "bit/s", false};
  if (y == "of-bound") return {"time until all nodes have it / lower bound", "", false};
  if (y == "skew") return {"last node's time - first node's", "s", false};
  if (y == "known") return {"time until all hosts know", "s", false};
  return {"time until all nodes have it", "s", false};
}

constexpr double kWideRange = 20;  ///< from which on an axis is logarithmic

/// By what all axes but the first are.
using CurvesOfPoints = std::map<SweepPoint, viz::Curve>;

/// An executor's, without names and colours.
CurvesOfPoints CurvesOf(const Sweep& sweep, const SweptExecutor& executor, const std::string& y) {
  const SweepAxis& x = sweep.axes.front();
  const double scale = x.unit == SweepUnit::kBytesPerSecond ? 8 : 1;  // as in the table
  CurvesOfPoints curves;
  for (const SweepRow& row : sweep.rows) {
    if (!row.status.ok() || !row.found.contains(executor.key)) continue;
    const double value = FigureOf(row.found[executor.key], row.found, y);
    if (!std::isfinite(value)) continue;
    curves[SweepPoint(row.point.begin() + 1, row.point.end())].points.push_back(
        {scale * *x.values[row.point[0]].number, value});
  }
  for (auto& [others, curve] : curves)
    std::ranges::stable_sort(curve.points, {}, &viz::PlotPoint::x);
  return curves;
}

bool AreEqual(const CurvesOfPoints& curves) {
  const auto same = [](const viz::PlotPoint& a, const viz::PlotPoint& b) {
    return a.x == b.x && a.y == b.y;
  };
  return std::ranges::all_of(curves, [&](const auto& it) {
    return std::ranges::equal(it.second.points, curves.begin()->second.points, same);
  });
}

/// Curves with their panels, names and colours. Dimensions of the panels are the executors whose
/// curves differ, and the axes after the first. An executor that these leave as it is has one curve,
/// which all panels show.
class NamedCurves {
 public:
  /// In panels if one cannot hold them.
  NamedCurves(const Sweep& sweep, const std::string& y) : panels_({}) {
    size_t count = 0;
    for (const SweptExecutor& executor : kSweptExecutors) {
      CurvesOfPoints curves = CurvesOf(sweep, executor, y);
      if (curves.empty()) continue;
      size_t combinations = 1;
      for (size_t i = 1; i < sweep.axes.size(); ++i) combinations *= sweep.axes[i].values.size();
      // One curve of several combinations is named, if the others have none.
      const bool is_merged = curves.size() == combinations && AreEqual(curves);
      count += is_merged ? 1 : curves.size();
      ran_.push_back({&executor, std::move(curves), is_merged});
    }
    // Those that come first have places in the first dimension.
    std::ranges::stable_partition(ran_, [](const Executor& it) { return !it.is_merged; });
    const auto unmerged = std::ranges::count(ran_, false, &Executor::is_merged);
    std::vector<size_t> sizes = {std::max<size_t>(1, static_cast<size_t>(unmerged))};
    for (size_t i = 1; i < sweep.axes.size(); ++i) {
      labels_.push_back(LabelsOf(sweep.axes[i]));
      sizes.push_back(sweep.axes[i].values.size());
    }
    panels_ = PlotPanels(sizes);
    if (count <= kPanelCurvesMax) return;
    Result<PlotPanels> chosen = PlotPanels::Choose(sizes);
    PREPOST_CHECK(chosen.ok());  // CheckPlot()
    panels_ = *std::move(chosen);
  }

  /// Panels are those that have a curve.
  void AddTo(viz::Plot* plot) {
    for (size_t panel = 0; panel < panels_.panels(); ++panel) {
      std::vector<viz::Curve> curves = CurvesIn(panel);
      if (curves.empty()) continue;
      const auto index = static_cast<uint32_t>(plot->panels.size());
      plot->panels.push_back(TitleOf(panel));
      for (viz::Curve& curve : curves) {
        curve.panel = index;
        plot->curves.push_back(std::move(curve));
      }
    }
    if (panels_.panels() == 1) plot->panels.clear();
  }

 private:
  struct Executor {
    const SweptExecutor* executor;
    CurvesOfPoints curves;
    bool is_merged;  ///< into one curve
  };

  /// A curve for each executor and each combination, which both have in one colour; that of an
  /// executor which has one alone is in a colour of its own.
  std::vector<viz::Curve> CurvesIn(size_t panel) const {
    std::vector<viz::Curve> named;
    for (size_t place = 0; place < ran_.size(); ++place) {
      const Executor& it = ran_[place];
      for (const auto& [others, curve] : it.curves) {
        std::vector<size_t> places = {place};
        places.insert(places.end(), others.begin(), others.end());
        if (!it.is_merged && panels_.PanelOf(places) != panel) continue;
        viz::Curve& added = named.emplace_back(curve);
        added.name = NameOf(it, others);
        added.color = ColorOf(it, others);
        added.is_dashed = it.executor != kSweptExecutors;
        if (it.is_merged) break;
      }
    }
    return named;
  }

  /// What the panel's title does not say.
  std::string NameOf(const Executor& it, const SweepPoint& others) const {
    std::string name = panels_.parts(0) == 1 || it.is_merged ? it.executor->name : "";
    for (size_t i = 0; i < others.size() && !it.is_merged; ++i) {
      if (panels_.parts(i + 1) > 1 && panels_.part_size(i + 1) == 1) continue;
      name += (name.empty() ? "" : ", ") + labels_[i].key + labels_[i].values[others[i]];
    }
    return name.empty() ? it.executor->name : name;
  }

  /// Of one panel, so that its curves are as unlike as can be.
  uint32_t ColorOf(const Executor& it, const SweepPoint& others) const {
    size_t color = 0, count = 1;
    for (size_t i = 0; i < others.size(); ++i) {
      const size_t size = panels_.part_size(i + 1);
      color = color * size + others[i] % size;
      count *= size;
    }
    return static_cast<uint32_t>(it.is_merged && count > 1 ? count : color);
  }

  /// "CPU-driven, nodes 2 to 16".
  std::string TitleOf(size_t panel) const {
    std::string title;
    const auto add = [&](const std::string& text) { title += (title.empty() ? "" : ", ") + text; };
    if (panels_.parts(0) > 1) add(ran_[panels_.PartOf(panel, 0)].executor->name);
    for (size_t i = 0; i < labels_.size(); ++i) {
      if (panels_.parts(i + 1) == 1) continue;
      const std::vector<std::string>& values = labels_[i].values;
      const size_t size = panels_.part_size(i + 1);
      const size_t first = panels_.PartOf(panel, i + 1) * size;
      const size_t last = std::min(first + size, values.size()) - 1;
      const char* between = last == first + 1 ? " and " : " to ";
      add(labels_[i].key + values[first] + (last > first ? between + values[last] : ""));
    }
    return title;
  }

  std::vector<Executor> ran_;
  std::vector<AxisLabels> labels_;  ///< of the axes after the first
  PlotPanels panels_;
};

}  // namespace

Status CheckPlot(const std::vector<SweepAxis>& axes, const std::string& executor) {
  if (!axes.front().is_numeric) {
    return {StatusCode::kUsage,
            fmt::format("--plot: {} has words; the first --sweep is the axis, and needs numbers",
                        axes.front().key)};
  }
  const bool is_swept = std::ranges::find(axes, "executor", &SweepAxis::key) != axes.end();
  std::vector<size_t> sizes = {executor == "both" || is_swept ? size_t{2} : 1};
  for (size_t i = 1; i < axes.size(); ++i) sizes.push_back(axes[i].values.size());
  return PlotPanels::Choose(sizes).status();
}

Result<std::string> PlotSweep(const Sweep& sweep, const std::string& y) {
  const SweepAxis& x = sweep.axes.front();
  PREPOST_CHECK(x.is_numeric);
  constexpr std::array kUnits = {"", "B", "s", "bit/s"};
  const bool is_alone = x.values.size() == 1 && *x.values.front().number > 0;
  const bool has_groups = std::ranges::any_of(
      sweep.rows, [](const SweepRow& row) { return row.found.contains("groups"); });
  viz::Plot plot = {.headline = y + " against " + x.key,
                    .subline = Modelled(sweep, /*has_paths=*/false) +
                               DeviationsText(sweep.deviations, kDeviationsShownMax),
                    .note = Common(sweep),
                    .x = {x.key, kUnits[static_cast<size_t>(x.unit)], x.is_geometric || is_alone},
                    .y = YAxis(y, has_groups),
                    .curves = {}};
  NamedCurves(sweep, y).AddTo(&plot);
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const viz::Curve& curve : plot.curves) {
    for (const viz::PlotPoint& point : curve.points) {
      least = std::min(least, point.y);
      most = std::max(most, point.y);
    }
  }
  plot.y.logarithmic = least > 0 && most > kWideRange * least;
  Result<std::string> svg = viz::DrawPlot(plot);
  if (!svg.ok()) return Rejected("--plot: " + svg.status().ToString());
  return svg;
}

}  // namespace prepost::tools
