// SPDX-License-Identifier: Apache-2.0
//
// The emulated NIC in virtual time, one step at a time: what costs what, and that its rules stay
// what they are. Whole runs are in tests/sim/runs/preposted_test.cc.
#include "sim/nics/timed_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <utility>

#include "sim/clock/clock.h"
#include "sim/network/fluid_network.h"
#include "tests/support/engine_fixture.h"

namespace prepost::sim::timed_engine_test {
namespace {

using emulated::Syndromes;
using nic::Syndrome;
using test::Connect;
using test::Counters;
using test::TestQueue;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Picoseconds kLatency = 1'000'000;

/// Ports of 1 byte per nanosecond.
class TimedEngineTest : public emulated::EngineTest {
 protected:
  void MakeTimed(NicCosts costs, nic::QpConfig near = {.sq_wqebbs = 16, .cd_master = true},
                 nic::QpConfig far = {.sq_wqebbs = 16, .rq_wqes = 16}, bool log = false,
                 HostHandler* hosts = nullptr) {
    near_.reset();  // they are of the fabric that was there
    far_.reset();
    Network network = Network::Uniform(2);
    for (Network::Node& node : network.nodes) node.out_rate = node.in_rate = 1e9;
    network.rack_latency = 1e-6;
    clock_.emplace();
    network_.emplace(*FluidNetwork::Make(network));
    const TimedEngineOptions options{
        .clock = &*clock_, .network = &*network_, .costs = costs, .hosts = hosts, .log = log};
    Make(near, far,
         std::make_unique<emulated::Fabric>(
             [&](const std::vector<ArenaPointer<NicState>>& nics) {
               return std::make_unique<TimedEngine>(nics, options);
             },
             2));
  }
  /// Step by step; a failure when nothing is left to do before.
  template <typename Condition>
  void RunUntil(Condition is_there) {
    while (!is_there()) ASSERT_TRUE(fabric_->RunSome(1)) << "at " << now();
  }
  Picoseconds now() const { return clock_->now(); }
  uint64_t misuses() const { return fabric_->engine().misuses().size(); }

