// SPDX-License-Identifier: Apache-2.0
//
// What a member reports to its leader about a player that does as the test says. The leader is the
// other end of its control connection, played by the test.
#include "runtime/group/member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <thread>

#include "tests/support/plans.h"

namespace prepost::member_test {
namespace {

using std::chrono::milliseconds;
using Kind = ControlMessage::Kind;

/// Waits for its wake-up source until the test has it fail. Its host sees nothing of what happens.
class PlayedPlayer final : public Player {
 public:
  PlayedPlayer(int wake_fd, const std::atomic<bool>& fails, std::atomic<bool>& is_stopped)
      : wake_fd_(wake_fd), fails_(fails), is_stopped_(is_stopped) {}

  void Start() override {}
  Status Poll(milliseconds) override {
    pollfd wait = {.fd = wake_fd_, .events = POLLIN, .revents = 0};
    poll(&wait, 1, /*timeout=*/10);
    return fails_ ? Rejected("its NIC is on fire") : Status();
  }
  bool done() const override { return false; }
  bool woken() const override { return true; }
  NodeReport report() const override { return {}; }
  uint64_t progress() const override { return 0; }
  uint64_t AskProgress() override { return ++asked_; }
  std::string Waiting(size_t) const override { return "waits for the test"; }
  void Stop() override { is_stopped_ = true; }
  std::optional<NodeId> lost_peer() const override { return std::nullopt; }

 private:
  int wake_fd_;
  const std::atomic<bool>& fails_;
  std::atomic<bool>& is_stopped_;
  uint64_t asked_ = 0;
};

class MemberTest : public testing::Test {
 protected:
  MemberTest() {
    auto pair = ControlSocket::MakePair();
    leader_.emplace(std::move(pair.value().first));
    EXPECT_TRUE(buffer_.ok());
    thread_ = std::thread([this, control = std::move(pair.value().second)]() mutable {
      Member member(
          {.plan = plan_,
           .node = NodeId(1),
           .buffer = &*buffer_,
           .make_player = [this](const PlayerContext& context) -> Result<std::unique_ptr<Player>> {
             return std::unique_ptr<Player>(
                 std::make_unique<PlayedPlayer>(context.wake_fd, fails_, is_stopped_));
           }},
          std::move(control), "the test");
      status_ = member.Run();
      if (!status_.ok()) status_ = member.ReportFailure(status_);
    });
  }
  ~MemberTest() override {
    leader_.reset();  // which ends the member
    thread_.join();
  }

  ControlMessage Hear() {
    for (;;) {
      if (const std::optional<ControlMessage> message = leader_->Receive()) return *message;
      if (leader_->closed()) return {.kind = Kind::kAbort};
      pollfd wait = {.fd = leader_->fd(), .events = POLLIN, .revents = 0};
      poll(&wait, 1, -1);
    }
  }
  ControlMessage Answer() {
    leader_->Send({.kind = Kind::kQuery, .interval_ms = 1000});
    return Hear();
  }

  const VerifiedPlan plan_ = test::PlanOf(2, 3, "chain");
  Result<NodeBuffer> buffer_ =
      NodeBuffer::Open(NodeId(1), plan_.header().payload.bytes, /*outputs=*/nullptr);
  std::atomic<bool> fails_ = false;
  std::atomic<bool> is_stopped_ = false;
  std::optional<ControlSocket> leader_;
  Status status_;
  std::thread thread_;
};

// An answer with what the host has seen, which is nothing while its NIC does all: the leader would
// end a healthy run.
TEST_F(MemberTest, ProgressIsAskedForWhenTheLeaderAsks) {
  ASSERT_EQ(Hear().kind, Kind::kReady);
  leader_->Send({.kind = Kind::kStart});
  const ControlMessage first = Answer();
  ASSERT_EQ(first.kind, Kind::kProgress);
  EXPECT_EQ(first.text, "waits for the test");
  EXPECT_GT(Answer().progress, first.progress);
}

// A NIC that forwards on while its host waits for the end of a run that has failed.
TEST_F(MemberTest, ThePlayerEndsBeforeTheFailureIsTold) {
  ASSERT_EQ(Hear().kind, Kind::kReady);
  leader_->Send({.kind = Kind::kStart});
  fails_ = true;
  const ControlMessage failed = Hear();
  EXPECT_EQ(failed.kind, Kind::kFailed);
  EXPECT_EQ(failed.text, "its NIC is on fire");
  EXPECT_TRUE(is_stopped_);
}

}  // namespace
}  // namespace prepost::member_test
