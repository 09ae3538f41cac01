// SPDX-License-Identifier: Apache-2.0
#include "ir/json/rate_text.h"

#include <gtest/gtest.h>

namespace prepost::rate_text_test {
namespace {

// Bits taken for bytes, 1000 for 1024.
TEST(RateTextTest, ReadsUnits) {
  EXPECT_EQ(*ParseRate("100Gbit/s"), 12.5e9);
  EXPECT_EQ(*ParseRate("12.5 GB/s"), 12.5e9);
  EXPECT_EQ(*ParseRate("8bit/s"), 1);
  EXPECT_EQ(*ParseRate("1.5KiB/s"), 1536);
  EXPECT_EQ(*ParseRate("2TiB/s"), 0x1p41);
  EXPECT_EQ(*ParseLatency("1.5us"), 1.5e-6);
  EXPECT_EQ(*ParseLatency("0s"), 0);
  EXPECT_EQ(*ParseLatency("40 ms"), 0.04);
}

TEST(RateTextTest, RefusesTheRest) {
  for (const char* text : {"", "100", "Gbit/s", "0Gbit/s", "-1Gbit/s", "1e400bit/s", "1e308TB/s",
                           "nanbit/s", "inf B/s", "1Gb/s", "1 Gbit/s ", "1  Gbit/s", "0x1p4B/s"})
    EXPECT_FALSE(ParseRate(text).ok()) << text;
  for (const char* text : {"", "1", "-1us", "1h", "us", "nans"})
    EXPECT_FALSE(ParseLatency(text).ok()) << text;
}

TEST(RateTextTest, Writes) {
  EXPECT_EQ(WriteRate(12.5e9), "100Gbit/s");
  EXPECT_EQ(WriteRate(6.8181818e9), "54.5455Gbit/s");
  EXPECT_EQ(WriteRate(1), "8bit/s");
  EXPECT_EQ(WriteRate(0.01), "0.08bit/s");
  EXPECT_EQ(WriteLatency(1.5e-6), "1.5us");
  EXPECT_EQ(WriteLatency(0), "0ns");
  EXPECT_EQ(WriteLatency(2), "2s");
}

TEST(RateTextTest, ShortDurationsHaveThreeOrFourDigits) {
  EXPECT_EQ(ShortDuration(0), "0");
  EXPECT_EQ(ShortDuration(-999), "-999 ns");
  EXPECT_EQ(ShortDuration(1000), "1.00 us");
  EXPECT_EQ(ShortDuration(12'345), "12.3 us");
  EXPECT_EQ(ShortDuration(9'999), "10.00 us");
  EXPECT_EQ(ShortDuration(999'499), "999 us");
  EXPECT_EQ(ShortDuration(999'500), "1.00 ms");
  EXPECT_EQ(ShortDuration(999'999), "1.00 ms");
  EXPECT_EQ(ShortDuration(-2'340'000'000), "-2.34 s");
  EXPECT_EQ(ShortDuration(123'456'000'000'000), "123456 s");
}

}  // namespace
}  // namespace prepost::rate_text_test
