// SPDX-License-Identifier: Apache-2.0
//
// The emulated NIC's send queues: rules R1 to R4, R10 and R11.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/engine_fixture.h"
#include "tests/support/random.h"

namespace prepost::emulated::send_queue_test {
namespace {

using nic::Opcode;
using nic::Syndrome;
using test::Counters;
using testing::ElementsAre;
using testing::IsEmpty;

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
  EXPECT_FALSE(HasPassed(0, 0x7ffffe));  // as far ahead as indices can express
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

TEST_F(EngineTest, R10FenceHoldsUntilReadsAreComplete) {
  constexpr uint8_t kFences[] = {nic::kFenceReads, nic::kFenceStrongOrdering, nic::kFence};
  const uint64_t first = test::TestSeed();
  for (uint64_t seed = first; seed < first + 21; ++seed) {
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
  EXPECT_TRUE(fabric_->engine().waits_for_receives());
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

}  // namespace
}  // namespace prepost::emulated::send_queue_test
