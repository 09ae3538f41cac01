// SPDX-License-Identifier: Apache-2.0
//
// The emulated NIC, rule by rule (backends/emulated/engine.h). What hardware is known to do in
// common cases is in tests/conformance; here are the edges: wrap-around, misuse, errors, and the
// emulation's own promises.
#include "prepost/backends/emulated/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "prepost/backends/emulated/device.h"
#include "prepost/backends/emulated/fabric.h"
#include "tests/support/test_queue.h"

namespace prepost::emulated {
namespace {

using nic::Cqe;
using nic::CqeOpcode;
using nic::Opcode;
using nic::Syndrome;
using test::Connect;
using test::Counters;
using test::TestQueue;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Syndrome> Syndromes(const std::vector<Cqe>& cqes) {
  std::vector<Syndrome> syndromes;
  for (const Cqe& cqe : cqes) syndromes.push_back(cqe.syndrome);
  return syndromes;
}

class EngineTest : public testing::Test {
 protected:
  void Make(nic::QpConfig near = {.sq_wqebbs = 16, .cd_master = true},
            nic::QpConfig far = {.sq_wqebbs = 16, .rq_wqes = 16}, EngineOptions options = {}) {
    fabric_ = std::make_unique<Fabric>(2, options);
    near_ = std::make_unique<TestQueue>(device(0), near);
    far_ = std::make_unique<TestQueue>(device(1), far);
    Connect(device(0), *near_, device(1), *far_);
  }
  std::unique_ptr<TestQueue> MakeLoopback(nic::QpConfig config = {.sq_wqebbs = 16,
                                                                  .cd_master = true},
                                          nic::CqConfig cq = {.entries = 64,
                                                              .ignore_overrun = true}) {
    auto queue = std::make_unique<TestQueue>(device(0), config, cq);
    Connect(device(0), *queue, device(0), *queue);
    return queue;
  }
  nic::Device& device(uint32_t node) { return fabric_->device(NodeId(node)); }
  void RingAndRun(TestQueue& queue) {
    queue.Ring();
    fabric_->RunUntilIdle();
  }
  void ExpectMisuse(const std::string& text) {
    EXPECT_THAT(fabric_->engine().misuses(), testing::Contains(HasSubstr(text)));
  }
  void Fill(TestQueue& queue, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) queue.memory()[i] = static_cast<std::byte>(i * 7 + 1);
  }

  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<TestQueue> near_;
  std::unique_ptr<TestQueue> far_;
};

TEST_F(EngineTest, R1SendQueueIndicesWrap) {
  Make();
  const auto queue = MakeLoopback();
  for (int i = 0; i < 10000; ++i) {
    for (int j = 0; j < 7; ++j) queue->Nop({.signaled = j == 6});
    RingAndRun(*queue);
  }
  EXPECT_EQ(fabric_->engine().counters().wqes, 70000u);
  EXPECT_THAT(fabric_->engine().misuses(), IsEmpty());
}

// The slots of WQEs in flight are still read. Catches a count that starts at the fetch index.
TEST_F(EngineTest, R1RingSlotsOfIncompleteWqesAreNotPostedOver) {
  Make({.sq_wqebbs = 4});
  for (int i = 0; i < 4; ++i) near_->Send();  // all fetched, none acknowledged: no receive is there
  RingAndRun(*near_);
  near_->Send();
  RingAndRun(*near_);
  ExpectMisuse("5 WQEBBs are posted and not complete, the limit is 4");
}

TEST_F(EngineTest, R2WqeOfAnotherIndexBreaksTheQueue) {
  Make();
  near_->Nop();
  nic::StoreBigEndian(near_->qp().sq.data() + nic::control::kWqeIndex, uint16_t{9});
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kLocalQpOperation));
  ExpectMisuse("WQE 0: says it is WQE 9");
}

