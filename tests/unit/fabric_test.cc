// SPDX-License-Identifier: Apache-2.0
//
// The emulated NICs' host side while their thread runs: events, and the counters by which a run
// says that its hosts slept. A counter that cannot rise would make every run look idle.
#include "prepost/backends/emulated/fabric.h"

#include <gtest/gtest.h>

#include <chrono>

#include "prepost/backends/emulated/device.h"
#include "prepost/runtime/interrupt.h"
#include "tests/support/test_queue.h"

namespace prepost::emulated {
namespace {

using test::TestQueue;

class FabricTest : public testing::Test {
 protected:
  FabricTest() { Connect(device(), queue_, device(), queue_); }
  nic::Device& device() { return fabric_.device(NodeId(0)); }

  Fabric fabric_{2, {}};
  TestQueue queue_{device(), {.sq_wqebbs = 16}};
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

// A CQE that was there before the request gives no event: the host must look again after asking.
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
}  // namespace prepost::emulated
