// SPDX-License-Identifier: Apache-2.0
//
// The offload executor against what a multicast is: every node ends with the root's bytes, whatever
// order the emulated NICs choose, and the order in which ops really happened contains the plan's. A
// WAIT that lowering forgets, an index that is off by one, or a rule of the NIC that is too lax
// shows here.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "prepost/backends/emulated/offload_run.h"
#include "prepost/compiler/compile.h"
#include "tests/support/transfer.h"

namespace prepost {
namespace {

using emulated::OffloadOptions;
using emulated::OffloadTrace;
using emulated::RunOffload;
using emulated::SchedulerMode;
using test::Transfer;

constexpr uint64_t kBlockBytes = 10000;  // more than two MTUs, so that chunks interleave

Plan MakePlan(const Spec& spec) {
  Result<Plan> plan = Compile(spec);
  if (!plan.ok()) ADD_FAILURE() << plan.status().ToString();
  return *std::move(plan);
}

/// Everything that must be before an op's start really was.
void ExpectOrderContained(const Plan& plan, const OffloadTrace& trace) {
  std::map<std::tuple<NodeId, OpId, OpEvent::Kind>, size_t> when;
  for (size_t i = 0; i < trace.ops.size(); ++i) {
    const OpEvent& event = trace.ops[i];
    EXPECT_TRUE(when.emplace(std::tuple(event.node, event.op, event.kind), i).second)
        << "node " << event.node.value << " op " << event.op.value << " twice";
  }
  for (const Program& program : plan.programs()) {
    for (size_t i = 0; i < program.op_count; ++i) {
      const Op& op = plan.ops(program)[i];
      const OpId id = OpId::FromIndex(i);
      EXPECT_TRUE(when.contains({program.node, id, OpEvent::Kind::kComplete}))
          << Describe(plan, program, id) << " did not complete";
      for (OpId before : plan.after(op)) {
        const size_t completed = when.at({program.node, before, OpEvent::Kind::kComplete});
        EXPECT_LT(completed, when.at({program.node, id, OpEvent::Kind::kStart}))
            << Describe(plan, program, id) << " before " << Describe(plan, program, before);
      }
    }
  }
}

void ExpectHostIdle(const RunReport& report) {
  for (const NodeReport& node : report.nodes) {
    EXPECT_EQ(node.host_posts_during, 0u) << "node " << node.node.value;
    EXPECT_EQ(node.host_wakeups, 1u) << "node " << node.node.value;
    EXPECT_EQ(node.host_completions, 1u) << "node " << node.node.value;
    EXPECT_GE(node.host_posts, 1u) << "node " << node.node.value;
  }
}

void ExpectDelivers(const Plan& plan, OffloadOptions options) {
  SCOPED_TRACE(testing::Message() << plan.header().algorithm << " n " << plan.header().nodes
                                  << " root " << plan.header().root.value << " blocks "
                                  << plan.header().message.blocks << " ready "
                                  << ToString(plan.header().ready) << " " << Name(options.scheduler)
                                  << " seed " << options.seed);
  OffloadTrace trace;
  options.trace = &trace;
  Transfer transfer(plan.header());
  const Result<RunReport> report =
      RunOffload(plan, transfer.message(), transfer.buffers(), options);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  transfer.ExpectDelivered();
  ExpectOrderContained(plan, trace);
  ExpectHostIdle(*report);
}

Spec MakeSpec(const std::string& algorithm, uint32_t nodes, uint64_t bytes,
              const std::string& ready) {
  Spec spec;
  spec.nodes = nodes;
  spec.root = NodeId(nodes / 2);
  spec.message_bytes = bytes;
  spec.block_bytes = kBlockBytes;
  spec.algorithm = algorithm;
  spec.ready = *ParseReady(ready);
  return spec;
}

class OffloadDifferential : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(OffloadDifferential, EverySmallPlanDelivers) {
  const auto [algorithm, ready] = GetParam();
  for (uint32_t nodes = 1; nodes <= 9; ++nodes) {
    for (uint64_t blocks = 1; blocks <= 6; ++blocks) {
      const uint64_t bytes = blocks * kBlockBytes - 1234;  // the last block is short
      const Plan plan = MakePlan(MakeSpec(algorithm, nodes, bytes, ready));
      ExpectDelivers(plan, {});
      for (uint64_t seed = 1; seed <= 2; ++seed) {
        ExpectDelivers(plan,
                       {.scheduler = SchedulerMode::kRandom, .seed = seed + nodes * 100 + blocks});
        ExpectDelivers(
            plan, {.scheduler = SchedulerMode::kAdversarial, .seed = seed + nodes * 100 + blocks});
      }
      if (HasFailure()) return;
    }
  }
}

TEST_P(OffloadDifferential, EmptyMessage) {
  const auto [algorithm, ready] = GetParam();
  for (uint32_t nodes : {1u, 2u, 5u, 8u}) {
    ExpectDelivers(MakePlan(MakeSpec(algorithm, nodes, 0, ready)), {});
  }
}

INSTANTIATE_TEST_SUITE_P(All, OffloadDifferential,
                         testing::Combine(testing::Values("sequential", "chain", "binomial_tree",
                                                          "binomial_pipeline"),
                                          testing::Values("auto", "barrier", "channel", "window=1",
                                                          "window=2", "retry")),
                         [](const auto& param) {
                           std::string name = std::string(std::get<0>(param.param)) + "_" +
                                              std::get<1>(param.param);
                           std::ranges::replace(name, '=', '_');
                           return name;
                         });

TEST(OffloadTest, AnyRoot) {
  for (uint32_t root = 0; root < 6; ++root) {
    Spec spec = MakeSpec("binomial_pipeline", 6, 5 * kBlockBytes, "auto");
    spec.root = NodeId(root);
    ExpectDelivers(MakePlan(spec), {.scheduler = SchedulerMode::kAdversarial, .seed = root + 1});
  }
}

TEST(OffloadTest, ManyOrdersOfOnePlan) {
  const Plan plan = MakePlan(MakeSpec("binomial_pipeline", 8, 9 * kBlockBytes, "window=1"));
  for (uint64_t seed = 1; seed <= 100 && !testing::Test::HasFailure(); ++seed) {
    ExpectDelivers(plan, {.scheduler = SchedulerMode::kAdversarial, .seed = seed, .epoch = 7});
  }
}

TEST(OffloadTest, TheSameSeedGivesTheSameRun) {
  const Plan plan = MakePlan(MakeSpec("binomial_pipeline", 5, 4 * kBlockBytes, "auto"));
  std::vector<std::tuple<NodeId, OpId, OpEvent::Kind>> first;
  for (int run = 0; run < 2; ++run) {
    OffloadTrace trace;
    Transfer transfer(plan.header());
    const auto report =
        RunOffload(plan, transfer.message(), transfer.buffers(),
                   {.scheduler = SchedulerMode::kAdversarial, .seed = 42, .trace = &trace});
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    std::vector<std::tuple<NodeId, OpId, OpEvent::Kind>> order;
    for (const OpEvent& event : trace.ops) order.emplace_back(event.node, event.op, event.kind);
    if (run == 0) first = order;
    EXPECT_EQ(order, first);
  }
}

TEST(OffloadTest, HostPostsAreOneDoorbellPerSendQueue) {
  const Plan plan = MakePlan(MakeSpec("chain", 3, 4 * kBlockBytes, "barrier"));
  Transfer transfer(plan.header());
  const auto report = RunOffload(plan, transfer.message(), transfer.buffers());
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  // Two nodes send to one peer; every node has the loopback queue.
  std::vector<uint64_t> posts;
  for (const NodeReport& node : report->nodes) posts.push_back(node.host_posts);
  std::ranges::sort(posts);
  EXPECT_EQ(posts, (std::vector<uint64_t>{1, 2, 2}));
}

}  // namespace
}  // namespace prepost
