// SPDX-License-Identifier: Apache-2.0
//
// Collectives other than multicasts in virtual time: closed forms of their schedules, what hosts
// take for combining and copying, and bounds that no schedule is below.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/spec.h"
#include "ir/analysis/collective_bounds.h"
#include "sim/cluster/profile.h"
#include "sim/plan_timer.h"
#include "sim/runs/cpu_driven.h"
#include "sim/simulation.h"
#include "tests/support/host_run_fixture.h"
#include "tests/support/networks.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"

namespace prepost::sim::collectives_test {
namespace {

constexpr Picoseconds kNs = kPicosecondsPerNanosecond;
constexpr Combine kSum = {.op = CombineOp::kSum, .type = ElementType::kInt32};

class CollectivesTest : public HostRunTest {
 protected:
  /// Parts of one block, which takes kBlockTime; of an allreduce as many blocks as nodes.
  static VerifiedPlan PlanOf(CollectiveKind kind, const std::string& algorithm, uint32_t nodes,
                             const Combine& combine = {}) {
    const bool is_whole = kind == CollectiveKind::kAllreduce;
    return test::CompileOrDie({.collective = kind,
                               .combine = combine,
                               .nodes = nodes,
                               .message_bytes = is_whole ? nodes * kBlockBytes : kBlockBytes,
                               .block_bytes = kBlockBytes,
                               .algorithm = algorithm});
  }
  /// Until the last member has what it wants.
  static Picoseconds CompletionOf(const VerifiedPlan& plan, const CpuDrivenOptions& options = {}) {
    Picoseconds last = 0;
    const CpuDrivenResult run = RunPlan(plan, options);
    if (run.groups.empty()) return -1;
    for (const CpuDrivenResult::Node& node : run.groups[0].nodes) {
      EXPECT_LE(node.received, node.completion);
      last = std::max(last, node.received);
    }
    return last;
  }
};

// Hosts that take no time: a ring's every step carries a block through every port, and what ports
// must carry is the bound.
TEST_F(CollectivesTest, RingsAreAtTheBound) {
  for (uint32_t nodes = 2; nodes <= 12; ++nodes) {
    for (const auto& [kind, steps] : {std::pair(CollectiveKind::kAllreduce, 2 * (nodes - 1)),
                                      std::pair(CollectiveKind::kReduceScatter, nodes - 1),
                                      std::pair(CollectiveKind::kAllgather, nodes - 1)}) {
      const bool combines = kind != CollectiveKind::kAllgather;
      const VerifiedPlan plan = PlanOf(kind, "ring", nodes, combines ? kSum : Combine());
      SCOPED_TRACE(fmt::format("{} of {}", Name(kind), nodes));
      EXPECT_EQ(CompletionOf(plan), steps * kBlockTime);
      EXPECT_NEAR(BoundNetwork(MakeNetwork(nodes), plan.header()).seconds,
                  ToSeconds(steps * kBlockTime), 1e-12);
    }
  }
}

// Each of the ring's first n - 1 steps ends with a sum, none of the others; what comes next waits
// for it. Doubling adds all blocks in each step.
TEST_F(CollectivesTest, HostsTakeTimeToCombine) {
  const HostCosts host = {.combine = 70 * kNs, .combine_rate = 4e9};  // 250 ns a block
  const Picoseconds sum = 320 * kNs;
  for (const uint32_t nodes : {2u, 3u, 8u}) {
    const uint32_t steps = nodes - 1;
    EXPECT_EQ(CompletionOf(PlanOf(CollectiveKind::kAllreduce, "ring", nodes, kSum), {.host = host}),
              steps * (2 * kBlockTime + sum));
    EXPECT_EQ(
        CompletionOf(PlanOf(CollectiveKind::kReduceScatter, "ring", nodes, kSum), {.host = host}),
        steps * (kBlockTime + sum));
  }
  // In three steps eight blocks each way; those of a step are added as they come, the last at its
  // end, but for the next step's first, which goes when it is there.
  const VerifiedPlan doubling = PlanOf(CollectiveKind::kAllreduce, "doubling", 8, kSum);
  const Picoseconds ideal = 3 * 8 * kBlockTime;
  EXPECT_EQ(CompletionOf(doubling), ideal);
  EXPECT_GE(CompletionOf(doubling, {.host = host}), ideal + sum);
  EXPECT_LE(CompletionOf(doubling, {.host = host}), ideal + 3 * 8 * sum);
}

// What a member keeps of its own is copied before anything else; nothing is combined.
TEST_F(CollectivesTest, HostsTakeTimeToCopyTheirOwnPart) {
  const VerifiedPlan plan = PlanOf(CollectiveKind::kAllgather, "ring", 4);
  EXPECT_EQ(CompletionOf(plan, {.host = {.copy_rate = 2e9}}), 3 * kBlockTime + 500 * kNs);
}

// A binomial scatter of 4: member 2 is sent its part and that of 3, which lie apart there, so that
// the host puts both into their places, one after the other, and has its own by then.
TEST_F(CollectivesTest, AMemberIsDoneWhenItsOutputIs) {
  const VerifiedPlan plan = PlanOf(CollectiveKind::kScatter, "binomial", 4);
  const CpuDrivenResult run = RunPlan(plan, {.host = {.copy_rate = 1e8}});
  const Picoseconds copy = 10 * kBlockTime;
  std::vector<Picoseconds> received;
  for (const CpuDrivenResult::Node& node : run.groups[0].nodes) received.push_back(node.received);
  EXPECT_EQ(received[0], copy);  // its own part
  EXPECT_EQ(received[1], copy + 3 * kBlockTime);
  EXPECT_EQ(received[2], copy + 2 * kBlockTime + copy);
  EXPECT_EQ(received[3], copy + 2 * kBlockTime + 2 * copy + kBlockTime);
  const VerifiedPlan alone = PlanOf(CollectiveKind::kAllreduce, "ring", 1, kSum);
  EXPECT_EQ(CompletionOf(alone, {.host = {.copy_rate = 1e9}}), 1000 * kNs);
}

// A barrier of 5 takes three steps, in each a latency; its bound is one.
TEST_F(CollectivesTest, ABarrierTakesLatencies) {
  const VerifiedPlan plan = test::CompileOrDie(
      WithDefaults({.collective = CollectiveKind::kBarrier, .nodes = 5, .algorithm = "auto"}));
  Network network = MakeNetwork(5);
  network.rack_latency = 1e-6;
  const Group group{.plan = &plan};
  const auto run = RunCpuDriven({&group, 1}, network);
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  Picoseconds last = 0;
  for (const CpuDrivenResult::Node& node : run->groups[0].nodes)
    last = std::max(last, node.received);
  EXPECT_EQ(last, 3000 * kNs);
  EXPECT_DOUBLE_EQ(BoundNetwork(network, plan.header()).seconds, 1e-6);
}

// Catches a plan that stands still in virtual time, and a bound that a schedule is below; over
// racks whose links are the bottleneck, and ports with a limit both ways.
TEST_F(CollectivesTest, NoPlanIsBelowItsBound) {
  test::Random random(test::TestSeed());
  const std::vector<Spec> specs =
      test::WithUnevenParts(test::SpecsOfCollectives({.nodes_max = 9, .blocks_max = 2}), random);
  std::vector<std::string> labels;
  for (const Spec& spec : specs)
    labels.push_back(std::string(Name(spec.collective)) + "=" + spec.algorithm);
  test::Sample sample(labels);
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(spec));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const uint32_t nodes = plan.header().nodes;
    Network network = MakeNetwork(nodes);
    network.rack_latency = 1e-7;
    if (nodes % 2 == 0) network.nodes[nodes / 2].duplex_rate = 1.2e9;
    if (nodes > 2) {
      network.racks = {{"a", 0.7e9, 0.6e9}, {"b", 0.5e9, 0.8e9}};
      network.core_latency = 2e-7;
      for (uint32_t i = 0; i < nodes; i += 2) network.nodes[i].rack = 1;
    }
    const Group group{.plan = &plan};
    const auto run = RunCpuDriven({&group, 1}, network, {.host = {.combine_rate = 8e9}});
    ASSERT_TRUE(run.ok()) << run.status().ToString();
    Picoseconds last = 0;
    for (uint32_t i = 0; i < nodes; ++i) {
      if (plan.header().roles().IsTarget(NodeId(i)))
        last = std::max(last, run->groups[0].nodes[i].received);
    }
    // A picosecond for each message, as times are whole ones.
    EXPECT_GE(ToSeconds(last) + 1e-12 * static_cast<double>(plan.ops().size()),
              BoundNetwork(network, plan.header()).seconds);
    if (HasFailure()) return;
  }
}

