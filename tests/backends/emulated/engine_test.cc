// SPDX-License-Identifier: Apache-2.0
//
// What the emulated NIC promises as a whole: R11 to R14, the lives of its objects, and garbage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/engine_fixture.h"
#include "tests/support/random.h"

namespace prepost::emulated::engine_test {
namespace {

using nic::Opcode;
using nic::Syndrome;
using test::Connect;
using test::Counters;
using test::TestQueue;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(EngineTest, R11MisusedDoorbellsAreReported) {
  Make();
  const auto managed = MakeLoopback({.sq_wqebbs = 16, .managed_send = true});
  managed->Nop();
  RingAndRun(*managed);
  ExpectMisuse("managed send queue");
  EXPECT_THAT(managed->Sent(), IsEmpty());
  device(0).RingDoorbell(0);
  fabric_->RunUntilIdle();
  ExpectMisuse("doorbell for QP 0x0, which does not exist");
  near_->Nop();
  nic::PostSends(device(0), near_->qp(), 17, 0);
  fabric_->RunUntilIdle();
  ExpectMisuse("17 WQEBBs are posted and not complete, the limit is 16");
}

// An index that is as far ahead as behind: 2^15 of a ring that holds as many.
TEST_F(EngineTest, R11DoorbellHalfAnIndexAheadIsReported) {
  Make({.sq_wqebbs = 1u << 15}, {.sq_wqebbs = 16, .rq_wqes = 16});
  near_->Nop();
  nic::PostSends(device(0), near_->qp(), 1u << 15, 0);
  fabric_->RunUntilIdle();
  ExpectMisuse("32768 WQEBBs are posted and not complete, the limit is 32767");
  EXPECT_THAT(near_->Sent(), IsEmpty());
}

TEST_F(EngineTest, R12AndR13TheSameSeedGivesTheSameLog) {
  const auto run = [&](SchedulerMode mode, uint64_t seed) {
    Make({.sq_wqebbs = 16}, {.sq_wqebbs = 16, .rq_wqes = 16},
         {.scheduler = mode, .seed = seed, .log = true});
    const auto other = MakeLoopback();
    for (int i = 0; i < 8; ++i) {
      far_->Receive(0, 10000);
      near_->Send({near_->data(0, 10000)});
      other->Nop();
    }
    near_->Ring();
    RingAndRun(*other);
    return fabric_->engine().log();
  };
  for (SchedulerMode mode : {SchedulerMode::kRandom, SchedulerMode::kAdversarial}) {
    const std::vector<NicEvent> first = run(mode, 5);
    EXPECT_EQ(first.size(),
              8u * 6);  // start, arrive, receive and retire of a send; start and retire of a NOP
    EXPECT_EQ(first, run(mode, 5));
    EXPECT_NE(first, run(mode, 6));
  }
}

// What a stuck report is made of: the WAIT that a queue stands at, and how far its CQ is.
TEST_F(EngineTest, R14WhereAQueueStandsCanBeAskedFor) {
  Make({.sq_wqebbs = 16, .rq_wqes = 16, .cd_master = true});
  near_->Nop();
  near_->Wait(near_->recv_cq(), 4);
  near_->Receive();
  far_->Send();
  far_->Ring();
  RingAndRun(*near_);
  const nic::QpCounters stands = *device(0).QueryQp(near_->qp().number);
  EXPECT_EQ(stands.state, nic::QpState::kReadyToSend);
  EXPECT_EQ(stands.sq_fetched, 1);  // the WAIT is the WQE at index 1
  EXPECT_EQ(stands.sq_posted, 2);
  EXPECT_EQ(device(0).QueryCq(near_->recv_cq().number)->producer, 1u);
}

// Catches a cut that stops loopback, too, and a sender that waits for ever for a receiver that
// cannot say that it is not ready.
TEST_F(EngineTest, CutLinkLeavesLoopbackAndEndsRetries) {
  Make({.sq_wqebbs = 16, .rq_wqes = 16}, {.sq_wqebbs = 16},
       {.faults = {{NodeId(0), NodeId(1), 1, QpFault::Kind::kPortDown}}});
  const auto loopback = MakeLoopback({.sq_wqebbs = 16, .rq_wqes = 16});
  near_->Receive();
  far_->Send();
  far_->Send();  // no receive, and nobody to say so
  RingAndRun(*far_);
  EXPECT_THAT(Syndromes(far_->Sent()),
              ElementsAre(Syndrome::kNone, Syndrome::kTransportRetryExceeded));
  EXPECT_THAT(device(0).TakeErrors(),
              ElementsAre(nic::ErrorEvent{nic::ErrorEvent::Kind::kPortDown, 1}));
  loopback->Receive();
  loopback->Send();
  RingAndRun(*loopback);
  EXPECT_EQ(loopback->Received().size(), 1u);
  EXPECT_THAT(fabric_->engine().misuses(), IsEmpty());
}

// A destroyed QP is gone for its peers, whether they wait for its receives or send later; its
// memory is not read again (the address sanitizer would see it).
TEST_F(EngineTest, PeersOfADestroyedQpFindOut) {
  Make();
  auto gone = std::make_unique<EmulatedDevice>(fabric_->nic(NodeId(1)));
  TestQueue waits(device(0), {.sq_wqebbs = 16});
  TestQueue later(device(0), {.sq_wqebbs = 16});
  TestQueue there(*gone, {.sq_wqebbs = 16, .rq_wqes = 16});
  Connect(device(0), waits, *gone, there);
  ASSERT_TRUE(device(0).Connect(later.qp().number, there.address()).ok());
  waits.Send();
  RingAndRun(waits);
  EXPECT_TRUE(fabric_->engine().waits_for_receives());
  gone.reset();
  later.Send();
  RingAndRun(later);
  EXPECT_THAT(Syndromes(waits.Sent()), ElementsAre(Syndrome::kTransportRetryExceeded));
  EXPECT_THAT(Syndromes(later.Sent()), ElementsAre(Syndrome::kTransportRetryExceeded));
  EXPECT_THAT(fabric_->engine().misuses(), IsEmpty());
}

// A QP that stands at a WAIT when it goes is not woken by that CQ's next CQE.
TEST_F(EngineTest, DestroyedQpIsForgottenByItsWait) {
  Make();
  const auto counted = MakeLoopback();
  {
    EmulatedDevice gone(fabric_->nic(NodeId(0)));
    TestQueue waits(gone, {.sq_wqebbs = 16, .cd_master = true});
    Connect(gone, waits, gone, waits);
    waits.Wait(counted->send_cq(), 0);
    RingAndRun(waits);
    EXPECT_EQ(gone.QueryQp(waits.qp().number)->sq_fetched, 0);
  }
  counted->Nop();
  RingAndRun(*counted);
  EXPECT_THAT(Counters(counted->Sent()), ElementsAre(0));
}

TEST_F(EngineTest, ResetQpStartsAnewAtItsBase) {
  Make({.sq_wqebbs = 16, .sq_base = 0xffff, .cd_master = true});
  nic::NicModel& nic = fabric_->nic(NodeId(0));
  const uint32_t qpn = near_->qp().number;
  const auto counters = [&] { return *nic.QueryQp(qpn); };
  near_->Nop();
  near_->Wait(near_->recv_cq(), 5);
  RingAndRun(*near_);
  EXPECT_EQ(counters().sq_posted, 1);
  EXPECT_EQ(counters().sq_fetched, 0);
  ASSERT_TRUE(nic.ToReset(qpn).ok());
  EXPECT_EQ(counters().state, nic::QpState::kReset);
  EXPECT_EQ(counters().sq_posted, 0xffff);
  EXPECT_EQ(counters().sq_fetched, 0xffff);
  ASSERT_TRUE(device(0).Connect(qpn, near_->address()).ok());
  nic::PostSends(device(0), near_->qp(), 0, 0xffff);  // the NOP is still there
  fabric_->RunUntilIdle();
  EXPECT_THAT(Counters(near_->Sent()), ElementsAre(0xffff, 0xffff));
}

// Catches a reset that leaves peers with the QP as it was before: they would get no answer.
TEST_F(EngineTest, PeersReachAResetQpByItsNumber) {
  Make();
  const uint32_t qpn = far_->qp().number;
  ASSERT_TRUE(fabric_->nic(NodeId(1)).ToReset(qpn).ok());
  ASSERT_TRUE(device(1).Connect(qpn, near_->address()).ok());
  far_->Receive();
  near_->Send();
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kNone));
  EXPECT_EQ(far_->Received().size(), 1u);
}

