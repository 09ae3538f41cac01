// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/queued_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "runtime/base/event_fd.h"
#include "runtime/transport/tcp/tcp_links.h"

namespace prepost::queued_endpoint_test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What the queues of a test do and have been asked.
struct Script {
  uint32_t room = UINT32_MAX;  ///< of all together
  std::vector<OpId> taken;     ///< in their order
  std::deque<OpId> completed;  ///< to be read
  Status failure;              ///< of the next read
  std::optional<NodeId> lost_peer = {};
  Status event;  ///< of the next event
  bool is_automatic = true;
  bool is_released = false;
  bool is_stopped = false;
};

class FakeQueues final : public ChannelQueues {
 public:
  FakeQueues(const Plan& plan, Script& script, const EventFd& file)
      : ends_(plan, NodeId(0)), script_(script), file_(file) {}

  const ChannelEnds& ends() const override { return ends_; }
  Result<bool> Post(OpId op) override {
    if (script_.room == 0) return false;
    --script_.room;
    script_.taken.push_back(op);
    return true;
  }
  Result<size_t> Read(std::span<OpId> completed) override {
    PREPOST_RETURN_IF_ERROR(script_.failure);
    size_t count = 0;
    for (; count < completed.size() && !script_.completed.empty(); ++count) {
      completed[count] = script_.completed.front();
      script_.completed.pop_front();
      ++script_.room;
    }
    return count;
  }
  bool MayWait() override { return true; }
  Status TakeEvents() override { return script_.event; }
  int file() const override { return file_.fd(); }
  bool is_automatic() const override { return script_.is_automatic; }
  bool has_room_on_completion() const override { return true; }
  std::optional<NodeId> lost_peer() const override { return script_.lost_peer; }
  void Release() override { script_.is_released = true; }
  Status Restart(const NodeMemory&) override { return {}; }
  void Stop() override { script_.is_stopped = true; }

 private:
  const ChannelEnds ends_;
  Script& script_;
  const EventFd& file_;
};

class QueuedEndpointTest : public testing::Test {
 protected:
  /// Node 0 sends six blocks to node 1.
  QueuedEndpointTest()
      : plan_(Compile({.nodes = 2,
                       .message_bytes = 60,
                       .block_bytes = 10,
                       .algorithm = "chain",
                       .ready = {.automatic = false, .ready = {}}})
                  .value()),
        file_(EventFd::Make().value()),
        wake_(EventFd::Make().value()),
        endpoint_(std::make_unique<QueuedEndpoint>(
            std::make_shared<FakeQueues>(plan_, script_, file_),
            std::make_unique<TcpLinks>(std::vector<TcpSocket>()), wake_.fd())) {}

  /// Over queues that move nothing while nobody reads them; the peer's end of the link.
  FileDescriptor MakeDependent() {
    std::array<int, 2> pair;
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
    std::vector<TcpSocket> sockets;
    sockets.push_back({.peer = NodeId(1), .fd = FileDescriptor(pair[0])});
    script_.is_automatic = false;
    endpoint_ = std::make_unique<QueuedEndpoint>(
        std::make_shared<FakeQueues>(plan_, script_, file_),
        std::make_unique<TcpLinks>(std::move(sockets)), wake_.fd());
    return FileDescriptor(pair[1]);
  }
  void CompleteAll() {
    for (uint32_t op = 0; op < 6; ++op) {
      Send(op);
      script_.completed.push_back(OpId(op));
      EXPECT_EQ(Poll().value().completed, 1u);
    }
  }
  void Send(uint32_t op) { endpoint_->PostSend({.op = OpId(op)}); }
  Result<PollOutcome> Poll(milliseconds timeout = milliseconds(0)) {
    return endpoint_->Poll(ops_, timeout);
  }

  const VerifiedPlan plan_;
  Script script_;
  EventFd file_, wake_;
  std::unique_ptr<QueuedEndpoint> endpoint_;
  std::array<OpId, 4> ops_;
};

