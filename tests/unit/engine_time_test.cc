// SPDX-License-Identifier: Apache-2.0
//
// The emulated NIC in virtual time, one step at a time: what costs what, and that its rules stay what
// they are. Whole runs are in tests/differential/virtual_offload_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "prepost/backends/emulated/fluid_network.h"
#include "prepost/backends/emulated/virtual_clock.h"
#include "tests/support/engine_fixture.h"

namespace prepost::emulated {
namespace {

using nic::Syndrome;
using test::Connect;
using test::Counters;
using test::TestQueue;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Picoseconds kLatency = 1'000'000;

/// Ports of 1 byte per nanosecond.
class EngineTimeTest : public EngineTest {
 protected:
  void MakeTimed(NicCosts costs, nic::QpConfig near = {.sq_wqebbs = 16, .cd_master = true},
                 nic::QpConfig far = {.sq_wqebbs = 16, .rq_wqes = 16}, bool log = false) {
    Network network = Network::Uniform(2);
    for (Network::Node& node : network.nodes) node.out_rate = node.in_rate = 1e9;
    network.rack_latency = 1e-6;
    clock_.emplace();
    network_.emplace(*FluidNetwork::Make(network));
    Make(near, far,
         {.log = log, .time = {.clock = &*clock_, .network = &*network_, .costs = costs}});
  }
  Picoseconds now() const { return clock_->now(); }
  uint64_t misuses() const { return fabric_->engine().misuses().size(); }

  std::optional<VirtualClock> clock_;
  std::optional<FluidNetwork> network_;
};

TEST_F(EngineTimeTest, TwoMessagesOfAQueueUseTheWireInTurn) {
  MakeTimed({.wqe = 10, .cqe = 3, .doorbell = 500, .message_overhead_bytes = 7}, {.sq_wqebbs = 16},
            {.sq_wqebbs = 16, .rq_wqes = 16}, /*log=*/true);
  for (int i = 0; i < 2; ++i) {
    far_->Receive();
    near_->Send();
  }
  RingAndRun(*near_);
  EXPECT_EQ(now(), 510 + 2 * 7000 + 2 * kLatency + 3);
  EXPECT_THAT(Counters(near_->Sent()), ElementsAre(0, 1));
  EXPECT_EQ(far_->Received().size(), 2u);
  // The log has the clock's nanoseconds.
  std::vector<uint64_t> received;
  for (const NicEvent& event : fabric_->engine().log()) {
    if (event.kind == NicEvent::Kind::kReceive) received.push_back(event.time_ns);
  }
  EXPECT_THAT(received, ElementsAre(1007, 1014));
}

// The acknowledgement of a message comes after what tells of the NOP behind it, which waits.
TEST_F(EngineTimeTest, WqesRetireInOrder) {
  MakeTimed({.cqe = 3});
  far_->Receive();
  near_->Send();
  near_->Ring();
  while (now() < kLatency + 3) fabric_->RunSome(1);
  near_->Nop();
  near_->Ring();
  while (now() <= kLatency + 6) fabric_->RunSome(1);
  EXPECT_THAT(near_->Sent(), IsEmpty());
  fabric_->RunUntilIdle();
  EXPECT_EQ(now(), 2 * kLatency + 3);
  EXPECT_THAT(Counters(near_->Sent()), ElementsAre(0, 1));
  EXPECT_THAT(fabric_->engine().misuses(), IsEmpty());
}

TEST_F(EngineTimeTest, EnablesComeWhenTheirQueueGetsThere) {
  MakeTimed({.wqe = 1000, .wait = 20, .cqe = 3});
  const auto managed = MakeLoopback({.sq_wqebbs = 16, .managed_send = true});
  const auto master = MakeLoopback();
  for (int i = 0; i < 3; ++i) managed->Nop();
  master->Nop({.signaled = false});
  master->SendEnable(*managed, 1, {.signaled = false});
  master->Wait(managed->send_cq(), 0, {.signaled = false});
  master->SendEnable(*managed, 3, {.signaled = false});
  RingAndRun(*master);
  // NOP, SEND_EN; the managed NOP and its CQE; WAIT, SEND_EN; two managed NOPs and a CQE.
  EXPECT_EQ(now(), 2000 + 1003 + 1020 + 2003);
  EXPECT_THAT(Counters(managed->Sent()), ElementsAre(0, 1, 2));
}

// A WAIT costs from when its CQE is there, not from when the queue came to it.
TEST_F(EngineTimeTest, WaitsCostFromTheirCqeOn) {
  MakeTimed({.wait = 20});
  const auto other = MakeLoopback();
  far_->Receive();
  near_->Send();
  other->Wait(near_->send_cq(), 0);
  other->Wait(near_->send_cq(), 0);
  other->Ring();
  RingAndRun(*near_);
  EXPECT_EQ(now(), 2 * kLatency + 2 * 20);
  EXPECT_EQ(other->Sent().size(), 2u);
}

TEST_F(EngineTimeTest, AMissingReceiveIsAskedForAgainAfterTheTimer) {
  MakeTimed({.rnr_timer = 7'000'000});
  near_->Send();
  RingAndRun(*near_);
  EXPECT_THAT(near_->Sent(), IsEmpty());
  EXPECT_EQ(now(), 7'000'000);  // then time stands still: only a host can help
  far_->Receive();
  fabric_->RunUntilIdle();
  EXPECT_EQ(now(), 7'000'000 + 2 * kLatency);
  EXPECT_EQ(near_->Sent().size(), 1u);
  EXPECT_EQ(fabric_->engine().rnr_retries(NodeId(1)), 1u);
}

TEST_F(EngineTimeTest, RetriesForAReceiveEnd) {
  MakeTimed({.rnr_timer = 7'000'000}, {.sq_wqebbs = 16, .rnr_retry = 2});
  near_->Send();
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kRnrRetryExceeded));
  EXPECT_EQ(now(), 2 * 7'000'000);
}

