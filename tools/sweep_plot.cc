// SPDX-License-Identifier: Apache-2.0
//
// PlotSweep(): a sweep's figures over its first axis.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>

#include "prepost/viz/plot.h"
#include "tools/simulation_print.h"
#include "tools/sweep_output.h"
#include "tools/sweep_text.h"

namespace prepost::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string Labelled(const SweepAxis& axis, size_t value) {
  const bool is_word = !axis.is_numeric();
  const std::string text = Readable(axis, value);
  if (axis.key == "profile") return std::filesystem::path(text).stem().string();
  return is_word && axis.key == "algorithm" ? text : axis.key + " " + text;
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

/// Of an executor that all axes but the first leave as it is, one curve.
void MergeEqual(const char* name, std::vector<viz::Curve>* curves) {
  const auto is_of_it = [&](const viz::Curve& curve) { return curve.name.starts_with(name); };
  const auto first = std::ranges::find_if(*curves, is_of_it);
  if (first == curves->end()) return;
  const auto same = [&](const viz::Curve& curve) {
    return std::ranges::equal(curve.points, first->points, [](const auto& a, const auto& b) {
      return a.x == b.x && a.y == b.y;
    });
  };
  if (!std::ranges::all_of(*curves,
                           [&](const viz::Curve& it) { return !is_of_it(it) || same(it); }))
    return;
  first->name = name;
  curves->erase(std::remove_if(first + 1, curves->end(), is_of_it), curves->end());
}

}  // namespace

Result<std::string> PlotSweep(const Sweep& sweep, const std::string& y) {
  const SweepAxis& x = sweep.axes.front();
  PREPOST_CHECK(x.is_numeric());
  constexpr std::array kUnits = {"", "B", "s", "bit/s"};
  const double scale = x.unit == SweepUnit::kBytesPerSecond ? 8 : 1;  // as in the table
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
  std::vector<std::string> colors;  // what all axes but the first are
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const SweptExecutor& executor : kSweptExecutors) {
    for (const SweepRow& row : sweep.rows) {
      if (!row.status.ok() || !row.found.contains(executor.key)) continue;
      std::string others;
      for (size_t i = 1; i < sweep.axes.size(); ++i)
        others += ", " + Labelled(sweep.axes[i], row.point[i]);
      const std::string name = executor.name + others;
      const double value = FigureOf(row.found[executor.key], row.found, y);
      if (!std::isfinite(value)) continue;
      auto curve = std::ranges::find(plot.curves, name, &viz::Curve::name);
      if (curve == plot.curves.end()) {
        auto color = std::ranges::find(colors, others);
        if (color == colors.end()) color = colors.insert(color, others);
        plot.curves.push_back({.name = name,
                               .points = {},
                               .color = static_cast<uint32_t>(color - colors.begin()),
                               .is_dashed = &executor != kSweptExecutors});
        curve = plot.curves.end() - 1;
      }
      curve->points.push_back({scale * *x.values[row.point[0]].number, value});
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  for (viz::Curve& curve : plot.curves)
    std::ranges::stable_sort(curve.points, {}, &viz::PlotPoint::x);
  for (const SweptExecutor& executor : kSweptExecutors) MergeEqual(executor.name, &plot.curves);
  for (viz::Curve& curve : plot.curves) {
    const bool is_merged = colors.size() > 1 && (curve.name == kSweptExecutors[0].name ||
                                                 curve.name == kSweptExecutors[1].name);
    if (is_merged) curve.color = static_cast<uint32_t>(colors.size());
  }
  if (plot.curves.size() > kCurvesMax) {
    return Rejected(
        fmt::format("--plot: {} curves, the limit is {}: sweep fewer values, or one "
                    "executor",
                    plot.curves.size(), kCurvesMax));
  }
  plot.y.logarithmic = least > 0 && most > kWideRange * least;
  Result<std::string> svg = viz::DrawPlot(plot);
  if (!svg.ok()) return Rejected("--plot: " + svg.status().ToString());
  return svg;
}

}  // namespace prepost::tools
