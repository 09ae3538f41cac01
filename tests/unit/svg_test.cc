// SPDX-License-Identifier: Apache-2.0
#include "prepost/viz/svg.h"

#include <gtest/gtest.h>

namespace prepost::viz {
namespace {

TEST(EscapeXmlTest, MarkupIsEscaped) {
  EXPECT_EQ(EscapeXml("<a b='c' d=\"e\">&"), "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;");
}

TEST(EscapeXmlTest, WhatXmlOrUtf8ForbidsIsReplaced) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(EscapeXml(std::string("a\0b\x01", 4)), "a" + replaced + "b" + replaced);
  EXPECT_EQ(EscapeXml("\xC3\xA9"), "\xC3\xA9");                          // e with acute accent
  EXPECT_EQ(EscapeXml("\xC3"), replaced);                                // cut sequence
  EXPECT_EQ(EscapeXml("\xC0\xAF"), replaced + replaced);                 // overlong '/'
  EXPECT_EQ(EscapeXml("\xED\xA0\x80"), replaced + replaced + replaced);  // surrogate
  EXPECT_EQ(EscapeXml("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80");
}

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

TEST(HtmlPageTest, TakesTheElementOutOfAnSvgFile) {
  const std::string page =
      HtmlPage("a&b", "<?xml version=\"1.0\"?>\n<!DOCTYPE svg>\n<svg>x</svg>\n");
  EXPECT_NE(page.find("<title>a&amp;b</title>"), std::string::npos);
  EXPECT_NE(page.find("<body>\n<svg>x</svg>\n</body>"), std::string::npos);
  EXPECT_EQ(page.find("<?xml"), std::string::npos);
}

}  // namespace
}  // namespace prepost::viz
