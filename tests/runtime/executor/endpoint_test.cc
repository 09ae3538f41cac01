// SPDX-License-Identifier: Apache-2.0
//
// What endpoint.h promises, of every transport.
#include "runtime/executor/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/two_blocks.h"

namespace prepost::endpoint_test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EndpointTest : public test::TwoBlocksTest,
                     public ::testing::WithParamInterface<TransportKind> {
 protected:
  EndpointTest() { Connect({.transport = GetParam()}); }
};
INSTANTIATE_TEST_SUITE_P(Transports, EndpointTest, test::AllTransports(), test::TransportName);

// A returned write is no completion: catches a send that completes before it is delivered.
TEST_P(EndpointTest, SendCompletesOnlyWhenTheReceiveIsPosted) {
  PostSend(0);
  Exchange();
  EXPECT_THAT(completed_[0], IsEmpty());
  EXPECT_EQ(node(1).counters().early, 1u);
  PostRecv(0);
  Exchange();
  EXPECT_THAT(completed_[0], ElementsAre(1));
  EXPECT_THAT(completed_[1], ElementsAre(1));
  EXPECT_TRUE(node(0).quiet() && node(1).quiet());
}

TEST_P(EndpointTest, BlocksGoWhereTheyBelong) {
  PostRecv(0);
  PostRecv(1);
  PostSend(0);
  PostSend(1);
  Exchange();
  EXPECT_THAT(completed_[0], ElementsAre(1, 3));
  EXPECT_THAT(completed_[1], ElementsAre(1, 3));
  nodes_->ExpectDelivered();
  EXPECT_EQ(node(1).counters().early, 0u);
}

// A block that waits for its receive must not hold up credits.
TEST_P(EndpointTest, CreditsPassWaitingBlocksAndMayComeEarly) {
  PostSend(0);
  PostCreditSend(0);
  Exchange();
  EXPECT_THAT(completed_[0], IsEmpty());
  EXPECT_THAT(completed_[1], IsEmpty());
  PostCreditRecv(0);
  Exchange();
  EXPECT_THAT(completed_[0], ElementsAre(0));
  EXPECT_THAT(completed_[1], ElementsAre(0));
}

// Catches a trace whose receives start when they complete, or never.
TEST_P(EndpointTest, TellsWhenABlockBeginsToArrive) {
  std::vector<uint32_t> arrivals;
  node(1).ObserveArrivals([&](OpId op) { arrivals.push_back(op.value); });
  PostRecv(0);
  Exchange();
  EXPECT_THAT(arrivals, IsEmpty());
  PostSend(0);
  Exchange();
  EXPECT_THAT(arrivals, ElementsAre(1));
}

// Catches wake-ups that are counted and not reported, or after what they bring; and polls that are.
TEST_P(EndpointTest, TellsWhenItComesBackFromWaiting) {
  uint64_t wakeups = 0, before_arrival = 0;
  node(1).ObserveWakeups([&] { ++wakeups; });
  node(1).ObserveArrivals([&](OpId) { before_arrival = wakeups; });
  PostRecv(0);
  Poll(1, milliseconds(0));
  EXPECT_EQ(wakeups, 0u);
  Poll(1, milliseconds(1));
  EXPECT_EQ(wakeups, 1u);
  PostSend(0);
  Poll(0, milliseconds(0));
  Poll(1, milliseconds(1000));
  EXPECT_EQ(wakeups, node(1).counters().wakeups);
  EXPECT_EQ(before_arrival, wakeups);
}

TEST_P(EndpointTest, CountsProgressAtBothEnds) {
  PostRecv(0);
  PostSend(0);
  Exchange();
  EXPECT_GE(node(0).counters().bytes_moved, 1000u);
  EXPECT_GE(node(1).counters().bytes_moved, 1000u);
}

TEST_P(EndpointTest, WakesUpWhenAsked) {
  const uint64_t one = 1;
  ASSERT_EQ(write(wake_.get(), &one, sizeof(one)), ssize_t{sizeof(one)});
  EXPECT_TRUE(Poll(0, milliseconds(-1)).woken);
}

// Also when it never waits: catches an endpoint that is too busy to hear the launcher.
TEST_P(EndpointTest, HearsTheLauncherWhilePolling) {
  const uint64_t one = 1;
  ASSERT_EQ(write(wake_.get(), &one, sizeof(one)), ssize_t{sizeof(one)});
  while (!Poll(0, milliseconds(0)).woken) ASSERT_FALSE(HasFailure());
}

}  // namespace
}  // namespace prepost::endpoint_test
