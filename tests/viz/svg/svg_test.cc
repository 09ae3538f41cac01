// SPDX-License-Identifier: Apache-2.0
#include "viz/svg/svg.h"

#include <gtest/gtest.h>

namespace prepost::viz::svg_test {
namespace {

TEST(SvgTest, ElementsStandInTheOrderOfTheCalls) {
  Svg svg(100, 50, "a < b", ".x{fill:red}");
  svg.BeginGroup("g", "tip & more");
  svg.Rect("x", {1, 2, 3, 4}, Color{255, 0, 16});
  svg.Text("t", 5, 6, "<7>");
  svg.EndGroup();
  EXPECT_EQ(std::move(svg).Finish(),
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"50\" viewBox=\"0 0 "
            "100 50\" "
            "font-family=\"sans-serif\">\n<title>a &lt; b</title>\n<style>.x{fill:red}</style>\n"
            "<rect width=\"100\" height=\"50\" fill=\"#ffffff\"/>\n"
            "<g class=\"g\"><title>tip &amp; more</title>"
            "<rect class=\"x\" x=\"1\" y=\"2\" width=\"3\" height=\"4\" fill=\"#ff0010\"/>"
            "<text class=\"t\" x=\"5\" y=\"6\">&lt;7&gt;</text></g>\n</svg>\n");
}

}  // namespace
}  // namespace prepost::viz::svg_test
