// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/host/request_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "tests/support/random.h"

namespace prepost::nic::request_queue_test {
namespace {

// Catches places that are used again too soon, requests that are lost when the queue grows, and
// ones that overtake what is held back.
TEST(RequestQueueTest, KeepsTheOrderAndTheRoomOfItsRing) {
  for (uint64_t seed = test::TestSeed(); seed < test::TestSeed() + 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Random random(seed);
    const uint32_t requests = random.Between(1, 300);
    const uint32_t in_flight_max = random.Between(1, random.Coin() ? 6 : 100);
    RequestQueue queue({.requests = requests,
                        .outstanding = random.Below(requests + 1),
                        .in_flight_max = in_flight_max});
    std::deque<uint32_t> held_back, in_flight;
    for (uint32_t asked = 0, completed = 0; completed < requests;) {
      if (asked < requests && random.Below(3) != 0) {
        const bool has_room = in_flight.size() < in_flight_max;
        EXPECT_EQ(queue.Add({OpId(asked), 1000 + asked}), held_back.empty() && has_room);
        held_back.push_back(asked++);
      } else if (!held_back.empty() && queue.has_room()) {
        ASSERT_LT(in_flight.size(), in_flight_max);
        EXPECT_EQ(queue.next_to_post().op, OpId(held_back.front()));
        EXPECT_EQ(queue.posted(), held_back.front());
        queue.Post();
        in_flight.push_back(held_back.front());
        held_back.pop_front();
      } else if (!in_flight.empty()) {
        EXPECT_EQ(queue.oldest().op, OpId(in_flight.front()));
        EXPECT_EQ(queue.oldest().block, 1000 + in_flight.front());
        EXPECT_EQ(queue.completed(), completed++);
        queue.Complete();
        in_flight.pop_front();
      }
      ASSERT_EQ(queue.held_back(), held_back.size());
      ASSERT_EQ(queue.in_flight(), in_flight.size());
      if (HasFailure()) return;
    }
  }
}

TEST(RequestQueueDeathTest, RefusesMoreThanThePlanHas) {
  RequestQueue queue({.requests = 1, .outstanding = 1, .in_flight_max = 8});
  queue.Add({OpId(0), 0});
  EXPECT_DEATH(queue.Add({OpId(1), 1}), "asked_ < requests_");
}

}  // namespace
}  // namespace prepost::nic::request_queue_test
