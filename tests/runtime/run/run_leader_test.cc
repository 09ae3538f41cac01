// SPDX-License-Identifier: Apache-2.0
//
// What a leader that plays no part makes of members that report what they should not, nothing, or
// too late. Members are the other ends of its control connections, played by the test.
#include "runtime/run/run_leader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/run/local_node.h"
#include "tests/support/plans.h"

namespace prepost::run_leader_test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr milliseconds kFailureMax{800};

/// The other end of a control connection, which answers questions while it waits for more.
class PlayedMember {
 public:
  explicit PlayedMember(ControlSocket socket) : socket_(std::move(socket)) {}

  void Send(const ControlMessage& message) { socket_.Send(message); }
  /// The next message of another type than questions; an abort if the connection ends.
  ControlMessage Receive() {
    for (;;) {
      const std::optional<ControlMessage> message = socket_.Receive();
      if (message && !std::holds_alternative<control::Query>(*message)) return *message;
      if (message) {
        socket_.Send(control::Progress());
        continue;
      }
      if (socket_.closed()) return control::Abort();
      pollfd wait = {.fd = socket_.fd(), .events = POLLIN, .revents = 0};
      poll(&wait, 1, -1);
    }
  }
  template <typename Type>
  Type Receive() {
    const ControlMessage message = Receive();
    const Type* const received = std::get_if<Type>(&message);
    EXPECT_NE(received, nullptr) << Name(message);
    return received != nullptr ? *received : Type();
  }
  void Leave() { socket_ = ControlSocket(FileDescriptor()); }

 private:
  ControlSocket socket_;
};

class RunLeaderTest : public ::testing::Test {
 protected:
  explicit RunLeaderTest(uint32_t nodes = 2) : plan_(test::PlanOf(nodes, 3, "chain")) {}

  void SetUp() override {
    ASSERT_TRUE(control_
                    .Open({.who = "the test",
                           .listens = false,
                           .failure_max = kFailureMax,
                           .attention = [] { return milliseconds(0); }},
                          /*interrupt_fd=*/-1,
                          [this](KeeperEvent& event) { return leader_.Take(event); })
                    .ok());
    KeptGroup group = LocalRunGroup(plan_.header(), NodeId(plan_.header().nodes));
    for (uint32_t node = 0; node < plan_.header().nodes; ++node) {
      auto pair = ControlSocket::MakePair();
      group.controls.push_back(pair.value().first.TakeFile());
      members_.emplace_back(std::move(pair.value().second));
      group.names.push_back("node " + std::to_string(node));
    }
    group.controls.emplace_back();
    group.names.emplace_back("the test");
    control_.keeper().Add(std::move(group));
    for (const Gate gate : {Gate::kArmed, Gate::kMoved})
      control_.keeper().Arrive(RunControl::kSerial, gate, 0);
  }
  /// To the point where all may name their copies, or to the failure.
  Status Lead() {
    while (!leader_.may_commit()) PREPOST_RETURN_IF_ERROR(control_.Wait(milliseconds(100)));
    return {};
  }
  /// All members at once: they are armed, have delivered with these reports, and have been asked
  /// for their sums.
  void Deliver(uint64_t elapsed_ns = 1) {
    for (PlayedMember& member : members_)
      member.Send(control::Arrived{.gate = Gate::kArmed, .number = 1});
    for (PlayedMember& member : members_)
      EXPECT_EQ(member.Receive<control::Passed>().gate, Gate::kArmed);
    for (PlayedMember& member : members_) {
      member.Send(control::Report{.report = {.elapsed_ns = elapsed_ns++}});
      member.Send(control::Arrived{.gate = Gate::kMoved, .number = 1});
      member.Send(control::Progress());  // it sums for seconds, and is asked meanwhile
    }
    for (PlayedMember& member : members_) {
      EXPECT_EQ(member.Receive<control::Passed>().gate, Gate::kMoved);
      member.Receive<control::Sum>();
    }
  }

  const VerifiedPlan plan_;
  RunControl control_;
  RunLeader leader_{plan_.header(), control_, {}};
  std::vector<PlayedMember> members_;
};

class LargeRunLeaderTest : public RunLeaderTest {
 protected:
  LargeRunLeaderTest() : RunLeaderTest(400) {}
};

