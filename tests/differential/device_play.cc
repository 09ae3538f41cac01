// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/device_play.h"

#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "backends/registry.h"
#include "runtime/transport/tcp_links.h"
#include "runtime/transport/tcp_mesh.h"
#include "tests/support/collective_transfer.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"
#include "tests/support/sessions.h"

namespace prepost::test {
namespace {

constexpr std::chrono::seconds kHangs{30};
constexpr std::chrono::milliseconds kWaitMax{1000};

struct Played {
  Status status;
  NodeReport report;
  uint64_t wakeups = 0;   ///< that the observer was told of
  uint64_t timeouts = 0;  ///< of waiting, at most
};

}  // namespace

namespace {

/// From and to `memory`, by node, which is compared by the caller.
void PlayIn(const std::vector<NodeMemory>& memory, const VerifiedPlan& plan,
            const std::string& device, const std::vector<bool>& preposted,
            const std::function<void()>& before_start) {
  const PlanHeader& header = plan.header();
  TcpMesh mesh = *MakeTcpMesh(plan);
  std::barrier armed(header.nodes, [&]() noexcept { before_start(); });
  std::barrier ended(header.nodes);
  std::vector<std::future<Played>> nodes;
  for (uint32_t i = 0; i < header.nodes; ++i) {
    nodes.push_back(std::async(std::launch::async, [&, i]() -> Played {
      Played played;
      const auto work = [&]() -> Result<std::unique_ptr<Player>> {
        static thread_local std::unique_ptr<PlayerDevice> opened;
        static thread_local std::shared_ptr<const PlayerDevice::Program> program;
        auto made = OpenPlayerDevice(device, {.needs_offload = preposted[i]});
        if (!made.ok()) return made.status();
        opened = *std::move(made);
        PlayerDevice::Task task = {
            .plan = plan,
            .node = NodeId(i),
            .links = std::make_unique<TcpLinks>(std::move(mesh[i])),
            .context = {.memory = memory[i], .observer = [&played](const OpEvent& event) {
                          played.wakeups += event.kind == OpEvent::Kind::kWakeup ? 1 : 0;
                        }}};
        if (!preposted[i]) return opened->MakeDriven(std::move(task));
        auto lowered = opened->Lower(plan, NodeId(i));
        if (!lowered.ok()) return lowered.status();
        program = *lowered;
        return opened->MakePreposted(*program, std::move(task));
      };
      Result<std::unique_ptr<Player>> player = work();
      armed.arrive_and_wait();
      played.status = player.status();
      if (player.ok()) {
        (*player)->Start();
        const auto began = std::chrono::steady_clock::now();
        const auto due = began + kHangs;
        while (played.status.ok() && !(*player)->done()) {
          played.status = (*player)->Poll(kWaitMax);
          if (played.status.ok() && std::chrono::steady_clock::now() > due)
            played.status = Rejected("it hangs: " + (*player)->Waiting(9));
        }
        played.report = (*player)->report();
        played.timeouts =
            static_cast<uint64_t>((std::chrono::steady_clock::now() - began) / kWaitMax);
      }
      // Without the application a provider may deliver nothing, so nobody leaves before all are
      // done.
      ended.arrive_and_wait();
      return played;
    }));
  }
  for (uint32_t i = 0; i < header.nodes; ++i) {
    SCOPED_TRACE(testing::Message() << "node " << i);
    const Played played = nodes[i].get();
    ASSERT_TRUE(played.status.ok()) << played.status.ToString();
    EXPECT_EQ(played.wakeups, played.report.host_wakeups);
    if (!preposted[i]) continue;
    EXPECT_EQ(played.report.host_posts, 1u);  // its start
    EXPECT_EQ(played.report.host_posts_during, 0u);
    EXPECT_LE(played.report.host_wakeups, 1u + played.timeouts);
  }
}

}  // namespace

void Play(const VerifiedPlan& plan, const std::string& device, const std::vector<bool>& preposted,
          const std::function<void()>& before_start) {
  const PlanHeader& header = plan.header();
  std::vector<std::vector<std::byte>> buffers(header.nodes);
  for (auto& buffer : buffers) buffer.resize(header.payload.bytes);
  std::vector<std::byte>& of_root = buffers[header.collective.root.index()];
  of_root = Bytes(header.payload.bytes, 1);
  std::vector<NodeMemory> memory(header.nodes);
  for (uint32_t i = 0; i < header.nodes; ++i) {
    memory[i].source = buffers[i];
    if (NodeId(i) != header.collective.root) memory[i].target = buffers[i];
  }
  PlayIn(memory, plan, device, preposted, before_start);
  for (uint32_t i = 0; i < header.nodes; ++i) EXPECT_EQ(buffers[i], of_root) << "node " << i;
}

void PlayEveryCollective(const std::string& device, uint32_t fewer) {
  Random random(TestSeed());
  const std::vector<Spec> specs =
      SpecsOfExactCollectives({.nodes_max = 5, .blocks_max = 2}, random);
  Sample sample(CollectiveLabels(specs), SampleDivisor(fewer));
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(Label(spec));
    const VerifiedPlan plan = CompileOrDie(spec);
    CollectiveTransfer transfer(plan.header(), random);
    PlayIn(transfer.StagedMemory(plan), plan, device, std::vector(spec.nodes, false), [] {});
    if (!testing::Test::HasFatalFailure()) transfer.ExpectDelivered();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace prepost::test
