// SPDX-License-Identifier: Apache-2.0
//
// WAIT: what it counts, and that it consumes nothing.
#include "tests/conformance/cross_channel.h"

namespace prepost::test::wait_test {
namespace {

TEST_P(CrossChannelTest, WaitForOne) {
  MakePlain();
  Receive(1);
  master_->Wait(sender_->send_cq(), 0);
  master_->Ring();
  Settle();
  EXPECT_EQ(master_->Sent().size(), 0u);
  Send(1);
  sender_->Ring();
  ExpectTransfers(1);
  EXPECT_EQ(master_->Sent().size(), 1u);
}

TEST_P(CrossChannelTest, WaitForFewerThanThereAre) {
  MakePlain();
  Receive(5);
  Send(5);
  sender_->Ring();
  ExpectTransfers(5);
  master_->Wait(sender_->send_cq(), 2);
  master_->Ring();
  Settle();
  EXPECT_EQ(master_->Sent().size(), 1u);
}

TEST_P(CrossChannelTest, WaitForMoreThanThereAreNeverPasses) {
  MakePlain();
  Receive(5);
  Send(5);
  sender_->Ring();
  master_->Wait(sender_->send_cq(), 5);
  master_->Ring();
  ExpectTransfers(5);
  EXPECT_EQ(master_->Sent().size(), 0u);
}

TEST_P(CrossChannelTest, WaitForAllPassesAfterTheLast) {
  MakePlain();
  Receive(3);
  master_->Wait(sender_->send_cq(), 2);
  master_->Ring();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(master_->Sent().size(), 0u) << "after " << i;
    Send(1);
    sender_->Ring();
    ExpectTransfers(1);
  }
  EXPECT_EQ(master_->Sent().size(), 1u);
}

TEST_P(CrossChannelTest, WaitConsumesNothing) {
  MakePlain();
  Receive(1);
  for (int i = 0; i < 3; ++i) master_->Wait(sender_->send_cq(), 0);
  master_->Ring();
  Send(1);
  sender_->Ring();
  ExpectTransfers(1);
  EXPECT_EQ(Counters(master_->Sent()), (std::vector<uint16_t>{0, 1, 2}));
}

TEST_P(CrossChannelTest, WaitsAroundTheCount) {
  MakePlain();
  Receive(4);
  Send(4);
  for (uint32_t index : {2u, 3u, 4u}) master_->Wait(sender_->send_cq(), index);
  sender_->Ring();
  master_->Ring();
  ExpectTransfers(4);
  EXPECT_EQ(master_->Sent().size(), 2u);
}

TEST_P(CrossChannelTest, WaitForNothingPasses) {
  MakePlain();
  master_->Wait(sender_->send_cq(), 0xffffffff);
  master_->Ring();
  Settle();
  EXPECT_EQ(master_->Sent().size(), 1u);
}

// An unsignaled send is no CQE, and so nothing to wait for.
TEST_P(CrossChannelTest, WaitCountsSignaledSendsOnly) {
  MakePlain();
  Receive(2);
  sender_->Send({}, {.signaled = false});
  sender_->Send();
  for (uint32_t index : {0u, 1u}) master_->Wait(sender_->send_cq(), index);
  sender_->Ring();
  master_->Ring();
  Settle();
  EXPECT_EQ(master_->Sent().size(), 1u);
}

TEST_P(CrossChannelTest, WaitUnsignaledMakesNoCqe) {
  MakePlain();
  master_->Wait(sender_->send_cq(), 0xffffff, {.signaled = false});
  master_->Nop();
  master_->Ring();
  Settle();
  EXPECT_EQ(Counters(master_->Sent()), (std::vector<uint16_t>{1}));
}

TEST_P(CrossChannelTest, WaitForMoreThanTheCqHolds) {
  MakePlain({.entries = 4, .ignore_overrun = true});
  Receive(10);
  Send(10);
  master_->Wait(sender_->send_cq(), 9);
  master_->Wait(sender_->send_cq(), 10);
  sender_->Ring();
  master_->Ring();
  Settle();
  EXPECT_EQ(master_->Sent().size(), 1u);
}

TEST_P(CrossChannelTest, WaitOnReceivesGatesADataQueue) {
  MakePlain();
  TestQueue& near = *sender_;
  TestQueue source(tested_->device(1), {.sq_wqebbs = 8});
  TestQueue sink(tested_->device(0), {.sq_wqebbs = 8, .rq_wqes = 8});
  Connect(tested_->device(1), source, tested_->device(0), sink);
  sink.Receive();
  Receive(1);
  near.Wait(sink.recv_cq(), 0, {.signaled = false});
  near.Send();
  near.Ring();
  ExpectTransfers(0);
  source.Send();
  source.Ring();
  ExpectTransfers(1);
}

}  // namespace
}  // namespace prepost::test::wait_test
