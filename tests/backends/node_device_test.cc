// SPDX-License-Identifier: Apache-2.0
//
// What plays a node's part: which executor is chosen over which device, and why another is not. The
// device is a stand-in that reports what a test wants. Groups of such nodes are in
// tests/differential/node_over_nic_test.cc.
#include "backends/node_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/emulated/fabric.h"
#include "backends/mlx5/cards.h"
#include "backends/nic/host/nic_player_device.h"
#include "tests/support/fake_library.h"
#include "tests/support/plans.h"

namespace prepost::node_device_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr NodeId kNode(2);
constexpr Executor kExecutors[] = {Executor::kAuto, Executor::kCpu, Executor::kOffload};

std::string NameOf(Executor executor) {
  return std::string(kExecutorNames[static_cast<size_t>(executor)]);
}

class NodeDeviceTest : public ::testing::Test {
 protected:
  /// Whatever was chosen, nothing may be left on a device that is gone.
  ~NodeDeviceTest() override { EXPECT_THAT(fabric_.engine().misuses(), IsEmpty()); }

  static VerifiedPlan PlanOf(const char* ready) {
    return test::CompileOrDie({.nodes = 4,
                               .message_bytes = 100 * 100,
                               .block_bytes = 100,
                               .algorithm = "chain",
                               .ready = *ParseReady(ready)});
  }
  Result<NodeDevice> Choose(const NodeDeviceChoice& choice, const mlx5::StandInOptions& says = {},
                            const char* ready = "window=1") {
    test::FakeLibrary library(fabric_.nic(NodeId(0)), says);
    const mlx5::Cards cards(library);
    return NodeDevice::Choose(choice, PlanOf(ready), kNode, {.needs = "libmlx5", .kind = &cards});
  }
  static uint32_t LongestReceiveRing(const NodeDevice& device) {
    uint32_t longest = 0;
    for (const nic::QueuePair& qp :
         nic::NicPlayerDevice::QueuesOf(*device.program()).nodes.front().qps) {
      longest = std::max(longest, qp.rq_wqes);
    }
    return longest;
  }

  emulated::Fabric fabric_{1, {}};
};

TEST_F(NodeDeviceTest, WithoutADeviceTheCpuGoesOverTcp) {
  for (const Executor executor : {Executor::kAuto, Executor::kCpu}) {
    const Result<NodeDevice> chosen = Choose({.executor = executor});
    ASSERT_TRUE(chosen.ok());
    EXPECT_FALSE(chosen->is_offloaded());
    EXPECT_EQ(chosen->name(), "tcp");
    EXPECT_EQ(chosen->note(), "");
  }
}

// Catches a choice that does not fit its name, another node's queues, and a note where there is
// nothing to choose.
TEST_F(NodeDeviceTest, AutoOffloadsWhatFits) {
  for (const Executor executor : kExecutors) {
    SCOPED_TRACE(NameOf(executor));
    const bool is_auto = executor == Executor::kAuto;
    const bool is_cpu = executor == Executor::kCpu;
    const Result<NodeDevice> chosen = Choose({.executor = executor, .device = "mlx5_0"});
    ASSERT_TRUE(chosen.ok()) << chosen.status().ToString();
    EXPECT_EQ(chosen->executor(), std::string(is_cpu ? "cpu" : "offload"));
    EXPECT_EQ(chosen->name(), "mlx5_0");
    EXPECT_EQ(chosen->note(), is_auto ? "offload: the plan fits device mlx5_0" : "");
    if (is_cpu) continue;
    const nic::QueueProgram& queues = nic::NicPlayerDevice::QueuesOf(*chosen->program());
    ASSERT_EQ(queues.nodes.size(), 1u);
    EXPECT_EQ(queues.nodes.front().node, kNode);
  }
}

// A barrier wants all 100 receives posted at once. Catches limits that are not the card's, and an
// offload that was asked for and silently becomes something else.
TEST_F(NodeDeviceTest, WhatDoesNotFitTheCardIsPlayedByTheCpuOnItOrRefused) {
  const mlx5::StandInOptions small = {.log_max_qp_sz = 5};
  const Result<NodeDevice> chosen =
      Choose({.executor = Executor::kAuto, .device = "mlx5_0"}, small, "barrier");
  ASSERT_TRUE(chosen.ok()) << chosen.status().ToString();
  EXPECT_EQ(chosen->executor(), std::string("cpu"));
  EXPECT_EQ(chosen->name(), "mlx5_0");
  EXPECT_THAT(chosen->note(), AllOf(StartsWith("cpu: not preposted to device mlx5_0: "),
                                    HasSubstr("100"), HasSubstr("32")));
  const Status refused =
      Choose({.executor = Executor::kOffload, .device = "mlx5_0"}, small, "barrier").status();
  EXPECT_EQ(refused.code(), StatusCode::kRejected);
  EXPECT_THAT(refused.message(), HasSubstr("32"));
}