TEST_F(EngineTest, R2WqeOfAnotherQueueBreaksTheQueue) {
  Make();
  near_->Nop();
  near_->Nop();  // the doorbell's
  near_->qp().sq[nic::control::kQpn] = std::byte{0x77};
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()),
              ElementsAre(Syndrome::kLocalQpOperation, Syndrome::kFlushed));
  ExpectMisuse("says it is of QP");
}

TEST_F(EngineTest, R2UnwrittenWqeBreaksTheQueue) {
  Make();
  near_->Nop();
  near_->Ring();
  nic::PostSends(device(0), near_->qp(), 2, 0);
  fabric_->RunUntilIdle();
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kNone, Syndrome::kLocalQpOperation));
  ExpectMisuse("WQE 1: was never written");
}

TEST_F(EngineTest, R2LongWqeWrapsTheRing) {
  Make();
  Fill(*near_, 64);
  for (int i = 0; i < 15; ++i) near_->Nop({.signaled = false});
  RingAndRun(*near_);
  far_->Receive(0, 64);
  near_->Send({near_->data(0, 16), near_->data(16, 16), near_->data(32, 16), near_->data(48, 16)});
  RingAndRun(*near_);
  EXPECT_THAT(Counters(near_->Sent()), ElementsAre(15));
  EXPECT_EQ(std::memcmp(near_->memory().data(), far_->memory().data(), 64), 0);
}

TEST(HasPassedTest, R3IsCyclicIn24Bits) {
  EXPECT_TRUE(HasPassed(0, 0xffffffff));  // for nothing
  EXPECT_FALSE(HasPassed(0, 0));
  EXPECT_TRUE(HasPassed(1, 0));
  EXPECT_FALSE(HasPassed(1, 1));
  EXPECT_TRUE(HasPassed(0x7fffff, 0));
  EXPECT_TRUE(HasPassed(3, 0xfffffe));   // wrapped
  EXPECT_FALSE(HasPassed(0xfffffe, 3));  // ahead, across the wrap
  EXPECT_FALSE(HasPassed(0, 0x7ffffe));  // as far ahead as can be told
}

TEST_F(EngineTest, R3WaitAcrossTheWrapOfTheCounter) {
  Make();
  const auto counted = MakeLoopback(
      {.sq_wqebbs = 16}, {.entries = 4, .ignore_overrun = true, .producer_base = 0xfffffe});
  const auto waiting = MakeLoopback();
  waiting->Wait(counted->send_cq(), 1);  // the fourth CQE: fffffe, ffffff, 0, 1
  RingAndRun(*waiting);
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(waiting->Sent(), IsEmpty()) << i;
    counted->Nop();
    RingAndRun(*counted);
  }
  EXPECT_THAT(Counters(waiting->Sent()), ElementsAre(0));
  EXPECT_THAT(Counters(counted->Sent()), ElementsAre(0, 1, 2, 3));
}

TEST_F(EngineTest, R3WaitParksItsOwnQueueOnly) {
  Make();
  const auto other = MakeLoopback();
  near_->Wait(far_->send_cq(), 0);
  near_->Nop();
  other->Nop();
  near_->Ring();
  RingAndRun(*other);
  EXPECT_THAT(near_->Sent(), IsEmpty());
  EXPECT_THAT(Counters(other->Sent()), ElementsAre(0));
}

TEST_F(EngineTest, R3WaitOnNoCqBreaksTheQueue) {
  Make();
  near_->Wait({.number = 0xbad}, 0);
  near_->Nop();
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()),
              ElementsAre(Syndrome::kLocalQpOperation, Syndrome::kFlushed));
  ExpectMisuse("WAIT on CQ 0xbad, which does not exist");
}

TEST_F(EngineTest, R4EnableOfAnOrdinaryQueueIsAnError) {
  Make();
  const auto target = MakeLoopback();
  near_->SendEnable(*target, 1);
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kLocalQpOperation));
  ExpectMisuse("which is not managed");
}

