// SPDX-License-Identifier: Apache-2.0
//
// The emulated NICs' host side while their thread runs: events, and the counters by which a run
// says that its hosts slept. A counter that cannot rise would make every run look idle.
#include "backends/emulated/fabric.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "backends/emulated/device.h"
#include "runtime/base/interrupt.h"
#include "tests/support/test_queue.h"

namespace prepost::emulated::fabric_test {
namespace {

using test::TestQueue;

class FabricTest : public testing::Test {
 protected:
  FabricTest() { Connect(device(), queue_, device(), queue_); }
  nic::Device& device() { return fabric_.device(NodeId(0)); }

  Fabric fabric_{2, {}};
  TestQueue queue_{device(), {.sq_wqebbs = 16, .cd_master = true}};
};

TEST_F(FabricTest, EveryReturnEventRequestAndCqeIsCounted) {
  const int events = *device().EventFile();
  ASSERT_TRUE(fabric_.Start(Fabric::Until::kStopped).ok());
  for (uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(device().RequestEvent(queue_.send_cq().number).ok());
    queue_.Nop();
    queue_.Nop();
    queue_.Ring();
    const auto wait = WaitForEvent(device(), /*wake_fd=*/-1, std::chrono::milliseconds(-1));
    ASSERT_TRUE(wait.ok()) << wait.status().ToString();
    EXPECT_TRUE(wait->event);
    EXPECT_EQ(device().counters().wakeups, i);
    EXPECT_EQ(device().counters().event_requests, i);
    EXPECT_EQ(device().counters().doorbells, i);
  }
  fabric_.Stop();
  fabric_.RunUntilIdle();  // the last NOP
  EXPECT_FALSE(IsInterrupted(events)) << "acknowledged events are gone";
  EXPECT_EQ(queue_.Sent().size(), 6u);
  EXPECT_EQ(device().counters().cqes_read, 6u);
  EXPECT_EQ(fabric_.device(NodeId(1)).counters().cqes_read, 0u);
}

// A CQE that was there before the request gives no event: the host must poll again after the
// request.
TEST_F(FabricTest, EventsAreForCqesAfterTheRequest) {
  queue_.Nop();
  queue_.Ring();
  EXPECT_TRUE(fabric_.RunUntilIdle().empty());
  ASSERT_TRUE(device().RequestEvent(queue_.send_cq().number).ok());
  EXPECT_TRUE(fabric_.RunUntilIdle().empty());
  queue_.Nop();
  queue_.Nop();
  queue_.Ring();
  EXPECT_EQ(fabric_.RunUntilIdle().size(), 1u);  // one request, one event
}

// A host that sleeps for errors must not wake for anything else, and must learn which CQ to read.
TEST_F(FabricTest, ErrorEventsAreForErrorsOnly) {
  const int events = *device().EventFile();
  ASSERT_TRUE(device().RequestErrorEvent(queue_.send_cq().number).ok());
  queue_.Nop();
  queue_.Ring();
  EXPECT_TRUE(fabric_.RunUntilIdle().empty());
  EXPECT_TRUE(device().TakeErrors().empty());
  EXPECT_FALSE(IsInterrupted(events));
  ASSERT_TRUE(device().MoveToError(queue_.qp().number).ok());
  queue_.Nop();
  queue_.Nop();
  queue_.Ring();
  EXPECT_EQ(fabric_.RunUntilIdle().size(), 1u);  // one request, one event
  EXPECT_TRUE(IsInterrupted(events));
  const std::vector<nic::ErrorEvent> errors = device().TakeErrors();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].kind, nic::ErrorEvent::Kind::kErrorCqe);
  EXPECT_EQ(errors[0].number, queue_.send_cq().number);
  EXPECT_TRUE(device().TakeErrors().empty());
}

// A request for any CQE stands, whatever is asked for after it.
TEST_F(FabricTest, ErrorRequestLeavesAGreaterOne) {
  ASSERT_TRUE(device().RequestEvent(queue_.send_cq().number).ok());
  ASSERT_TRUE(device().RequestErrorEvent(queue_.send_cq().number).ok());
  queue_.Nop();
  queue_.Ring();
  EXPECT_EQ(fabric_.RunUntilIdle().size(), 1u);
}

// While the engine runs on its own thread, and sleeps: a command must reach it and take effect
// before it returns.
TEST_F(FabricTest, CommandsReachARunningEngine) {
  ASSERT_TRUE(device().EventFile().ok());
  ASSERT_TRUE(device().RequestErrorEvent(queue_.send_cq().number).ok());
  queue_.Wait(queue_.send_cq(), 5);  // for ever
  queue_.Ring();
  ASSERT_TRUE(fabric_.Start(Fabric::Until::kStopped).ok());
  while (device().QueryQp(queue_.qp().number)->sq_posted != 1) std::this_thread::yield();
  EXPECT_EQ(device().QueryQp(queue_.qp().number)->sq_fetched, 0);
  EXPECT_EQ(device().QueryCq(queue_.send_cq().number)->producer, 0u);
  ASSERT_TRUE(device().MoveToError(queue_.qp().number).ok());
  EXPECT_EQ(device().QueryQp(queue_.qp().number)->state, nic::QpState::kError);
  EXPECT_EQ(device().QueryCq(queue_.send_cq().number)->producer, 1u);
  const auto wait = WaitForEvent(device(), /*wake_fd=*/-1, std::chrono::seconds(30));
  ASSERT_TRUE(wait.ok());
  EXPECT_TRUE(wait->event);
  EXPECT_EQ(device().TakeErrors().size(), 1u);
  fabric_.Stop();
}

// Commands are carried out between the engine's batches. The thread sanitizer would see one that is
// not; one that is never let by hangs.
TEST_F(FabricTest, CommandsWhileTheEngineRuns) {
  ASSERT_TRUE(device().EventFile().ok());
  TestQueue far(fabric_.device(NodeId(1)), {.sq_wqebbs = 16});
  TestQueue busy(device(), {.sq_wqebbs = 16, .rnr_retry = 7});
  Connect(device(), busy, fabric_.device(NodeId(1)), far);
  busy.Send();  // there will be no receive: it tries again for ever
  ASSERT_TRUE(fabric_.Start(Fabric::Until::kStopped).ok());
  busy.Ring();
  for (uint64_t i = 0; i < 200; ++i) {
    EmulatedDevice other(fabric_.nic(NodeId(0)));
    TestQueue queue(other, {.sq_wqebbs = 16});
    Connect(other, queue, other, queue);
    queue.Nop();
    queue.Ring();
    ASSERT_TRUE(other.RequestEvent(queue.send_cq().number).ok());
    ASSERT_TRUE(other.MoveToError(queue.qp().number).ok());
    const auto counters = other.QueryQp(queue.qp().number);
    ASSERT_TRUE(counters.ok());
    EXPECT_EQ(counters->state, nic::QpState::kError);
  }
  fabric_.Stop();
}

}  // namespace
}  // namespace prepost::emulated::fabric_test