// Catches a host that polls and hears of nothing but completions: neither of its device's errors
// nor of whoever asks it.
TEST_F(QueuedEndpointTest, HostsThatPollHearOfEventsAndAreWoken) {
  Send(0);
  bool is_woken = false;
  wake_.Signal();
  for (int i = 0; i < 64; ++i) is_woken = is_woken || Poll().value().woken;
  EXPECT_TRUE(is_woken);
  script_.event = Rejected("the port went down");
  file_.Signal();
  Status status;
  for (int i = 0; i < 64 && status.ok(); ++i) status = Poll().status();
  EXPECT_THAT(status.message(), HasSubstr("the port went down"));
  EXPECT_EQ(endpoint_->lost_peer(), std::nullopt);
}

TEST_F(QueuedEndpointTest, HostsThatSleepHearOfThemAtOnce) {
  Send(0);
  wake_.Signal();
  EXPECT_TRUE(Poll(milliseconds(10'000)).value().woken);
  wake_.Take();
  script_.event = Rejected("the port went down");
  file_.Signal();
  EXPECT_THAT(Poll(milliseconds(10'000)).status().message(), HasSubstr("the port went down"));
}

// Catches ops that are lost or change places where a queue is full.
TEST_F(QueuedEndpointTest, WhatIsHeldBackComesInOrder) {
  script_.room = 2;
  for (uint32_t op = 0; op < 6; ++op) Send(op);
  EXPECT_THAT(script_.taken, ElementsAre(OpId(0), OpId(1)));
  EXPECT_FALSE(endpoint_->quiet());
  for (uint32_t op = 0; op < 6; ++op) {
    script_.completed.push_back(OpId(op));
    EXPECT_EQ(Poll().value().completed, 1u);
  }
  EXPECT_THAT(script_.taken, ElementsAre(OpId(0), OpId(1), OpId(2), OpId(3), OpId(4), OpId(5)));
  EXPECT_TRUE(endpoint_->quiet());
  EXPECT_EQ(endpoint_->counters().bytes_moved, 60u);
  endpoint_ = nullptr;
  EXPECT_TRUE(script_.is_released);
  EXPECT_FALSE(script_.is_stopped);
}

// Catches memory that is still written to after an end that came early, and a healthy peer that is
// blamed.
TEST_F(QueuedEndpointTest, AFailureStopsTheQueuesAndIsAPeersOnlyIfTheySay) {
  Send(0);
  script_.failure = Rejected("local protection error");
  EXPECT_FALSE(Poll().ok());
  EXPECT_EQ(endpoint_->lost_peer(), std::nullopt);
  script_.lost_peer = NodeId(1);
  EXPECT_FALSE(Poll().ok());
  EXPECT_EQ(endpoint_->lost_peer(), NodeId(1));
  endpoint_ = nullptr;
  EXPECT_TRUE(script_.is_stopped);
}

// Catches a node that leaves while a peer needs its reads, and one that never says it is done.
TEST_F(QueuedEndpointTest, QueuesThatNeedTheHostAreLeftTogether) {
  const FileDescriptor peer = MakeDependent();
  char byte = 0;
  EXPECT_EQ(recv(peer.get(), &byte, 1, MSG_DONTWAIT), -1) << "not all is done";
  CompleteAll();
  EXPECT_EQ(recv(peer.get(), &byte, 1, MSG_DONTWAIT), 1);
  EXPECT_EQ(byte, 'd');
  EXPECT_TRUE(Poll(milliseconds(1)).ok());
  EXPECT_FALSE(endpoint_->quiet());
  EXPECT_EQ(send(peer.get(), "d", 1, 0), 1);
  EXPECT_TRUE(Poll(milliseconds(10'000)).ok());
  EXPECT_TRUE(endpoint_->quiet());
  EXPECT_EQ(endpoint_->lost_peer(), std::nullopt);
}

// Catches a wait for a peer that is gone, and one that takes anything for its word.
TEST_F(QueuedEndpointTest, PeersThatLeaveOtherwiseAreLost) {
  for (const bool closes : {true, false}) {
    FileDescriptor peer = MakeDependent();
    CompleteAll();
    if (closes) {
      peer = FileDescriptor();
    } else {
      EXPECT_EQ(send(peer.get(), "x", 1, 0), 1);
    }
    EXPECT_EQ(Poll(milliseconds(10'000)).status().message(), "lost its connection to node 1");
    EXPECT_EQ(endpoint_->lost_peer(), NodeId(1));
  }
}

}  // namespace
}  // namespace prepost::queued_endpoint_test
