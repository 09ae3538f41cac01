// SPDX-License-Identifier: Apache-2.0
//
// Statistics: mean, deviation, percentiles and ends of some figures.
#ifndef PREPOST_PLANNING_SIMULATION_STATISTICS_H_
#define PREPOST_PLANNING_SIMULATION_STATISTICS_H_

#include <vector>

namespace prepost {

/// The smallest of `sorted` that at least `percent` % do not exceed; 0 of none.
double PercentileOf(const std::vector<double>& sorted, int percent);

/// Of two figures or more that were drawn.
struct Statistics {
  double mean = 0;
  double deviation = 0;  ///< of a sample: the squares are divided by n - 1
  double least = 0;
  double p5 = 0;
  double p50 = 0;
  double p95 = 0;
  double most = 0;

  /// In any order. Figures that are equal have them as their mean, and no deviation.
  static Statistics Of(std::vector<double> figures);
};

/// A statistic by the name that reports have for it.
struct NamedStatistic {
  const char* name;
  double Statistics::*value;
};
inline constexpr NamedStatistic kStatistics[] = {
    {"mean", &Statistics::mean}, {"deviation", &Statistics::deviation},
    {"min", &Statistics::least}, {"p5", &Statistics::p5},
    {"p50", &Statistics::p50},   {"p95", &Statistics::p95},
    {"max", &Statistics::most}};

}  // namespace prepost

#endif  // PREPOST_PLANNING_SIMULATION_STATISTICS_H_
