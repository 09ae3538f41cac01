// SPDX-License-Identifier: Apache-2.0
//
// The offload executor against what a multicast is: every node ends with the root's bytes, whatever
// order the emulated NICs choose, and the order in which ops really happened contains the plan's. A
// WAIT that lowering forgets, an index that is off by one, or a rule of the NIC that is too lax
// shows here.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "prepost/backends/emulated/offload_run.h"
#include "prepost/backends/mlx5/stand_in.h"
#include "prepost/backends/nic/lower.h"
#include "prepost/compiler/schedule.h"
#include "tests/support/op_trace.h"
#include "tests/support/oracle.h"
#include "tests/support/plans.h"
#include "tests/support/transfer.h"

namespace prepost {
namespace {

using emulated::OffloadOptions;
using emulated::RunOffload;
using emulated::RunQueueProgram;
using emulated::SchedulerMode;
using test::CompileOrDie;
using test::Transfer;

constexpr uint64_t kBlockBytes = 10000;  // more than two MTUs, so that chunks interleave

void ExpectHostIdle(const RunReport& report) {
  for (const NodeReport& node : report.nodes) {
    EXPECT_EQ(node.host_posts_during, 0u) << "node " << node.node.value;
    EXPECT_EQ(node.host_wakeups, 1u) << "node " << node.node.value;
    EXPECT_EQ(node.host_completions, 1u) << "node " << node.node.value;
    EXPECT_GE(node.host_posts, 1u) << "node " << node.node.value;
  }
}

void ExpectDelivers(const Plan& plan, OffloadOptions options) {
  SCOPED_TRACE(testing::Message() << Name(options.scheduler) << " seed " << options.seed);
  test::OpTrace order(plan);
  options.observer = order.Observer();
  Transfer transfer(plan.header());
  const Result<RunReport> report =
      RunOffload(plan, transfer.message(), transfer.buffers(), options);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  test::Random random(options.seed);
  const auto expected = test::Deliver(plan, transfer.message(), random);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  transfer.ExpectHolds(*expected);
  transfer.ExpectDelivered();
  order.ExpectPlanOrder();
  ExpectHostIdle(*report);
}

Spec MakeSpec(const std::string& algorithm, uint32_t nodes, uint64_t bytes,
              const std::string& ready) {
  return {.nodes = nodes,
          .root = NodeId(nodes / 2),
          .message_bytes = bytes,
          .block_bytes = kBlockBytes,
          .algorithm = algorithm,
          .ready = *ParseReady(ready)};
}

class OffloadDifferential : public testing::TestWithParam<std::string> {
 protected:
  /// Each plan of this schedule in order, and in one other order with a seed of its own.
  void ExpectAllDeliver(const std::vector<Spec>& specs) {
    uint64_t seed = test::TestSeed();
    for (const Spec& spec : specs) {
      if (spec.algorithm != GetParam()) continue;
      SCOPED_TRACE(test::Label(spec));
      const Plan plan = CompileOrDie(spec);
      ExpectDelivers(plan, {});
      const bool is_even = ++seed % 2 == 0;
      ExpectDelivers(plan,
                     {.scheduler = is_even ? SchedulerMode::kRandom : SchedulerMode::kAdversarial,
                      .seed = seed});
      if (HasFailure()) return;
    }
  }
};

TEST_P(OffloadDifferential, EverySmallPlanDelivers) { ExpectAllDeliver(test::AllSmallSpecs()); }

// The same with ready and send window chosen by the compiler, other roots, and without bytes.
TEST_P(OffloadDifferential, EveryPlanForExecutorsDelivers) {
  ExpectAllDeliver(test::SpecsForExecutors({}));
}

// The same queues made by firmware commands, on InfiniBand and on Ethernet: a field that the device
// writes elsewhere than the stand-in reads, a ring that is not where the NIC looks, shows here.
TEST_P(OffloadDifferential, EverySmallPlanDeliversOverMlx5) {
  uint64_t seed = test::TestSeed();
  for (const Spec& spec : test::AllSmallSpecs()) {
    if (spec.algorithm != GetParam()) continue;
    SCOPED_TRACE(test::Label(spec));
    const bool is_even = ++seed % 2 == 0;
    ExpectDelivers(CompileOrDie(spec),
                   {.make_device =
                        [is_even](nic::NicModel& nic) {
                          return mlx5::OpenOnStandIn(nic, {.is_ethernet = is_even});
                        },
                    .scheduler = is_even ? SchedulerMode::kRoundRobin : SchedulerMode::kAdversarial,
                    .seed = seed});
    if (HasFailure()) return;
  }
}

TEST_P(OffloadDifferential, MessagesOfManyPacketsDeliver) {
  for (const char* ready : {"auto", "barrier", "channel", "window=1", "retry"}) {
    for (const uint32_t nodes : {5u, 8u}) {
      const Plan plan = CompileOrDie(MakeSpec(GetParam(), nodes, 4 * kBlockBytes - 1234, ready));
      for (const auto mode : {SchedulerMode::kRandom, SchedulerMode::kAdversarial}) {
        ExpectDelivers(plan, {.scheduler = mode, .seed = test::TestSeed()});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OffloadDifferential, testing::ValuesIn(ScheduleNames()),
                         [](const auto& param) { return param.param; });

TEST(OffloadTest, ManyOrdersOfOnePlan) {
  const Plan plan = CompileOrDie(MakeSpec("binomial_pipeline", 8, 9 * kBlockBytes, "window=1"));
  for (uint64_t seed = 1; seed <= 100 && !testing::Test::HasFailure(); ++seed) {
    ExpectDelivers(plan, {.scheduler = SchedulerMode::kAdversarial, .seed = seed, .epoch = 7});
  }
}

TEST(OffloadTest, TheSameSeedGivesTheSameRun) {
  const Plan plan = CompileOrDie(MakeSpec("binomial_pipeline", 5, 4 * kBlockBytes, "auto"));
  using Order = std::vector<std::tuple<NodeId, OpId, OpEvent::Kind>>;
  Order first;
  for (int run = 0; run < 2; ++run) {
    Order order;
    Transfer transfer(plan.header());
    const auto report = RunOffload(plan, transfer.message(), transfer.buffers(),
                                   {.scheduler = SchedulerMode::kAdversarial,
                                    .seed = 42,
                                    .observer = [&](const OpEvent& event) {
                                      order.emplace_back(event.node, event.op, event.kind);
                                    }});
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    if (run == 0) first = order;
    EXPECT_EQ(order, first);
  }
}

TEST(OffloadTest, HostPostsAreOneDoorbellPerSendQueue) {
  const Plan plan = CompileOrDie(MakeSpec("chain", 3, 4 * kBlockBytes, "barrier"));
  Transfer transfer(plan.header());
  const auto report = RunOffload(plan, transfer.message(), transfer.buffers());
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  // Two nodes send to one peer; every node has the loopback queue.
  std::vector<uint64_t> posts;
  for (const NodeReport& node : report->nodes) posts.push_back(node.host_posts);
  std::ranges::sort(posts);
  EXPECT_EQ(posts, (std::vector<uint64_t>{1, 2, 2}));
}

// A program whose end takes two CQEs instead of one costs its host more, and the report says so.
TEST(OffloadTest, HostFiguresAreCounted) {
  const Plan plan = CompileOrDie(MakeSpec("chain", 3, 2 * kBlockBytes, "barrier"));
  nic::QueueProgram program = *nic::Lower(plan);
  nic::NodeProgram& last = program.nodes[2];
  last.qps.back().sends.insert(last.qps.back().sends.begin(),
                               {.opcode = nic::Opcode::kNop, .signaled = true});
  last.cqs[last.final_cq.index()].completions = 2;
  Transfer transfer(plan.header());
  const auto report = RunQueueProgram(plan, program, transfer.message(), transfer.buffers());
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  transfer.ExpectDelivered();
  const NodeReport& node = report->nodes[2];
  EXPECT_EQ(node.host_completions, 2u);
  // Having found only the first, it asked for another event; it need not have slept for that one.
  EXPECT_LE(node.host_posts_during, 1u);
  EXPECT_LE(node.host_wakeups, 1 + node.host_posts_during);
  EXPECT_EQ(report->nodes[1].host_completions, 1u);
}

}  // namespace
}  // namespace prepost
