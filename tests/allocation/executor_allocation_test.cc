// SPDX-License-Identifier: Apache-2.0
//
// CpuExecutor, the local transports and DeviceEndpoint allocate all they need before the transfer.
// Counted here by replacing operator new, for this whole program, which is why it is one of its
// own; the count is the calling thread's.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <vector>

#include "backends/local/driven_group.h"
#include "runtime/executor/executor.h"
#include "tests/support/fake_network.h"
#include "tests/support/local_nodes.h"
#include "tests/support/node_memory.h"
#include "tests/support/plans.h"
#include "tests/support/rolled_plans.h"
#include "tests/support/temp_folder.h"

namespace {
thread_local size_t allocations = 0;
thread_local size_t allocated_bytes = 0;
}  // namespace

// Not inlined, or gcc takes new and free for a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  allocated_bytes += bytes;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes > 0 ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace prepost::executor_allocation_test {
namespace {

using Executors = std::vector<std::unique_ptr<CpuExecutor>>;

/// An endpoint whose own allocations do not count.
class UncountedEndpoint final : public Endpoint {
 public:
  explicit UncountedEndpoint(Endpoint& endpoint) : endpoint_(endpoint) {}

  void PostRecv(const RecvRequest& request) override {
    const size_t before = allocations;
    endpoint_.PostRecv(request);
    allocations = before;
  }
  void PostSend(const SendRequest& request) override {
    const size_t before = allocations;
    endpoint_.PostSend(request);
    allocations = before;
  }
  Result<PollOutcome> Poll(std::span<OpId> completed, std::chrono::milliseconds timeout) override {
    const size_t before = allocations;
    Result<PollOutcome> outcome = endpoint_.Poll(completed, timeout);
    allocations = before;
    return outcome;
  }
  Status Flush() override { return endpoint_.Flush(); }
  bool quiet() const override { return endpoint_.quiet(); }
  std::optional<NodeId> lost_peer() const override { return endpoint_.lost_peer(); }
  EndpointCounters counters() const override { return endpoint_.counters(); }

