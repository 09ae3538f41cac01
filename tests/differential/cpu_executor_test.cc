// SPDX-License-Identifier: Apache-2.0
//
// The CPU executor over each local transport, one thread per node: every plan leaves the oracle's
// bytes at every node, and what happened contains the plan's order.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "prepost/compiler/schedule.h"
#include "prepost/runtime/executor.h"
#include "tests/support/local_nodes.h"
#include "tests/support/op_trace.h"
#include "tests/support/oracle.h"
#include "tests/support/plans.h"

namespace prepost {
namespace {

using test::CompileOrDie;
using test::LocalNodes;
using test::OpTrace;

struct Node {
  std::unique_ptr<CpuExecutor> executor;
  Status status;
};

std::vector<Node> MakeNodes(const Plan& plan, LocalNodes& local, OpTrace& trace) {
  std::vector<Node> nodes(plan.header().nodes);
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    nodes[i].executor =
        std::make_unique<CpuExecutor>(plan, NodeId(i), local.endpoint(NodeId(i)), trace.Observer());
    nodes[i].executor->Prepare(local.memory(NodeId(i)));
    nodes[i].executor->Arm();
  }
  return nodes;
}

void ExpectDelivers(const Plan& plan, const LocalNodes::Options& options) {
  test::Random random(test::TestSeed());
  LocalNodes local(plan, options);
  OpTrace trace(plan);
  std::vector<Node> nodes = MakeNodes(plan, local, trace);
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
  const auto expected = test::Deliver(plan, local.message(), random);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  local.ExpectHolds(*expected);
  local.ExpectDelivered();
  trace.ExpectPlanOrder();
}

class CpuExecutorTest : public testing::TestWithParam<std::tuple<std::string, TransportKind>> {
 protected:
  const std::string& algorithm() const { return std::get<0>(GetParam()); }
  TransportKind transport() const { return std::get<1>(GetParam()); }
  Plan LargePlan() const {
    return CompileOrDie({.nodes = 8,
                         .root = NodeId(3),
                         .message_bytes = (20u << 20) + 12345,
                         .block_bytes = 3u << 20,
                         .algorithm = algorithm()});
  }
};

TEST_P(CpuExecutorTest, EverySmallPlanDeliversTheOraclesBytesInPlanOrder) {
  for (const Spec& spec : test::SpecsForExecutors({.nodes_max = 9, .blocks_max = 6})) {
    if (spec.algorithm != algorithm()) continue;
    SCOPED_TRACE(test::Label(spec));
    ExpectDelivers(CompileOrDie(spec), {.transport = transport()});
    if (HasFailure()) return;
  }
}

// Blocks far larger than what a socket holds or one visit copies: catches lost places in blocks
// that move in pieces.
TEST_P(CpuExecutorTest, LargeBlocksMoveInPieces) {
  ExpectDelivers(LargePlan(), {.transport = transport()});
}

TEST_P(CpuExecutorTest, AlsoFromFileToFile) {
  ExpectDelivers(LargePlan(), {.transport = transport(), .in_files = true});
}

INSTANTIATE_TEST_SUITE_P(All, CpuExecutorTest,
                         testing::Combine(testing::ValuesIn(test::SchedulesToRun()),
                                          test::AllTransports()),
                         [](const auto& param) {
                           return std::get<0>(param.param) + "_over_" +
                                  std::string(Name(std::get<1>(param.param)));
                         });

}  // namespace
}  // namespace prepost
