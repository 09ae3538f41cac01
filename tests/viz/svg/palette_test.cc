// SPDX-License-Identifier: Apache-2.0
#include "viz/svg/palette.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace prepost::viz::palette_test {
namespace {

TEST(PaletteTest, BlocksRunFromTheFirstColourToTheLast) {
  EXPECT_EQ(Hex(BlockColor(0, 4)), "#440154");
  EXPECT_EQ(Hex(BlockColor(3, 4)), "#fde725");
  EXPECT_EQ(Hex(BlockColor((1u << 24) - 1, 1u << 24)), "#fde725");  // no overflow
  std::set<std::string> colors;
  for (uint32_t block = 0; block < 64; ++block) colors.insert(Hex(BlockColor(block, 64)));
  EXPECT_EQ(colors.size(), 64u);
}

TEST(PaletteTest, OneBlockHasAColour) { EXPECT_NE(Hex(BlockColor(0, 1)), "#440154"); }

TEST(PaletteTest, TextStandsOut) {
  EXPECT_TRUE(NeedsWhiteText(BlockColor(0, 4)));
  EXPECT_FALSE(NeedsWhiteText(BlockColor(3, 4)));
  EXPECT_FALSE(NeedsWhiteText(ShareColor(0)));
  EXPECT_TRUE(NeedsWhiteText(ShareColor(100)));
}

}  // namespace
}  // namespace prepost::viz::palette_test
