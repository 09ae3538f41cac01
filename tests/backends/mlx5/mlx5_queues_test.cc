// SPDX-License-Identifier: Apache-2.0
//
// The queues of the mlx5 device over the stand-in, once they exist: counters, queries, events and
// errors. What they do with WQEs is in tests/conformance.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "runtime/base/interrupt.h"
#include "tests/support/device_errors.h"
#include "tests/support/mlx5_fixture.h"
#include "tests/support/test_queue.h"

namespace prepost::mlx5::mlx5_queues_test {
namespace {

using nic::Cqe;
using test::Connect;
using test::TestQueue;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = nic::ErrorEvent::Kind;

constexpr std::chrono::milliseconds kLong{20000};  // an event that has not come by then is lost

class Mlx5QueueTest : public Mlx5DeviceTest {
 protected:
  void MakePair(nic::QpConfig near = {.sq_wqebbs = 16, .cd_master = true},
                nic::CqConfig cq = {.entries = 64}) {
    Make(options_);
    near_ = std::make_unique<TestQueue>(*devices_[0], near, cq, cq);
    far_ = std::make_unique<TestQueue>(*devices_[1], nic::QpConfig{.sq_wqebbs = 16, .rq_wqes = 16},
                                       cq, cq);
    Connect(*devices_[0], *near_, *devices_[1], *far_);
  }
  void Run() {
    near_->Ring();
    fabric_->RunUntilIdle();
  }

