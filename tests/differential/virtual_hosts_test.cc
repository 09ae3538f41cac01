// SPDX-License-Identifier: Apache-2.0
//
// CPU-driven transfers in virtual time: what the model of hosts promises, in closed forms where
// there are any, beside the same plans preposted.
#include "prepost/backends/emulated/virtual_hosts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "prepost/backends/emulated/virtual_offload.h"
#include "prepost/compiler/compile.h"
#include "prepost/compiler/schedule.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"

namespace prepost::emulated {
namespace {

constexpr uint64_t kBlockBytes = 1000;
constexpr Picoseconds kNs = kPicosecondsPerNanosecond;
constexpr Picoseconds kUs = 1000 * kNs;
constexpr Picoseconds kBlockTime = kUs;  // of kBlockBytes at the rate of MakeNetwork()

/// 1 byte per ns and no latency.
Network MakeNetwork(uint32_t nodes) {
  Network network = Network::Uniform(nodes);
  for (Network::Node& node : network.nodes) node.out_rate = node.in_rate = 1e9;
  return network;
}

/// With window=1 and send_window=1 unless `ready` and `send_window` say otherwise.
Plan PlanFor(const std::string& algorithm, uint32_t nodes, uint32_t blocks,
             const std::string& ready = "window=1", const std::string& send_window = "1") {
  return test::CompileOrDie({.nodes = nodes,
                             .message_bytes = blocks * kBlockBytes,
                             .block_bytes = kBlockBytes,
                             .algorithm = algorithm,
                             .ready = *ParseReady(ready),
                             .send_window = *ParseSendWindow(send_window)});
}

VirtualHosts RunPlan(const Plan& plan, const VirtualHostsOptions& options = {}) {
  const VirtualGroup group{.plan = &plan};
  auto run = RunVirtualHosts({&group, 1}, MakeNetwork(plan.header().nodes), options);
  EXPECT_TRUE(run.ok()) << run.status().ToString();
  return run.ok() ? *std::move(run) : VirtualHosts{};
}
Picoseconds TimeOfRun(const Plan& plan, const VirtualHostsOptions& options = {}) {
  const VirtualHosts run = RunPlan(plan, options);
  return run.groups.empty() ? -1 : run.groups[0].completion;
}

/// Some of everything; posts, looks and completions of different lengths.
HostCosts SomeCosts() {
  return {.post_send = 150 * kNs,
          .post_receive = 90 * kNs,
          .poll = 40 * kNs,
          .completion = 500 * kNs,
          .credit = 310 * kNs,
          .interrupt = 5 * kUs,
          .hybrid_polling = 20 * kUs};
}

// One-port schedules; the others have rounds in which nobody waits for somebody else.
TEST(VirtualHostsTest, IdealHostsTakeRoundsTimesTheTimeOfABlock) {
  for (const char* algorithm :
       {"sequential", "chain", "binomial_tree", "binomial_pipeline", "circulant"}) {
    for (uint32_t nodes = 1; nodes <= 64; nodes += nodes < 18 ? 1 : 7) {
      for (const uint32_t blocks : {1u, 2u, 5u, 12u}) {
        const Plan plan = PlanFor(algorithm, nodes, blocks);
        EXPECT_EQ(TimeOfRun(plan), plan.header().rounds * kBlockTime)
            << algorithm << " n=" << nodes << " k=" << blocks;
      }
    }
  }
}

// Hosts that take no time are as good as none, whatever the plan and the NIC.
TEST(VirtualHostsTest, IdealHostsAreAsFastAsNicsByThemselves) {
  const uint32_t seed = 7;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  test::Random random(seed);
  for (const std::string& algorithm : ScheduleNames()) {
    for (const char* ready : {"window=1", "channel"}) {
      const uint32_t nodes = 2 + random.Below(20);
      const Plan plan = PlanFor(algorithm, nodes, 1 + random.Below(9), ready);
      const auto offload = RunVirtualOffload(plan, MakeNetwork(nodes));
      ASSERT_TRUE(offload.ok()) << offload.status().ToString();
      EXPECT_EQ(TimeOfRun(plan), offload->completion) << algorithm << " n=" << nodes;
    }
  }
}

// The RDMC paper's motivation: somebody else takes a relay's core for 100 us just when it is to
// forward. CPU-driven all lose as much, preposted nobody notices.
TEST(VirtualHostsTest, OneDelayOfARelayIsADelayOfAll) {
  const Picoseconds length = 100 * kUs;
  for (const char* algorithm : {"chain", "binomial_pipeline"}) {
    for (const uint32_t nodes : {4u, 16u, 64u}) {
      const Plan plan = PlanFor(algorithm, nodes, 20);
      const Picoseconds ideal = plan.header().rounds * kBlockTime;
      // A block comes at the end of each round.
      EXPECT_EQ(TimeOfRun(plan, {.delays = {{NodeId(1), 8 * kBlockTime, length}}}), ideal + length)
          << algorithm << " n=" << nodes;
      // In the middle of a round its NIC is at work, and the host would only wait.
      EXPECT_EQ(TimeOfRun(plan, {.delays = {{NodeId(1), 8 * kBlockTime + 1, kBlockTime - 1}}}),
                ideal);
      const auto offload = RunVirtualOffload(plan, MakeNetwork(nodes));
      ASSERT_TRUE(offload.ok());
      EXPECT_EQ(offload->completion, ideal);
    }
  }
}

// A look does not begin while the core is away: then it finds all that has come meanwhile, and the
// thread looks once, not twice.
TEST(VirtualHostsTest, LooksBeginWhenTheCoreIsThere) {
  const Plan plan = PlanFor("chain", 2, 4, "barrier", "none");
  const VirtualHosts run = RunPlan(plan, {.host = {.poll = 10 * kNs, .completion = 100 * kNs},
                                          .delays = {{NodeId(1), 0, 20 * kBlockTime}}});
  EXPECT_EQ(run.groups[0].nodes[1].work.looks, 1u);
  EXPECT_EQ(run.groups[0].nodes[1].completion, 20 * kBlockTime + 10 * kNs + 4 * 100 * kNs);
  EXPECT_EQ(run.hosts[1].delayed, 20 * kBlockTime);
}

// Whenever it comes, and to whomever, it costs no more than its length; and never less than nothing.
TEST(VirtualHostsTest, OneDelayCostsAtMostItsLength) {
  const uint32_t seed = 11;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  test::Random random(seed);
  const Plan plan = PlanFor("binomial_pipeline", 12, 16);
  const Picoseconds ideal = TimeOfRun(plan);
  bool has_cost = false;
  for (int i = 0; i < 100; ++i) {
    const auto length = Picoseconds{random.Below(20 * kUs)};
    const NodeId node(random.Below(12));
    const auto at = Picoseconds{random.Below(static_cast<size_t>(ideal))};
    const Picoseconds time = TimeOfRun(plan, {.delays = {{node, at, length}}});
    EXPECT_GE(time, ideal);
    EXPECT_LE(time, ideal + length) << "node " << node.value << " at " << at << " for " << length;
    has_cost = has_cost || time > ideal;
  }
  EXPECT_TRUE(has_cost);
}

// Between two nodes a block's way is a straight line: the block, its host, the credit, the other
// host. So bandwidth falls by t / (t + c).
TEST(VirtualHostsTest, CostsPerBlockTakeBandwidthByTheirShare) {
  HostCosts costs = SomeCosts();
  const Picoseconds c = costs.poll + costs.completion + costs.post_receive + costs.post_send +
                        costs.poll + costs.credit + costs.post_send;
  const uint32_t blocks = 50;
  const Plan plan = PlanFor("chain", 2, blocks);
  EXPECT_EQ(TimeOfRun(plan, {.host = costs}), blocks * (kBlockTime + c));
  // Interrupts only: two sleeps on the way of each block.
  EXPECT_EQ(TimeOfRun(plan, {.host = costs, .wait = WaitMode::kInterrupt}),
            blocks * (kBlockTime + c + 2 * costs.interrupt));
  // Hybrid hosts look for 20 us, longer than they ever wait here.
  EXPECT_EQ(TimeOfRun(plan, {.host = costs, .wait = WaitMode::kHybrid}), blocks * (kBlockTime + c));
  // A message's set-up comes once.
  costs.message_start = 3 * kUs;
  costs.message_setup = 2 * kUs;
  costs.first_block_copy_rate = 2e9;
  EXPECT_EQ(TimeOfRun(plan, {.host = costs}),
            blocks * (kBlockTime + c) + 2 * kUs + kBlockTime / 2 +
                std::max<Picoseconds>(0, 3 * kUs - costs.post_receive - costs.post_send));
}

TEST(VirtualHostsTest, TcpAddsSystemCallsAndCopies) {
  HostCosts costs = {.system_call = 300 * kNs, .system_copy_rate = 4e9};
  const Plan plan = PlanFor("chain", 2, 10);
  // Per block: send and receive it, and its credit.
  EXPECT_EQ(TimeOfRun(plan, {.host = costs}),
            10 * (kBlockTime + 4 * costs.system_call + 2 * kBlockTime / 4));
}

// Where in a look a block comes makes no difference.
TEST(VirtualHostsTest, PollingFindsABlockWithinOneLook) {
  const Plan plan = PlanFor("chain", 2, 1, "barrier");
  for (const Picoseconds poll : {0 * kNs, 1 * kNs, 300 * kNs, 999 * kNs, 1000 * kNs, 7000 * kNs}) {
    EXPECT_EQ(TimeOfRun(plan, {.host = {.poll = poll}}), kBlockTime + poll) << poll;
  }
}

TEST(VirtualHostsTest, HybridHostsSleepAfterAWhile) {
  const Plan plan = PlanFor("chain", 2, 10);
  HostCosts costs = {.interrupt = 5 * kUs, .hybrid_polling = kBlockTime};
  const VirtualHosts polls = RunPlan(plan, {.host = costs, .wait = WaitMode::kHybrid});
  EXPECT_EQ(polls.groups[0].completion, 10 * kBlockTime);
  EXPECT_EQ(polls.groups[0].nodes[1].work.wakeups, 0u);
  costs.hybrid_polling = kBlockTime - 1;
  const VirtualHosts sleeps = RunPlan(plan, {.host = costs, .wait = WaitMode::kHybrid});
  EXPECT_GE(sleeps.groups[0].completion, 10 * (kBlockTime + costs.interrupt));
  EXPECT_GE(sleeps.groups[0].nodes[1].work.wakeups, 10u);
}

TEST(VirtualHostsTest, CountsWhatHostsDo) {
  const Plan plan = PlanFor("binomial_pipeline", 8, 16);
  const VirtualHosts run = RunPlan(plan, {.host = SomeCosts()});
  for (const Program& program : plan.programs()) {
    const auto ops = plan.ops(program);
    const HostWork& work = run.groups[0].nodes[program.node.index()].work;
    EXPECT_EQ(work.completions, ops.size());
    // Receives of credits are posted before the start.
    const auto before = std::ranges::count_if(
        ops, [](const Op& op) { return !op.is_send() && op.block == kNoBlock; });
    EXPECT_EQ(work.posts, ops.size() - static_cast<size_t>(before));
    EXPECT_GE(work.busy, static_cast<Picoseconds>(ops.size()) * 310 * kNs);
    EXPECT_EQ(run.hosts[program.node.index()].busy, work.busy);
    EXPECT_EQ(run.hosts[program.node.index()].delayed, 0);
  }
  EXPECT_EQ(run.counters.messages, plan.ops().size() / 2);
}

// Two groups of the same nodes: each host has two threads. On one core they wait for each other.
TEST(VirtualHostsTest, GroupsShareLinksAndCores) {
  const Plan plan = PlanFor("chain", 2, 10);
  const std::vector<VirtualGroup> groups = {{.plan = &plan},
                                            {.plan = &plan, .hosts = {NodeId(1), NodeId(0)}}};
  const auto run = [&](uint32_t cores) {
    auto made =
        RunVirtualHosts(groups, MakeNetwork(2), {.host = {.cores = cores, .completion = 10 * kUs}});
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return *std::move(made);
  };
  const VirtualHosts two = run(2);
  // Opposite directions, and a core each: neither notices the other.
  const Picoseconds alone = TimeOfRun(plan, {.host = {.completion = 10 * kUs}});
  EXPECT_EQ(two.groups[0].completion, alone);
  EXPECT_EQ(two.groups[1].completion, alone);
  const VirtualHosts one = run(1);
  EXPECT_GT(one.groups[0].completion, alone);
  // All of its threads' work is one core's.
  for (const VirtualHosts::Host& host : one.hosts) {
    EXPECT_EQ(host.busy, 2 * 10 * 10 * kUs);
    EXPECT_GE(std::max(one.groups[0].completion, one.groups[1].completion), host.busy);
  }
  // The same direction: the link is shared, and each takes twice as long.
  const std::vector<VirtualGroup> same = {{.plan = &plan}, {.plan = &plan}};
  const auto shared = RunVirtualHosts(same, MakeNetwork(2), {.host = {.cores = 2}});
  ASSERT_TRUE(shared.ok());
  EXPECT_EQ(shared->groups[0].completion, 2 * 10 * kBlockTime);
  EXPECT_EQ(shared->groups[1].completion, 2 * 10 * kBlockTime);
}

TEST(VirtualHostsTest, GroupsStartWhenTheyAreToldTo) {
  const Plan plan = PlanFor("chain", 3, 4);
  const VirtualGroup late{
      .plan = &plan, .hosts = {NodeId(4), NodeId(0), NodeId(2)}, .start = 5 * kUs};
  const auto run = RunVirtualHosts({&late, 1}, MakeNetwork(5));
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  EXPECT_EQ(run->groups[0].completion, 5 * kUs + plan.header().rounds * kBlockTime);
  for (const VirtualOffload::Link& link : run->links) {
    EXPECT_NE(link.resource.index, 1u);
    EXPECT_NE(link.resource.index, 3u);
  }
}

// Nodes are all alike: which number one has does not matter.
TEST(VirtualHostsTest, RenumberingHostsChangesNothing) {
  const uint32_t seed = 23;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  test::Random random(seed);
  for (const char* algorithm : {"binomial_pipeline", "circulant", "sequential"}) {
    const Plan plan = PlanFor(algorithm, 11, 9);
    const VirtualHosts run = RunPlan(plan, {.host = SomeCosts()});
    std::vector<NodeId> hosts;
    for (uint32_t i = 0; i < 11; ++i) hosts.push_back(NodeId(i));
    random.Shuffle(hosts);
    const VirtualGroup group{.plan = &plan, .hosts = hosts};
    const auto other = RunVirtualHosts({&group, 1}, MakeNetwork(11), {.host = SomeCosts()});
    ASSERT_TRUE(other.ok());
    for (uint32_t i = 0; i < 11; ++i) {
      EXPECT_EQ(other->groups[0].nodes[i].completion, run.groups[0].nodes[i].completion);
      EXPECT_EQ(other->groups[0].nodes[i].work, run.groups[0].nodes[i].work);
    }
  }
}

TEST(VirtualHostsTest, PreemptionsComeFromTheSeed) {
  const Plan plan = PlanFor("binomial_pipeline", 9, 40);
  HostCosts costs = SomeCosts();
  costs.preemptions_per_second = 20'000;
  costs.preemption_length = 5 * kUs;
  const Picoseconds ideal = TimeOfRun(plan, {.host = SomeCosts()});
  const Picoseconds first = TimeOfRun(plan, {.host = costs, .seed = 1});
  EXPECT_GT(first, ideal);
  EXPECT_EQ(TimeOfRun(plan, {.host = costs, .seed = 1}), first);
  EXPECT_NE(TimeOfRun(plan, {.host = costs, .seed = 2}), first);
  costs.preemption_lengths_vary = true;
  EXPECT_NE(TimeOfRun(plan, {.host = costs, .seed = 1}), first);
}

// With all kinds of costs, waiting and plans a run ends, and takes no less than links need.
TEST(VirtualHostsTest, EverySettingDelivers) {
  const uint32_t seed = 31;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  test::Random random(seed);
  const auto cost = [&](uint64_t ns_max) {
    return random.Below(3) == 0 ? 0 : random.Below(ns_max) * kNs;
  };
  for (const std::string& algorithm : test::SchedulesToRun()) {
    for (const char* ready : {"window=1", "window=3", "channel", "barrier", "retry"}) {
      const char* send_window = random.Below(2) == 0 ? "1" : "none";
      const auto nodes = 1 + random.Below(14);
      const auto blocks = 1 + random.Below(10);
      const Plan plan = PlanFor(algorithm, nodes, blocks, ready, send_window);
      const VirtualHostsOptions options{
          .nic = {.wqe = cost(100), .cqe = cost(100), .doorbell = cost(500)},
          .host = {.cores = 1,
                   .post_send = cost(300),
                   .post_receive = cost(300),
                   .poll = cost(100),
                   .completion = cost(2000),
                   .credit = cost(2000),
                   .interrupt = cost(5000),
                   .hybrid_polling = cost(5000),
                   .preemptions_per_second = random.Below(2) == 0 ? 0.0 : 1e5,
                   .preemption_length = cost(3000)},
          .wait = static_cast<WaitMode>(random.Below(3)),
          .ring_wqes_max = random.Below(2) == 0 ? 32768u : 4u};
      SCOPED_TRACE(fmt::format("{} {} n={} k={}", algorithm, ready, nodes, blocks));
      EXPECT_GE(TimeOfRun(plan, options), nodes == 1 ? 0 : blocks * kBlockTime);
    }
  }
}

// Rings that hold four windows are as good as such that hold everything: nothing waits for room, and no
// message for a receive.
TEST(VirtualHostsTest, RingsByWindowChangeNothing) {
  const uint32_t seed = 47;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  test::Random random(seed);
  const auto cost = [&](uint64_t ns_max) {
    return random.Below(3) == 0 ? 0 : random.Below(ns_max) * kNs;
  };
  for (const std::string& algorithm : test::SchedulesToRun()) {
    for (const char* ready : {"window=1", "window=2", "window=5"}) {
      const char* send_window = random.Below(2) == 0 ? "1" : "none";
      const auto nodes = 2 + random.Below(12);
      const Plan plan = PlanFor(algorithm, nodes, 40, ready, send_window);
      VirtualHostsOptions options{
          .nic = {.wqe = cost(100), .cqe = cost(100), .doorbell = cost(500)},
          .host = {.cores = 1,
                   .post_send = cost(300),
                   .post_receive = cost(300),
                   .poll = cost(100),
                   .completion = cost(2000),
                   .credit = cost(2000),
                   .interrupt = cost(5000),
                   .preemptions_per_second = random.Below(2) == 0 ? 0.0 : 1e5,
                   .preemption_length = cost(300'000)},
          .wait = static_cast<WaitMode>(random.Below(3))};
      SCOPED_TRACE(fmt::format("{} {} n={}", algorithm, ready, nodes));
      const VirtualGroup group{.plan = &plan};
      const auto run = [&](bool rings_by_window) {
        options.rings_by_window = rings_by_window;
        return *RunVirtualHosts({&group, 1}, MakeNetwork(nodes), options);
      };
      const VirtualHosts small = run(true);
      const VirtualHosts large = run(false);
      EXPECT_EQ(small.counters.rnr_retries, 0u);
      for (uint32_t i = 0; i < nodes; ++i) {
        EXPECT_EQ(small.groups[0].nodes[i].completion, large.groups[0].nodes[i].completion);
        EXPECT_EQ(small.groups[0].nodes[i].work, large.groups[0].nodes[i].work);
      }
    }
  }
}

TEST(VirtualHostsTest, EmptyMessagesArrive) {
  const Plan plan = test::CompileOrDie({.nodes = 5, .message_bytes = 0, .block_bytes = 10});
  const Picoseconds time = TimeOfRun(plan, {.host = SomeCosts()});
  EXPECT_GT(time, 0);
}

TEST(VirtualHostsTest, SaysWhatCannotBeRun) {
  const Plan plan = PlanFor("chain", 3, 2);
  const auto error = [&](const VirtualGroup& group, const VirtualHostsOptions& options) {
    return RunVirtualHosts({&group, 1}, MakeNetwork(4), options).status().ToString();
  };
  const VirtualGroup all{.plan = &plan};
  EXPECT_EQ(error({.plan = &plan, .hosts = {NodeId(0), NodeId(2), NodeId(2)}}, {}),
            "group 0: host 2 is there twice");
  EXPECT_EQ(error({.plan = &plan, .hosts = {NodeId(0), NodeId(4), NodeId(2)}}, {}),
            "group 0: host 4, and there are 4");
  EXPECT_EQ(error({.plan = &plan, .hosts = {NodeId(0)}}, {}),
            "group 0: a plan of 3 nodes for 1 hosts");
  EXPECT_EQ(error({.plan = &plan, .start = -1}, {}), "group 0: it starts at -1 ps");
  EXPECT_EQ(error(all, {.host = {.poll = -1}}),
            "a host's step takes -1 ps, expected from 0 to 3600000000000000");
  EXPECT_EQ(error(all, {.host = {.cores = 0}}), "a host without cores");
  EXPECT_EQ(error(all, {.host = {.system_copy_rate = 0.5}}),
            "a host copies 0.5 bytes/s, expected 1 or more, or 0");
  EXPECT_EQ(error(all, {.nic = {.wqe = -1}}),
            "a NIC's step takes -1 ps, expected from 0 to 3600000000000000");
  EXPECT_EQ(error(all, {.host = {.preemptions_per_second = 1e-10}}),
            "1e-10 preemptions per second, expected from 1e-09 to 1000000000, or 0");
  EXPECT_EQ(error(all, {.delays = {{NodeId(9), 0, 1}}}), "a delay of host 9 at 0 ps for 1 ps");
  EXPECT_EQ(error(all, {.host = {.preemptions_per_second = 1e6, .preemption_length = kUs * 1000}}),
            "cores are away 1000 times as long as they are there, expected at most 100");
}

}  // namespace
}  // namespace prepost::emulated
