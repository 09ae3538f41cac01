// SPDX-License-Identifier: Apache-2.0
#include "tools/report/plot_panels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "tests/support/random.h"

namespace prepost::tools::plot_panels_test {
namespace {

using ::testing::HasSubstr;

std::vector<size_t> PartsOf(const std::vector<size_t>& sizes) {
  const Result<PlotPanels> panels = PlotPanels::Choose(sizes);
  std::vector<size_t> parts;
  for (size_t i = 0; panels.ok() && i < sizes.size(); ++i) parts.push_back(panels->parts(i));
  return parts;
}

// Catches panels that are more than needed, and cuts through the middle of what could stay whole.
TEST(PlotPanelsTest, WholeDimensionsComeFirst) {
  using Parts = std::vector<size_t>;
  EXPECT_EQ(PartsOf({2, 6}), Parts({1, 1}));
  EXPECT_EQ(PartsOf({2, 9}), Parts({2, 1})) << "executors";
  EXPECT_EQ(PartsOf({1, 9, 3}), Parts({1, 1, 3})) << "values of a key";
  EXPECT_EQ(PartsOf({2, 9, 3}), Parts({2, 1, 3}));
  EXPECT_EQ(PartsOf({1, 18}), Parts({1, 2})) << "nothing else to cut";
  EXPECT_EQ(PartsOf({2, 1, 144}), Parts({2, 1, 12}));
}

// Catches curves that get lost between panels, and panels with more than they hold.
TEST(PlotPanelsTest, EachCurveHasAPlace) {
  test::Random random(test::TestSeed());
  SCOPED_TRACE(::testing::Message() << "seed " << test::TestSeed());
  for (int i = 0; i < 300; ++i) {
    std::vector<size_t> sizes;
    for (size_t left = kPanelsMax * kPanelCurvesMax / 2; left > 1 && sizes.size() < 4;) {
      sizes.push_back(1 + random.Below(std::min<size_t>(left, 40)));
      left /= sizes.back();
    }
    SCOPED_TRACE(::testing::PrintToString(sizes));
    const Result<PlotPanels> panels = PlotPanels::Choose(sizes);
    if (!panels.ok()) continue;
    std::map<size_t, size_t> counts;
    const size_t curves =
        std::accumulate(sizes.begin(), sizes.end(), size_t{1}, std::multiplies<>());
    for (size_t curve = 0; curve < curves; ++curve) {
      std::vector<size_t> places(sizes.size());
      for (size_t rest = curve, j = sizes.size(); j-- > 0; rest /= sizes[j])
        places[j] = rest % sizes[j];
      const size_t panel = panels->PanelOf(places);
      ++counts[panel];
      for (size_t j = 0; j < sizes.size(); ++j)
        EXPECT_EQ(panels->PartOf(panel, j), places[j] / panels->part_size(j));
    }
    EXPECT_EQ(counts.size(), panels->panels()) << "one is empty";
    EXPECT_LE(panels->panels(), kPanelsMax);
    for (const auto& [panel, count] : counts) EXPECT_LE(count, kPanelCurvesMax);
  }
}

TEST(PlotPanelsTest, TooManyAreRefused) {
  EXPECT_TRUE(PlotPanels::Choose({2, 12, 12}).ok());
  const Result<PlotPanels> more = PlotPanels::Choose({2, 12, 13});
  EXPECT_EQ(more.status().code(), StatusCode::kUsage);
  EXPECT_THAT(more.status().message(), HasSubstr("312 curves do not fit in 24 panels of 12"));
  EXPECT_FALSE(PlotPanels::Choose(std::vector<size_t>(2000, 2)).ok());
}

}  // namespace
}  // namespace prepost::tools::plot_panels_test