TEST_F(EngineTest, DoorbellsOfUnconnectedQpsAreReported) {
  Make();
  TestQueue queue(device(0), {.sq_wqebbs = 16});
  queue.Nop();
  RingAndRun(queue);
  ExpectMisuse("which is in state RST");
}

TEST_F(EngineTest, CqsInUseStay) {
  Make();
  nic::NicModel& nic = fabric_->nic(NodeId(0));
  EXPECT_THAT(nic.DestroyCq(near_->send_cq().number).message(), HasSubstr("is in use by QPs"));
  EXPECT_THAT(nic.DestroyCq(0xbad).message(), HasSubstr("does not exist"));
}

// A ring can hold anything: whatever it is, the NIC says so and goes on.
TEST_F(EngineTest, GarbageInRingsIsSurvived) {
  constexpr Opcode kOpcodes[] = {Opcode::kNop,       Opcode::kSend,       Opcode::kSendImm,
                                 Opcode::kRdmaWrite, Opcode::kWait,       Opcode::kRdmaWriteImm,
                                 Opcode::kRdmaRead,  Opcode::kSendEnable, Opcode::kRecvEnable};
  std::mt19937_64 random(test::TestSeed());
  for (int run = 0; run < 2000; ++run) {
    Make();
    const auto fill = [&](std::span<std::byte> ring) {
      for (std::byte& byte : ring) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
    };
    fill(near_->qp().sq);
    fill(far_->qp().rq);
    for (uint16_t i = 0; i < 16; ++i) {
      nic::ControlSegment control{.wqe_index = i,
                                  .opcode = kOpcodes[random() % std::size(kOpcodes)],
                                  .qpn = near_->qp().number,
                                  .segments = static_cast<uint8_t>(random() % 6)};
      std::byte* at = near_->qp().sq.data() + i * nic::kWqebbBytes;
      nic::EncodeSegment(control, at);
      if (random() % 2 == 0) nic::EncodeSegment(near_->data(0, 8), at + nic::kSegmentBytes);
    }
    nic::PostReceives(far_->qp(), 16);
    nic::PostSends(device(0), near_->qp(), 16, 15);
    fabric_->RunUntilIdle();
  }
}

}  // namespace
}  // namespace prepost::emulated::engine_test