  std::optional<Clock> clock_;
  std::optional<FluidNetwork> network_;
};

TEST_F(TimedEngineTest, TwoMessagesOfAQueueUseTheWireInTurn) {
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
  for (const emulated::NicEvent& event : fabric_->engine().log()) {
    if (event.kind == emulated::NicEvent::Kind::kReceive) received.push_back(event.time_ns);
  }
  EXPECT_THAT(received, ElementsAre(1007, 1014));
}

// The acknowledgement of a message comes after what reports the NOP behind it, which waits.
TEST_F(TimedEngineTest, WqesRetireInOrder) {
  MakeTimed({.cqe = 3});
  far_->Receive();
  near_->Send();
  near_->Ring();
  RunUntil([&] { return now() >= kLatency + 3; });
  near_->Nop();
  near_->Ring();
  RunUntil([&] { return now() > kLatency + 6; });
  EXPECT_THAT(near_->Sent(), IsEmpty());
  fabric_->RunUntilIdle();
  EXPECT_EQ(now(), 2 * kLatency + 3);
  EXPECT_THAT(Counters(near_->Sent()), ElementsAre(0, 1));
  EXPECT_THAT(fabric_->engine().misuses(), IsEmpty());
}

TEST_F(TimedEngineTest, EnablesComeWhenTheirQueueGetsThere) {
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
TEST_F(TimedEngineTest, WaitsCostFromTheirCqeOn) {
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

TEST_F(TimedEngineTest, AMissingReceiveIsAskedForAgainAfterTheTimer) {
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

TEST_F(TimedEngineTest, RetriesForAReceiveEnd) {
  MakeTimed({.rnr_timer = 7'000'000}, {.sq_wqebbs = 16, .rnr_retry = 2});
  near_->Send();
  RingAndRun(*near_);
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kRnrRetryExceeded));
  EXPECT_EQ(now(), 2 * 7'000'000);
}

TEST_F(TimedEngineTest, NobodyAnswersSevenTimes) {
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
TEST_F(TimedEngineTest, AMessageOfABrokenQueueIsLost) {
  MakeTimed({.message_overhead_bytes = 100});
  far_->Receive();
  near_->Send();
  near_->Ring();
  RunUntil([&] { return now() != 0 || network_->flows() != 0; });
  ASSERT_TRUE(device(0).MoveToError(near_->qp().number).ok());
  fabric_->RunUntilIdle();
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kFlushed));
  EXPECT_THAT(far_->Received(), IsEmpty());
  EXPECT_EQ(network_->flows(), 0u);
}

// Nobody polls for an unsignaled SEND, but what stands behind it is reported in order; and who logs
// changes nothing.
TEST_F(TimedEngineTest, UnsignaledSendsHoldWhatStandsBehindThem) {
  for (const bool log : {false, true}) {
    SCOPED_TRACE(log);
    MakeTimed({.wqe = 10, .cqe = 3}, {.sq_wqebbs = 16}, {.sq_wqebbs = 16, .rq_wqes = 16}, log);
    for (int i = 0; i < 3; ++i) far_->Receive();
    near_->Send({}, {.signaled = false});
    near_->Nop();
    near_->Ring();
    RunUntil([&] { return now() >= 10 + kLatency + 3; });
    near_->Send({}, {.signaled = false});  // its acknowledgement is not the NOP's business
    near_->Ring();
    RunUntil([&] { return now() >= 10 + 2 * kLatency + 3; });
    EXPECT_THAT(near_->Sent(), IsEmpty());
    RunUntil([&] { return now() > 10 + 2 * kLatency + 3; });
    EXPECT_THAT(Counters(near_->Sent()), ElementsAre(1));
    near_->Send();
    RingAndRun(*near_);
    const Picoseconds second_rung = 10 + kLatency + 3;
    const Picoseconds third_rung = second_rung + 10 + kLatency + 3;  // when the second is there
    EXPECT_EQ(now(), third_rung + 10 + 2 * kLatency + 3);
    EXPECT_EQ(fabric_->engine().log().empty(), !log);
  }
}

// A message that is too long for its receive fails both sides, after all that was sent before it.
TEST_F(TimedEngineTest, AMessageThatDoesNotFitFailsAsOnTheRealClock) {
  const auto outcome = [&] {
    for (const uint32_t bytes : {4096u, 100u, 4096u}) far_->Receive(0, bytes);
    near_->Send();
    near_->Send({near_->data(0, 4096)});
    near_->Nop();
    RingAndRun(*near_);
    return std::pair(Syndromes(near_->Sent()), Syndromes(far_->Received()));
  };
  Make();
  const auto real = outcome();
  EXPECT_THAT(real.first,
              ElementsAre(Syndrome::kNone, Syndrome::kRemoteInvalidRequest, Syndrome::kFlushed));
  EXPECT_THAT(real.second,
              ElementsAre(Syndrome::kNone, Syndrome::kLocalLength, Syndrome::kFlushed));
  MakeTimed({.wqe = 10, .cqe = 3});
  fabric_->HoldTags(4096);
  near_ = std::make_unique<TestQueue>(device(0), nic::QpConfig{.sq_wqebbs = 16});
  far_ = std::make_unique<TestQueue>(device(1), nic::QpConfig{.sq_wqebbs = 16, .rq_wqes = 16});
  Connect(device(0), *near_, device(1), *far_);
  EXPECT_EQ(outcome(), real);
}

/// Posts a receive at a time of its own, as a host does.
class LateHost final : public TimeHandler, public HostHandler {
 public:
  bool Act(std::span<const CqEvent>) override {
    if (post) std::exchange(post, nullptr)();
    return true;
  }
  void OnTime(const TimedEvent&) override { clock->Hold(); }

