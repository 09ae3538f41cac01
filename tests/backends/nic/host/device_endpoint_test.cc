// SPDX-License-Identifier: Apache-2.0
//
// DeviceEndpoint by hand: two endpoints on two emulated NICs that run on this thread, so that every
// order is the test's.
#include "backends/nic/host/device_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "backends/emulated/fabric.h"
#include "backends/mlx5/stand_in/stand_in.h"
#include "runtime/base/event_fd.h"
#include "tests/support/plans.h"
#include "tests/support/transfer.h"

namespace prepost::device_endpoint_test {
namespace {

using emulated::Fabric;
using nic::DeviceEndpoint;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kBlocks = 5;
constexpr std::chrono::milliseconds kLook{0};
constexpr std::chrono::milliseconds kSleep{-1};

/// Node 0 sends kBlocks blocks to node 1: op i is block i at both.
class DeviceEndpointTest : public testing::Test {
 protected:
  explicit DeviceEndpointTest(emulated::EngineOptions options = {})
      : options_(std::move(options)) {}

  /// `sender_plan`: null: the same as the receiver's.
  void Make(uint32_t ring_wqes_max = 32768, const Plan* sender_plan = nullptr) {
    for (uint32_t node = 0; node < 2; ++node) {
      const Plan& plan = node == 0 && sender_plan != nullptr ? *sender_plan : plan_;
      const std::span<const std::byte> buffer = transfer_.buffers()[1];
      auto made = DeviceEndpoint::Make(fabric_.device(NodeId(node)), plan, NodeId(node),
                                       {.message = node == 0 ? transfer_.message() : buffer,
                                        .writable = node != 0,
                                        .epoch = 9,
                                        .ring_wqes_max = ring_wqes_max,
                                        .wake_fd = wake_.fd()});
      ASSERT_TRUE(made.ok()) << made.status().ToString();
      (node == 0 ? sender_ : receiver_) = *std::move(made);
    }
    nic::OpenNode open[] = {sender_->open_node(), receiver_->open_node()};
    ASSERT_TRUE(nic::ConnectAll(open).ok());
  }

  void Send(uint32_t block) { SendFrom(offset(block), block, size(block)); }
  void SendFrom(uint64_t begin, uint32_t block, uint64_t bytes) {
    sender_->PostSend({.op = OpId(block),
                       .channel = ChannelId(0),
                       .block = block,
                       .memory = transfer_.message().subspan(begin, bytes)});
  }
  void Receive(uint32_t block) { ReceiveInto(block, size(block)); }
  void ReceiveInto(uint32_t block, uint64_t bytes) {
    receiver_->PostRecv({.op = OpId(block),
                         .channel = ChannelId(0),
                         .block = block,
                         .memory = transfer_.buffers()[1].subspan(offset(block), bytes)});
  }
  uint64_t offset(uint32_t block) const { return plan_.header().payload.BlockOffset(block); }
  uint64_t size(uint32_t block) const { return plan_.header().payload.BlockSize(block); }

  /// The ops that have completed, after the NICs have done all they can.
  std::vector<uint32_t> Completed(DeviceEndpoint& endpoint, size_t at_most = 64) {
    fabric_.RunUntilIdle();
    std::vector<OpId> ops(at_most);
    const Result<PollOutcome> outcome = endpoint.Poll(ops, kLook);
    EXPECT_TRUE(outcome.ok()) << outcome.status().ToString();
    std::vector<uint32_t> ids;
    for (size_t i = 0; outcome.ok() && i < outcome->completed; ++i) ids.push_back(ops[i].value);
    return ids;
  }
  std::string Error(DeviceEndpoint& endpoint) {
    fabric_.RunUntilIdle();
    std::vector<OpId> ops(64);
    const Result<PollOutcome> outcome = endpoint.Poll(ops, kLook);
    EXPECT_EQ(outcome.status().code(), StatusCode::kRejected);
    return outcome.status().message();
  }

  static VerifiedPlan PlanOf(uint64_t block_bytes) {
    return test::CompileOrDie({.nodes = 2,
                               .message_bytes = kBlocks * 100 - 30,
                               .block_bytes = block_bytes,
                               .algorithm = "chain",
                               .ready = *ParseReady("retry"),
                               .send_window = *ParseSendWindow("none")});
  }