TEST_F(EngineTest, R4EnableOfWhatWasNeverPostedIsCaught) {
  Make();
  const auto target = MakeLoopback({.sq_wqebbs = 16, .managed_send = true});
  target->Nop();
  near_->SendEnable(*target, 2);
  RingAndRun(*near_);
  ExpectMisuse("WQE 1 was never posted");
  EXPECT_THAT(target->Sent(), IsEmpty());
}

TEST_F(EngineTest, R4EnableNeverGoesBack) {
  Make();
  const auto target = MakeLoopback({.sq_wqebbs = 16, .managed_send = true});
  for (int i = 0; i < 4; ++i) target->Nop();
  near_->SendEnable(*target, 3);
  near_->SendEnable(*target, 1);
  RingAndRun(*near_);
  EXPECT_THAT(Counters(target->Sent()), ElementsAre(0, 1, 2));
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kNone, Syndrome::kNone));
}

TEST_F(EngineTest, R5PayloadArrivesInOrderAndBeforeItsCqe) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Make({.sq_wqebbs = 16}, {.sq_wqebbs = 16, .rq_wqes = 16},
         {.scheduler = SchedulerMode::kAdversarial, .seed = seed, .mtu_bytes = 100});
    Fill(*near_, 3000);
    for (size_t i = 0; i < 3; ++i) {
      far_->Receive(i * 1000, 1000);
      near_->SendImm(static_cast<uint32_t>(i),
                     {near_->data(i * 1000, 600), near_->data(i * 1000 + 600, 400)},
                     {.signaled = i == 2});
    }
    RingAndRun(*near_);
    EXPECT_EQ(std::memcmp(near_->memory().data(), far_->memory().data(), 3000), 0)
        << "seed " << seed;
    const std::vector<Cqe> received = far_->Received();
    ASSERT_EQ(received.size(), 3u);
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(received[i].opcode, CqeOpcode::kResponderSendImm);
      EXPECT_EQ(received[i].immediate, i);
      EXPECT_EQ(received[i].byte_count, 1000u);
      EXPECT_EQ(received[i].wqe_counter, i);
    }
    EXPECT_THAT(Counters(near_->Sent()), ElementsAre(2));  // unsignaled ones are silent
  }
}

TEST_F(EngineTest, R5OnlySendsAndWriteWithImmediateTakeAReceive) {
  Make();
  Fill(*near_, 100);
  far_->memory()[500] = std::byte{0x42};
  far_->Receive();
  near_->Rdma(nic::Opcode::kRdmaWrite, {far_->at(0), far_->key()}, {near_->data(0, 50)});
  near_->Rdma(nic::Opcode::kRdmaWriteImm, {far_->at(50), far_->key()}, {near_->data(50, 50)});
  near_->Rdma(nic::Opcode::kRdmaRead, {far_->at(500), far_->key()}, {near_->data(200, 1)});
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()),
              ElementsAre(Syndrome::kNone, Syndrome::kNone, Syndrome::kNone));
  const std::vector<Cqe> received = far_->Received();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].opcode, CqeOpcode::kResponderWriteImm);
  EXPECT_EQ(std::memcmp(near_->memory().data(), far_->memory().data(), 100), 0);
  EXPECT_EQ(near_->memory()[200], std::byte{0x42});
}

TEST_F(EngineTest, R6RnrIsRetriedAndThenFails) {
  Make({.sq_wqebbs = 16, .rnr_retry = 3});
  near_->Send();
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kRnrRetryExceeded));
  EXPECT_EQ(fabric_->engine().counters().rnr_retries, 3u);
  EXPECT_EQ(fabric_->engine().rnr_retries(NodeId(1)), 3u);
}

TEST_F(EngineTest, R6RnrRetrySevenWaitsForEver) {
  Make();
  near_->Send();
  RingAndRun(*near_);
  EXPECT_THAT(near_->Sent(), IsEmpty());
  EXPECT_GE(fabric_->engine().counters().rnr_retries, 1u);
  ASSERT_EQ(fabric_->engine().Parked().size(), 1u);
  EXPECT_EQ(fabric_->engine().Parked()[0].reason, ParkedQueue::Reason::kReceiverNotReady);
  far_->Receive();
  fabric_->RunUntilIdle();
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kNone));
}

