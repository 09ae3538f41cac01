// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/combine_blocks.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/sample.h"

namespace prepost::combine_blocks_test {
namespace {

template <typename T>
T CombineTwo(CombineOp op, ElementType type, T own, T other) {
  T out;
  CombineFunctionOf({.op = op, .type = type})(reinterpret_cast<std::byte*>(&out),
                                              reinterpret_cast<const std::byte*>(&own),
                                              reinterpret_cast<const std::byte*>(&other), 1);
  return out;
}

/// A 16-bit float's value, by its definition.
double ValueOf(uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const double scale = std::ldexp(1.0, std::max(exponent, 1) - bias - fraction_bits);
  return sign * scale * (fraction + (exponent == 0 ? 0 : 1 << fraction_bits));
}

/// The 16-bit float that is nearest to `value`, of two the even one: by trying all.
uint16_t Nearest(double value, int exponent_bits) {
  const auto infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << (15 - exponent_bits));
  uint16_t low = 0, high = infinity;  // magnitudes around |value|
  const double magnitude = std::fabs(value);
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (ValueOf(middle, exponent_bits) <= magnitude ? low : high) = middle;
  }
  // Beyond the largest number infinity stands where the next one would.
  const double above = high == infinity
                           ? 2 * ValueOf(static_cast<uint16_t>(infinity - 1), exponent_bits) -
                                 ValueOf(static_cast<uint16_t>(infinity - 2), exponent_bits)
                           : ValueOf(high, exponent_bits);
  const double below = ValueOf(low, exponent_bits);
  const bool is_up = magnitude - below > above - magnitude ||
                     (magnitude - below == above - magnitude && low % 2 == 1);
  const uint16_t bits = is_up ? high : low;
  return static_cast<uint16_t>(bits | (std::signbit(value) ? 0x8000 : 0));
}

// Catches a rounding that is off by one, and subnormals that are lost. All operands that are small,
// and random ones.
TEST(CombineBlocksTest, SixteenBitFloatsAreAddedInFloat32AndRoundedToTheNearest) {
  test::Random random(test::TestSeed());
  for (const auto& [type, exponent_bits] :
       {std::pair(ElementType::kFloat16, 5), std::pair(ElementType::kBfloat16, 8)}) {
    for (uint32_t i = 0; i < 200'000; ++i) {
      const auto x = static_cast<uint16_t>(random.Below(65536));
      const auto y =
          static_cast<uint16_t>(random.Coin() ? random.Below(65536) : (x ^ random.Below(0x8400)));
      const auto sum = static_cast<float>(ValueOf(x, exponent_bits)) +
                       static_cast<float>(ValueOf(y, exponent_bits));
      const uint16_t found = CombineTwo(CombineOp::kSum, type, x, y);
      if (std::isnan(sum)) {
        ASSERT_TRUE(std::isnan(ValueOf(found, exponent_bits)));
      } else {
        ASSERT_EQ(found, Nearest(sum, exponent_bits)) << Name(type) << " " << x << " " << y;
      }
    }
  }
}

TEST(CombineBlocksTest, IntegersWrapAround) {
  EXPECT_EQ(CombineTwo<int8_t>(CombineOp::kSum, ElementType::kInt8, 127, 1), -128);
  EXPECT_EQ(CombineTwo<uint16_t>(CombineOp::kProd, ElementType::kUint16, 65535, 65535), 1);
  EXPECT_EQ(CombineTwo<int32_t>(CombineOp::kProd, ElementType::kInt32, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(CombineTwo<int64_t>(CombineOp::kSum, ElementType::kInt64, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(CombineTwo<int64_t>(CombineOp::kMin, ElementType::kInt64, -5, 3), -5);
  EXPECT_EQ(CombineTwo<uint64_t>(CombineOp::kMax, ElementType::kUint64, ~uint64_t{0}, 3),
            ~uint64_t{0});
  EXPECT_EQ(CombineTwo<uint8_t>(CombineOp::kXor, ElementType::kUint8, 0xf0, 0xff), 0x0f);
  EXPECT_EQ(CombineTwo<uint8_t>(CombineOp::kAnd, ElementType::kUint8, 0xf0, 0x3c), 0x30);
  EXPECT_EQ(CombineTwo<int32_t>(CombineOp::kOr, ElementType::kInt32, 5, 10), 15);
}

// Swapped operands give the same bytes, NaNs of other signs and payloads among them, as members
// that exchange their values need: catches a sum that takes over the NaN of one operand.
TEST(CombineBlocksTest, SumsOfNansAreTheSameWayRound) {
  const auto check = [](ElementType type, auto one, const std::vector<decltype(one)>& values) {
    for (const CombineOp op : {CombineOp::kSum, CombineOp::kProd}) {
      const CombineFunction combine = CombineFunctionOf({.op = op, .type = type});
      for (const auto& x : values) {
        for (const auto& y : values) {
          decltype(one) a, b;
          const auto bytes = [](auto& value) { return reinterpret_cast<std::byte*>(&value); };
          auto own = x, other = y;
          combine(bytes(a), bytes(own), bytes(other), 1);
          combine(bytes(b), bytes(other), bytes(own), 1);
          EXPECT_EQ(a, b) << x << " " << y;
        }
      }
    }
  };
  check(ElementType::kFloat32, uint32_t{0},
        {0x7fc00001, 0xffc00123, 0x7f800001, 0x7f800000, 0xff800000, 0, 0x80000000, 0x3f800000});
  check(ElementType::kFloat64, uint64_t{0},
        {0x7ff8000000000001, 0xfff8000000000123, 0x7ff0000000000000, 0xfff0000000000000, 0});
  check(ElementType::kFloat16, uint16_t{0}, {0x7e01, 0xfe03, 0x7c01, 0x7c00, 0xfc00, 0, 0x3c00});
  check(ElementType::kBfloat16, uint16_t{0}, {0x7fc1, 0xffc3, 0x7f81, 0x7f80, 0xff80, 0, 0x3f80});
}

// Min and max are the same in every order: catches a NaN that is lost on one side.
TEST(CombineBlocksTest, MinAndMaxDoNotDependOnTheOrder) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float other_nan = std::bit_cast<float>(0xffc00123u);
  const float values[] = {
      0.0f, -0.0f, 1.5f, -2.5f, nan, other_nan, std::numeric_limits<float>::infinity()};
  for (const CombineOp op : {CombineOp::kMin, CombineOp::kMax}) {
    const auto combine = [&](float x, float y) {
      return CombineTwo(op, ElementType::kFloat32, x, y);
    };
    const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
    for (const float x : values) {
      for (const float y : values) {
        EXPECT_EQ(bits(combine(x, y)), bits(combine(y, x)));
        EXPECT_EQ(std::isnan(combine(x, y)), std::isnan(x) || std::isnan(y));
        for (const float z : values)
          EXPECT_EQ(bits(combine(combine(x, y), z)), bits(combine(x, combine(y, z))));
      }
    }
  }
  EXPECT_TRUE(std::signbit(CombineTwo(CombineOp::kMin, ElementType::kFloat32, 0.0f, -0.0f)));
  EXPECT_EQ(CombineTwo(CombineOp::kMax, ElementType::kFloat64, 1.0, -2.0), 1.0);
}

}  // namespace
}  // namespace prepost::combine_blocks_test