  StandInOptions options_;
  std::unique_ptr<TestQueue> near_;
  std::unique_ptr<TestQueue> far_;
};

// Send queue and CQs that start just before their counters wrap: 16 and 24 bits.
TEST_F(Mlx5QueueTest, CountersStartAtTheirBasesAndWrap) {
  MakePair({.sq_wqebbs = 16, .sq_base = 0xfffe, .cd_master = true},
           {.entries = 4, .ignore_overrun = true, .producer_base = 0xfffffe});
  ASSERT_TRUE(devices_[0]->RequestEvent(near_->send_cq().number).ok());
  EXPECT_EQ(devices_[0]->AckEvents(), 0u);  // the CQ is empty, wherever it starts
  for (int i = 0; i < 4; ++i) far_->Receive();
  near_->Send();
  near_->Send();
  near_->Wait(near_->send_cq(), 0xffffff);
  near_->Send();
  Run();
  EXPECT_EQ(test::Counters(near_->Sent()), (std::vector<uint16_t>{0xfffe, 0xffff, 0, 1}));
  EXPECT_EQ(devices_[0]->AckEvents(), 1u);
  EXPECT_THAT(far_->Received(), SizeIs(3));
  const auto cq = devices_[0]->QueryCq(near_->send_cq().number);
  ASSERT_TRUE(cq.ok());
  EXPECT_EQ(cq->producer, 2u);
  EXPECT_EQ(cq->consumer, 2u);
  EXPECT_THAT(misuses(), IsEmpty());
}

TEST_F(Mlx5QueueTest, QueriesTellWhereQueuesStand) {
  Make();
  near_ = std::make_unique<TestQueue>(
      *devices_[0], nic::QpConfig{.sq_wqebbs = 16, .rq_wqes = 16, .cd_master = true});
  nic::Device& device = *devices_[0];
  const uint32_t qpn = near_->qp().number;
  const auto query = [&] {
    const auto counters = device.QueryQp(qpn);
    EXPECT_TRUE(counters.ok()) << counters.status().ToString();
    return counters.ok() ? *counters : nic::QpCounters{};
  };
  EXPECT_EQ(query().state, nic::QpState::kReset);
  Connect(device, *near_, device, *near_);
  near_->Receive();
  near_->Receive();
  near_->Nop();
  near_->Send();
  near_->Wait(near_->send_cq(), 9);
  near_->Nop();
  Run();
  nic::QpCounters counters = query();
  EXPECT_EQ(counters.state, nic::QpState::kReadyToSend);
  EXPECT_EQ(counters.sq_posted, 4);
  EXPECT_EQ(counters.sq_fetched, 2);  // it stands at the WAIT
  EXPECT_EQ(counters.rq_posted, 2);
  EXPECT_EQ(counters.rq_taken, 1);
  ASSERT_TRUE(device.MoveToError(qpn).ok());
  EXPECT_EQ(query().state, nic::QpState::kError);
  const std::vector<Cqe> cqes = near_->Sent();
  ASSERT_THAT(cqes, SizeIs(4));
  EXPECT_EQ(cqes[2].syndrome, nic::Syndrome::kFlushed);
  EXPECT_EQ(device.QueryQp(0xbad).status().message(), "QP 0xbad does not exist");
  EXPECT_EQ(device.QueryCq(0xbad).status().message(), "CQ 0xbad does not exist");
  EXPECT_EQ(device.MoveToError(0xbad).message(), "QP 0xbad does not exist");
}

// Every event is asked for with the number of those that came before; the stand-in reports an
// arming that has another.
TEST_F(Mlx5QueueTest, EventsComeOnceForEveryRequest) {
  MakePair();
  nic::Device& device = *devices_[0];
  const int events = *device.EventFile();
  for (int i = 1; i <= 6; ++i) {
    ASSERT_TRUE(device.RequestEvent(near_->send_cq().number).ok());
    EXPECT_FALSE(IsInterrupted(events)) << i;
    near_->Nop();
    near_->Nop();
    Run();
    const auto wait = WaitForEvent(device, /*wake_fd=*/-1, kLong);
    ASSERT_TRUE(wait.ok());
    ASSERT_TRUE(wait->event) << i << ": " << testing::PrintToString(misuses());
    EXPECT_FALSE(IsInterrupted(events)) << i;
    EXPECT_THAT(near_->Sent(), SizeIs(2));
  }
  EXPECT_EQ(device.counters().event_requests, 6u);
  EXPECT_EQ(device.counters().wakeups, 6u);
  EXPECT_EQ(device.counters().cqes_read, 12u);
  EXPECT_EQ(device.counters().doorbells, 6u);
  EXPECT_EQ(device.counters().objects, 4u);
  EXPECT_THAT(misuses(), IsEmpty());
}

// A CQE that the host has not read gives its event at once: it cannot be missed.
TEST_F(Mlx5QueueTest, UnreadCqesGiveTheirEventAtOnce) {
  MakePair();
  near_->Nop();
  Run();
  ASSERT_TRUE(devices_[0]->RequestEvent(near_->send_cq().number).ok());
  EXPECT_EQ(devices_[0]->AckEvents(), 1u);
  EXPECT_THAT(near_->Sent(), SizeIs(1));
  ASSERT_TRUE(devices_[0]->RequestEvent(near_->send_cq().number).ok());
  EXPECT_EQ(devices_[0]->AckEvents(), 0u);
}

// What makes no CQE is reported all the same: without it a host would wait for its deadline.
TEST_F(Mlx5QueueTest, LostCqeIsAnEventOfItsCq) {
  MakePair({.sq_wqebbs = 16, .cd_master = true}, {.entries = 2});
  for (int i = 0; i < 3; ++i) near_->Nop();
  Run();
  EXPECT_TRUE(IsInterrupted(*devices_[0]->EventFile()));
  EXPECT_THAT(test::ErrorsOf(*devices_[0]),
              ElementsAre(nic::ErrorEvent{Kind::kCqError, near_->send_cq().number}));
  EXPECT_FALSE(IsInterrupted(*devices_[0]->EventFile()));
  EXPECT_TRUE(devices_[0]->QueryCq(near_->send_cq().number)->is_overrun);
}

// The QP whose memory a peer wanted to write is reported by its number, not that of its peer.
TEST_F(Mlx5QueueTest, RefusedAccessIsAnEventOfTheQp) {
  MakePair();
  near_->Rdma(nic::Opcode::kRdmaWrite, {.address = far_->at(0), .rkey = 0xbad},
              {near_->data(0, 8)});
  Run();
  EXPECT_THAT(test::ErrorsOf(*devices_[1]),
              ElementsAre(nic::ErrorEvent{Kind::kQpAccess, far_->qp().number}));
  EXPECT_THAT(test::ErrorsOf(*devices_[0]), IsEmpty());
}

// A kernel that does not pass errors on is no reason to do without the device.
TEST_F(Mlx5QueueTest, ErrorsThatCannotBeSubscribedToAreDoneWithout) {
  options_.tells_errors = false;
  MakePair({.sq_wqebbs = 16, .cd_master = true}, {.entries = 2});
  ASSERT_TRUE(devices_[0]->RequestEvent(near_->send_cq().number).ok());
  for (int i = 0; i < 3; ++i) near_->Nop();
  Run();
  EXPECT_EQ(devices_[0]->AckEvents(), 1u);
  EXPECT_THAT(test::ErrorsOf(*devices_[0]), IsEmpty());
}

/// Node 1's NIC fails at its first message.
class Mlx5FaultTest : public Mlx5QueueTest {
 protected:
  void MakeFailing(emulated::QpFault::Kind kind) {
    fabric_ = std::make_unique<emulated::Fabric>(
        2, emulated::EngineOptions{.faults = {{NodeId(1), NodeId(0), 1, kind}}});
    MakePair();
    far_->Receive();
    far_->Receive();
    near_->Send();
    near_->Send();
    Run();
  }
};

TEST_F(Mlx5FaultTest, FatalErrorIsToldAndCommandsFail) {
  MakeFailing(emulated::QpFault::Kind::kDeviceFatal);
  nic::Device& device = *devices_[1];
  EXPECT_TRUE(IsInterrupted(*device.EventFile()));
  EXPECT_THAT(test::ErrorsOf(device), ElementsAre(nic::ErrorEvent{Kind::kDeviceFatal, 0}));
  EXPECT_THAT(test::ErrorsOf(device), IsEmpty());
  EXPECT_EQ(device.QueryQp(far_->qp().number).status().message(),
            "QUERY_QP of QP 0x1000: Input/output error");
  EXPECT_FALSE(device.MoveToError(far_->qp().number).ok());
  EXPECT_FALSE(device.CreateCq({.entries = 1}).ok());
  far_->Nop();
  far_->Ring();
  fabric_->RunUntilIdle();
  EXPECT_THAT(far_->Sent(), IsEmpty());
  const std::vector<Cqe> cqes = near_->Sent();
  ASSERT_THAT(cqes, SizeIs(2));
  EXPECT_EQ(cqes[1].syndrome, nic::Syndrome::kTransportRetryExceeded);
  devices_[1].reset();  // all objects can be removed
  EXPECT_THAT(misuses(), IsEmpty());
}

TEST_F(Mlx5FaultTest, PortErrorIsTold) {
  MakeFailing(emulated::QpFault::Kind::kPortDown);
  EXPECT_THAT(test::ErrorsOf(*devices_[1]), ElementsAre(nic::ErrorEvent{Kind::kPortDown, 1}));
  EXPECT_THAT(test::ErrorsOf(*devices_[0]), IsEmpty());
  EXPECT_TRUE(devices_[1]->QueryQp(far_->qp().number).ok());
}

// A card has two ports, and events of no harm: a device that takes each for its own ends runs.
TEST_F(Mlx5QueueTest, EventsOfOtherPortsAreNoErrors) {
  MakePair();
  notes_.events = {{DeviceEvent::Kind::kPortDown, 2}, {DeviceEvent::Kind::kOther, 1}};
  EXPECT_EQ(devices_[0]->AckEvents(), 2u);
  EXPECT_THAT(test::ErrorsOf(*devices_[0]), IsEmpty());
}

// A device that is taken from the machine has no last event, only errors at every poll.
TEST_F(Mlx5QueueTest, DeviceThatIsGoneSaysSoOnce) {
  MakePair();
  notes_.is_gone = true;
  EXPECT_EQ(devices_[0]->AckEvents(), 1u);
  EXPECT_THAT(test::ErrorsOf(*devices_[0]), ElementsAre(nic::ErrorEvent{Kind::kDeviceFatal, 0}));
  EXPECT_THAT(test::ErrorsOf(*devices_[0]), IsEmpty());
}

// The emulated NIC is as strict behind commands as without them.
TEST_F(Mlx5QueueTest, MisuseIsStillReported) {
  MakePair({.sq_wqebbs = 16, .cd_master = true, .managed_send = true});
  near_->Nop();
  Run();
  EXPECT_THAT(misuses(), ElementsAre(HasSubstr("doorbell for the managed send queue")));
}

TEST_F(Mlx5QueueTest, KeysCanBeUsedUntilTheDeviceGoes) {
  MakePair();
  std::ranges::fill(near_->memory(), std::byte{7});
  far_->Receive(0, 100);
  near_->Send({near_->data(0, 100)});
  Run();
  EXPECT_EQ(far_->memory()[99], std::byte{7});
  far_->Receive(0, 100);
  devices_[1].reset();
  near_->Send({near_->data(0, 100)});
  Run();
  const std::vector<Cqe> cqes = near_->Sent();
  ASSERT_THAT(cqes, SizeIs(2));
  EXPECT_EQ(cqes[1].syndrome, nic::Syndrome::kTransportRetryExceeded);
  EXPECT_THAT(misuses(), IsEmpty());
}

}  // namespace
}  // namespace prepost::mlx5::mlx5_queues_test
