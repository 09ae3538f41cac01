// SPDX-License-Identifier: Apache-2.0
//
// Plans over libfabric: preposted as deferred work to the sockets provider, which starts every send by
// itself, and driven by the CPU over the same and other providers. A thread per node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <csignal>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "backends/fabric_device.h"
#include "runtime/transport/tcp_mesh.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"
#include "tests/support/sanitizers.h"
#include "tests/support/sessions.h"

namespace prepost::fabric_test {
namespace {

using test::Bytes;

constexpr std::chrono::seconds kHangs{30};

/// With the thread sanitizer nothing of libfabric is tried: it does not see how its threads are ordered.
bool HasProvider(const std::string& device) {
  if (test::kHasThreadSanitizer) return false;
  const auto providers = FabricProviders();
  return providers.ok() &&
         std::ranges::find(*providers, device, &FabricProvider::name) != providers->end();
}

struct Played {
  Status status;
  NodeReport report;
};

/// Plays all nodes, node i preposted if `preposted[i]`; and compares all bytes.
void Play(const VerifiedPlan& plan, const std::string& device, const std::vector<bool>& preposted) {
  const PlanHeader& header = plan.header();
  TcpMesh mesh = *MakeTcpMesh(plan);
  std::vector<std::vector<std::byte>> buffers(header.nodes);
  for (auto& buffer : buffers) buffer.resize(header.message.bytes);
  buffers[header.root.index()] = Bytes(header.message.bytes, 1);
  std::barrier armed(header.nodes), ended(header.nodes);
  std::vector<std::future<Played>> nodes;
  for (uint32_t i = 0; i < header.nodes; ++i) {
    nodes.push_back(std::async(std::launch::async, [&, i]() -> Played {
      const auto work = [&]() -> Result<std::unique_ptr<Player>> {
        static thread_local std::unique_ptr<PlayerDevice> opened;
        static thread_local std::shared_ptr<const PlayerDevice::Program> program;
        auto made = OpenFabric(device, preposted[i]);
        if (!made.ok()) return made.status();
        opened = *std::move(made);
        const bool is_root = NodeId(i) == header.root;
        PlayerDevice::Task task = {
            .plan = plan,
            .node = NodeId(i),
            .sockets = std::move(mesh[i]),
            .context = {.memory = {.source = buffers[i],
                                   .target = is_root ? std::span<std::byte>() : buffers[i]}}};
        if (!preposted[i]) return opened->MakeDriven(std::move(task));
        auto lowered = opened->Lower(plan, NodeId(i));
        if (!lowered.ok()) return lowered.status();
        program = *lowered;
        return opened->MakePreposted(*program, std::move(task));
      };
      Result<std::unique_ptr<Player>> player = work();
      armed.arrive_and_wait();
      Played played{.status = player.status(), .report = {}};
      if (player.ok()) {
        (*player)->Start();
        const auto due = std::chrono::steady_clock::now() + kHangs;
        while (played.status.ok() && !(*player)->done()) {
          played.status = (*player)->Poll(std::chrono::milliseconds(1000));
          if (played.status.ok() && std::chrono::steady_clock::now() > due)
            played.status = Rejected("it hangs: " + (*player)->Waiting(9));
        }
        played.report = (*player)->report();
      }
      // Without the application a provider may deliver nothing, so nobody leaves before all are done.
      ended.arrive_and_wait();
      return played;
    }));
  }
  for (uint32_t i = 0; i < header.nodes; ++i) {
    SCOPED_TRACE(testing::Message() << "node " << i);
    const Played played = nodes[i].get();
    ASSERT_TRUE(played.status.ok()) << played.status.ToString();
    EXPECT_EQ(buffers[i], buffers[header.root.index()]);
    if (!preposted[i]) continue;
    EXPECT_EQ(played.report.host_posts, 1u);  // its start
    EXPECT_EQ(played.report.host_posts_during, 0u);
    EXPECT_LE(played.report.host_wakeups, 1u);
  }
}

// Libraries behind libfabric take signals when they are loaded. Catches Ctrl-C that a program no longer
// hears of.
TEST(FabricSignalsTest, BelongToTheProgram) {
  const auto handlers = [] {
    std::vector<void (*)(int)> all;
    for (int number = 1; number < 32; ++number) {
      struct sigaction action = {};
      if (sigaction(number, nullptr, &action) == 0) all.push_back(action.sa_handler);
    }
    return all;
  };
  const auto before = handlers();
  static_cast<void>(FabricProviders());
  EXPECT_EQ(handlers(), before);
}

// Catches whatever the model of counters does not know of a provider: another order of work, of
// messages or of completions; and hosts that touch the transfer.
TEST(TriggeredTest, EverySmallPlan) {
  if (!HasProvider("fabric:sockets")) GTEST_SKIP() << "libfabric has no provider sockets here";
  test::Sample sample(8 * test::SampleDivisor());
  for (const Spec& spec : test::SpecsForExecutors({.nodes_max = 9, .blocks_max = 6})) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(spec));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    Play(plan, "fabric:sockets", std::vector(spec.nodes, true));
    if (HasFatalFailure()) return;
  }
}

// Both kinds have the same endpoints and put the same messages on them.
TEST(TriggeredTest, SomeNodesAreDriven) {
  if (!HasProvider("fabric:sockets")) GTEST_SKIP() << "libfabric has no provider sockets here";
  const VerifiedPlan plan = test::PlanWithWindowsOf1("binomial_pipeline", 5, 20, 1000);
  Play(plan, "fabric:sockets", {true, false, true, true, false});
}

// The provider shm names endpoints by their process, so that it is for processes: run_test.cc.
class FabricTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Providers, FabricTest, testing::Values("fabric:tcp", "fabric:sockets"),
                         [](const auto& it) { return std::string(it.param).substr(7); });

TEST_P(FabricTest, EverySmallPlan) {
  if (!HasProvider(GetParam())) GTEST_SKIP() << "libfabric has no such provider here";
  test::Sample sample(64 * test::SampleDivisor());
  for (const Spec& spec : test::SpecsForExecutors({.nodes_max = 6, .blocks_max = 6})) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(spec));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    Play(plan, GetParam(), std::vector(spec.nodes, false));
    if (HasFatalFailure()) return;
  }
}

TEST_P(FabricTest, LargerBlocks) {
  if (!HasProvider(GetParam())) GTEST_SKIP() << "libfabric has no such provider here";
  for (const uint64_t block : {4096u, 300'000u}) {
    // Connections over tcp take long.
    if (block == 4096 && std::string(GetParam()) == "fabric:tcp") continue;
    const VerifiedPlan plan = test::PlanWithWindowsOf1("binomial_pipeline", 4, 8, block);
    Play(plan, GetParam(), std::vector(4, false));
    if (HasFatalFailure()) return;
    if (std::string(GetParam()) == "fabric:sockets") Play(plan, GetParam(), std::vector(4, true));
  }
}

}  // namespace
}  // namespace prepost::fabric_test
