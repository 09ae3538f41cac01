// SPDX-License-Identifier: Apache-2.0
#include "planning/simulation/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace prepost::statistics_test {
namespace {

// Catches percentiles that are a rank off, and a deviation of all there are in place of a sample's.
TEST(StatisticsTest, AreThoseOfTheFigures) {
  std::vector<double> figures;
  for (int i = 100; i >= 1; --i) figures.push_back(i);
  const Statistics found = Statistics::Of(figures);
  EXPECT_EQ(found.least, 1);
  EXPECT_EQ(found.p5, 5);
  EXPECT_EQ(found.p50, 50);
  EXPECT_EQ(found.p95, 95);
  EXPECT_EQ(found.most, 100);
  EXPECT_DOUBLE_EQ(found.mean, 50.5);
  EXPECT_DOUBLE_EQ(found.deviation, std::sqrt(100.0 * 101 / 12));
  const Statistics two = Statistics::Of({3, 1});
  EXPECT_EQ(two.p5, 1);
  EXPECT_EQ(two.p50, 1) << "the smallest that half of them do not exceed";
  EXPECT_EQ(two.p95, 3);
  EXPECT_EQ(two.mean, 2);
  EXPECT_DOUBLE_EQ(two.deviation, std::sqrt(2.0));
}

// Catches what adding up loses.
TEST(StatisticsTest, EqualsHaveNoDeviation) {
  for (const double figure : {0.1, 1.0 / 3, 1e9 / 7}) {
    const Statistics found = Statistics::Of(std::vector<double>(997, figure));
    EXPECT_EQ(found.mean, figure);
    EXPECT_EQ(found.deviation, 0);
    EXPECT_EQ(found.p50, figure);
  }
}

TEST(StatisticsTest, NoFiguresHaveNoPercentile) { EXPECT_EQ(PercentileOf({}, 50), 0); }

}  // namespace
}  // namespace prepost::statistics_test