TEST_F(EngineTest, R6ReceiveThatIsTooSmall) {
  Make();
  far_->Receive(0, 10);
  far_->Receive(0, 10);
  near_->Send({near_->data(0, 11)});
  near_->Nop();
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()),
              ElementsAre(Syndrome::kRemoteInvalidRequest, Syndrome::kFlushed));
  EXPECT_THAT(Syndromes(far_->Received()), ElementsAre(Syndrome::kLocalLength, Syndrome::kFlushed));
}

TEST_F(EngineTest, R7FlushCompletesEverythingAndSatisfiesWaits) {
  Make();
  const auto foreign = MakeLoopback();
  foreign->Wait(near_->send_cq(), 2);
  RingAndRun(*foreign);
  near_->Send({}, {.signaled = false});  // waits for a receive for ever
  near_->Nop({.signaled = false});
  near_->Wait(far_->recv_cq(), 0, {.signaled = false});
  RingAndRun(*near_);
  EXPECT_THAT(near_->Sent(), IsEmpty());
  EXPECT_THAT(foreign->Sent(), IsEmpty());
  ASSERT_TRUE(device(0).MoveToError(near_->qp().number).ok());
  fabric_->RunUntilIdle();
  EXPECT_THAT(Syndromes(near_->Sent()),
              ElementsAre(Syndrome::kFlushed, Syndrome::kFlushed, Syndrome::kFlushed));
  EXPECT_THAT(Counters(foreign->Sent()),
              ElementsAre(0));  // the WAIT has passed, though nothing was sent
}

TEST_F(EngineTest, R7WhatIsPostedToABrokenQueueIsFlushed) {
  Make();
  ASSERT_TRUE(device(0).MoveToError(near_->qp().number).ok());
  near_->Nop();
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kFlushed));
}

TEST_F(EngineTest, R7PeerOfABrokenQueueGivesUp) {
  Make();
  far_->Receive();
  ASSERT_TRUE(device(1).MoveToError(far_->qp().number).ok());
  near_->Send();
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kTransportRetryExceeded));
  EXPECT_THAT(Syndromes(far_->Received()), ElementsAre(Syndrome::kFlushed));
}

// A sender that gives up at once, or never, would not show what a NIC's retry_count does.
TEST_F(EngineTest, R6UnansweredMessagesAreRetriedSevenTimes) {
  Make();
  far_->Receive();
  ASSERT_TRUE(device(1).MoveToError(far_->qp().number).ok());
  near_->Send();
  RingAndRun(*near_);
  EXPECT_EQ(fabric_->engine().counters().transport_retries, 7u);
}

// In the error state a managed queue flushes what is enabled later, too, or nobody would ever hear
// of it.
TEST_F(EngineTest, R7WhatIsEnabledOnABrokenQueueIsFlushed) {
  Make({.sq_wqebbs = 16, .managed_send = true});
  const auto master = MakeLoopback();
  near_->Nop();
  ASSERT_TRUE(device(0).MoveToError(near_->qp().number).ok());
  master->SendEnable(*near_, 1);
  RingAndRun(*master);
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kFlushed));
}

TEST_F(EngineTest, R8OwnerBitFlipsEveryLap) {
  Make();
  const auto queue = MakeLoopback({.sq_wqebbs = 16}, {.entries = 2});
  for (int lap = 0; lap < 4; ++lap) {
    for (uint16_t i = 0; i < 2; ++i) queue->Nop();
    RingAndRun(*queue);
    const std::byte owner = queue->send_cq().ring[nic::cqe::kOpcodeOwner] & std::byte{1};
    EXPECT_EQ(owner, static_cast<std::byte>(lap & 1));
    EXPECT_EQ(queue->Sent().size(), 2u);
  }
}

