// SPDX-License-Identifier: Apache-2.0
//
// The CPU executor over real TCP connections, one thread per node: every plan leaves the oracle's
// bytes at every node, and what happened contains the plan's order.
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
#include "tests/support/oracle.h"
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

void ExpectDelivers(const Plan& plan) {
  test::Random random(test::TestSeed());
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
  const auto expected = test::Deliver(plan, transfer.message(), random);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  transfer.ExpectHolds(*expected);
  transfer.ExpectDelivered();
  trace.ExpectPlanOrder();
}

class CpuOverTcpTest : public testing::TestWithParam<std::string> {};

TEST_P(CpuOverTcpTest, EverySmallPlanDeliversTheOraclesBytesInPlanOrder) {
  for (const Spec& spec : test::SpecsForExecutors({.nodes_max = 9, .blocks_max = 6})) {
    if (spec.algorithm != GetParam()) continue;
    SCOPED_TRACE(test::Label(spec));
    ExpectDelivers(CompileOrDie(spec));
    if (HasFailure()) return;
  }
}

// Blocks far larger than what a socket holds: catches lost places in blocks that move in pieces.
TEST_P(CpuOverTcpTest, LargeBlocksMoveInPieces) {
  ExpectDelivers(CompileOrDie({.nodes = 8,
                               .root = NodeId(3),
                               .message_bytes = (20u << 20) + 12345,
                               .block_bytes = 3u << 20,
                               .algorithm = GetParam()}));
}

INSTANTIATE_TEST_SUITE_P(All, CpuOverTcpTest, testing::ValuesIn(ScheduleNames()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace prepost
