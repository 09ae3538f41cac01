// SPDX-License-Identifier: Apache-2.0
//
// What a leader makes of members that say what they should not, nothing, or too late. Members are
// the other ends of its control connections, played by the test.
#include "runtime/group/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>
#include <vector>

namespace prepost::coordinator_test {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Kind = ControlMessage::Kind;

/// The other end of a control connection.
class PlayedMember {
 public:
  explicit PlayedMember(ControlSocket socket) : socket_(std::move(socket)) {}

  void Send(const ControlMessage& message) { socket_.Send(message); }
  void SayBytes(const std::string& bytes) {
    EXPECT_EQ(send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  /// The next message that is no query; an abort if the connection ends.
  ControlMessage Receive() {
    for (;;) {
      const std::optional<ControlMessage> message = socket_.Receive();
      if (message && message->kind != Kind::kQuery) return *message;
      if (message) continue;
      if (socket_.closed()) return {.kind = Kind::kAbort};
      pollfd wait = {.fd = socket_.fd(), .events = POLLIN, .revents = 0};
      poll(&wait, 1, -1);
    }
  }
  void Hang() { socket_ = ControlSocket(FileDescriptor()); }

 private:
  ControlSocket socket_;
};

class CoordinatorTest : public ::testing::Test {
 protected:
  CoordinatorTest() {
    for (uint32_t node = 0; node < 2; ++node) {
      auto pair = ControlSocket::MakePair();
      ends_.push_back(std::move(pair.value().first));
      members_.emplace_back(std::move(pair.value().second));
    }
  }
  void JoinAll() {
    for (uint32_t node = 0; node < 2; ++node) leader_.Join(NodeId(node), std::move(ends_[node]));
  }
  Status Lead() {
    return leader_.Lead([] { return uint64_t{0}; });
  }

  Coordinator leader_{2, NodeId(0), {.no_progress_max = milliseconds(200)}};
  std::vector<ControlSocket> ends_;
  std::vector<PlayedMember> members_;
};

TEST_F(CoordinatorTest, LeadsMembersToTheEnd) {
  JoinAll();
  std::thread playing([this] {
    for (const Kind step : {Kind::kReady, Kind::kDelivered, Kind::kSummed}) {
      for (PlayedMember& member : members_) member.Send({.kind = step});
      for (PlayedMember& member : members_) {
        EXPECT_NE(member.Receive().kind, Kind::kAbort);
      }
    }
    members_.clear();
  });
  EXPECT_TRUE(Lead().ok());
  leader_.Release();
  playing.join();
}

// Catches a step that is taken for another one, or twice.
TEST_F(CoordinatorTest, StepsOutOfTurnAreNonsense) {
  JoinAll();
  members_[1].Send({.kind = Kind::kSummed});
  EXPECT_EQ(Lead().message(),
            "node 1 sent nonsense over its control connection: \"summed\" out of turn");
}

TEST_F(CoordinatorTest, WhatOnlyALeaderSaysIsNonsense) {
  JoinAll();
  members_[1].Send({.kind = Kind::kReady});
  members_[1].Send({.kind = Kind::kRelease});
  EXPECT_THAT(Lead().message(), HasSubstr("node 1 sent nonsense"));
}

TEST_F(CoordinatorTest, RubbishIsNonsense) {
  JoinAll();
  members_[1].SayBytes(std::string(kControlMessageBytes + ControlSocket::kCheckBytes, 'x'));
  EXPECT_EQ(Lead().message(),
            "node 1 sent nonsense over its control connection: bytes that are no message, or not "
            "the next one");
}

TEST_F(CoordinatorTest, SumsThatDifferAreAnError) {
  JoinAll();
  std::thread playing([this] {
    for (const Kind step : {Kind::kReady, Kind::kDelivered}) {
      for (PlayedMember& member : members_) member.Send({.kind = step});
      for (PlayedMember& member : members_) member.Receive();
    }
    members_[0].Send({.kind = Kind::kSummed, .sum = {.bytes = {std::byte{1}}}});
    members_[1].Send({.kind = Kind::kSummed, .sum = {.bytes = {std::byte{2}}}});
  });
  EXPECT_THAT(Lead().message(), HasSubstr("the copy of node 1 has the BLAKE2b-256 sum"));
  playing.join();
}

// A node that sums for seconds is asked how far it is: catches a report that its answer replaces.
TEST_F(CoordinatorTest, AnAnswerAfterTheTransferDoesNotReplaceTheReport) {
  JoinAll();
  std::thread playing([this] {
    for (PlayedMember& member : members_) member.Send({.kind = Kind::kReady});
    for (PlayedMember& member : members_) member.Receive();
    members_[0].Send({.kind = Kind::kDelivered, .report = {.elapsed_ns = 7}});
    members_[0].Send({.kind = Kind::kProgress});
    members_[1].Send({.kind = Kind::kDelivered, .report = {.elapsed_ns = 8}});
    for (PlayedMember& member : members_) member.Receive();
    for (PlayedMember& member : members_) {
      member.Send({.kind = Kind::kProgress});
      member.Send({.kind = Kind::kSummed});
    }
  });
  EXPECT_TRUE(Lead().ok());
  playing.join();
  const RunReport report = leader_.report();
  EXPECT_EQ(report.nodes[0].elapsed_ns, 7u);
  EXPECT_EQ(report.nodes[1].elapsed_ns, 8u);
  EXPECT_EQ(report.elapsed_ns, 8u);
}

// The loss of a peer comes first, its cause later: catches a report of the loss.
TEST_F(CoordinatorTest, ACauseIsReportedRatherThanALoss) {
  JoinAll();
  members_[0].Send({.kind = Kind::kFailed,
                    .lost_peer = true,
                    .code = StatusCode::kRejected,
                    .text = "node 0 lost its connection to node 1"});
  members_[1].Send({.kind = Kind::kFailed, .code = StatusCode::kInterrupted});
  EXPECT_EQ(Lead().message(), "node 1 was interrupted");
}

TEST_F(CoordinatorTest, AMemberThatGoesIsNamed) {
  JoinAll();
  members_[1].Hang();
  EXPECT_EQ(Lead().message(), "node 1 is gone: its control connection ended");
}

// One member moves on and on: catches a group that never ends because of it.
TEST_F(CoordinatorTest, AMemberThatDoesNotAnswerIsNamedWhileOthersMove) {
  JoinAll();
  std::atomic<bool> is_over = false;
  std::thread playing([&] {
    for (uint64_t progress = 1; !is_over; ++progress) {
      members_[0].Send({.kind = Kind::kProgress, .progress = progress});
      poll(nullptr, 0, 5);
    }
  });
  EXPECT_THAT(Lead().message(), HasSubstr("no answer for 200 ms: node 1 does not answer"));
  is_over = true;
  playing.join();
}

// It says that it moves and hears nothing, so that questions pile up: catches messages that are
// dropped without a word, and a group that never ends because of it.
TEST_F(CoordinatorTest, AMemberThatHearsNothingIsNamed) {
  const int smallest = 1;
  ASSERT_EQ(setsockopt(ends_[1].fd(), SOL_SOCKET, SO_SNDBUF, &smallest, sizeof(smallest)), 0);
  JoinAll();
  std::atomic<bool> is_over = false;
  std::thread playing([&] {
    for (uint64_t progress = 1; !is_over; ++progress) {
      for (PlayedMember& member : members_) {
        member.Send({.kind = Kind::kProgress, .progress = progress});
      }
      poll(nullptr, 0, 5);
    }
  });
  EXPECT_EQ(Lead().message(), "node 1 is gone: it takes no more messages");
  is_over = true;
  playing.join();
}

TEST_F(CoordinatorTest, AbortTellsAllWhoHaveJoined) {
  JoinAll();
  std::thread playing([this] {
    for (PlayedMember& member : members_) {
      const ControlMessage message = member.Receive();
      EXPECT_EQ(message.kind, Kind::kAbort);
      EXPECT_EQ(message.text, "the cause");
      member.Hang();
    }
  });
  leader_.Abort("the cause");
  playing.join();
}

}  // namespace
}  // namespace prepost::coordinator_test
