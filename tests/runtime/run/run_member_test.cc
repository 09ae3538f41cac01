// SPDX-License-Identifier: Apache-2.0
//
// What a member reports to its leader about a player that does as the test says. The leader is the
// other end of its control connection, played by the test.
#include "runtime/run/run_member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <thread>

#include "runtime/run/local_node.h"
#include "tests/support/plans.h"

namespace prepost::run_member_test {
namespace {

using std::chrono::milliseconds;

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

class RunMemberTest : public testing::Test {
 protected:
  RunMemberTest() {
    auto pair = ControlSocket::MakePair();
    leader_.emplace(std::move(pair.value().first));
    EXPECT_TRUE(buffer_.ok());
    RunMemberTask task = {
        .part = {.plan = plan_, .node = NodeId(1), .buffer = &*buffer_},
        .keeper = {.who = "node 1", .listens = false},
        .group = LocalRunGroup(plan_.header(), NodeId(1)),
        .make_player = [this](const PlayerContext& context, std::vector<TcpSocket> /*sockets*/)
            -> Result<std::unique_ptr<Player>> {
          return std::unique_ptr<Player>(
              std::make_unique<PlayedPlayer>(context.wake_fd, fails_, is_stopped_));
        }};
    task.group.names = {"node 0", "node 1", "the test"};
    task.group.controls.push_back(pair.value().second.TakeFile());
    member_.emplace(std::move(task));
    thread_ = std::thread([this] {
      EXPECT_TRUE(member_->Open().ok());
      status_ = member_->Run();
    });
  }
  ~RunMemberTest() override {
    leader_.reset();  // which ends the member
    if (thread_.joinable()) thread_.join();
  }

  /// The next message of this type.
  template <typename Type>
  Type Await() {
    for (;;) {
      const std::optional<ControlMessage> message = leader_->Receive();
      if (message && std::holds_alternative<Type>(*message)) return std::get<Type>(*message);
      if (message) continue;
      if (leader_->closed()) return {};
      pollfd wait = {.fd = leader_->fd(), .events = POLLIN, .revents = 0};
      poll(&wait, 1, -1);
    }
  }
  control::Progress Answer() {
    leader_->Send(control::Query());
    return Await<control::Progress>();
  }
  void AwaitArmed() { EXPECT_EQ(Await<control::Arrived>().gate, Gate::kArmed); }

  const VerifiedPlan plan_ = test::PlanOf(2, 3, "chain");
  Result<NodeBuffer> buffer_ =
      NodeBuffer::Open(NodeId(1), plan_.header().payload.bytes, /*outputs=*/nullptr);
  std::atomic<bool> fails_ = false;
  std::atomic<bool> is_stopped_ = false;
  std::optional<ControlSocket> leader_;
  Status status_;
  std::optional<RunMember> member_;
  std::thread thread_;
};

// An answer with what the host has seen, which is nothing while its NIC does all: the leader would
// end a healthy run.
TEST_F(RunMemberTest, ProgressIsAskedForWhileTheNicDoesAll) {
  AwaitArmed();
  leader_->Send(control::Passed{.gate = Gate::kArmed, .number = 1});
  control::Progress answer = Answer();
  while (answer.waits_for != "waits for the test") answer = Answer();
  for (const uint64_t first = answer.steps; answer.steps == first; answer = Answer()) {
    poll(nullptr, 0, /*timeout=*/10);
  }
}

// A NIC that forwards on while its host waits for the end of a run that has failed.
TEST_F(RunMemberTest, ThePlayerEndsBeforeTheFailureIsTold) {
  AwaitArmed();
  leader_->Send(control::Passed{.gate = Gate::kArmed, .number = 1});
  fails_ = true;
  EXPECT_EQ(Await<control::Failed>().cause, "its NIC is on fire");
  EXPECT_TRUE(is_stopped_);
}

// Catches a member that takes the launcher's failure for its loss: it would say that the launcher
// died.
TEST_F(RunMemberTest, KnowsALostLeaderFromOneThatEndsTheRun) {
  AwaitArmed();
  leader_->Send(control::Abort{.cause = "the disk is full"});
  thread_.join();
  EXPECT_EQ(status_.message(), "the disk is full");
  EXPECT_FALSE(member_->has_lost_leader());
}
TEST_F(RunMemberTest, ALeaderThatIsGoneIsLost) {
  AwaitArmed();
  leader_.reset();
  thread_.join();
  EXPECT_EQ(status_.message(), "the test is gone");
  EXPECT_TRUE(member_->has_lost_leader());
}

}  // namespace
}  // namespace prepost::run_member_test
