// SPDX-License-Identifier: Apache-2.0
//
// Groups whose members find each other over TCP, as on several machines, and then move everything
// over their NICs: preposted, CPU-driven, or some of each. A thread per member; the NICs are
// emulated, because no two processes share those.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/emulated/fabric.h"
#include "backends/mlx5/cards.h"
#include "backends/nic/host/device_player.h"
#include "backends/nic/program/lower.h"
#include "backends/node_device.h"
#include "runtime/files/output_set.h"
#include "runtime/run/node_group.h"
#include "tests/support/engines.h"
#include "tests/support/fake_library.h"
#include "tests/support/loopback.h"
#include "tests/support/plans.h"
#include "tests/support/stray_device.h"
#include "tests/support/temp_folder.h"

namespace prepost::node_over_nic_test {
namespace {

using testing::HasSubstr;

enum class Part : uint8_t { kPreposted, kDriven, kTcp };

/// Is made and armed as any other, and fails when all have started.
class FailingPlayer final : public Player {
 public:
  explicit FailingPlayer(std::unique_ptr<Player> armed) : armed_(std::move(armed)) {}
  void Start() override {}
  Status Poll(std::chrono::milliseconds) override { return Rejected("the disk is on fire"); }
  bool done() const override { return false; }
  bool woken() const override { return false; }
  NodeReport report() const override { return armed_->report(); }
  uint64_t progress() const override { return 0; }
  std::string Waiting(size_t) const override { return ""; }
  void Stop() override { armed_->Stop(); }
  std::optional<NodeId> lost_peer() const override { return std::nullopt; }

 private:
  std::unique_ptr<Player> armed_;
};

/// No QP of the NIC moves any more and no memory is registered with it.
void ExpectUnused(emulated::Nic& nic) {
  for (uint32_t qpn = emulated::NicState::kFirstQpn;; ++qpn) {
    const Result<nic::QpCounters> qp = nic.QueryQp(qpn);
    if (!qp.ok()) break;
    EXPECT_EQ(qp->state, nic::QpState::kError) << "node " << nic.node().value;
  }
  const uint32_t newest = nic.AddMemory(std::as_bytes(std::span("probe")), {});
  EXPECT_TRUE(nic.RemoveMemory(newest).ok());
  for (uint32_t key = newest - 0x100; key > 0x100; key -= 0x100) {
    EXPECT_FALSE(nic.RemoveMemory(key).ok()) << "node " << nic.node().value;
  }
}

class NodeOverNicTest : public testing::Test {
 protected:
  static constexpr uint32_t kNodes = 5;
  static constexpr std::chrono::seconds kAnswerMax{3};