TEST_F(EngineTimeTest, NobodyAnswersSevenTimes) {
  MakeTimed({.ack_timeout = 4'000'000});
  ASSERT_TRUE(device(1).MoveToError(far_->qp().number).ok());
  near_->Send();
  near_->Nop();
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()),
              ElementsAre(Syndrome::kTransportRetryExceeded, Syndrome::kFlushed));
  EXPECT_EQ(now(), 7 * 4'000'000);
}

// A queue that breaks while its message is on the wire: the message ends, and nobody gets it.
TEST_F(EngineTimeTest, AMessageOfABrokenQueueIsLost) {
  MakeTimed({.message_overhead_bytes = 100});
  far_->Receive();
  near_->Send();
  near_->Ring();
  while (now() == 0 && network_->flows() == 0) fabric_->RunSome(1);
  ASSERT_TRUE(device(0).MoveToError(near_->qp().number).ok());
  fabric_->RunUntilIdle();
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kFlushed));
  EXPECT_THAT(far_->Received(), IsEmpty());
  EXPECT_EQ(network_->flows(), 0u);
}

TEST_F(EngineTimeTest, PayloadsAreWholeBlocks) {
  MakeTimed({});
  fabric_->HoldTags(4096);
  TestQueue from(device(0), {.sq_wqebbs = 16});
  TestQueue to(device(1), {.sq_wqebbs = 16, .rq_wqes = 16});
  Connect(device(0), from, device(1), to);
  to.Receive(4096, 4096);
  from.Send({from.data(0, 4096)});
  RingAndRun(from);
  EXPECT_EQ(misuses(), 1u);
  ExpectMisuse("a block that was not there yet came where block 1 belongs");
  to.Receive(0, 4096);
  from.Send({from.data(0, 1000)});  // not a block
  RingAndRun(from);
  EXPECT_THAT(Syndromes(from.Sent()), ElementsAre(Syndrome::kNone, Syndrome::kLocalProtection));
}

TEST_F(EngineTimeTest, RdmaIsRefused) {
  MakeTimed({});
  near_->Rdma(nic::Opcode::kRdmaWrite, {far_->at(0), far_->key()}, {near_->data(0, 8)});
  RingAndRun(*near_);
  ExpectMisuse("RDMA_WRITE is not modelled in virtual time");
}

}  // namespace
}  // namespace prepost::emulated
