// SPDX-License-Identifier: Apache-2.0
//
// Groups whose members find each other over TCP, as on several machines, and then move everything
// over their NICs: preposted, CPU-driven, or some of each. A thread per member; the NICs are
// emulated, because no two processes share those.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prepost/backends/emulated/fabric.h"
#include "prepost/backends/mlx5/stand_in.h"
#include "prepost/backends/nic/device_player.h"
#include "prepost/backends/nic/lower.h"
#include "prepost/runtime/node_group.h"
#include "tests/support/loopback.h"
#include "tests/support/plans.h"
#include "tests/support/temp_folder.h"

namespace prepost {
namespace {

using testing::HasSubstr;

enum class Part : uint8_t { kPreposted, kDriven, kTcp };

/// Whether the memory at `address` is mapped from a file.
bool IsOfFile(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    uint64_t inode = 0;
    const int fields = std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %" SCNu64,
                                   &begin, &end, &inode);
    if (fields == 3 && begin <= wanted && wanted < end) return inode != 0;
  }
  return false;
}

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
  std::optional<NodeId> lost_peer() const override { return std::nullopt; }

 private:
  std::unique_ptr<Player> armed_;
};

struct GroupOptions {
  nic::LowerOptions lower = {};
  nic::DeviceFactory make_device = {};
  std::optional<uint32_t> failing = {};
  bool writes_files = false;  ///< CopyPath()
};

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
  std::vector<Status> Run(const std::vector<Part>& parts, const GroupOptions& options = {}) {
    emulated::Fabric fabric(kNodes, {});
    if (options.make_device) {
      EXPECT_TRUE(fabric.MakeDevices(options.make_device).ok());
    }
    EXPECT_TRUE(fabric.Start(emulated::Fabric::Until::kStopped).ok());
    const nic::QueueProgram program = *nic::Lower(plan_, options.lower);
    std::vector<std::future<Status>> members;
    for (uint32_t i = 0; i < kNodes; ++i) {
      members.push_back(std::async(std::launch::async, [&, i] {
        const Status status = RunMember(i, parts[i], fabric, program, options);
        ExpectUnused(fabric.nic(NodeId(i)));
        return status;
      }));
    }
    std::vector<Status> statuses;
    for (std::future<Status>& member : members) statuses.push_back(member.get());
    fabric.Stop();
    return statuses;
  }

  void ExpectDelivers(const std::vector<Part>& parts, const GroupOptions& options = {}) {
    // The root compares the sums of all copies before it says that all is well.
    for (const Status& status : Run(parts, options)) {
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
  }

  std::string CopyPath(uint32_t node) const { return folder_ / ("copy" + std::to_string(node)); }

  BootstrapOptions Bootstrap(uint32_t node) const {
    static const GroupKey key = GroupKey::FromSecret("the secret of this test", "").value();
    BootstrapOptions options = {.node = NodeId(node), .key = key};
    for (uint32_t i = 0; i < kNodes; ++i) {
      options.peers.push_back({.host = test::LoopbackAddress(i)});
    }
    options.connect_max = std::chrono::seconds(60);
    return options;
  }

 private:
  Status RunMember(uint32_t i, Part part, emulated::Fabric& fabric,
                   const nic::QueueProgram& program, const GroupOptions& group) {
    NodeRunOptions options{.bootstrap = Bootstrap(i)};
    options.no_progress_max = std::chrono::seconds(20);
    const auto make = [&](std::vector<TcpSocket> sockets, const PlayerContext& context) {
      EXPECT_FALSE(group.writes_files && IsOfFile(context.memory.source.data())) << "node " << i;
      nic::Device& device = fabric.device(NodeId(i));
      return part == Part::kPreposted
                 ? nic::MakePrepostedPlayer(device, plan_, program, NodeId(i), std::move(sockets),
                                            context, kAnswerMax)
                 : nic::MakeDrivenPlayer(device, plan_, NodeId(i), std::move(sockets), context,
                                         kAnswerMax);
    };
    if (part != Part::kTcp) options.make_player = make;
    if (group.failing == i) {
      options.make_player = [&](std::vector<TcpSocket> sockets,
                                const PlayerContext& context) -> Result<std::unique_ptr<Player>> {
        auto armed = make(std::move(sockets), context);
        if (!armed.ok()) return armed;
        return std::unique_ptr<Player>(std::make_unique<FailingPlayer>(*std::move(armed)));
      };
    }
    const bool is_root = NodeId(i) == plan_.header().root;
    std::optional<OutputSet> output;
    if (group.writes_files && !is_root) {
      output.emplace(OutputSet::CreateOne(NodeId(i), CopyPath(i)).value());
    }
    const Result<MappedInput> input = MappedInput::Open(path_);
    return RunNode(plan_, is_root ? &*input : nullptr, output ? &*output : nullptr,
                   std::move(options))
        .status();
  }

  /// No QP of the NIC moves any more and no memory is registered with it.
  static void ExpectUnused(emulated::Nic& nic) {
    for (uint32_t qpn = emulated::NicState::kFirstQpn;; ++qpn) {
      const Result<nic::QpCounters> qp = nic.QueryQp(qpn);
      if (!qp.ok()) break;
      EXPECT_EQ(qp->state, nic::QpState::kError) << "node " << nic.node().value;
    }
    const uint32_t first = nic.AddMemory(std::as_bytes(std::span("probe")), {});
    EXPECT_TRUE(nic.RemoveMemory(first).ok());
    for (uint32_t key = first - 0x100; key > 0x100; key -= 0x100) {
      EXPECT_FALSE(nic.RemoveMemory(key).ok()) << "node " << nic.node().value;
    }
  }

 protected:
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
    ExpectDelivers(std::vector(kNodes, Part::kPreposted), {.lower = {.mode = mode}});
  }
}

TEST_F(NodeOverNicTest, SomePrepostedSomeDriven) {
  using enum Part;
  ExpectDelivers({kPreposted, kDriven, kDriven, kPreposted, kPreposted});
  ExpectDelivers({kDriven, kPreposted, kDriven, kDriven, kPreposted},
                 {.lower = {.mode = nic::LoweringMode::kManaged,
                            .profile = {.name = "tiny", .sq_wqebbs = 16, .rq_wqes = 16}}});
}

TEST_F(NodeOverNicTest, OverMlx5) {
  using enum Part;
  ExpectDelivers({kPreposted, kPreposted, kDriven, kPreposted, kDriven},
                 {.make_device = [](nic::NicModel& nic) {
                   return mlx5::OpenOnStandIn(nic, {.is_ethernet = true});
                 }});
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

// NICs that go on when their hosts have given up the memory: Run() looks at them as each member ends.
TEST_F(NodeOverNicTest, AFailureAfterTheStartStopsEveryNic) {
  using enum Part;
  const std::vector<Status> statuses =
      Run({kPreposted, kDriven, kPreposted, kDriven, kPreposted}, {.failing = 2});
  for (const Status& status : statuses) {
    EXPECT_THAT(status.message(), HasSubstr("the disk is on fire"));
  }
}

// Since Linux 6.5 a NIC may not write to mapped files: the kernel refuses to register them.
TEST_F(NodeOverNicTest, FilesAreWrittenFromMemory) {
  using enum Part;
  ExpectDelivers({kPreposted, kPreposted, kDriven, kPreposted, kDriven}, {.writes_files = true});
  const auto read = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string message = read(path_);
  for (const uint32_t node : {0u, 2u, 3u, 4u}) EXPECT_TRUE(read(CopyPath(node)) == message) << node;
}

}  // namespace
}  // namespace prepost
