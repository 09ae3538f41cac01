// SPDX-License-Identifier: Apache-2.0
//
// The emulated NIC's RC transport: rules R5, R6 and R9.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/engine_fixture.h"
#include "tests/support/random.h"

namespace prepost::emulated::transport_test {
namespace {

using nic::Cqe;
using nic::CqeOpcode;
using nic::Opcode;
using nic::Syndrome;
using test::Connect;
using test::Counters;
using test::TestQueue;
using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(EngineTest, R5PayloadArrivesInOrderAndBeforeItsCqe) {
  const uint64_t first = test::TestSeed();
  for (uint64_t seed = first; seed < first + 20; ++seed) {
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
  EXPECT_TRUE(fabric_->engine().waits_for_receives());
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

// A sender that gives up at once, or never, would not show what a NIC's retry_count does.
TEST_F(EngineTest, R6UnansweredMessagesAreRetriedSevenTimes) {
  Make();
  far_->Receive();
  ASSERT_TRUE(device(1).MoveToError(far_->qp().number).ok());
  near_->Send();
  RingAndRun(*near_);
  EXPECT_EQ(fabric_->engine().counters().transport_retries, 7u);
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

}  // namespace
}  // namespace prepost::emulated::transport_test
