// SPDX-License-Identifier: Apache-2.0
//
// Members that play over a device, on a chain 0>1>2 whose NICs run only when a test says so: what
// can be seen of them meanwhile, and what is left when one of them ends.
#include "backends/nic/host/device_player.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "backends/emulated/fabric.h"
#include "backends/nic/program/lower.h"
#include "runtime/base/mapping.h"
#include "runtime/transport/tcp/tcp_links.h"
#include "tests/support/plans.h"

namespace prepost::device_player_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

enum class Part : uint8_t { kPreposted, kDriven };

constexpr std::chrono::milliseconds kLook{0};
constexpr std::byte kSent{0x5a};

class DevicePlayerTest : public testing::TestWithParam<Part> {
 protected:
  static constexpr uint32_t kNodes = 3;
  static constexpr uint64_t kBytes = 20'000;

  /// The members of a chain of 20 blocks, connected and armed.
  void Make(const char* ready, const std::array<Part, kNodes>& parts,
            const nic::LowerOptions& lower = {}) {
    plan_ = PlanOf(ready, kBytes);
    shorter_plan_ = PlanOf(ready, kBytes - 1000);
    program_ = *nic::Lower(*plan_, lower);
    std::array<std::vector<TcpSocket>, kNodes> sockets;
    for (uint32_t i = 1; i < kNodes; ++i) {
      int pair[2] = {-1, -1};
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
      sockets[i - 1].push_back({.peer = NodeId(i), .fd = FileDescriptor(pair[0])});
      sockets[i].push_back({.peer = NodeId(i - 1), .fd = FileDescriptor(pair[1])});
    }
    std::vector<std::future<Status>> made;
    for (uint32_t i = 0; i < kNodes; ++i) {
      memory_[i] = *Mapping::Anonymous(kBytes);
      if (i == 0) std::ranges::fill(memory_[0].bytes(), kSent);
      made.push_back(std::async(std::launch::async, [this, i, part = parts[i], &sockets] {
        return MakeOne(i, part, TcpLinks(std::move(sockets[i])));
      }));
    }
    for (std::future<Status>& it : made) {
      const Status status = it.get();
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
  }

  static VerifiedPlan PlanOf(const char* ready, uint64_t bytes) {
    return test::CompileOrDie({.nodes = kNodes,
                               .message_bytes = bytes,
                               .block_bytes = 1000,
                               .algorithm = "chain",
                               .ready = *ParseReady(ready)});
  }
  void Start(std::initializer_list<uint32_t> nodes) {
    for (const uint32_t node : nodes) players_[node]->Start();
  }
  /// Until node 1 has some of the message and the root has not sent all.
  void RunToTheMiddle() {
    while (memory_[1].bytes()[0] != kSent) ASSERT_TRUE(fabric_.RunSome(1));
    ASSERT_NE(memory_[1].bytes().back(), kSent);
  }
  uint64_t AskAll() {
    uint64_t sum = 0;
    for (const auto& player : players_) sum += player->AskProgress();
    return sum;
  }
  /// What `player` says after it has stood still.
  std::string Standing(uint32_t node) {
    fabric_.RunUntilIdle();
    players_[node]->AskProgress();
    const uint64_t before = players_[node]->AskProgress();
    EXPECT_EQ(players_[node]->AskProgress(), before) << "nothing moves";
    return players_[node]->Waiting(2);
  }

  /// Node 1 plays a plan that has one block less.
  bool misses_receive_ = false;
  std::optional<VerifiedPlan> plan_;
  std::optional<VerifiedPlan> shorter_plan_;
  nic::QueueProgram program_;
  std::array<Mapping, kNodes> memory_;
  emulated::Fabric fabric_{kNodes, {}};
  std::array<std::unique_ptr<Player>, kNodes> players_;

 private:
  Status MakeOne(uint32_t i, Part part, TcpLinks links) {
    const VerifiedPlan& plan = misses_receive_ && i == 1 ? *shorter_plan_ : *plan_;
    const std::span<std::byte> bytes = memory_[i].bytes().first(plan.header().payload.bytes);
    const PlayerContext context{
        .memory = {.source = bytes, .target = i == 0 ? std::span<std::byte>() : bytes}};
    constexpr std::chrono::seconds kAnswerMax{60};
    nic::Device& device = fabric_.device(NodeId(i));
    auto player = part == Part::kPreposted
                      ? nic::MakePrepostedPlayer(device, *plan_, program_.nodes[i], links, context,
                                                 kAnswerMax)
                      : nic::MakeDrivenPlayer(device, plan, NodeId(i), links, context, kAnswerMax);
    if (player.ok()) players_[i] = *std::move(player);
    return player.status();
  }
};

constexpr std::array kAllPreposted = {Part::kPreposted, Part::kPreposted, Part::kPreposted};

// Progress that only counts what hosts do ends a healthy run that takes longer than its limit.
TEST_F(DevicePlayerTest, ProgressIsWhatTheNicsDo) {
  Make("window=1", kAllPreposted);
  Start({0, 1, 2});
  uint64_t before = AskAll();
  uint32_t polls = 0;
  while (fabric_.RunSome(16)) {
    const uint64_t now = AskAll();
    EXPECT_GT(now, before) << "after poll " << polls;
    before = now;
    ++polls;
  }
  EXPECT_GT(polls, 10u);
  for (const auto& player : players_) {
    ASSERT_TRUE(player->Poll(kLook).ok());
    EXPECT_TRUE(player->done());
  }
}

// Members whose queues in parts, and what these cost, the report leaves out; requests for events
// that are counted as doorbells.
TEST_F(DevicePlayerTest, ReportsTellOfQueuesInParts) {
  Make("window=1", kAllPreposted, {.profile = {.name = "short", .sq_wqebbs = 16, .rq_wqes = 16}});
  Start({0, 1, 2});
  bool is_done = false;
  for (uint32_t look = 0; look < 10'000 && !is_done; ++look) {
    fabric_.RunUntilIdle();
    is_done = true;
    for (const auto& player : players_) {
      ASSERT_TRUE(player->Poll(kLook).ok());
      is_done = is_done && player->done();
    }
  }
  ASSERT_TRUE(is_done);
  for (uint32_t node = 0; node < kNodes; ++node) {
    const NodeReport report = players_[node]->report();
    uint64_t rearms = 0, bound = 0;
    for (const QueueRearms& it : players_[node]->queue_rearms()) {
      EXPECT_EQ(it.node, NodeId(node));
      EXPECT_LE(it.rearms, it.bound) << it.queue;
      rearms += it.rearms;
      bound += it.bound;
    }
    EXPECT_GT(rearms, 0u);
    EXPECT_EQ(rearms, report.rearms);
    EXPECT_EQ(bound, report.rearms_max);
    EXPECT_LE(report.host_posts_during, report.rearms) << "a doorbell for each part at most";
  }
}

// Reports that need all nodes' queues, or that leave out which queue waits for which peer.
TEST_F(DevicePlayerTest, SaysWhatHasNotComeFromWhom) {
  Make("window=1", kAllPreposted);
  Start({0, 1});
  EXPECT_THAT(Standing(1), HasSubstr("the final completion has not come: node 1 op "));
  EXPECT_THAT(Standing(1), EndsWith("(recv credit 2>1) has not come from node 2"));
  EXPECT_THAT(Standing(2), HasSubstr("QP 2<>1 credits has not been rung on by its host"));
}

// The same for a send that runs and whose receiver is elsewhere.
TEST_F(DevicePlayerTest, SaysWhatHasNoAnswer) {
  misses_receive_ = true;
  Make("retry", {Part::kPreposted, Part::kDriven, Part::kPreposted});
  Start({0, 1, 2});
  EXPECT_THAT(Standing(0), HasSubstr("node 0's QP 0<>1 blocks has sent WQE 19, node 0 op 19 (send "
                                     "0>1:19), without an answer"));
}

// Retried for ever, a receive that is missing behind a barrier shows only as standing still.
TEST_P(DevicePlayerTest, AMissingReceiveBehindABarrierIsAnError) {
  misses_receive_ = true;
  Make("barrier", {GetParam(), Part::kDriven, Part::kPreposted});
  Start({0, 1, 2});
  Status status;
  for (uint32_t look = 0; look < 200 && status.ok(); ++look) {
    fabric_.RunUntilIdle();
    status = players_[0]->Poll(kLook);
  }
  EXPECT_THAT(status.message(), HasSubstr("RNR"));
}

// A NIC that goes on with memory that its host has freed: the engine would touch what is unmapped.
TEST_P(DevicePlayerTest, MemoryMayGoWithThePlayer) {
  for (const uint32_t ending : {0u, 1u}) {
    Make("barrier", {GetParam(), GetParam(), GetParam()});
    Start({0, 1, 2});
    RunToTheMiddle();
    players_[ending].reset();
    memory_[ending] = Mapping();
    for (uint32_t look = 0; look < 100; ++look) {
      fabric_.RunUntilIdle();
      for (const auto& player : players_) {
        if (player != nullptr) std::ignore = player->Poll(kLook);
      }
    }
    EXPECT_NE(memory_[2].bytes().back(), kSent) << "nothing is sent on";
    if (ending == 1) {
      EXPECT_EQ(players_[0]->lost_peer(), NodeId(1)) << "what failed is not the root";
    }
    for (auto& player : players_) player.reset();
  }
}

INSTANTIATE_TEST_SUITE_P(All, DevicePlayerTest, testing::Values(Part::kPreposted, Part::kDriven),
                         [](const auto& param) {
                           return param.param == Part::kPreposted ? "Preposted" : "Driven";
                         });

}  // namespace
}  // namespace prepost::device_player_test
