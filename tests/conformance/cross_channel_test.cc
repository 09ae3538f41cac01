// SPDX-License-Identifier: Apache-2.0
//
// What WAIT, SEND_EN and RECV_EN do, device by device: the behaviours that the cross-channel tests
// of libibverbs expect of hardware, written once against nic::Device. A new device is one line in
// the registration at the end.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "prepost/backends/emulated/fabric.h"
#include "prepost/backends/mlx5/stand_in.h"
#include "tests/support/test_queue.h"

namespace prepost {
namespace {

using nic::Cqe;
using test::Connect;
using test::Counters;
using test::DeviceUnderTest;
using test::TestQueue;

struct Registration {
  const char* name;
  std::function<std::unique_ptr<DeviceUnderTest>()> make;
  const char* missing = "";  ///< without `make`: why it cannot be tested here

  friend void PrintTo(const Registration& it, std::ostream* out) { *out << it.name; }
};

/// A master with WAITs and enables (loopback on node 0) and a data QP from node 0 to node 1.
class CrossChannelTest : public testing::TestWithParam<Registration> {
 protected:
  void SetUp() override {
    if (!GetParam().make) GTEST_SKIP() << GetParam().missing;
    tested_ = GetParam().make();
  }

  void Make(nic::QpConfig sender, nic::QpConfig receiver, nic::CqConfig cq = {.entries = 64}) {
    nic::Device& near = tested_->device(0);
    nic::Device& far = tested_->device(1);
    master_ = std::make_unique<TestQueue>(near, nic::QpConfig{.sq_wqebbs = 64, .cd_master = true});
    far_master_ =
        std::make_unique<TestQueue>(far, nic::QpConfig{.sq_wqebbs = 64, .cd_master = true});
    sender_ = std::make_unique<TestQueue>(near, sender, cq, cq);
    receiver_ = std::make_unique<TestQueue>(far, receiver, cq, cq);
    Connect(near, *master_, near, *master_);
    Connect(far, *far_master_, far, *far_master_);
    Connect(near, *sender_, far, *receiver_);
  }
  void MakePlain(nic::CqConfig cq = {.entries = 64}) {
    Make({.sq_wqebbs = 64, .cd_master = true}, {.sq_wqebbs = 1, .rq_wqes = 64}, cq);
  }
  void MakeManagedSend() {
    Make({.sq_wqebbs = 64, .cd_master = true, .managed_send = true},
         {.sq_wqebbs = 1, .rq_wqes = 64});
  }
  void MakeManagedRecv() {
    Make({.sq_wqebbs = 64},
         {.sq_wqebbs = 64, .rq_wqes = 64, .cd_master = true, .managed_recv = true});
  }

  void Send(int count) {
    for (int i = 0; i < count; ++i) sender_->Send();
  }
  void Receive(int count) {
    for (int i = 0; i < count; ++i) receiver_->Receive();
  }
  void Settle() { tested_->Settle(); }
  void ExpectTransfers(size_t count) {
    Settle();
    EXPECT_EQ(sender_->Sent().size(), count);
    EXPECT_EQ(receiver_->Received().size(), count);
  }

  /// One CQE, of an error: the WQE was refused.
  void ExpectRefused(TestQueue& queue) {
    queue.Ring();
    Settle();
    const std::vector<Cqe> cqes = queue.Sent();
    ASSERT_EQ(cqes.size(), 1u);
    EXPECT_TRUE(cqes[0].is_error());
  }
  static void ExpectFlushed(const std::vector<Cqe>& cqes, size_t count) {
    ASSERT_EQ(cqes.size(), count);
    for (const Cqe& cqe : cqes) EXPECT_EQ(cqe.syndrome, nic::Syndrome::kFlushed);
  }

  std::unique_ptr<DeviceUnderTest> tested_;
  std::unique_ptr<TestQueue> master_;
  std::unique_ptr<TestQueue> far_master_;
  std::unique_ptr<TestQueue> sender_;
  std::unique_ptr<TestQueue> receiver_;
};

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

// SEND_EN.

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

// WAIT.

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

// RECV_EN.

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
  const std::vector<nic::ErrorEvent> errors = near.TakeErrors();
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

class EmulatedDevices : public DeviceUnderTest {
 public:
  explicit EmulatedDevices(emulated::EngineOptions options, const nic::DeviceFactory& make = {})
      : fabric_(2, options) {
    if (!make) return;
    EXPECT_TRUE(fabric_.MakeDevices(make).ok());
  }
  nic::Device& device(uint32_t node) override { return fabric_.device(NodeId(node)); }
  void Settle() override { fabric_.RunUntilIdle(); }

 private:
  emulated::Fabric fabric_;
};

Registration Emulated(const char* name, emulated::SchedulerMode scheduler) {
  return {name, [scheduler] {
            return std::make_unique<EmulatedDevices>(
                emulated::EngineOptions{.scheduler = scheduler, .seed = 17});
          }};
}

/// The mlx5 device, whose commands a stand-in carries out on the same NICs.
Registration Mlx5OnStandIn(const char* name, mlx5::StandInOptions options) {
  return {name, [options] {
            return std::make_unique<EmulatedDevices>(
                emulated::EngineOptions{},
                [options](nic::NicModel& nic) { return mlx5::OpenOnStandIn(nic, options); });
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Devices, CrossChannelTest,
    testing::Values(Emulated("emulated", emulated::SchedulerMode::kRoundRobin),
                    Emulated("emulated_random", emulated::SchedulerMode::kRandom),
                    Emulated("emulated_adversarial", emulated::SchedulerMode::kAdversarial),
                    Mlx5OnStandIn("mlx5_emulated_infiniband", {}),
                    Mlx5OnStandIn("mlx5_emulated_roce", {.is_ethernet = true}),
                    Registration{"mlx5_hardware", {}, "hardware is not opened by tests yet"}),
    [](const auto& registration) { return registration.param.name; });

}  // namespace
}  // namespace prepost
