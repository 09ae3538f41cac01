// SPDX-License-Identifier: Apache-2.0
//
// Collectives other than multicasts over TCP, one thread per node: outputs are what the inputs say,
// and of floats the same bytes at all nodes and in every run.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/executor.h"
#include "runtime/transport/tcp_endpoint.h"
#include "runtime/transport/tcp_mesh.h"
#include "tests/support/collective_transfer.h"
#include "tests/support/hosts.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"

namespace prepost::collective_over_tcp_test {
namespace {

void Play(const VerifiedPlan& plan, test::CollectiveTransfer& transfer, uint16_t streams) {
  TcpMesh mesh = MakeTcpMesh(plan, streams).value();
  test::Hosts hosts;
  const uint32_t nodes = plan.header().nodes;
  std::vector<std::unique_ptr<TcpEndpoint>> endpoints;
  std::vector<std::unique_ptr<CpuExecutor>> executors;
  for (uint32_t node = 0; node < nodes; ++node) {
    endpoints.push_back(
        TcpEndpoint::Make(plan, NodeId(node), std::move(mesh[node]), hosts.wake_fd()).value());
    executors.push_back(std::make_unique<CpuExecutor>(plan, NodeId(node), *endpoints.back()));
    executors.back()->Prepare(transfer.memory(NodeId(node)));
    executors.back()->Arm();
  }
  hosts.Play(nodes, [&](NodeId node) -> CpuExecutor& { return *executors[node.index()]; });
}

// Catches what a network in memory does not have: partial writes, ranges in several pieces, an empty
// message that is never noted, operations on elements of another size or sign.
TEST(CollectiveOverTcpTest, EveryOutputIsWhatTheInputsSay) {
  test::Random random(test::TestSeed());
  const std::vector<Spec> specs =
      test::SpecsOfExactCollectives({.nodes_max = 6, .blocks_max = 2}, random);
  test::Sample sample(test::CollectiveLabels(specs));
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(spec));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    test::CollectiveTransfer transfer(plan.header(), random);
    Play(plan, transfer, /*streams=*/1);
    transfer.ExpectDelivered();
    if (HasFailure()) return;
  }
}

TEST(CollectiveOverTcpTest, LargeBlocksAndSeveralStreams) {
  test::Random random(test::TestSeed());
  for (const char* algorithm : {"ring", "halving", "doubling", "chain"}) {
    for (const uint16_t streams : {uint16_t{1}, uint16_t{3}}) {
      SCOPED_TRACE(std::string(algorithm) + " over " + std::to_string(streams));
      const VerifiedPlan plan =
          test::CompileOrDie({.collective = CollectiveKind::kAllreduce,
                              .combine = {.op = CombineOp::kXor, .type = ElementType::kUint32},
                              .nodes = 4,
                              .message_bytes = (3u << 20) + 100,
                              .block_bytes = 1u << 18,
                              .algorithm = algorithm});
      test::CollectiveTransfer transfer(plan.header(), random);
      Play(plan, transfer, streams);
      transfer.ExpectDelivered();
      if (HasFailure()) return;
    }
  }
}

// Sums of floats depend on the order: catches one that depends on who is first.
TEST(CollectiveOverTcpTest, FloatsAreTheSameEverywhereAndInEveryRun) {
  const uint64_t seed = test::TestSeed();
  for (const std::string& algorithm :
       test::SchedulesOf(CollectiveKind::kAllreduce, /*members=*/8)) {
    SCOPED_TRACE(algorithm + " PREPOST_TEST_SEED=" + std::to_string(seed));
    const VerifiedPlan plan =
        test::CompileOrDie({.collective = CollectiveKind::kAllreduce,
                            .combine = {.op = CombineOp::kSum, .type = ElementType::kBfloat16},
                            .nodes = 8,
                            .message_bytes = 1000,
                            .block_bytes = 64,
                            .algorithm = algorithm});
    std::vector<std::byte> first;
    for (int run = 0; run < 3; ++run) {
      test::Random random(seed);  // the same inputs
      test::CollectiveTransfer transfer(plan.header(), random);
      Play(plan, transfer, /*streams=*/1);
      if (run == 0) first = transfer.output(NodeId(0));
      for (uint32_t node = 0; node < 8; ++node)
        ASSERT_TRUE(transfer.output(NodeId(node)) == first) << "node " << node << ", run " << run;
    }
  }
}

}  // namespace
}  // namespace prepost::collective_over_tcp_test
