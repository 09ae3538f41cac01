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

#include "prepost/viz/plot.h"
#include "tools/simulation_print.h"
#include "tools/sweep_output.h"
#include "tools/sweep_text.h"

namespace prepost::tools {
namespace {

using Json = nlohmann::ordered_json;

/// What each value of an axis is called in the name of a curve: as people read it, a file by its
/// stem; all as they are given if two would be called alike.
std::vector<std::string> LabelsOf(const SweepAxis& axis) {
  const bool is_alone = axis.key == "profile" || (!axis.is_numeric && axis.key == "algorithm");
  std::vector<std::string> labels;
  for (size_t i = 0; i < axis.values.size(); ++i) {
    const std::string text = Readable(axis, i);
    labels.push_back(axis.key == "profile" ? std::filesystem::path(text).stem().string() : text);
  }
  if (std::set<std::string>(labels.begin(), labels.end()).size() < labels.size())
    std::ranges::transform(axis.values, labels.begin(), &SweepValue::text);
  if (is_alone) return labels;
  for (std::string& label : labels) label = axis.key + " " + label;
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
constexpr size_t kCurvesMax = 16;

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

/// A curve for each executor and each combination of the axes after the first, which both have in
/// one colour; or one, in a colour of its own, for an executor that these leave as it is.
std::vector<viz::Curve> NamedCurves(const Sweep& sweep, const std::string& y) {
  std::vector<std::vector<std::string>> labels;
  for (size_t i = 1; i < sweep.axes.size(); ++i) labels.push_back(LabelsOf(sweep.axes[i]));
  std::vector<CurvesOfPoints> all;
  std::map<SweepPoint, uint32_t> colors;
  for (const SweptExecutor& executor : kSweptExecutors) {
    all.push_back(CurvesOf(sweep, executor, y));
    for (const auto& [others, curve] : all.back())
      colors.try_emplace(others, static_cast<uint32_t>(colors.size()));
  }
  std::vector<viz::Curve> named;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_merged = AreEqual(all[i]);
    for (auto& [others, curve] : all[i]) {
      curve.name = kSweptExecutors[i].name;
      for (size_t axis = 0; axis < others.size() && !is_merged; ++axis)
        curve.name += ", " + labels[axis][others[axis]];
      curve.color =
          is_merged && colors.size() > 1 ? static_cast<uint32_t>(colors.size()) : colors[others];
      curve.is_dashed = i > 0;
      named.push_back(std::move(curve));
      if (is_merged) break;
    }
  }
  return named;
}

}  // namespace

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
                    .curves = NamedCurves(sweep, y)};
  if (plot.curves.size() > kCurvesMax) {
    return Rejected(
        fmt::format("--plot: {} curves, the limit is {}: sweep fewer values, or one "
                    "executor",
                    plot.curves.size(), kCurvesMax));
  }
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
