// SPDX-License-Identifier: Apache-2.0
//
// CQs with and without room, connections and errors, and what a host can ask for.
#include <gmock/gmock.h>

#include "tests/conformance/cross_channel.h"
#include "tests/support/device_errors.h"

namespace prepost::test::completion_test {
namespace {

// Connections.

TEST_P(CrossChannelTest, ConnectionThatFailedCanBeTriedAgain) {
  nic::Device& near = tested_->device(0);
  nic::Device& far = tested_->device(1);
  TestQueue queue(near, {.sq_wqebbs = 64, .cd_master = true});
  const nic::QpAddress nobody{far.port_address(), 0xbad};
  EXPECT_FALSE(near.Connect(queue.qp().number, nobody).ok());
  EXPECT_FALSE(near.Connect(queue.qp().number, {.port = {}, .qpn = queue.qp().number}).ok());
  Connect(near, queue, near, queue);
  EXPECT_FALSE(near.Connect(queue.qp().number, queue.address()).ok()) << "it is connected";
  queue.Nop();
  queue.Ring();
  Settle();
  EXPECT_EQ(queue.Sent().size(), 1u);
}

// CQs.

TEST_P(CrossChannelTest, CqOfReceivesWithoutRoomLosesItsCqes) {
  MakePlain({.entries = 4});
  Receive(10);
  Send(10);
  sender_->Ring();
  far_master_->Wait(receiver_->recv_cq(), 4);
  far_master_->Ring();
  Settle();
  EXPECT_EQ(receiver_->Received().size(), 4u);
  EXPECT_EQ(far_master_->Sent().size(), 0u);
  EXPECT_TRUE(tested_->device(1).QueryCq(receiver_->recv_cq().number)->is_overrun);
  EXPECT_THAT(test::ErrorsOf(tested_->device(1)),
              testing::Contains(
                  nic::ErrorEvent{nic::ErrorEvent::Kind::kCqError, receiver_->recv_cq().number}));
}

TEST_P(CrossChannelTest, CqWithoutRoomLosesItsCqes) {
  MakePlain({.entries = 4});
  Receive(10);
  Send(10);
  sender_->Ring();
  master_->Wait(sender_->send_cq(), 4);
  master_->Ring();
  ExpectTransfers(4);
  EXPECT_EQ(master_->Sent().size(), 0u);
}

TEST_P(CrossChannelTest, CqThatIgnoresOverrunCountsOn) {
  MakePlain({.entries = 4, .ignore_overrun = true});
  Receive(10);
  Send(10);
  sender_->Ring();
  master_->Wait(sender_->send_cq(), 9);
  master_->Ring();
  far_master_->Wait(receiver_->recv_cq(), 9);
  far_master_->Ring();
  Settle();
  EXPECT_EQ(master_->Sent().size(), 1u);
  EXPECT_EQ(far_master_->Sent().size(), 1u);
}

// Errors, and what the host can ask for.

// Flushed WQEs count: what waits for them goes on, with whatever is in memory.
TEST_P(CrossChannelTest, FlushCompletesEverythingAndSatisfiesWaits) {
  MakePlain();
  nic::Device& near = tested_->device(0);
  sender_->Send({}, {.signaled = false});  // no receive: it waits for one
  sender_->Send();
  sender_->Ring();
  master_->Wait(sender_->send_cq(), 1);
  master_->Ring();
  Settle();
  EXPECT_EQ(master_->Sent().size(), 0u);
  ASSERT_TRUE(near.MoveToError(sender_->qp().number).ok());
  Settle();
  ExpectFlushed(sender_->Sent(), 2);
  EXPECT_EQ(master_->Sent().size(), 1u);
}

TEST_P(CrossChannelTest, FlushTakesReceivesAndWhatIsPostedLater) {
  MakePlain();
  Receive(3);
  ASSERT_TRUE(tested_->device(1).MoveToError(receiver_->qp().number).ok());
  receiver_->Nop();
  receiver_->Ring();
  Settle();
  ExpectFlushed(receiver_->Received(), 3);
  ExpectFlushed(receiver_->Sent(), 1);
}

TEST_P(CrossChannelTest, PeerThatDoesNotAnswerIsATransportError) {
  MakePlain();
  Receive(1);
  ASSERT_TRUE(tested_->device(1).MoveToError(receiver_->qp().number).ok());
  Send(2);
  sender_->Ring();
  Settle();
  const std::vector<Cqe> cqes = sender_->Sent();
  ASSERT_EQ(cqes.size(), 2u);
  EXPECT_EQ(cqes[0].syndrome, nic::Syndrome::kTransportRetryExceeded);
  EXPECT_EQ(cqes[1].syndrome, nic::Syndrome::kFlushed);
}

TEST_P(CrossChannelTest, MissingReceiveIsAnErrorWhenRetriesEnd) {
  Make({.sq_wqebbs = 64, .rnr_retry = 0}, {.sq_wqebbs = 1, .rq_wqes = 64});
  Send(1);
  sender_->Ring();
  Settle();
  const std::vector<Cqe> cqes = sender_->Sent();
  ASSERT_EQ(cqes.size(), 1u);
  EXPECT_EQ(cqes[0].syndrome, nic::Syndrome::kRnrRetryExceeded);
}

// A host that sleeps for errors wakes for the first one, and for nothing before it.
TEST_P(CrossChannelTest, ErrorEventComesWithAnErrorOnly) {
  MakePlain();
  nic::Device& near = tested_->device(0);
  ASSERT_TRUE(near.EventFile().ok());
  ASSERT_TRUE(near.RequestErrorEvent(sender_->send_cq().number).ok());
  Receive(1);
  Send(1);
  sender_->Ring();
  ExpectTransfers(1);
  EXPECT_EQ(near.AckEvents(), 0u);
  ASSERT_TRUE(near.MoveToError(sender_->qp().number).ok());
  Send(1);
  sender_->Ring();
  Settle();
  EXPECT_EQ(near.AckEvents(), 1u);
  const std::vector<nic::ErrorEvent> errors = test::ErrorsOf(near);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].kind, nic::ErrorEvent::Kind::kErrorCqe);
  EXPECT_EQ(errors[0].number, sender_->send_cq().number);
}

// QUERY_QP and QUERY_CQ say where a queue stands: what a report on a stuck run is made of.
TEST_P(CrossChannelTest, CountersSayWhereQueuesStand) {
  MakePlain();
  Receive(3);
  Send(2);
  sender_->Wait(master_->send_cq(), 7);
  Send(1);
  sender_->Ring();
  Settle();
  const Result<nic::QpCounters> sending = tested_->device(0).QueryQp(sender_->qp().number);
  ASSERT_TRUE(sending.ok()) << sending.status().ToString();
  EXPECT_EQ(sending->state, nic::QpState::kReadyToSend);
  EXPECT_EQ(sending->sq_posted, 4u);
  EXPECT_EQ(sending->sq_fetched, 2u) << "a WAIT that has not passed is not behind it";
  const Result<nic::QpCounters> receiving = tested_->device(1).QueryQp(receiver_->qp().number);
  ASSERT_TRUE(receiving.ok()) << receiving.status().ToString();
  EXPECT_EQ(receiving->rq_posted, 3u);
  EXPECT_EQ(receiving->rq_taken, 2u);
  const Result<nic::CqCounters> cq = tested_->device(0).QueryCq(sender_->send_cq().number);
  ASSERT_TRUE(cq.ok()) << cq.status().ToString();
  EXPECT_EQ(cq->producer, 2u);
  EXPECT_FALSE(cq->is_overrun);
}

}  // namespace
}  // namespace prepost::test::completion_test