TEST_F(EngineTest, R8OverrunIsReported) {
  Make();
  const auto queue = MakeLoopback({.sq_wqebbs = 16}, {.entries = 2});
  for (int i = 0; i < 3; ++i) queue->Nop();
  RingAndRun(*queue);
  EXPECT_EQ(queue->Sent().size(), 2u);
  ExpectMisuse("of 2 entries was overrun");
}

TEST_F(EngineTest, R8CollapsedCqUsesOneEntryAndCounts) {
  Make();
  const auto queue =
      MakeLoopback({.sq_wqebbs = 16}, {.entries = 4, .ignore_overrun = true, .collapsed = true});
  for (int i = 0; i < 3; ++i) queue->Nop();
  RingAndRun(*queue);
  EXPECT_EQ(nic::LoadBigEndian<uint16_t>(queue->send_cq().ring.data() + nic::cqe::kWqeCounter), 2);
  EXPECT_EQ(queue->send_cq().ring[nic::kCqeBytes + nic::cqe::kOpcodeOwner],
            std::byte{nic::cqe::kInvalid});
  near_->Wait(queue->send_cq(), 2);
  RingAndRun(*near_);
  EXPECT_EQ(near_->Sent().size(), 1u);
}

TEST_F(EngineTest, R9KeysAreChecked) {
  struct Case {
    nic::DataSegment data;
    nic::RemoteSegment remote;
    Syndrome expected;
  };
  Make();
  const std::vector<Case> cases = {
      {near_->data(0, 8), {far_->at(0), far_->key()}, Syndrome::kNone},
      {{8, 0xbad00, near_->at(0)}, {far_->at(0), far_->key()}, Syndrome::kLocalProtection},
      {near_->data(TestQueue::kMemoryBytes - 4, 8),
       {far_->at(0), far_->key()},
       Syndrome::kLocalProtection},
      {near_->data(0, 8), {far_->at(0), 0xbad00}, Syndrome::kRemoteAccess},
      {near_->data(0, 8),
       {far_->at(TestQueue::kMemoryBytes - 4), far_->key()},
       Syndrome::kRemoteAccess},
      {near_->data(0, 8), {far_->at(0) - 1, far_->key()}, Syndrome::kRemoteAccess},
  };
  for (const Case& one : cases) {
    for (nic::Opcode opcode : {nic::Opcode::kRdmaWrite, nic::Opcode::kRdmaRead}) {
      // Same addresses in a fresh fabric would differ: reuse the memory, make new queues.
      TestQueue a(device(0), {.sq_wqebbs = 4});
      TestQueue b(device(1), {.sq_wqebbs = 4});
      Connect(device(0), a, device(1), b);
      a.Rdma(opcode, one.remote, {one.data});
      RingAndRun(a);
      EXPECT_THAT(Syndromes(a.Sent()), ElementsAre(one.expected));
    }
  }
}

TEST_F(EngineTest, R9ReceiveIntoMemoryThatMayNotBeWritten) {
  Make();
  const std::vector<std::byte> constant(8, std::byte{1});
  const auto key = device(1).RegisterMemory(constant, {});
  ASSERT_TRUE(key.ok());
  far_->Receive(0, 8);
  nic::EncodeSegment(nic::DataSegment{8, *key, reinterpret_cast<uintptr_t>(constant.data())},
                     far_->qp().rq.data());
  near_->Send({near_->data(0, 8)});
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kRemoteOperation));
  EXPECT_THAT(Syndromes(far_->Received()), ElementsAre(Syndrome::kLocalProtection));
}

