// SPDX-License-Identifier: Apache-2.0
//
// Two nodes, a thread each, with players that do not play: what a group says when nothing moves, or
// when one fails. Groups that play are in tests/differential/node_over_nic_test.cc and tests/tools.
#include "runtime/run/node_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/loopback.h"
#include "tests/support/plans.h"
#include "tests/support/temp_folder.h"

namespace prepost::node_group_test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

enum class Act : uint8_t { kNothing, kCount, kFail };

class IdlePlayer final : public Player {
 public:
  IdlePlayer(NodeId node, Act act, int wake_fd, std::unique_ptr<PeerLinks> links)
      : node_(node), act_(act), wake_fd_(wake_fd), links_(std::move(links)) {}

  void Start() override {}
  Status Poll(milliseconds timeout) override {
    pollfd wake = {.fd = wake_fd_, .events = POLLIN, .revents = 0};
    poll(&wake, 1, static_cast<int>(std::min(timeout, milliseconds(10)).count()));
    if (act_ == Act::kFail) return Rejected("its NIC is on fire");
    ++polls_;
    return {};
  }
  /// With kCount for longer than nothing may move.
  bool done() const override { return act_ == Act::kCount && polls_ > 60; }
  bool woken() const override { return true; }
  NodeReport report() const override { return {}; }
  uint64_t progress() const override { return act_ == Act::kCount ? polls_ : 0; }
  std::string Waiting(size_t) const override {
    return "node " + std::to_string(node_.value) + " waits for the test";
  }
  void Stop() override {}
  std::optional<NodeId> lost_peer() const override { return std::nullopt; }

 private:
  const NodeId node_;
  const Act act_;
  const int wake_fd_;
  const std::unique_ptr<PeerLinks> links_;
  uint64_t polls_ = 0;
};

class NodeGroupTest : public testing::Test {
 protected:
  static constexpr uint32_t kNodes = 2;

  /// How each node ends.
  std::array<Status, kNodes> Run(std::array<Act, kNodes> acts) {
    std::array<std::future<Status>, kNodes> ends;
    for (uint32_t node = 0; node < kNodes; ++node)
      ends[node] = std::async(std::launch::async, [this, node, act = acts[node]] {
        NodeRunOptions options = {
            .bootstrap = {.node = NodeId(node), .key = key_},
            .no_progress_max = milliseconds(1000),
            .failure_max = milliseconds(800),
            .make_player = [act](NodeId self, std::unique_ptr<PeerLinks> links,
                                 const PlayerContext& context) -> Result<std::unique_ptr<Player>> {
              return std::unique_ptr<Player>(
                  std::make_unique<IdlePlayer>(self, act, context.wake_fd, std::move(links)));
            }};
        for (uint32_t i = 0; i < kNodes; ++i)
          options.bootstrap.peers.push_back({.host = test::LoopbackAddress(i)});
        return RunNode(plan_, node == 0 ? &input_ : nullptr, nullptr, std::move(options)).status();
      });
    return {ends[0].get(), ends[1].get()};
  }

  const GroupKey key_ = GroupKey::FromSecret("the secret of this test", "").value();
  const VerifiedPlan plan_ = test::PlanOf(kNodes, 3, "chain");
  test::TempFolder folder_;
  const MappedInput input_ = [this] {
    const std::string path = folder_ / "image";
    test::WriteBytes(path, std::vector(plan_.header().payload.bytes, std::byte{7}));
    return MappedInput::Open(path).value();
  }();
};

// Both answer all the time. Catches a group that stands still for ever because everybody is there.
TEST_F(NodeGroupTest, NothingMoves) {
  for (const Status& end : Run({Act::kNothing, Act::kNothing})) {
    EXPECT_EQ(end.code(), StatusCode::kRejected);
    EXPECT_THAT(end.message(), HasSubstr("no progress for 1000 ms: node 0 waits for the test; node "
                                         "1 waits for the test"));
  }
}

// Catches progress that only counts at the leader, or not at all. What has been "received" is
// wrong, which the sums show.
TEST_F(NodeGroupTest, WhatMovesSlowlyIsNotStopped) {
  for (const Status& end : Run({Act::kCount, Act::kCount}))
    EXPECT_THAT(end.message(), HasSubstr("the copy of node 1 has the BLAKE2b-256 sum"));
}

TEST_F(NodeGroupTest, AFailureIsNamedWithItsNode) {
  const auto [root, other] = Run({Act::kNothing, Act::kFail});
  EXPECT_EQ(other.message(), "its NIC is on fire");
  EXPECT_THAT(root.message(), HasSubstr("node 1 (" + test::LoopbackAddress(1)));
  EXPECT_THAT(root.message(), HasSubstr("): its NIC is on fire"));
}

}  // namespace
}  // namespace prepost::node_group_test