 private:
  Endpoint& endpoint_;
};

std::vector<VerifiedPlan> Plans() {
  std::vector<VerifiedPlan> plans;
  for (const ReadyMode mode : {ReadyMode::kBarrier, ReadyMode::kWindow, ReadyMode::kChannel}) {
    Spec spec = {.nodes = 6, .message_bytes = 40'000, .block_bytes = 500};
    const uint32_t window = mode == ReadyMode::kWindow ? 1 : 0;
    spec.ready = {.automatic = false, .ready = {.mode = mode, .window = window}};
    plans.push_back(test::CompileOrDie(spec));
  }
  return plans;
}

bool AllDone(const Executors& executors) {
  for (const auto& executor : executors) {
    if (!executor->done()) return false;
  }
  return true;
}

TEST(ExecutorAllocationTest, TheExecutorAllocatesNothingPerOp) {
  for (const VerifiedPlan& plan : Plans()) {
    test::FakeNetwork network(plan, /*seed=*/1);
    const test::Transfer transfer(plan.header());
    std::vector<std::unique_ptr<UncountedEndpoint>> endpoints;
    Executors executors;
    for (uint32_t node = 0; node < plan.header().nodes; ++node) {
      endpoints.push_back(std::make_unique<UncountedEndpoint>(network.At(NodeId(node))));
      executors.push_back(std::make_unique<CpuExecutor>(plan, NodeId(node), *endpoints.back()));
      executors.back()->Prepare(test::MemoryOf(transfer, NodeId(node), plan.header().roles()));
      executors.back()->Arm();
    }
    size_t counted = 0;
    const auto count = [&](const auto& action) {
      const size_t before = allocations;
      action();
      counted += allocations - before;
    };
    for (const auto& executor : executors) count([&] { executor->Start(); });
    for (size_t steps = 0; steps < 200 * plan.ops().size() && !AllDone(executors); ++steps) {
      network.DeliverOne();
      network.NoteOne();
      CpuExecutor& executor = *executors[steps % executors.size()];
      bool ok = false;
      count([&] { ok = executor.Poll({}).ok(); });
      ASSERT_TRUE(ok);
    }
    ASSERT_TRUE(AllDone(executors));
    transfer.ExpectDelivered();
    EXPECT_EQ(counted, 0u);
  }
}

/// Arms and plays all nodes: nothing is allocated between the start and the end, and the message is
/// delivered.
void ExpectPlaysWithoutAllocating(Playable plan, test::LocalNodes& nodes) {
  Executors executors;
  for (uint32_t node = 0; node < plan.header().nodes; ++node) {
    executors.push_back(
        std::make_unique<CpuExecutor>(plan, NodeId(node), nodes.endpoint(NodeId(node))));
    executors.back()->Prepare(nodes.memory(NodeId(node)));
    executors.back()->Arm();
  }
  const size_t before = allocations;
  for (const auto& executor : executors) executor->Start();
  while (!AllDone(executors)) {
    for (const auto& executor : executors) {
      ASSERT_TRUE(executor->done() || executor->Poll(std::chrono::milliseconds(0)).ok());
    }
  }
  EXPECT_EQ(allocations - before, 0u);
  nodes.ExpectDelivered();
}

class TransportAllocationTest : public ::testing::TestWithParam<TransportKind> {};
INSTANTIATE_TEST_SUITE_P(Transports, TransportAllocationTest, test::AllTransports(),
                         test::TransportName);

TEST_P(TransportAllocationTest, NorDoTransports) {
  for (const VerifiedPlan& plan : Plans()) {
    test::LocalNodes nodes(plan, {.transport = GetParam()});
    ExpectPlaysWithoutAllocating(plan, nodes);
  }
}

// Catches buffers of sealed connections that are made when something is sealed first.
TEST(SealedAllocationTest, NorDoSealedConnections) {
  for (const VerifiedPlan& plan : Plans()) {
    test::LocalNodes nodes(plan, {.seal = SealCipher::kChaCha20Poly1305});
    ExpectPlaysWithoutAllocating(plan, nodes);
  }
}

/// A pipeline of 4 nodes, rolled, that any number of blocks of 64 bytes goes through.
RolledPlan RolledPipeline(const char* ready) {
  Spec spec = {.nodes = 4, .block_bytes = 64, .algorithm = "binomial_pipeline"};
  spec.ready = *ParseReady(ready);
  return test::RollOrDie(spec);
}

/// All that node 1 allocates, in bytes, to play `blocks` blocks over `kind`, but for their memory:
/// it is armed, not played.
size_t BytesToPlay(const RolledPlan& rolled, uint64_t blocks, TransportKind kind) {
  std::vector<NodeBuffer> buffers(4);
  test::TempFolder folder;
  const std::string path = folder / "image";
  std::ofstream(path).close();
  std::filesystem::resize_file(path, blocks * 64);
  const MappedInput image = MappedInput::Open(path).value();
  for (uint32_t node = 1; node < 4; ++node) {
    buffers[node] = NodeBuffer::Open(NodeId(node), blocks * 64, nullptr).value();
    EXPECT_TRUE(buffers[node].Reserve().ok());
  }
  const size_t before = allocated_bytes;
  const RolledPlay play = *RolledPlay::Make(rolled, blocks * 64);
  auto transport = LocalTransport::Make(kind, play, {.input = image, .buffers = buffers}).value();
  auto endpoint = transport->MakeEndpoint(NodeId(1), /*wake_fd=*/-1, /*checkpoint=*/{}).value();
  CpuExecutor executor(play, NodeId(1), *endpoint);
  executor.Prepare({.source = buffers[1].bytes(), .target = buffers[1].bytes()});
  executor.Arm();
  return allocated_bytes - before;
}

// Catches anything that has a place for each block or op. Short messages take less: rings are no
// larger than what goes through them.
TEST_P(TransportAllocationTest, ARolledProgramTakesTheSameMemoryForAnyMessage) {
  for (const char* ready : {"barrier", "channel", "window=1", "window=7"}) {
    const RolledPlan rolled = RolledPipeline(ready);
    const size_t few = BytesToPlay(rolled, 10'000, GetParam());
    EXPECT_EQ(BytesToPlay(rolled, 1'000'000, GetParam()), few) << ready;
    EXPECT_LE(few, 512u << 10) << ready;
  }
}

// Nor while it is played, and the bytes are right: 1,000,000 blocks through windows of 256 ops.
TEST(RolledAllocationTest, AMillionBlocksAllocateNothing) {
  const RolledPlan rolled = RolledPipeline("auto");
  const RolledPlay play = *RolledPlay::Make(rolled, 1'000'000 * 64 - 7);
  test::LocalNodes nodes(play, {.transport = TransportKind::kShm});
  ExpectPlaysWithoutAllocating(play, nodes);
}

// The NICs' own thread does not count, as a real NIC would not. In bounded rings, so that what is
// held back is covered.
TEST(ExecutorAllocationTest, NorDoesANic) {
  for (const VerifiedPlan& plan : Plans()) {
    for (const uint32_t ring_wqes_max : {4u, 32768u}) {
      const test::Transfer transfer(plan.header());
      emulated::Fabric fabric(plan.header().nodes, {});
      auto group = local::DrivenGroup::Make(
          fabric, plan,
          local::MulticastMemory(plan.header(), transfer.message(), transfer.buffers()),
          {.ring_wqes_max = ring_wqes_max});
      ASSERT_TRUE(group.ok()) << group.status().ToString();
      ASSERT_TRUE(fabric.Start(emulated::Fabric::Until::kStopped).ok());
      const size_t before = allocations;
      for (uint32_t node = 0; node < group->size(); ++node) group->executor(NodeId(node)).Start();
      for (uint32_t node = 0; node < group->size();) {
        for (uint32_t i = node; i < group->size(); ++i) {
          ASSERT_TRUE(group->executor(NodeId(i)).Poll(std::chrono::milliseconds(0)).ok());
        }
        if (group->executor(NodeId(node)).done()) ++node;
      }
      EXPECT_EQ(allocations - before, 0u);
      fabric.Stop();
      transfer.ExpectDelivered();
    }
  }
}

}  // namespace
}  // namespace prepost::executor_allocation_test