  Plan plan_ = PlanOf(100);
  test::Transfer transfer_{plan_.header()};
  EventFd wake_ = *EventFd::Make();
  const emulated::EngineOptions options_;
  Fabric fabric_{2, options_};
  std::unique_ptr<DeviceEndpoint> sender_;
  std::unique_ptr<DeviceEndpoint> receiver_;
};

TEST_F(DeviceEndpointTest, CompletionsAreThoseOfTheOps) {
  Make();
  for (uint32_t block = 0; block < kBlocks; ++block) Receive(block);
  Send(0);
  Send(1);
  EXPECT_THAT(Completed(*receiver_), ElementsAre(0, 1));
  EXPECT_THAT(Completed(*sender_), ElementsAre(0, 1));
  EXPECT_EQ(fabric_.device(NodeId(0)).counters().doorbells, 2u) << "one per send";
  EXPECT_EQ(fabric_.device(NodeId(1)).counters().doorbells, 0u) << "none for receives";
  for (uint32_t block = 2; block < kBlocks; ++block) Send(block);
  EXPECT_THAT(Completed(*receiver_, 2), ElementsAre(2, 3)) << "no more than asked for";
  EXPECT_THAT(Completed(*receiver_), ElementsAre(4));
  EXPECT_EQ(sender_->counters().bytes_moved, 200u);
  EXPECT_EQ(receiver_->counters().bytes_moved, kBlocks * 100u - 30);
  transfer_.ExpectDelivered();
}

// A NIC that loses a send that found no receive, or an executor that must not be early.
TEST_F(DeviceEndpointTest, ASendWaitsForItsReceive) {
  Make();
  Send(0);
  EXPECT_THAT(Completed(*sender_), IsEmpty());
  EXPECT_GT(fabric_.engine().rnr_retries(NodeId(1)), 0u);
  Receive(0);
  EXPECT_THAT(Completed(*receiver_), ElementsAre(0));
  EXPECT_THAT(Completed(*sender_), ElementsAre(0));
}

// Posting a receive rings no doorbell: an engine that sleeps until one comes never polls again.
TEST_F(DeviceEndpointTest, ASleepingEngineNoticesAReceive) {
  Make();
  Send(0);
  ASSERT_TRUE(fabric_.Start(Fabric::Until::kStopped).ok());
  while (!fabric_.is_idle()) std::this_thread::yield();
  Receive(0);
  std::vector<OpId> ops(4);
  const Result<PollOutcome> outcome = receiver_->Poll(ops, kSleep);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(outcome->completed, 1u);
  fabric_.Stop();
}

// Rings of two entries: what does not fit waits, goes in order, and is never lost.
TEST_F(DeviceEndpointTest, WhatDoesNotFitARingWaits) {
  Make(/*ring_wqes_max=*/2);
  for (uint32_t block = 0; block < kBlocks; ++block) Receive(block);
  for (uint32_t block = 0; block < kBlocks; ++block) Send(block);
  EXPECT_EQ(fabric_.device(NodeId(0)).counters().doorbells, 2u);
  std::vector<uint32_t> received;
  std::vector<uint32_t> sent;
  for (uint32_t i = 0; i < kBlocks; ++i) {
    std::ranges::copy(Completed(*receiver_), std::back_inserter(received));
    std::ranges::copy(Completed(*sender_), std::back_inserter(sent));
  }
  EXPECT_THAT(received, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(sent, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(fabric_.engine().misuses(), IsEmpty());
  transfer_.ExpectDelivered();
}

TEST_F(DeviceEndpointTest, ABrokenQpIsOneErrorWithThePeer) {
  Make();
  for (uint32_t block = 0; block < kBlocks; ++block) Receive(block);
  ASSERT_TRUE(fabric_.device(NodeId(1)).MoveToError(receiver_->open_node().qps[0].qpn).ok());
  Send(0);
  EXPECT_EQ(Error(*sender_), "node 0 cannot send block 0 to node 1: transport retry exceeded");
  EXPECT_EQ(sender_->lost_peer(), NodeId(1));
  EXPECT_EQ(Error(*receiver_), "node 1 cannot receive block 0 from node 0: flushed");
  EXPECT_EQ(receiver_->lost_peer(), NodeId(0));
}

// A poll for errors takes whatever event has come. A host that went on to sleep for that one would
// sleep for ever.
TEST_F(DeviceEndpointTest, EventTakenWhilePollingIsAskedForAgain) {
  ASSERT_TRUE(
      fabric_.MakeDevices([](nic::NicModel& nic) { return mlx5::OpenOnStandIn(nic, {}); }).ok());
  Make();
  ASSERT_TRUE(receiver_->RequestEvents().ok());
  Receive(0);
  Send(0);
  EXPECT_THAT(Completed(*receiver_), ElementsAre(0));
  for (int look = 0; look < 64; ++look) EXPECT_THAT(Completed(*receiver_), IsEmpty());
  ASSERT_TRUE(receiver_->RequestEvents().ok());
  EXPECT_EQ(fabric_.device(NodeId(1)).counters().event_requests, 2u);
}

class FailingNicTest : public DeviceEndpointTest {
 protected:
  FailingNicTest()
      : DeviceEndpointTest({.faults = {{.node = NodeId(1),
                                        .peer = NodeId(0),
                                        .after_receives = 1,
                                        .kind = emulated::QpFault::Kind::kDeviceFatal}}}) {}

  /// How it ends for a host that waits so after its first receive.
  std::string End(std::chrono::milliseconds wait) {
    Make();
    EXPECT_TRUE(receiver_->RequestEvents().ok());
    Receive(0);
    Send(0);
    fabric_.RunUntilIdle();
    std::vector<OpId> ops(4);
    Result<PollOutcome> outcome = PollOutcome{};
    for (int polls = 0; outcome.ok() && polls < 1000; ++polls) outcome = receiver_->Poll(ops, wait);
    return outcome.status().message();
  }
};

// No CQE comes of it: a host that does not poll events would go on for ever.
TEST_F(FailingNicTest, HostThatSleepsIsTold) {
  EXPECT_EQ(End(kSleep), "node 1: device fatal error");
}
TEST_F(FailingNicTest, HostThatPollsIsTold) { EXPECT_EQ(End(kLook), "node 1: device fatal error"); }

// Order alone does not say what came: the immediate and the size are checked.
TEST_F(DeviceEndpointTest, AnotherBlockThanPostedIsAnError) {
  Make();
  Receive(1);
  Send(0);
  EXPECT_EQ(Error(*receiver_),
            "node 1 cannot receive block 1 from node 0: block 1 of epoch 9 was expected, block 0 "
            "of epoch 9 came");
  EXPECT_EQ(receiver_->lost_peer(), std::nullopt);
}

// Nodes that have two plans, which only the blocks' size shows.
TEST_F(DeviceEndpointTest, AShorterBlockThanPostedIsAnError) {
  const Plan shorter = PlanOf(/*block_bytes=*/99);
  Make(32768, &shorter);
  Receive(0);
  SendFrom(0, 0, 99);
  EXPECT_THAT(Error(*receiver_), HasSubstr("block 0 has 100 bytes, 99 came"));
}

TEST_F(DeviceEndpointTest, ALongerBlockThanPostedIsAnError) {
  const Plan longer = PlanOf(/*block_bytes=*/101);
  Make(32768, &longer);
  Receive(0);
  SendFrom(0, 0, 101);
  EXPECT_THAT(Error(*receiver_), HasSubstr("cannot receive block 0 from node 0: "));
  EXPECT_THAT(Error(*sender_), HasSubstr("cannot send block 0 to node 1: "));
}

// What a request names would not be what is sent, or written.
TEST_F(DeviceEndpointTest, ABlockSomewhereElseIsRefused) {
  Make();
  EXPECT_DEATH(ReceiveInto(0, size(0) - 1), "");
  EXPECT_DEATH(SendFrom(offset(1), 0, size(0)), "");
}

TEST_F(DeviceEndpointTest, TheWakeUpFileEndsASleep) {
  Make();
  uint64_t wakeups = 0;
  receiver_->ObserveWakeups([&] { ++wakeups; });
  Receive(0);
  wake_.Signal();
  std::vector<OpId> ops(4);
  const Result<PollOutcome> outcome = receiver_->Poll(ops, kSleep);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_TRUE(outcome->woken);
  EXPECT_EQ(outcome->completed, 0u);
  EXPECT_EQ(receiver_->counters().wakeups, 1u);
  EXPECT_EQ(wakeups, 1u);
  EXPECT_EQ(fabric_.device(NodeId(1)).counters().event_requests, 1u);
}

}  // namespace
}  // namespace prepost::device_endpoint_test