  NodeOverNicTest() {
    std::ofstream file(path_, std::ios::binary);
    for (uint64_t i = 0; i < plan_.header().payload.bytes; ++i) {
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
        RunTrace trace = RunTrace::Make(plan_).value();
        options.trace = &trace;
        nic::Device& device = fabric.device(NodeId(i));
        if (parts[i] == Part::kPreposted) {
          options.make_player = [&](NodeId node, std::unique_ptr<PeerLinks> links,
                                    const PlayerContext& context) {
            return nic::MakePrepostedPlayer(device, plan_, program.nodes[node.index()], *links,
                                            context, kAnswerMax);
          };
        } else if (parts[i] == Part::kDriven) {
          options.make_player = [&](NodeId node, std::unique_ptr<PeerLinks> links,
                                    const PlayerContext& context) {
            return nic::MakeDrivenPlayer(device, plan_, node, *links, context, kAnswerMax);
          };
        }
        if (failing_ == NodeId(i)) {
          options.make_player =
              [make = options.make_player](
                  NodeId node, std::unique_ptr<PeerLinks> links,
                  const PlayerContext& context) -> Result<std::unique_ptr<Player>> {
            auto armed = make(node, std::move(links), context);
            if (!armed.ok()) return armed;
            return std::unique_ptr<Player>(std::make_unique<FailingPlayer>(*std::move(armed)));
          };
        }
        const bool is_root = NodeId(i) == plan_.header().collective.root;
        const Result<LocalRun> run =
            RunNode(plan_, is_root ? &*input : nullptr, nullptr, std::move(options));
        ExpectUnused(fabric.nic(NodeId(i)));  // its memory is gone
        if (!run.ok()) return run.status();
        const auto own = std::ranges::find(run->report.nodes, NodeId(i), &NodeReport::node);
        EXPECT_EQ(trace.wakeups(NodeId(i)).size(), own->host_wakeups) << "node " << i;
        return Status();
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
    options.connect_max = connect_max_;
    return options;
  }

  /// In a folder of its own, as on a machine: a process has one unfinished copy per folder.
  std::string CopyOf(uint32_t node) const { return folder_ / std::to_string(node) + "/copy"; }

  std::optional<NodeId> failing_;  ///< FailingPlayer
  std::chrono::milliseconds connect_max_ = std::chrono::seconds(60);
  test::TempFolder folder_;
  const std::string path_ = folder_ / "message";
  const VerifiedPlan plan_ = test::CompileOrDie({.nodes = kNodes,
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

TEST_F(NodeOverNicTest, OverEveryDevice) {
  using enum Part;
  for (const test::Engine& engine : test::Engines()) {
    SCOPED_TRACE(engine.name);
    if (engine.nics)
      ExpectDelivers({kPreposted, kPreposted, kDriven, kPreposted, kDriven}, {}, *engine.nics);
  }
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

// Catches a member that reads the others' queue pairs as blocks, and members that wait for its: it
// is refused before anything else, and everyone ends.
TEST_F(NodeOverNicTest, AMemberWithoutADeviceIsRefused) {
  using enum Part;
  connect_max_ = std::chrono::seconds(2);
  const std::vector<Status> statuses = Run({kPreposted, kPreposted, kPreposted, kTcp, kPreposted});
  const std::string why = "node 3 goes over tcp, node 1 over a device; give --device at all nodes";
  for (const Status& status : statuses) EXPECT_EQ(status.code(), StatusCode::kRejected);
  EXPECT_THAT(statuses[3].message(), HasSubstr("refuses node 3: " + why));
  EXPECT_THAT(statuses[1].message(), HasSubstr("was refused: " + why));
}

// NICs that go on when their hosts have freed the memory: Run() checks them as each member
// ends. And a member that is blamed because its peer's NIC does not answer any more.
TEST_F(NodeOverNicTest, AFailureAfterTheStartStopsEveryNic) {
  using enum Part;
  failing_ = NodeId(2);
  for (const Status& status : Run({kPreposted, kDriven, kPreposted, kDriven, kPreposted})) {
    EXPECT_THAT(status.message(), HasSubstr("the disk is on fire"));
  }
}

// As `prepost node` does it, each member with a card of its own: one is
// small and cannot WAIT, one is traced, so the CPU plays there; with files. Catches copies that
// never leave the memory that NICs write, and NICs that go on with it.
TEST_F(NodeOverNicTest, AsChosenByTheCommand) {
  constexpr Executor kExecutors[kNodes] = {Executor::kAuto, Executor::kOffload, Executor::kCpu,
                                           Executor::kAuto, Executor::kAuto};
  emulated::Fabric fabric(kNodes, {});
  ASSERT_TRUE(fabric.Start(emulated::Fabric::Until::kStopped).ok());
  const Result<MappedInput> input = MappedInput::Open(path_);
  for (uint32_t i = 0; i < kNodes; ++i) {
    std::filesystem::create_directory(std::filesystem::path(CopyOf(i)).parent_path());
  }
  const auto play = [&](uint32_t i) -> Status {
    mlx5::StandInOptions card{.is_ethernet = true};
    if (i == 2) card.log_max_qp_sz = 5, card.log_max_cq_sz = 6, card.cross_channel = false;
    test::FakeLibrary library(fabric.nic(NodeId(i)), card);
    const mlx5::Cards cards(library);
    Result<NodeDevice> device =
        NodeDevice::Choose({.executor = kExecutors[i], .device = "mlx5_0", .is_traced = i == 3},
                           plan_, NodeId(i), {.needs = "libmlx5", .kind = &cards});
    if (!device.ok()) return device.status();
    EXPECT_EQ(device->is_offloaded(), i != 2 && i != 3) << i;
    const bool is_root = NodeId(i) == plan_.header().collective.root;
    std::optional<OutputSet> output;
    if (!is_root) output.emplace(OutputSet::CreateOne(NodeId(i), CopyOf(i)).value());
    NodeRunOptions options{.bootstrap = Bootstrap(i)};
    device->ApplyTo(plan_, kAnswerMax, &options);
    const Result<LocalRun> run = RunNode(plan_, is_root ? &*input : nullptr,
                                         output ? &*output : nullptr, std::move(options));
    ExpectUnused(fabric.nic(NodeId(i)));
    if (!run.ok()) return run.status();
    EXPECT_EQ(run->report.executor, device->executor());
    EXPECT_EQ(run->report.detail, "mlx5_0");
    return {};
  };
  std::vector<std::future<Status>> members;
  for (uint32_t i = 0; i < kNodes; ++i) members.push_back(std::async(std::launch::async, play, i));
  for (std::future<Status>& member : members) {
    const Status status = member.get();
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  fabric.Stop();
  EXPECT_THAT(fabric.engine().misuses(), testing::IsEmpty());
  for (uint32_t i = 0; i < kNodes; ++i) {
    if (NodeId(i) == plan_.header().collective.root) continue;
    EXPECT_TRUE(test::ReadText(CopyOf(i)) == test::ReadText(path_)) << i;
  }
}

}  // namespace
}  // namespace prepost::node_over_nic_test
