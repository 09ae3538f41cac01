// SPDX-License-Identifier: Apache-2.0
#include "viz/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace prepost::viz::plot_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Plot Growth() {
  Plot plot{.headline = "time <of> things",
            .subline = "measured",
            .note = "",
            .x = {.name = "nodes", .unit = "", .logarithmic = true},
            .y = {.name = "time", .unit = "s", .logarithmic = true},
            .curves = {{"square", {}}, {"line", {}}}};
  for (const double x : {2.0, 4.0, 8.0, 16.0}) {
    plot.curves[0].points.push_back({x, 1e-3 * x * x});
    plot.curves[1].points.push_back({x, 5e-4 * x});
  }
  return plot;
}

// On log-log axes equal factors are equal ways: a power is a straight line from corner to corner.
TEST(PlotTest, LogarithmicAxesMakePowersStraight) {
  Plot plot = Growth();
  plot.curves.pop_back();
  plot.curves[0].points = {{2, 2}, {4, 4}, {8, 8}, {16, 16}};
  plot.y.unit = "";
  const std::string svg = *DrawPlot(plot);
  // Thirds of 620 and 380 pixels.
  EXPECT_THAT(svg, HasSubstr("\"M40 488L247 361M247 361L453 235M453 235L660 108\""));
}

TEST(PlotTest, NumbersHaveTheirUnitAndCurvesTheirNames) {
  const std::string svg = *DrawPlot(Growth());
  EXPECT_THAT(svg, HasSubstr(">16</text>"));
  EXPECT_THAT(svg, HasSubstr("ms</text>"));
  EXPECT_THAT(svg, HasSubstr(">square</text>"));
  EXPECT_THAT(svg, HasSubstr("time &lt;of&gt; things"));
  EXPECT_EQ(svg, *DrawPlot(Growth()));
}

// Catches 2 MB where values are in MiB.
TEST(PlotTest, BytesAreInPowersOfTwo) {
  Plot plot = Growth();
  plot.x = {.name = "message", .unit = "B", .logarithmic = false};
  plot.curves.pop_back();
  plot.curves[0].points = {{0, 1}, {8 << 20, 2}};
  const std::string svg = *DrawPlot(plot);
  for (const char* tick : {">1 MiB<", ">4 MiB<", ">8 MiB<"}) EXPECT_THAT(svg, HasSubstr(tick));
  EXPECT_THAT(svg, Not(HasSubstr("MB")));
}

// Catches panels on top of each other, with scales of their own, or with each other's curves.
TEST(PlotTest, PanelsHaveTheSameAxes) {
  Plot plot = Growth();
  plot.panels = {"first & best", "second"};
  plot.curves[1].panel = 1;
  const std::string svg = *DrawPlot(plot);
  EXPECT_THAT(svg, HasSubstr(">first &amp; best</text>"));
  size_t frames = 0, sixteens = 0;
  for (size_t at = 0; (at = svg.find("class=\"frame\"", at)) != std::string::npos; ++at) ++frames;
  for (size_t at = 0; (at = svg.find(">16</text>", at)) != std::string::npos; ++at) ++sixteens;
  EXPECT_EQ(frames, 2u);
  EXPECT_EQ(sixteens, 2u);
  const auto x_of = [&](const char* title) {
    const size_t at = svg.find(title);
    return std::stoi(svg.substr(svg.rfind("x=\"", at) + 3));
  };
  EXPECT_GT(x_of(">second<"), x_of(">first &amp; best<") + 460);
  EXPECT_GT(x_of(">line<"), x_of(">second<") + 460) << "in the second panel";
  EXPECT_LT(x_of(">square<"), x_of(">second<"));
}

// Catches numbers that run into each other where a panel is narrow.
TEST(PlotTest, NumbersHaveRoom) {
  Plot plot = Growth();
  plot.x.unit = "B";
  plot.curves.pop_back();
  plot.curves[0].points = {{1024, 1}, {double(1 << 22), 2}};
  EXPECT_THAT(*DrawPlot(plot), HasSubstr(">2 KiB<"));
  plot.panels.resize(9);
  const std::string narrow = *DrawPlot(plot);
  EXPECT_THAT(narrow, Not(HasSubstr(">2 KiB<")));
  EXPECT_THAT(narrow, HasSubstr(">1 KiB<"));
}

TEST(PlotTest, WhatHasNoPlaceIsRefused) {
  Plot plot = Growth();
  plot.curves[1].points[2].y = 0;
  EXPECT_THAT(DrawPlot(plot).status().ToString(), HasSubstr("line: (8, 0) has no place"));
  plot.y.logarithmic = false;
  EXPECT_TRUE(DrawPlot(plot).ok());
  plot.curves[1].points[2].y = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(DrawPlot(plot).status().ToString(), HasSubstr("not finite"));
  plot.curves.clear();
  EXPECT_THAT(DrawPlot(plot).status().ToString(), HasSubstr("nothing to plot"));
}

// All values the same, or one only, must not divide by zero.
TEST(PlotTest, OnePointIsDrawn) {
  for (const bool logarithmic : {false, true}) {
    for (const double value : {3.0, 1e-12, 1e15}) {
      Plot plot = Growth();
      plot.x.logarithmic = plot.y.logarithmic = logarithmic;
      plot.curves = {{"dot", {{value, value}}}};
      const Result<std::string> svg = DrawPlot(plot);
      ASSERT_TRUE(svg.ok());
      EXPECT_EQ(svg->find("nan"), std::string::npos);
      EXPECT_EQ(svg->find("-2147483648"), std::string::npos);
    }
  }
}

TEST(GrowthExponentTest, FindsThePower) {
  EXPECT_NEAR(GrowthExponent(Growth().curves[0]), 2, 1e-9);
  EXPECT_NEAR(GrowthExponent(Growth().curves[1]), 1, 1e-9);
  EXPECT_EQ(GrowthExponent({"dot", {{3, 4}}}), 0);
}

}  // namespace
}  // namespace prepost::viz::plot_test
