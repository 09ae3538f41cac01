// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace prepost::values_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// Catches a number that is read as far as it goes, and one that wraps around.
TEST(ValueTextTest, NumbersAreAllOfTheText) {
  EXPECT_EQ(NumberOf<uint32_t>("4294967295"), 4294967295u);
  for (const char* text : {"4294967296", "-1", "+1", "1.5", "1 ", " 1", "0x10", "1e3", "", "x"})
    EXPECT_EQ(NumberOf<uint32_t>(text), std::nullopt) << text;
  EXPECT_EQ(NumberOf<uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(NumberOf<uint64_t>("18446744073709551616"), std::nullopt);
}

TEST(ValueTextTest, NumbersAreFinite) {
  EXPECT_EQ(NumberOf<double>("-2.5e-3"), -2.5e-3);
  EXPECT_EQ(NumberOf<double>(".5"), 0.5);
  for (const char* text : {"nan", "inf", "-inf", "1e999", "1us", "1,5", "", "1e"})
    EXPECT_EQ(NumberOf<double>(text), std::nullopt) << text;
}

// Catches parts that vanish because nothing stands in them.
TEST(ValueTextTest, EmptyPartsAreParts) {
  EXPECT_THAT(Split("a,b", ','), ElementsAre("a", "b"));
  EXPECT_THAT(Split("", ','), ElementsAre(""));
  EXPECT_THAT(Split(",a,,", ','), ElementsAre("", "a", "", ""));
  EXPECT_THAT(Split("a,b;c", ';'), ElementsAre("a,b", "c"));
}

TEST(ValueTextTest, PartsHaveKeysThatThereAre) {
  const std::vector<std::string> keys = {"node", "at", "for"};
  const auto parts = ParseParts("for=1ms,node=3", keys);
  ASSERT_TRUE(parts.ok());
  EXPECT_THAT(*parts, ElementsAre(Pair("for", "1ms"), Pair("node", "3")));
  // Only the first = is one.
  EXPECT_EQ(ParseParts("at=a=b", keys)->at("at"), "a=b");
  EXPECT_EQ(ParseParts("at=", keys)->at("at"), "");
  const auto error = [&](const std::string& text) {
    const Status status = ParseParts(text, keys).status();
    EXPECT_EQ(status.code(), StatusCode::kUsage);
    return status.ToString();
  };
  EXPECT_EQ(error("node=3,att=1"), "'att=1' is unknown");
  EXPECT_EQ(error("node"), "'node' is unknown");
  EXPECT_EQ(error("node=3,"), "'' is unknown");
  EXPECT_EQ(error("node=3,at=1s,node=3"), "'node' is there twice");
}

TEST(ValueTextTest, KeysOfBytesSaySo) {
  EXPECT_TRUE(IsOfBytes("block-bytes"));
  EXPECT_TRUE(IsOfBytes("tcp.segment_bytes"));
  EXPECT_FALSE(IsOfBytes("nodes"));
}

}  // namespace
}  // namespace prepost::values_test
