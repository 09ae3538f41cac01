// SPDX-License-Identifier: Apache-2.0
//
// What --sweep reads; what it refuses is in tests/tools/commands/simulate_sweep_test.cc.
#include "tools/flags/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/json/rate_text.h"

namespace prepost::tools::sweep_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SweepAxis AxisOf(const std::string& text) {
  Result<SweepAxis> axis = ParseSweep(text);
  EXPECT_TRUE(axis.ok()) << axis.status().ToString();
  return axis.ok() ? *std::move(axis) : SweepAxis{};
}
std::vector<std::string> TextsOf(const std::string& text) {
  std::vector<std::string> texts;
  for (const SweepValue& value : AxisOf(text).values) texts.push_back(value.text);
  return texts;
}

// Catches ends that rounding leaves out, and steps of another unit.
TEST(SweepTest, RangesMeetTheirEnds) {
  EXPECT_THAT(TextsOf("block-bytes=16KiB:64KiB:x2"), ElementsAre("16384", "32768", "65536"));
  EXPECT_THAT(TextsOf("host.poll=0us:0.3us:+100ns"),
              ElementsAre("0s", "1e-07s", "2e-07s", "3e-07s"));
  EXPECT_THAT(TextsOf("nodes=2:9:+3"), ElementsAre("2", "5", "8"));
  EXPECT_THAT(TextsOf("network.host_rate=10Gbit/s:40Gbit/s:x2"),
              ElementsAre("1250000000B/s", "2500000000B/s", "5000000000B/s"));
  EXPECT_THAT(TextsOf("x.y=0.1:0.3:+0.1"), ElementsAre("0.1", "0.2", "0.3"));
  EXPECT_THAT(TextsOf("x.y=0.1:0.8:x2"), ElementsAre("0.1", "0.2", "0.4", "0.8"));
}

// Catches digits that are cut off, so that rows are of another value than their row says, or of the
// one before them; and digits that steps have made.
TEST(SweepTest, RangesHaveAllDigits) {
  EXPECT_THAT(TextsOf("seed=1234567890123456:1234567890123458:+1"),
              ElementsAre("1234567890123456", "1234567890123457", "1234567890123458"));
  EXPECT_THAT(TextsOf("x.y=0.12345678901234566:0.3:+1"), ElementsAre("0.12345678901234566"));
  EXPECT_THAT(TextsOf("x.y=1:1.00000000000002:+0.00000000000001"),
              ElementsAre("1", "1.00000000000001", "1.00000000000002"));
  EXPECT_EQ(TextsOf("x.y=0.1:100:+0.1").back(), "100");
  for (const std::string& text : TextsOf("x.y=0.1:100:+0.1")) EXPECT_LE(text.size(), 4u) << text;
  for (const char* range :
       {"x.y=0.1:100:+0.1", "x.y=1:1000:x1.3", "x.y=0.3:7:+0.33333333333333331"}) {
    for (const SweepValue& value : AxisOf(range).values)
      EXPECT_EQ(std::stod(value.text), value.number) << range;
  }
  for (const SweepValue& value : AxisOf("host.poll=1us:1ms:x1.3").values)
    EXPECT_EQ(ParseLatency(value.text).value(), value.number);
  // Steps' own digits are not shown; the ends are as they were given.
  EXPECT_THAT(TextsOf("host.poll=0.1us:0.3us:x1.1")[9], "2.357947691e-07s");
  EXPECT_EQ(TextsOf("x.y=0.1:0.30000000000000004:+0.1").back(), "0.30000000000000004");
}

// Beyond 2^53 steps would be to other numbers than those meant: no flag takes them as whole ones.
TEST(SweepTest, WholeNumbersOfRangesAreExact) {
  EXPECT_EQ(TextsOf("seed=9007199254740990:9007199254740991:+1").back(), "9007199254740991");
  for (const std::string& text : TextsOf("seed=9007199254740993:9007199254740996:+1")) {
    EXPECT_THAT(text, HasSubstr("e+15"));
  }
}

// 0 alone may have no unit; catches steps that are taken for others.
TEST(SweepTest, UnitsAreOfOneKind) {
  EXPECT_THAT(TextsOf("host.poll=0:20us:+10us"), ElementsAre("0s", "1e-05s", "2e-05s"));
  for (const char* text : {"host.poll=0:10us:+1", "host.poll=0s:2:+1us", "host.poll=1:2us:+1us"}) {
    EXPECT_FALSE(ParseSweep(text).ok()) << text;
  }
}

// 2, 2.2, 2.42, ... as whole numbers of nodes: none twice.
TEST(SweepTest, WholeNumbersStayWhole) {
  EXPECT_THAT(TextsOf("nodes=2:5:x1.1"), ElementsAre("2", "3", "4", "5"));
}

