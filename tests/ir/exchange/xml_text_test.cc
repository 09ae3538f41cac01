// SPDX-License-Identifier: Apache-2.0
#include "ir/exchange/xml_text.h"

#include <gtest/gtest.h>

namespace prepost::xml_text_test {
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

}  // namespace
}  // namespace prepost::xml_text_test
