// SPDX-License-Identifier: Apache-2.0
//
// Groups whose members find each other over TCP, as on several machines, and then move everything
// over their NICs: preposted, CPU-driven, or some of each. A thread per member; the NICs are
// emulated, because no two processes share those.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <memory>
#include <vector>

#include "prepost/backends/emulated/fabric.h"
#include "prepost/backends/mlx5/stand_in.h"
#include "prepost/backends/nic/device_player.h"
#include "prepost/backends/nic/lower.h"
#include "prepost/runtime/node_group.h"
#include "tests/support/loopback.h"
#include "tests/support/plans.h"
#include "tests/support/stray_device.h"
#include "tests/support/temp_folder.h"

namespace prepost {
namespace {

using testing::HasSubstr;

enum class Part : uint8_t { kPreposted, kDriven, kTcp };

class NodeOverNicTest : public testing::Test {
 protected:
  static constexpr uint32_t kNodes = 5;
  static constexpr std::chrono::seconds kAnswerMax{3};

  NodeOverNicTest() {
    std::ofstream file(path_, std::ios::binary);
    for (uint64_t i = 0; i < plan_.header().message.bytes; ++i) {
      file.put(static_cast<char>(i * 2654435761u >> 7));
    }
  }

  /// Runs the group, member i as `parts[i]`; the members' statuses.
  std::vector<Status> Run(const std::vector<Part>& parts, const nic::LowerOptions& lower = {},
                          const nic::DeviceFactory& make_device = {}) {
    emulated::Fabric fabric(kNodes, {});
    if (make_device) {
      EXPECT_TRUE(fabric.MakeDevices(make_device).ok());
    }
    EXPECT_TRUE(fabric.Start(emulated::Fabric::Until::kStopped).ok());
    const nic::QueueProgram program = *nic::Lower(plan_, lower);
    const Result<MappedInput> input = MappedInput::Open(path_);
    std::vector<std::future<Status>> members;
    for (uint32_t i = 0; i < kNodes; ++i) {
      members.push_back(std::async(std::launch::async, [&, i] {
        NodeRunOptions options{.bootstrap = Bootstrap(i)};
        options.no_progress_max = std::chrono::seconds(20);
        nic::Device& device = fabric.device(NodeId(i));
        if (parts[i] == Part::kPreposted) {
          options.make_player = [&, i](std::vector<TcpSocket> sockets,
                                       const PlayerContext& context) {
            return nic::MakePrepostedPlayer(device, plan_, program.nodes[i], std::move(sockets),
                                            context, kAnswerMax);
          };
        } else if (parts[i] == Part::kDriven) {
          options.make_player = [&, i](std::vector<TcpSocket> sockets,
                                       const PlayerContext& context) {
            return nic::MakeDrivenPlayer(device, plan_, NodeId(i), std::move(sockets), context,
                                         kAnswerMax);
          };
        }
        const bool is_root = NodeId(i) == plan_.header().root;
        return RunNode(plan_, is_root ? &*input : nullptr, nullptr, std::move(options)).status();
      }));
    }
    std::vector<Status> statuses;
    for (std::future<Status>& member : members) statuses.push_back(member.get());
    fabric.Stop();
    return statuses;
  }

  void ExpectDelivers(const std::vector<Part>& parts, const nic::LowerOptions& lower = {},
                      const nic::DeviceFactory& make_device = {}) {
    // The root compares the sums of all copies before it says that all is well.
    for (const Status& status : Run(parts, lower, make_device)) {
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
  }

  BootstrapOptions Bootstrap(uint32_t node) const {
    static const GroupKey key = GroupKey::FromSecret("the secret of this test", "").value();
    BootstrapOptions options = {.node = NodeId(node), .key = key};
    for (uint32_t i = 0; i < kNodes; ++i) {
      options.peers.push_back({.host = test::LoopbackAddress(i)});
    }
    options.connect_max = std::chrono::seconds(60);
    return options;
  }

  test::TempFolder folder_;
  const std::string path_ = folder_ / "message";
  const Plan plan_ = test::CompileOrDie({.nodes = kNodes,
                                         .root = NodeId(1),
                                         .message_bytes = 400 * 30 - 7,
                                         .block_bytes = 30,
                                         .algorithm = "binomial_pipeline",
                                         .ready = *ParseReady("window=1")});
};

TEST_F(NodeOverNicTest, AllPreposted) {
  for (const auto mode : {nic::LoweringMode::kInline, nic::LoweringMode::kManaged}) {
    ExpectDelivers(std::vector(kNodes, Part::kPreposted), {.mode = mode});
  }
}

TEST_F(NodeOverNicTest, SomePrepostedSomeDriven) {
  using enum Part;
  ExpectDelivers({kPreposted, kDriven, kDriven, kPreposted, kPreposted});
  ExpectDelivers({kDriven, kPreposted, kDriven, kDriven, kPreposted},
                 {.mode = nic::LoweringMode::kManaged,
                  .profile = {.name = "tiny", .sq_wqebbs = 16, .rq_wqes = 16}});
}

TEST_F(NodeOverNicTest, OverMlx5) {
  using enum Part;
  ExpectDelivers(
      {kPreposted, kPreposted, kDriven, kPreposted, kDriven}, {},
      [](nic::NicModel& nic) { return mlx5::OpenOnStandIn(nic, {.is_ethernet = true}); });
}

// A member validates what it has armed: bytes that changed are not sent, and nobody starts.
TEST_F(NodeOverNicTest, WhatChangesInARingEndsTheGroupBeforeAnyDoorbell) {
  test::StrayWrite write{.node = NodeId(2), .byte = nic::control::kWqeIndex + 1};
  const std::vector<Status> statuses =
      Run(std::vector(kNodes, Part::kPreposted), {}, test::StrayDevices(write));
  for (const Status& status : statuses) EXPECT_FALSE(status.ok());
  EXPECT_THAT(statuses[2].message(), HasSubstr("wqe: names index"));
  EXPECT_EQ(write.writes, 1u);
  EXPECT_EQ(write.doorbells, 0u);
}

// A member that goes another way is told from one that does not speak at all, and everyone ends.
TEST_F(NodeOverNicTest, AMemberWithoutADeviceEndsTheGroup) {
  using enum Part;
  const std::vector<Status> statuses = Run({kPreposted, kPreposted, kPreposted, kTcp, kPreposted});
  bool is_named = false;
  for (const Status& status : statuses) {
    EXPECT_FALSE(status.ok());
    is_named |=
        status.message().find("cannot learn the queue pairs of node 3") != std::string::npos;
  }
  EXPECT_TRUE(is_named) << statuses[0].ToString();
}

}  // namespace
}  // namespace prepost
