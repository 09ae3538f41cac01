// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/ack_timeout.h"

#include <gtest/gtest.h>

namespace prepost::ack_timeout_test {
namespace {

using namespace std::chrono_literals;

// 4.096 us << 16 is 268 ms, << 17 537 ms. Catches a shift by one, and a path that shortens what was
// chosen.
TEST(AckTimeoutTest, IsFourRoundTripsOrMore) {
  EXPECT_EQ(AckTimeoutFor(0us, 14), 14);
  EXPECT_EQ(AckTimeoutFor(50us, 14), 14);
  EXPECT_EQ(AckTimeoutFor(60ms, 14), 16);
  EXPECT_EQ(AckTimeoutFor(120ms, 15), 17);
  EXPECT_EQ(AckTimeoutFor(67'108us, 0), 16);
  EXPECT_EQ(AckTimeoutFor(67'109us, 0), 17);
  EXPECT_EQ(AckTimeoutFor(1h, 14), kAckTimeoutMax);
}

}  // namespace
}  // namespace prepost::ack_timeout_test
