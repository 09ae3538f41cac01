// SPDX-License-Identifier: Apache-2.0
//
// RECV_EN, and managed receive queues.
#include "tests/conformance/cross_channel.h"

namespace prepost::test::receive_enable_test {
namespace {

TEST_P(CrossChannelTest, ReceiveOnAMasterIsOrdinary) {
  Make({.sq_wqebbs = 64}, {.sq_wqebbs = 1, .rq_wqes = 64, .cd_master = true});
  Receive(1);
  Send(1);
  sender_->Ring();
  ExpectTransfers(1);
}

TEST_P(CrossChannelTest, ReceiveEnableNeedsCdMaster) {
  MakeManagedRecv();
  TestQueue plain(tested_->device(1), {.sq_wqebbs = 8});
  Connect(tested_->device(1), plain, tested_->device(1), plain);
  Receive(1);
  plain.RecvEnable(*receiver_, 1);
  ExpectRefused(plain);
}

TEST_P(CrossChannelTest, ReceiveEnableOfAnUnmanagedQueueIsRefused) {
  MakePlain();
  Receive(1);
  far_master_->RecvEnable(*receiver_, 1);
  ExpectRefused(*far_master_);
}

TEST_P(CrossChannelTest, ManagedReceiveQueueHolds) {
  MakeManagedRecv();
  Receive(1);
  Send(1);
  sender_->Ring();
  ExpectTransfers(0);
}

TEST_P(CrossChannelTest, ReceiveEnableFromBehindAGateIsUseless) {
  Make({.sq_wqebbs = 64}, {.sq_wqebbs = 64,
                           .rq_wqes = 64,
                           .cd_master = true,
                           .managed_send = true,
                           .managed_recv = true});
  Receive(1);
  receiver_->RecvEnable(*receiver_, 1);
  Send(1);
  sender_->Ring();
  ExpectTransfers(0);
}

TEST_P(CrossChannelTest, ReceiveAndEnableAlternate) {
  MakeManagedRecv();
  Send(5);
  sender_->Ring();
  for (uint32_t i = 1; i <= 5; ++i) {
    Receive(1);
    far_master_->RecvEnable(*receiver_, i);
    far_master_->Ring();
    ExpectTransfers(1);
  }
}

TEST_P(CrossChannelTest, ReceiveEnableAll) {
  MakeManagedRecv();
  Receive(10);
  Send(10);
  sender_->Ring();
  far_master_->RecvEnable(*receiver_, 10);
  far_master_->Ring();
  ExpectTransfers(10);
  EXPECT_EQ(far_master_->Sent().size(), 1u);
}

TEST_P(CrossChannelTest, ReceiveEnablesAccumulateWhenTheirIndicesDo) {
  MakeManagedRecv();
  Receive(10);
  Send(10);
  sender_->Ring();
  for (uint32_t index : {2u, 4u, 6u}) far_master_->RecvEnable(*receiver_, index);
  far_master_->Ring();
  ExpectTransfers(6);
}

TEST_P(CrossChannelTest, ReceiveEnableExactlyThree) {
  MakeManagedRecv();
  Receive(10);
  Send(10);
  sender_->Ring();
  far_master_->RecvEnable(*receiver_, 3);
  far_master_->Ring();
  ExpectTransfers(3);
}

TEST_P(CrossChannelTest, ReceiveEnableIsAbsolute) {
  MakeManagedRecv();
  Receive(10);
  Send(10);
  sender_->Ring();
  for (int i = 0; i < 3; ++i) far_master_->RecvEnable(*receiver_, 2);
  far_master_->Ring();
  ExpectTransfers(2);
  EXPECT_EQ(far_master_->Sent().size(), 3u);
}

}  // namespace
}  // namespace prepost::test::receive_enable_test
