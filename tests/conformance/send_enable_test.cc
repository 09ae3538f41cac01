// SPDX-License-Identifier: Apache-2.0
//
// SEND_EN, and managed send queues.
#include "tests/conformance/cross_channel.h"

namespace prepost::test::send_enable_test {
namespace {

TEST_P(CrossChannelTest, SendOnAMasterIsOrdinary) {
  MakePlain();
  Receive(1);
  Send(1);
  sender_->Ring();
  ExpectTransfers(1);
}

TEST_P(CrossChannelTest, WaitNeedsCdMaster) {
  Make({.sq_wqebbs = 64}, {.sq_wqebbs = 1, .rq_wqes = 64});
  sender_->Wait(sender_->recv_cq(), 0xffffff);
  ExpectRefused(*sender_);
}

TEST_P(CrossChannelTest, SendEnableNeedsCdMaster) {
  MakeManagedSend();
  TestQueue plain(tested_->device(0), {.sq_wqebbs = 8});
  Connect(tested_->device(0), plain, tested_->device(0), plain);
  Send(1);
  plain.SendEnable(*sender_, 1);
  ExpectRefused(plain);
}

TEST_P(CrossChannelTest, SendEnableOfAnUnmanagedQueueIsRefused) {
  MakePlain();
  Send(1);
  master_->SendEnable(*sender_, 1);
  ExpectRefused(*master_);
}

TEST_P(CrossChannelTest, ManagedSendQueueHolds) {
  MakeManagedSend();
  Receive(1);
  Send(1);
  ExpectTransfers(0);
}

TEST_P(CrossChannelTest, EnableFromItsOwnQueueIsUseless) {
  MakeManagedSend();
  Receive(1);
  Send(1);
  sender_->SendEnable(*sender_, 1);
  ExpectTransfers(0);
}

TEST_P(CrossChannelTest, SendAndEnableAlternate) {
  MakeManagedSend();
  Receive(5);
  for (uint32_t i = 1; i <= 5; ++i) {
    Send(1);
    master_->SendEnable(*sender_, i);
    master_->Ring();
    ExpectTransfers(1);
  }
}

TEST_P(CrossChannelTest, EnableAll) {
  MakeManagedSend();
  Receive(10);
  Send(10);
  master_->SendEnable(*sender_, 10);
  master_->Ring();
  ExpectTransfers(10);
  EXPECT_EQ(master_->Sent().size(), 1u);
}

TEST_P(CrossChannelTest, EnableExactlyThree) {
  MakeManagedSend();
  Receive(10);
  Send(10);
  master_->SendEnable(*sender_, 3);
  master_->Ring();
  ExpectTransfers(3);
}

TEST_P(CrossChannelTest, EnablesAccumulateWhenTheirIndicesDo) {
  MakeManagedSend();
  Receive(10);
  Send(10);
  for (uint32_t index : {2u, 4u, 6u}) master_->SendEnable(*sender_, index);
  master_->Ring();
  ExpectTransfers(6);
}

TEST_P(CrossChannelTest, EnableIsAbsolute) {
  MakeManagedSend();
  Receive(10);
  Send(10);
  for (int i = 0; i < 3; ++i) master_->SendEnable(*sender_, 2);
  master_->Ring();
  ExpectTransfers(2);
  EXPECT_EQ(master_->Sent().size(), 3u);
}

TEST_P(CrossChannelTest, EnableOfLessThanBeforeChangesNothing) {
  MakeManagedSend();
  Receive(10);
  Send(10);
  for (uint32_t index : {4u, 2u}) master_->SendEnable(*sender_, index);
  master_->Ring();
  ExpectTransfers(4);
}

// What is enabled has not completed: the enable's CQE says nothing about it.
TEST_P(CrossChannelTest, EnableCompletesWithoutWhatItEnables) {
  MakeManagedSend();
  Send(1);  // no receive: it waits for one
  master_->SendEnable(*sender_, 1);
  master_->Ring();
  Settle();
  EXPECT_EQ(master_->Sent().size(), 1u);
  EXPECT_EQ(sender_->Sent().size(), 0u);
  Receive(1);
  ExpectTransfers(1);
}

TEST_P(CrossChannelTest, EnableCountsBasicBlocks) {
  MakeManagedSend();
  receiver_->Receive(0, 4096);
  receiver_->Receive(0, 4096);
  const std::vector<nic::DataSegment> four = {sender_->data(0, 8), sender_->data(8, 8),
                                              sender_->data(16, 8), sender_->data(24, 8)};
  sender_->Send(four);  // 5 segments: 2 basic blocks
  sender_->Send(four);
  master_->SendEnable(*sender_, 2);
  master_->Ring();
  ExpectTransfers(1);
}

}  // namespace
}  // namespace prepost::test::send_enable_test
