// SPDX-License-Identifier: Apache-2.0
//
// What a preposted player says of itself before its final completion, when its host has seen
// nothing: node 0 sends 20 blocks to node 1 over emulated NICs that run on the test's thread, a few
// steps at a time. Groups of players are in tests/differential/node_over_nic_test.cc.
#include "prepost/backends/nic/device_player.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <future>

#include "prepost/backends/emulated/fabric.h"
#include "prepost/backends/nic/lower.h"
#include "prepost/runtime/event_fd.h"
#include "tests/support/plans.h"
#include "tests/support/random_bytes.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kBytes = 2000;

class DevicePlayerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    asked_.Signal();  // as if somebody always asked
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    std::array<std::future<Result<std::unique_ptr<Player>>>, 2> made;
    for (uint32_t i = 0; i < 2; ++i) {
      made[i] = std::async(std::launch::async, [this, i, fd = fds[i]] { return Make(i, fd); });
    }
    for (uint32_t i = 0; i < 2; ++i) {
      Result<std::unique_ptr<Player>> player = made[i].get();
      ASSERT_TRUE(player.ok()) << player.status().ToString();
      players_[i] = *std::move(player);
    }
  }
  Result<std::unique_ptr<Player>> Make(uint32_t i, int fd) {
    std::vector<TcpSocket> sockets;
    sockets.push_back({.peer = NodeId(1 - i), .fd = FileDescriptor(fd)});
    const NodeMemory memory =
        i == 0 ? NodeMemory{.source = message_} : NodeMemory{.source = copy_, .target = copy_};
    return nic::MakePrepostedPlayer(fabric_.device(NodeId(i)), plan_, program_.nodes[i],
                                    std::move(sockets), {.memory = memory, .wake_fd = asked_.fd()},
                                    milliseconds(20'000));
  }
  void Look() {
    for (const auto& player : players_) {
      if (player->done()) continue;
      const Status status = player->Poll(milliseconds(0));
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
  }

  const Plan plan_ = test::CompileOrDie({.nodes = 2,
                                         .message_bytes = kBytes,
                                         .block_bytes = 100,
                                         .algorithm = "chain",
                                         .ready = *ParseReady("window=1")});
  const nic::QueueProgram program_ = *nic::Lower(plan_);
  const std::vector<std::byte> message_ = test::RandomBytes(kBytes);
  std::vector<std::byte> copy_ = std::vector<std::byte>(kBytes);
  EventFd asked_ = *EventFd::Make();
  emulated::Fabric fabric_{2, {}};
  std::array<std::unique_ptr<Player>, 2> players_;
};

// Node 1 is never started. Catches a node that cannot say what it waits for, and one that blames
// itself.
TEST_F(DevicePlayerTest, AStuckNodeNamesWhatHasNotCome) {
  players_[0]->Start();
  fabric_.RunUntilIdle();
  for (int i = 0; i < 4; ++i) Look();
  EXPECT_THAT(players_[0]->Waiting(1), HasSubstr("the final completion has not come: node 0 op "));
  EXPECT_THAT(players_[0]->Waiting(1), EndsWith("(recv credit 1>0) has not come from node 1"));
  EXPECT_FALSE(players_[0]->done());
}

// Catches a long transfer that is taken for one that stands still, because a preposted host sees
// nothing of it, and a node that calls itself stuck while it moves.
TEST_F(DevicePlayerTest, ATransferThatTheHostSeesNothingOfMakesProgress) {
  constexpr uint64_t kSteps = 20;
  for (const auto& player : players_) player->Start();
  for (int i = 0; i < 2; ++i) Look();
  size_t looks = 0;
  while (!players_[0]->done() || !players_[1]->done()) {
    const uint64_t before = players_[0]->progress() + players_[1]->progress();
    fabric_.RunSome(kSteps);
    Look();
    ASSERT_GT(players_[0]->progress() + players_[1]->progress(), before) << looks;
    if (!players_[0]->done()) {
      EXPECT_THAT(players_[0]->Waiting(1), Not(HasSubstr("has not come from")));
    }
    ++looks;
  }
  EXPECT_GT(looks, 5u);
  EXPECT_EQ(copy_, message_);
}

}  // namespace
}  // namespace prepost