  Clock* clock = nullptr;
  std::function<void()> post;
};

// A host that will post a receive keeps those that wait for one trying, whenever it does; they try
// at their own times, and find what is posted at that very time.
TEST_F(TimedEngineTest, HostsMayPostTheReceiveLater) {
  constexpr Picoseconds kTimer = 7'000'000;
  for (const Picoseconds at : {kTimer / 2, 3 * kTimer, 3 * kTimer + 1, 1'000'000'000 * kTimer}) {
    SCOPED_TRACE(at);
    LateHost host;
    MakeTimed({.rnr_timer = kTimer}, {.sq_wqebbs = 16}, {.sq_wqebbs = 16, .rq_wqes = 16}, false,
              &host);
    host.clock = &*clock_;
    host.post = [&] { far_->Receive(); };
    clock_->Schedule(at, host, {});
    near_->Send();
    RingAndRun(*near_);
    const Picoseconds tries = (at + kTimer - 1) / kTimer;
    EXPECT_EQ(now(), tries * kTimer + 2 * kLatency);
    EXPECT_EQ(near_->Sent().size(), 1u);
    EXPECT_EQ(fabric_->engine().rnr_retries(NodeId(1)), static_cast<uint64_t>(tries));
  }
}

// One that gives up after some tries, beside one that does not, and a host that comes later.
TEST_F(TimedEngineTest, RetriesThatCountAreNotSkipped) {
  constexpr Picoseconds kTimer = 7'000'000;
  LateHost host;
  MakeTimed({.rnr_timer = kTimer}, {.sq_wqebbs = 16, .rnr_retry = 2},
            {.sq_wqebbs = 16, .rq_wqes = 16}, false, &host);
  TestQueue patient(device(0), {.sq_wqebbs = 16});
  TestQueue other(device(1), {.sq_wqebbs = 16, .rq_wqes = 16});
  Connect(device(0), patient, device(1), other);
  host.clock = &*clock_;
  host.post = [&] {
    far_->Receive();
    other.Receive();
  };
  clock_->Schedule(10 * kTimer + 1, host, {});
  near_->Send();
  patient.Send();
  near_->Ring();
  RingAndRun(patient);
  EXPECT_THAT(Syndromes(near_->Sent()), ElementsAre(Syndrome::kRnrRetryExceeded));
  EXPECT_THAT(Syndromes(patient.Sent()), ElementsAre(Syndrome::kNone));
  EXPECT_EQ(now(), 11 * kTimer + 2 * kLatency);
  EXPECT_EQ(fabric_->engine().counters().rnr_retries, 2u + 11u);
}

TEST_F(TimedEngineTest, ItHasNoThreadOfItsOwn) {
  MakeTimed({});
  EXPECT_DEATH(static_cast<void>(fabric_->Start(emulated::Fabric::Until::kIdle)), "");
}

TEST_F(TimedEngineTest, PayloadsAreWholeBlocks) {
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

// The same block of another message is another block.
TEST_F(TimedEngineTest, BlocksOfAnotherMessageAreToldApart) {
  MakeTimed({});
  fabric_->HoldTags(4096);
  TestQueue other(device(0), {.sq_wqebbs = 16});
  TestQueue from(device(0), {.sq_wqebbs = 16});
  const uint32_t key = *device(0).RegisterMemory(other.memory(), {});  // a root's: all is there
  TestQueue first(device(1), {.sq_wqebbs = 16, .rq_wqes = 16});
  fabric_->HoldTags(4096);
  TestQueue second(device(1), {.sq_wqebbs = 16, .rq_wqes = 16});
  Connect(device(0), other, device(1), first);
  Connect(device(0), from, device(1), second);
  const nic::DataSegment block{.byte_count = 4096, .lkey = key, .address = other.at(3 * 4096)};
  first.Receive(3 * 4096, 4096);
  other.Send({block});
  RingAndRun(other);
  EXPECT_THAT(fabric_->engine().misuses(), IsEmpty());
  second.Receive(3 * 4096, 4096);
  from.Send({block});
  RingAndRun(from);
  ExpectMisuse("another message's block came where block 3 belongs");
}

TEST_F(TimedEngineTest, RdmaIsRefused) {
  MakeTimed({});
  near_->Rdma(nic::Opcode::kRdmaWrite, {far_->at(0), far_->key()}, {near_->data(0, 8)});
  RingAndRun(*near_);
  ExpectMisuse("RDMA_WRITE is not modelled in virtual time");
}

}  // namespace
}  // namespace prepost::sim::timed_engine_test