// Catches rings that the card, or the profile of the user, does not have.
TEST_F(NodeDeviceTest, RingsFitBothTheCardAndTheProfile) {
  NodeDeviceChoice choice = {.executor = Executor::kOffload, .device = "mlx5_0"};
  const mlx5::StandInOptions small = {.log_max_qp_sz = 5};
  const Result<NodeDevice> of_card = Choose(choice, small);
  ASSERT_TRUE(of_card.ok()) << of_card.status().ToString();
  EXPECT_EQ(LongestReceiveRing(*of_card), 32u);
  choice.lower.profile.rq_wqes = 16;
  const Result<NodeDevice> of_profile = Choose(choice, small);
  ASSERT_TRUE(of_profile.ok()) << of_profile.status().ToString();
  EXPECT_EQ(LongestReceiveRing(*of_profile), 16u);
}

// Catches a node that goes over TCP where its group does not.
TEST_F(NodeDeviceTest, ADeviceThatCannotBeUsedIsAnErrorForEveryExecutor) {
  for (const Executor executor : kExecutors) {
    SCOPED_TRACE(NameOf(executor));
    const Status absent = Choose({.executor = executor, .device = "mlx5_7"}).status();
    EXPECT_EQ(absent.code(), StatusCode::kEnvironment);
    EXPECT_EQ(absent.message(),
              "device mlx5_7: there is no RDMA device mlx5_7 (see prepost devices)");
    const Status down =
        Choose({.executor = executor, .device = "mlx5_0"}, {.is_active = false}).status();
    EXPECT_EQ(down.code(), StatusCode::kEnvironment);
    EXPECT_THAT(down.message(), HasSubstr("device mlx5_0: port 1 is not active"));
    const Status without = NodeDevice::Choose({.executor = executor, .device = "mlx5_0"},
                                              PlanOf("window=1"), kNode, {.needs = "libmlx5"})
                               .status();
    EXPECT_EQ(without.code(), StatusCode::kEnvironment);
    EXPECT_THAT(without.message(), HasSubstr("this prepost was built without libmlx5"));
  }
}

// WAIT and SEND_EN are for preposted queues only. Catches a card that CPUs could use and may not,
// and one that is offloaded to without them.
TEST_F(NodeDeviceTest, CpusGoOverACardWithoutCrossChannel) {
  const mlx5::StandInOptions plain = {.cross_channel = false};
  const auto choose = [&](Executor executor) {
    return Choose({.executor = executor, .device = "mlx5_0"}, plain);
  };
  ASSERT_TRUE(choose(Executor::kCpu).ok()) << choose(Executor::kCpu).status().ToString();
  const Result<NodeDevice> chosen = choose(Executor::kAuto);
  ASSERT_TRUE(chosen.ok()) << chosen.status().ToString();
  EXPECT_EQ(chosen->executor(), std::string("cpu"));
  EXPECT_THAT(chosen->note(), AllOf(StartsWith("cpu: "), HasSubstr("no capability cd")));
  const Status refused = choose(Executor::kOffload).status();
  EXPECT_EQ(refused.code(), StatusCode::kEnvironment);
  EXPECT_THAT(refused.message(), HasSubstr("device mlx5_0: the device lacks capability cd"));
}

// Catches a trace without ops in it.
TEST_F(NodeDeviceTest, AutoTakesTheCpuWhereOpsAreTraced) {
  const Result<NodeDevice> chosen =
      Choose({.executor = Executor::kAuto, .device = "mlx5_0", .is_traced = true});
  ASSERT_TRUE(chosen.ok()) << chosen.status().ToString();
  EXPECT_FALSE(chosen->is_offloaded());
  EXPECT_EQ(chosen->name(), "mlx5_0");
  EXPECT_THAT(chosen->note(), StartsWith("cpu: --trace is given"));
}

}  // namespace
}  // namespace prepost::node_device_test