TEST_F(EngineTest, R10FenceHoldsUntilReadsAreComplete) {
  constexpr uint8_t kFences[] = {nic::kFenceReads, nic::kFenceStrongOrdering, nic::kFence};
  for (uint64_t seed = 1; seed <= 21; ++seed) {
    Make({.sq_wqebbs = 16}, {.sq_wqebbs = 16, .rq_wqes = 16},
         {.scheduler = SchedulerMode::kAdversarial, .seed = seed, .mtu_bytes = 10, .log = true});
    Fill(*far_, 200);
    far_->Receive(1000, 200);
    near_->Rdma(nic::Opcode::kRdmaRead, {far_->at(0), far_->key()}, {near_->data(0, 200)});
    near_->Send({near_->data(0, 200)}, {.fence = kFences[seed % 3]});
    RingAndRun(*near_);
    using K = NicEvent::Kind;
    std::vector<std::pair<NicEvent::Kind, uint16_t>> order;
    for (const NicEvent& event : fabric_->engine().log()) {
      if (event.kind == K::kStart || event.kind == K::kRetire) {
        order.emplace_back(event.kind, event.wqe_index);
      }
    }
    EXPECT_THAT(order, ElementsAre(std::pair(K::kStart, 0), std::pair(K::kRetire, 0),
                                   std::pair(K::kStart, 1), std::pair(K::kRetire, 1)))
        << "seed " << seed;
    EXPECT_EQ(std::memcmp(far_->memory().data(), far_->memory().data() + 1000, 200), 0)
        << "seed " << seed;
  }
}

// Catches a held WQE that keeps the NIC busy: a queue that waits for ever would never be reported.
TEST_F(EngineTest, R10HeldWqeLetsTheNicBecomeIdle) {
  Make();
  near_->Send();  // for which there is no receive
  near_->Rdma(nic::Opcode::kRdmaRead, {far_->at(0), far_->key()}, {near_->data(0, 8)});
  near_->Nop({.fence = nic::kFenceReads});
  RingAndRun(*near_);
  EXPECT_EQ(fabric_->engine().Parked().size(), 1u);
  far_->Receive();
  RingAndRun(*near_);
  EXPECT_THAT(Counters(near_->Sent()), ElementsAre(0, 1, 2));
}

TEST_F(EngineTest, R11DoorbellRecordAloneDoesNothing) {
  Make();
  const auto queue = MakeLoopback();
  queue->Nop();
  queue->qp().doorbell_record[nic::kSendRecord] = nic::BigEndian(uint32_t{1});
  fabric_->RunUntilIdle();
  EXPECT_THAT(queue->Sent(), IsEmpty());
  RingAndRun(*queue);
  EXPECT_EQ(queue->Sent().size(), 1u);
}

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

TEST_F(EngineTest, R14ParkedQueuesAreNamed) {
  Make();
  near_->Nop();
  near_->Wait(near_->recv_cq(), 4);
  RingAndRun(*near_);
  const std::vector<ParkedQueue> parked = fabric_->engine().Parked();
  ASSERT_EQ(parked.size(), 1u);
  EXPECT_EQ(parked[0].node, NodeId(0));
  EXPECT_EQ(parked[0].qpn, near_->qp().number);
  EXPECT_EQ(parked[0].wqe_index, 1);
  EXPECT_EQ(parked[0].cqn, near_->recv_cq().number);
  EXPECT_EQ(parked[0].cqe, 4u);
  EXPECT_EQ(parked[0].produced, 0u);
}

// A destroyed QP is gone for its peers, whether they wait for its receives or send later; its
// memory is not looked at again (the address sanitizer would see it).
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
  EXPECT_EQ(fabric_->engine().Parked().size(), 1u);
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
    EXPECT_EQ(fabric_->engine().Parked().size(), 1u);
  }
  EXPECT_THAT(fabric_->engine().Parked(), IsEmpty());
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
  EXPECT_THAT(fabric_->engine().Parked(), IsEmpty());
  ASSERT_TRUE(device(0).Connect(qpn, near_->address()).ok());
  nic::PostSends(device(0), near_->qp(), 0, 0xffff);  // the NOP is still there
  fabric_->RunUntilIdle();
  EXPECT_THAT(Counters(near_->Sent()), ElementsAre(0xffff, 0xffff));
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
  std::mt19937_64 random(2026);
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
}  // namespace prepost::emulated
