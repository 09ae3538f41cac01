// SPDX-License-Identifier: Apache-2.0
#include "ir/base/utf8.h"

#include <gtest/gtest.h>

namespace prepost::utf8_test {
namespace {

TEST(Utf8Test, PrintableKeepsText) {
  for (const char* text :
       {"", "plan.json:3:4: /a\\b", "\xC3\xA9", "\xE2\x86\x92", "\xF0\x9F\x98\x80"})
    EXPECT_EQ(Printable(text), text);
}

// Catches what a terminal obeys, lines that break, and bytes that are no text.
TEST(Utf8Test, PrintableEscapesTheRest) {
  EXPECT_EQ(Printable("a\x1b[31m\nb\tc\x7f"), "a\\x1b[31m\\x0ab\\x09c\\x7f");
  EXPECT_EQ(Printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "2J"),
            "\\xc2\\x9b2J");  // CSI in one character
  EXPECT_EQ(Printable("\xFF\xFE"), "\\xff\\xfe");
  EXPECT_EQ(Printable("\xC3"), "\\xc3");                    // cut
  EXPECT_EQ(Printable("\xC0\xAF"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(Printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(Printable("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

}  // namespace
}  // namespace prepost::utf8_test
