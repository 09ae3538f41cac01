// SPDX-License-Identifier: Apache-2.0
//
// What the emulated NIC writes into CQs: rules R7 and R8.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/engine_fixture.h"

namespace prepost::emulated::completion_test {
namespace {

using nic::Syndrome;
using test::Counters;
using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(EngineTest, R7FlushCompletesEverythingAndSatisfiesWaits) {
  Make();
  const auto foreign = MakeLoopback();
  foreign->Wait(near_->send_cq(), 2);
  RingAndRun(*foreign);
  near_->Send({}, {.signaled = false});  // waits for a receive for ever
  near_->Nop({.signaled = false});
  near_->Wait(far_->recv_cq(), 0, {.signaled = false});
  RingAndRun(*near_);
  EXPECT_THAT(near_->Sent(), IsEmpty());
  EXPECT_THAT(foreign->Sent(), IsEmpty());
  ASSERT_TRUE(device(0).MoveToError(near_->qp().number).ok());
  fabric_->RunUntilIdle();
  EXPECT_THAT(Syndromes(near_->Sent()),
              ElementsAre(Syndrome::kFlushed, Syndrome::kFlushed, Syndrome::kFlushed));
  EXPECT_THAT(Counters(foreign->Sent()),
              ElementsAre(0));  // the WAIT has passed, though nothing was sent
}

TEST_F(EngineTest, R7WhatIsPostedToABrokenQueueIsFlushed) {
  Make();
  ASSERT_TRUE(device(0).MoveToError(near_->qp().number).ok());
  near_->Nop();
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kFlushed));
}

TEST_F(EngineTest, R7PeerOfABrokenQueueGivesUp) {
  Make();
  far_->Receive();
  ASSERT_TRUE(device(1).MoveToError(far_->qp().number).ok());
  near_->Send();
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kTransportRetryExceeded));
  EXPECT_THAT(Syndromes(far_->Received()), ElementsAre(Syndrome::kFlushed));
}

// In the error state a managed queue flushes what is enabled later, too, or nobody would ever hear
// of it.
TEST_F(EngineTest, R7WhatIsEnabledOnABrokenQueueIsFlushed) {
  Make({.sq_wqebbs = 16, .managed_send = true});
  const auto master = MakeLoopback();
  near_->Nop();
  ASSERT_TRUE(device(0).MoveToError(near_->qp().number).ok());
  master->SendEnable(*near_, 1);
  RingAndRun(*master);
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kFlushed));
}

TEST_F(EngineTest, R8OwnerBitFlipsEveryLap) {
  Make();
  const auto queue = MakeLoopback({.sq_wqebbs = 16}, {.entries = 2});
  for (int lap = 0; lap < 4; ++lap) {
    for (uint16_t i = 0; i < 2; ++i) queue->Nop();
    RingAndRun(*queue);
    const std::byte owner = queue->send_cq().ring[nic::cqe::kOpcodeOwner] & std::byte{1};
    EXPECT_EQ(owner, static_cast<std::byte>(lap & 1));
    EXPECT_EQ(queue->Sent().size(), 2u);
  }
}

TEST_F(EngineTest, R8OverrunIsReported) {
  Make();
  const auto queue = MakeLoopback({.sq_wqebbs = 16}, {.entries = 2});
  for (int i = 0; i < 3; ++i) queue->Nop();
  RingAndRun(*queue);
  EXPECT_EQ(queue->Sent().size(), 2u);
  ExpectMisuse("of 2 entries was overrun");
}

TEST_F(EngineTest, R8CollapsedCqUsesOneEntryAndCounts) {
  Make();
  const auto queue =
      MakeLoopback({.sq_wqebbs = 16}, {.entries = 4, .ignore_overrun = true, .collapsed = true});
  for (int i = 0; i < 3; ++i) queue->Nop();
  RingAndRun(*queue);
  EXPECT_EQ(nic::LoadBigEndian<uint16_t>(queue->send_cq().ring.data() + nic::cqe::kWqeCounter), 2);
  EXPECT_EQ(queue->send_cq().ring[nic::kCqeBytes + nic::cqe::kOpcodeOwner],
            std::byte{nic::cqe::kInvalid});
  near_->Wait(queue->send_cq(), 2);
  RingAndRun(*near_);
  EXPECT_EQ(near_->Sent().size(), 1u);
}

}  // namespace
}  // namespace prepost::emulated::completion_test