// More are gone than one message names: those that are left hear of each.
TEST_F(LargeRunLeaderTest, AllThatAreGoneAreNamed) {
  constexpr size_t kLeft = 10;
  for (size_t node = kLeft; node < members_.size(); ++node) members_[node].Leave();
  EXPECT_FALSE(Lead().ok());
  for (size_t node = 0; node < kLeft; ++node) {
    std::set<NodeId> gone;
    ControlMessage message = members_[node].Receive();
    for (; std::holds_alternative<control::Gone>(message); message = members_[node].Receive())
      for (const NodeId it : std::get<control::Gone>(message).nodes) gone.insert(it);
    ASSERT_TRUE(std::holds_alternative<control::Abort>(message)) << Name(message);
    gone.insert(std::get<control::Abort>(message).where.value());
    EXPECT_EQ(gone.size(), members_.size() - kLeft);
  }
}

// Also catches a report that a later answer replaces.
TEST_F(RunLeaderTest, LeadsMembersToTheEnd) {
  std::thread playing([this] {
    Deliver(/*elapsed_ns=*/7);
    for (PlayedMember& member : members_)
      member.Send(control::Summed{.sum = {.bytes = {std::byte{1}}}});
    for (PlayedMember& member : members_) member.Receive<control::Commit>();
    for (PlayedMember& member : members_) member.Send(control::Done());
    for (PlayedMember& member : members_) {
      member.Receive<control::Last>();
      member.Receive<control::Release>();
    }
  });
  EXPECT_TRUE(Lead().ok());
  leader_.LetCommit();
  control_.keeper().Close(RunControl::kSerial, 1);
  while (!control_.is_closed()) EXPECT_TRUE(control_.Wait(milliseconds(100)).ok());
  playing.join();
  const LocalRun run = leader_.MakeRun();
  EXPECT_EQ(run.report.nodes[0].elapsed_ns, 7u);
  EXPECT_EQ(run.report.nodes[1].elapsed_ns, 8u);
  EXPECT_EQ(run.report.elapsed_ns, 8u);
  EXPECT_EQ(run.sum.bytes[0], std::byte{1});
}

TEST_F(RunLeaderTest, SumsThatDifferAreAnError) {
  std::thread playing([this] {
    Deliver();
    members_[0].Send(control::Summed{.sum = {.bytes = {std::byte{1}}}});
    members_[1].Send(control::Summed{.sum = {.bytes = {std::byte{2}}}});
  });
  EXPECT_THAT(Lead().message(), HasSubstr("the copy of node 1 has the BLAKE2b-256 sum"));
  playing.join();
}

// Catches a step that is taken for another one.
TEST_F(RunLeaderTest, WhatOnlyALeaderSaysIsNonsense) {
  members_[1].Send(control::Arrived{.gate = Gate::kArmed, .number = 1});
  members_[1].Send(control::Release());
  EXPECT_EQ(Lead().message(), "node 1 sent nonsense over its control connection: \"release\"");
}

// The loss of a peer comes first, its cause later: catches a report of the loss.
TEST_F(RunLeaderTest, ACauseIsReportedRatherThanALoss) {
  members_[0].Send(
      control::Failed{.lost_peer = true, .cause = "node 0 lost its connection to node 1"});
  members_[1].Send(control::Failed{.code = StatusCode::kEnvironment, .cause = "disk full"});
  const Status status = Lead();
  EXPECT_EQ(status.message(), "node 1: disk full");
  EXPECT_EQ(status.code(), StatusCode::kEnvironment);
}

TEST_F(RunLeaderTest, AMemberThatGoesIsNamed) {
  std::thread playing([this] { members_[0].Receive<control::Abort>(); });
  members_[1].Leave();
  EXPECT_EQ(Lead().message(), "node 1 is gone");
  playing.join();
}

// One member moves on and on: catches a group that never ends because of it.
TEST_F(RunLeaderTest, AMemberThatDoesNotAnswerIsNamedWhileOthersMove) {
  std::thread playing([this] { members_[0].Receive<control::Abort>(); });
  EXPECT_EQ(Lead().message(), "node 1 has said nothing for 480 ms");
  playing.join();
}

}  // namespace
}  // namespace prepost::run_leader_test
