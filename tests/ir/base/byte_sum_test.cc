// SPDX-License-Identifier: Apache-2.0
#include "ir/base/byte_sum.h"

#include <gtest/gtest.h>

namespace prepost::byte_sum_test {
namespace {

// Catches a lost carry, and digits beyond 64 bits.
TEST(ByteSumTest, CarriesBeyond64Bits) {
  ByteSum sum;
  for (int i = 0; i < 1000; ++i) sum += UINT64_MAX;
  EXPECT_EQ(sum.ToText(), "18446744073709551615000");
  EXPECT_EQ(sum.ToUint64(), std::nullopt);
  EXPECT_DOUBLE_EQ(sum.ToDouble(), 1.8446744073709551615e22);
  EXPECT_GT(sum, ByteSum(UINT64_MAX));
  sum = UINT64_MAX;
  EXPECT_EQ(sum.ToUint64(), UINT64_MAX);
  sum += 1;
  EXPECT_EQ(sum.ToText(), "18446744073709551616");
}

TEST(ByteSumTest, Counts) {
  EXPECT_EQ(CountBytes({}), "0 bytes");
  EXPECT_EQ(CountBytes(1), "1 byte");
  EXPECT_EQ(CountBytes(20), "20 bytes");
}

}  // namespace
}  // namespace prepost::byte_sum_test