// Catches limits of steps, of which many may be one value, and of one axis in place of rows; and
// that only one of the two figures is reported.
TEST(SweepTest, RowsAreLimitedNotSteps) {
  EXPECT_EQ(AxisOf("nodes=2:8:x1.00000001").values.size(), 7u);
  EXPECT_EQ(AxisOf("seed=1:100000:+1").values.size(), 100000u);
  EXPECT_EQ(AxisOf("seed=1:100000:x1.00001").values.size(), 100000u);
  const auto error = [](const std::string& text) { return ParseSweep(text).status().message(); };
  EXPECT_THAT(error("seed=1:100001:+1"),
              HasSubstr(": 100001 values, and a sweep has at most 100000 rows"));
  EXPECT_THAT(error("x.y=0.1:0.3:+1e-9"), HasSubstr(": 200000001 values, "));
  EXPECT_THAT(error("seed=1:200000:x1.0000001"), HasSubstr(": up to 200000 values, "));
  const std::vector<SweepAxis> axes = {AxisOf("nodes=2:251:+1"), AxisOf("seed=1:400:+1")};
  const auto all = PointsOf(axes);
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  EXPECT_EQ(all->size(), 100000u);
  EXPECT_EQ(PointsOf({axes[0], axes[1], AxisOf("wait=polling,interrupt")}).status().message(),
            "--sweep: 200000 rows, the limit is 100000");
}

// Catches a tolerance that goes by the last value: at 1 s it is as long as this step.
TEST(SweepTest, EndsAreMetWithinAFractionOfAStep) {
  const auto error = [](const std::string& text) { return ParseSweep(text).status().message(); };
  EXPECT_THAT(error("host.poll=0us:1s:+1ns"), HasSubstr(": 1000000001 values, "));
  EXPECT_THAT(TextsOf("x.y=1:1.0000000025:+1e-9"), ElementsAre("1", "1.000000001", "1.000000002"));
  EXPECT_THAT(TextsOf("x.y=1000000:1000000.0005:+0.001"), ElementsAre("1000000"));
  EXPECT_THAT(TextsOf("x.y=1000000:1000000.002:+0.001"),
              ElementsAre("1000000", "1000000.001", "1000000.002"));
  EXPECT_THAT(TextsOf("seed=1:10000000000:x99999"), ElementsAre("1", "99999", "9999800001"));
  EXPECT_THAT(TextsOf("seed=1:9999800000:x99999"), ElementsAre("1", "99999"));
}

// Catches an end beyond all numbers, which no value ever passes.
TEST(SweepTest, RangesMayEndAtTheLargestNumber) {
  EXPECT_EQ(AxisOf("seed=1:1.7976931348623157e308:x10").values.size(), 309u);
  EXPECT_EQ(AxisOf("x.y=0.1:1e307:x10").values.size(), 309u);
  for (const char* text :
       {"x.y=1e-300:1e300:x1e100", "x.y=-1.7e308:1.7e308:+1", "host.poll=0s:1s:+1e-320s"}) {
    EXPECT_THAT(ParseSweep(text).status().message(), HasSubstr("' is too far from '")) << text;
  }
}

TEST(SweepTest, ListsHaveCommasOrSemicolons) {
  EXPECT_THAT(TextsOf("wait=polling,interrupt"), ElementsAre("polling", "interrupt"));
  EXPECT_THAT(TextsOf("delay=node=1,at=0s,for=1us;node=2,at=0s,for=1us"),
              ElementsAre("node=1,at=0s,for=1us", "node=2,at=0s,for=1us"));
  // One value of a key whose values have commas.
  EXPECT_THAT(TextsOf("preempt=rate=1,for=1us"), ElementsAre("rate=1,for=1us"));
  EXPECT_THAT(TextsOf("slow=random=0.1,factor=0.5"), ElementsAre("random=0.1,factor=0.5"));
  EXPECT_THAT(TextsOf("slow=1=0.5,2=0.5"), ElementsAre("1=0.5", "2=0.5"));
  EXPECT_FALSE(AxisOf("wait=polling,interrupt").is_numeric);
  EXPECT_TRUE(AxisOf("message-bytes=1MiB,3MiB").is_numeric);
}

// Catches an order that is taken to pieces.
TEST(SweepTest, AnOrderIsOneValue) {
  const auto count = [](const std::string& text) {
    const Result<SweepAxis> axis = ParseSweep(text);
    EXPECT_TRUE(axis.ok()) << axis.status().ToString();
    return axis.ok() ? axis->values.size() : 0;
  };
  EXPECT_EQ(count("order=0,2,1"), 1u);
  EXPECT_EQ(count("order=0,2,1;0,1,2"), 2u);
  EXPECT_EQ(count("order=a.txt,b.txt"), 2u);
}

TEST(SweepTest, ColumnsNameUnits) {
  EXPECT_EQ(AxisOf("block-bytes=1KiB,2KiB").column(), "block_bytes");
  EXPECT_EQ(AxisOf("host.poll=1us,2us").column(), "host.poll_seconds");
  EXPECT_EQ(AxisOf("network.host_rate=1GB/s").column(), "network.host_rate_bytes_per_second");
  EXPECT_EQ(AxisOf("send-window=1,none").column(), "send_window");
}

TEST(SweepTest, TheLastKeyVariesFastest) {
  const auto points = PointsOf({AxisOf("nodes=2,3"), AxisOf("wait=polling,interrupt")});
  ASSERT_TRUE(points.ok());
  EXPECT_THAT(*points,
              ElementsAre(SweepPoint{0, 0}, SweepPoint{0, 1}, SweepPoint{1, 0}, SweepPoint{1, 1}));
}

}  // namespace
}  // namespace prepost::tools::sweep_test
