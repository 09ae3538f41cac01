// SPDX-License-Identifier: Apache-2.0
//
// Preposted queues that are longer than their rings, in virtual time: what hosts do to write them
// again, what they are charged for it, and what keeps them from it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sim/runs/preposted.h"
#include "tests/support/networks.h"
#include "tests/support/plans.h"
#include "tests/support/preposted_alone.h"
#include "tests/support/random.h"

namespace prepost::sim::rearm_test {
namespace {

using nic::LoweringMode;

constexpr std::array kModes = {LoweringMode::kInline, LoweringMode::kManaged};
constexpr uint64_t kBlockBytes = 1000;
constexpr Picoseconds kUs = 1000 * kPicosecondsPerNanosecond;

Network OneRack(uint32_t nodes) { return test::OneRack(nodes, 12.5e9, 1e-6); }

/// Rings that are re-armed some ten times.
nic::DeviceProfile TinyRings() { return {.name = "tiny", .sq_wqebbs = 16, .rq_wqes = 16}; }

VerifiedPlan PlanFor(const std::string& algorithm, uint32_t nodes, uint32_t blocks) {
  return test::PlanWithWindowsOf1(algorithm, nodes, blocks, kBlockBytes);
}

// Hosts that write rings again take their time for it, per WQE, and are the only ones to do so.
TEST(RearmTest, RearmingIsChargedToHosts) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  int slower = 0;
  for (int i = 0; i < 40; ++i) {
    const uint32_t nodes = random.Between(2, 8), blocks = random.Between(40, 80);
    const VerifiedPlan plan = PlanFor(random.Pick(std::array{"chain", "circulant"}), nodes, blocks);
    const LoweringMode mode = random.Pick(kModes);
    const Network network = OneRack(nodes);
    SCOPED_TRACE(fmt::format("seed {} case {}", seed, i));
    PrepostedOptions options{.lower = {.mode = mode, .profile = TinyRings()}};
    const auto free = RunPrepostedAlone(plan, network, options);
    options.host = {.post_send = random.Between(1, 2'000'000),
                    .post_receive = random.Between(1, 1'000'000)};
    const auto charged = RunPrepostedAlone(plan, network, options);
    ASSERT_TRUE(free.ok() && charged.ok()) << charged.status().ToString();
    EXPECT_GE(charged->completion, free->completion);
    slower += charged->completion > free->completion;
    for (size_t n = 0; n < plan.header().nodes; ++n) {
      const PrepostedAlone::Node& node = charged->nodes[n];
      EXPECT_EQ(free->nodes[n].rearming, 0);
      EXPECT_EQ(node.rearming > 0, node.rearms > 0);
      EXPECT_LE(node.rearming, static_cast<Picoseconds>(node.wqes_later) * 2'000'000);
      EXPECT_EQ(node.wakeups > 1, node.rearms > 0) << "each look is one";
    }
    // By the WQE: all that its NIC was given after the first rings.
    options.host = {.post_send = 1, .post_receive = 1};
    const auto counted = RunPrepostedAlone(plan, network, options);
    ASSERT_TRUE(counted.ok());
    const nic::QueueProgram program = *nic::Lower(plan, options.lower);
    for (const nic::NodeProgram& node : program.nodes) {
      uint64_t later = 0, all = 0;
      bool rings = false;
      for (const nic::QueuePair& qp : node.qps) {
        all += qp.sends.size() + qp.receives.size();
        rings = rings || (!qp.managed && qp.sends_in_parts());
        later += qp.sends.size() - std::min<size_t>(qp.sends.size(), qp.sq_wqebbs);
        later += qp.receives.size() - std::min<size_t>(qp.receives.size(), qp.rq_wqes);
      }
      const PrepostedAlone::Node& found = counted->nodes[node.node.index()];
      EXPECT_EQ(found.rearming, static_cast<Picoseconds>(later));
      EXPECT_EQ(found.wqes_later, later);
      EXPECT_EQ(found.wqes, all - later);
      EXPECT_LE(found.rings, node.doorbells());
      EXPECT_TRUE(rings ? found.rings_later > 0 : later != 0 || found.rings_later == 0);
    }
    // Rings that are long enough are not re-armed.
    options.lower.profile = {};
    options.host = {.post_send = kUs, .post_receive = kUs};
    const auto long_rings = RunPrepostedAlone(plan, network, options);
    ASSERT_TRUE(long_rings.ok());
    EXPECT_EQ(long_rings->nodes[0].rearming, 0);
    EXPECT_EQ(long_rings->nodes[0].wqes_later + long_rings->nodes[0].rings_later, 0u);
    EXPECT_EQ(long_rings->nodes[0].completions, 1u);
  }
  EXPECT_GT(slower, 20);
}

// Catches hosts that poll and are counted as waking up, and such that sleep and are not.
TEST(RearmTest, HostsWakeAsOftenAsTheySleep) {
  const VerifiedPlan plan = PlanFor("chain", 2, 60);
  const Network network = OneRack(2);
  const auto run = [&](Picoseconds polling, const nic::DeviceProfile& profile) {
    const bool sleeps = polling != kNever;
    const auto found = RunPrepostedAlone(plan, network,
                                         {.host = {.hybrid_polling = sleeps ? polling : 0},
                                          .wait = sleeps ? WaitMode::kHybrid : WaitMode::kPolling,
                                          .lower = {.profile = profile}});
    EXPECT_TRUE(found.ok()) << found.status().ToString();
    return found->nodes[1];
  };
  EXPECT_EQ(run(0, {}).wakeups, 1u);
  EXPECT_EQ(run(kNever, {}).wakeups, 0u);
  const PrepostedAlone::Node sleeps = run(0, TinyRings());
  EXPECT_GE(sleeps.wakeups, 5u);
  EXPECT_EQ(sleeps.wakeups, sleeps.polls);
  EXPECT_GE(sleeps.completions, sleeps.polls);
  EXPECT_TRUE(sleeps.ends_asleep);
  // A part of a ring lasts for some 10 us: whoever polls for longer sleeps at the end only, or
  // never.
  const Picoseconds end = run(0, {}).completion;
  EXPECT_EQ(run(end - 1, {}).wakeups, 1u);
  EXPECT_EQ(run(end, {}).wakeups, 0u);
  const PrepostedAlone::Node patient = run(end / 2, TinyRings());
  EXPECT_EQ(patient.wakeups, 0u);
  EXPECT_FALSE(patient.ends_asleep);
  EXPECT_EQ(patient.polls, sleeps.polls);
  EXPECT_EQ(patient.completion, sleeps.completion) << "only counts depend on it";
}

// Hosts that write rings again are kept from it by all that keeps CPU-driven ones from their work;
// where there is nothing to write they have no part in when it ends.
TEST(RearmTest, RearmingHostsAreHosts) {
  const VerifiedPlan plan = PlanFor("chain", 3, 60);
  const Network network = OneRack(3);
  for (const LoweringMode mode : kModes) {
    const auto run = [&](bool is_short, PrepostedOptions options) {
      options.lower.mode = mode;
      if (is_short) options.lower.profile = TinyRings();
      const auto found = RunPrepostedAlone(plan, network, options);
      EXPECT_TRUE(found.ok()) << found.status().ToString();
      return *found;
    };
    const Picoseconds free = run(true, {}).completion;
    const Picoseconds ideal = run(false, {}).completion;
    const auto expect_slower = [&](const PrepostedOptions& options, Picoseconds than) {
      const Picoseconds took = run(true, options).completion;
      EXPECT_GT(took, than);
      EXPECT_EQ(run(false, options).completion, ideal) << "nothing to write";
      return took;
    };
    const WaitMode polls = WaitMode::kPolling;
    EXPECT_EQ(run(true, {.host = {.interrupt = 50 * kUs}, .wait = polls}).completion, free);
    expect_slower({.host = {.interrupt = 50 * kUs}}, free + 50 * kUs);
    expect_slower({.host = {.poll = 20 * kUs}, .wait = polls}, free);
    expect_slower({.host = {.completion = 20 * kUs}, .wait = polls}, free);
    // Away from the start for 900 us: its rings are used up, and what is left comes after that.
    const Picoseconds away = 900 * kUs;
    const std::vector<HostDelay> delays = {{NodeId(1), 0, away}};
    EXPECT_LT(expect_slower({.wait = polls, .delays = delays}, away), away + free);
    EXPECT_GE(run(true, {.delays = delays}).nodes[1].delayed, away / 2);
    HostCosts preempted;
    preempted.preemptions_per_second = 1e4;
    preempted.preemption_length = 100 * kUs;
    EXPECT_NE(expect_slower({.host = preempted, .wait = polls}, free),
              expect_slower({.host = preempted, .wait = polls, .seed = 2}, free));
    // Who polls has the core every other slice; who sleeps has it when he wakes.
    const std::vector<HostNeighbours> busy = {{NodeId(1), 1, 10 * kUs}};
    expect_slower({.wait = polls, .neighbours = busy}, free);
    EXPECT_EQ(run(true, {.neighbours = busy}).completion, free);
  }
}

// Two groups' threads on one core write one after the other.
TEST(RearmTest, RearmingHostsShareCores) {
  const VerifiedPlan plan = PlanFor("chain", 2, 60);
  const std::vector<Group> groups = {{.plan = &plan},
                                     {.plan = &plan, .hosts = {NodeId(1), NodeId(0)}}};
  const auto run = [&](uint32_t cores) {
    PrepostedOptions options = {.host = {.cores = cores, .poll = 50 * kUs}};
    options.lower.profile = TinyRings();
    const auto found = RunPreposted(groups, OneRack(2), options);
    EXPECT_TRUE(found.ok()) << found.status().ToString();
    return std::max(found->groups[0].completion, found->groups[1].completion);
  };
  EXPECT_GT(run(1), run(2));
}

// Who polls has its core, and shares it with neighbours by the slice, until it has seen its end.
// Catches a core that is awake from then on: a group that starts there later would begin in a
// neighbour's slice.
TEST(RearmTest, HostsThatPollLeaveTheirCoreInTheEnd) {
  const VerifiedPlan plan = PlanFor("chain", 2, 60);
  PrepostedOptions options = {.host = {.cores = 1, .poll = kUs, .completion = kUs},
                              .wait = WaitMode::kPolling,
                              .neighbours = {{NodeId(1), 1, 20 * kUs}}};
  options.lower.profile = TinyRings();
  const auto run = [&](const std::vector<Group>& groups) {
    const auto found = RunPreposted(groups, OneRack(2), options);
    EXPECT_TRUE(found.ok()) << found.status().ToString();
    return found->groups;
  };
  const PrepostedResult::Group alone = run({{.plan = &plan}})[0];
  EXPECT_GT(alone.nodes[1].delayed, 0);
  for (int i = 1; i <= 20; ++i) {
    const Picoseconds start = alone.known + i * 3 * kUs;
    const auto groups = run({{.plan = &plan}, {.plan = &plan, .start = start}});
    EXPECT_EQ(groups[0].known, alone.known) << "nothing of it is another group's";
    EXPECT_EQ(groups[1].known - start, alone.known) << i;
    EXPECT_EQ(groups[1].nodes[1].delayed, alone.nodes[1].delayed) << i;
  }
}

}  // namespace
}  // namespace prepost::sim::rearm_test