// A multicast and an allreduce share the ports of the same hosts.
TEST_F(CollectivesTest, GroupsOfDifferentKindsShareTheNetwork) {
  const VerifiedPlan multicast = PlanFor("chain", 4, 20);
  const VerifiedPlan allreduce = PlanOf(CollectiveKind::kAllreduce, "ring", 4, kSum);
  const std::vector<Group> groups = {{.plan = &allreduce}, {.plan = &multicast}};
  const auto run = RunCpuDriven(groups, MakeNetwork(4));
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  EXPECT_GT(run->groups[0].completion, 6 * kBlockTime);
  EXPECT_GT(run->groups[1].completion, 22 * kBlockTime);
}

// `auto` goes by the profile: rates of combining and of ports decide.
TEST_F(CollectivesTest, AutoGoesByTheProfile) {
  Profile profile = {.network = Network::Uniform(1), .nic = {}, .host = {}};
  profile.SetHostRate(1e9);
  profile.host.completion = 500 * kNs;
  profile.network.rack_latency = 1e-6;
  const Spec spec = {.collective = CollectiveKind::kAllreduce,
                     .combine = kSum,
                     .nodes = 8,
                     .message_bytes = 1 << 20,
                     .choose_block_bytes = true,
                     .algorithm = "auto"};
  EXPECT_EQ(WithDefaults(spec, CollectiveParametersOf(profile)).algorithm, "ring");
  profile.network.rack_latency = 1e-2;
  EXPECT_EQ(WithDefaults(spec, CollectiveParametersOf(profile)).algorithm, "doubling");
  profile.host.combine_rate = 1e6;  // doubling adds everything three times
  EXPECT_EQ(WithDefaults(spec, CollectiveParametersOf(profile)).algorithm, "halving");
}

}  // namespace
}  // namespace prepost::sim::collectives_test
