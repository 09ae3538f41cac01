// SPDX-License-Identifier: Apache-2.0
#include "planning/simulation/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ir/base/status.h"

namespace prepost {

double PercentileOf(const std::vector<double>& sorted, int percent) {
  if (sorted.empty()) return 0;
  const size_t rank = (sorted.size() * static_cast<size_t>(percent) + 99) / 100;
  return sorted[std::max<size_t>(rank, 1) - 1];
}

Statistics Statistics::Of(std::vector<double> figures) {
  PREPOST_CHECK(figures.size() >= 2);
  std::ranges::sort(figures);
  Statistics found = {.least = figures.front(),
                      .p5 = PercentileOf(figures, 5),
                      .p50 = PercentileOf(figures, 50),
                      .p95 = PercentileOf(figures, 95),
                      .most = figures.back()};
  // Over the least: what adding up loses is little of what they differ by, and nothing of equals.
  const auto count = static_cast<double>(figures.size());
  double above = 0;
  for (const double figure : figures) above += (figure - found.least) / count;
  found.mean = found.least + above;
  for (const double figure : figures) {
    const double from_mean = figure - found.mean;
    found.deviation += from_mean * from_mean / (count - 1);
  }
  found.deviation = std::sqrt(found.deviation);
  return found;
}

}  // namespace prepost
