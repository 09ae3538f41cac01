// SPDX-License-Identifier: Apache-2.0
//
// The CPU executor over real TCP connections, one thread per node: every plan delivers the same
// bytes everywhere, and what happened contains the plan's order.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "prepost/compiler/schedule.h"
#include "prepost/runtime/executor.h"
#include "prepost/runtime/tcp_endpoint.h"
#include "prepost/runtime/tcp_mesh.h"
#include "tests/support/node_memory.h"
#include "tests/support/op_trace.h"
#include "tests/support/plans.h"

namespace prepost {
namespace {

using test::CompileOrDie;
using test::OpTrace;
using test::Transfer;

struct Node {
  std::unique_ptr<TcpEndpoint> endpoint;
  std::unique_ptr<CpuExecutor> executor;
  Status status;
};

std::vector<Node> MakeNodes(const Plan& plan, const Transfer& transfer, OpTrace& trace) {
  Result<TcpMesh> mesh = MakeTcpMesh(plan);
  EXPECT_TRUE(mesh.ok()) << mesh.status().ToString();
  std::vector<Node> nodes(plan.header().nodes);
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    auto endpoint = TcpEndpoint::Make(plan, NodeId(i), std::move((*mesh)[i]), /*wake_fd=*/-1);
    EXPECT_TRUE(endpoint.ok()) << endpoint.status().ToString();
    nodes[i].endpoint = std::move(*endpoint);
    nodes[i].executor =
        std::make_unique<CpuExecutor>(plan, NodeId(i), *nodes[i].endpoint, trace.Observer());
    nodes[i].executor->Prepare(test::MemoryOf(transfer, NodeId(i), plan.header().root));
    nodes[i].executor->Arm();
  }
  return nodes;
}

void Deliver(const Plan& plan) {
  Transfer transfer(plan.header());
  OpTrace trace(plan);
  std::vector<Node> nodes = MakeNodes(plan, transfer, trace);
  std::vector<std::thread> threads;
  for (Node& node : nodes) {
    threads.emplace_back([&node] {
      node.executor->Start();
      while (node.status.ok() && !node.executor->done()) {
        node.status = node.executor->Poll(std::chrono::milliseconds(-1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Node& node : nodes) ASSERT_TRUE(node.status.ok()) << node.status.ToString();
  transfer.ExpectDelivered();
  trace.ExpectPlanOrder();
}

TEST(CpuOverTcpTest, EverySmallPlanDeliversTheSameBytesInPlanOrder) {
  for (const Spec& spec : test::SpecsForExecutors({.nodes_max = 5, .blocks_max = 4})) {
    SCOPED_TRACE(test::Label(spec));
    Deliver(CompileOrDie(spec));
    if (::testing::Test::HasFailure()) return;
  }
}

// Blocks far larger than what a socket holds: catches lost places in blocks that move in pieces.
TEST(CpuOverTcpTest, LargeBlocksMoveInPieces) {
  for (const std::string& algorithm : ScheduleNames()) {
    SCOPED_TRACE(algorithm);
    Deliver(CompileOrDie({.nodes = 8,
                          .root = NodeId(3),
                          .message_bytes = (20u << 20) + 12345,
                          .block_bytes = 3u << 20,
                          .algorithm = algorithm}));
  }
}

}  // namespace
}  // namespace prepost
