// SPDX-License-Identifier: Apache-2.0
//
// What holds of times in virtual time for both executors, whatever the plan and the costs: bounds,
// numbers of nodes and racks, what a cost or a delay can do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "ir/analysis/bounds.h"
#include "sim/runs/cpu_driven.h"
#include "sim/runs/preposted.h"
#include "tests/support/networks.h"
#include "tests/support/plans.h"
#include "tests/support/preposted_alone.h"
#include "tests/support/random.h"

namespace prepost::sim::properties_test {
namespace {

constexpr Picoseconds kNs = kPicosecondsPerNanosecond;
constexpr uint64_t kBlockBytes = 1000;

constexpr std::array kPortSharings = {PortSharing::kPerQp, PortSharing::kFifo};

NicCosts RandomNic(test::Random& random) {
  return {.wqe = random.Coin() ? random.Below(200'000) : 0,
          .wait = random.Coin() ? random.Below(200'000) : 0,
          .cqe = random.Coin() ? random.Below(300'000) : 0,
          .doorbell = random.Coin() ? random.Below(500'000) : 0,
          .doorbell_interval = random.Coin() ? random.Below(100'000) : 0,
          .message_overhead_bytes = random.Coin() ? random.Below(200) : 0,
          .port_sharing = random.Pick(kPortSharings)};
}

HostCosts RandomHost(test::Random& random) {
  const auto cost = [&](uint32_t ns_max) {
    return random.Coin() ? Picoseconds{random.Below(ns_max)} * kNs : 0;
  };
  return {.post_send = cost(300),
          .post_receive = cost(200),
          .poll = cost(100),
          .completion = cost(700),
          .credit = cost(700),
          .interrupt = cost(5000),
          .hybrid_polling = cost(5000),
          .message_start = cost(5000),
          .message_setup = cost(3000)};
}

Network OneRack(uint32_t nodes, double latency = 0) { return test::OneRack(nodes, 1e9, latency); }

Result<CpuDrivenResult> RunHosts(const VerifiedPlan& plan, const Network& network,
                                 const CpuDrivenOptions& options) {
  const Group group{.plan = &plan};
  return RunCpuDriven({&group, 1}, network, options);
}

std::string Label(const VerifiedPlan& plan) {
  return fmt::format("{} n={} bytes={}", plan.header().algorithm, plan.header().nodes,
                     plan.header().payload.bytes);
}

/// Window 1 both ways: no port is shared.
VerifiedPlan OnePortPlan(test::Random& random) {
  while (true) {
    VerifiedPlan plan = test::CompileOrDie({.nodes = random.Between(2, 20),
                                            .message_bytes = random.Between(1, 12) * kBlockBytes,
                                            .block_bytes = kBlockBytes,
                                            .algorithm = random.Pick(test::SchedulesToRun()),
                                            .ready = *ParseReady("window=1"),
                                            .send_window = *ParseSendWindow("1")});
    if (plan.header().ports == 1) return plan;
  }
}

// By themselves, the others being 0, with windows of 1 and no shared switch link: what comes with
// every message, on its way or once. With others beside it, or where it is a host's work for each
// message, more of a cost may make a run shorter, since it changes the order in which threads find
// things (docs/simulate.md); a NIC's does not (runs/preposted_test.cc).
TEST(PropertiesTest, CpuDrivenIsMonotoneInWhatAllMessagesTake) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 150; ++i) {
    const VerifiedPlan plan = OnePortPlan(random);
    CpuDrivenOptions options{.wait = static_cast<WaitMode>(random.Below(3))};
    double latency = 0;
    Picoseconds* const costs[] = {&options.nic.wqe, &options.nic.cqe, &options.nic.doorbell,
                                  &options.host.message_start};
    for (size_t c = 0; c <= std::size(costs); ++c) {
      SCOPED_TRACE(fmt::format("seed {} case {} cost {}: {}", seed, i, c, Label(plan)));
      Picoseconds last = 0;
      for (int step = 0; step < 4; ++step) {
        const auto run = RunHosts(plan, OneRack(plan.header().nodes, latency), options);
        ASSERT_TRUE(run.ok()) << run.status().ToString();
        ASSERT_GE(run->groups[0].completion, last);
        last = run->groups[0].completion;
        const Picoseconds more = random.Between(1, 500) * kNs;
        if (c < std::size(costs)) {
          *costs[c] += more;
        } else {
          latency += 1e-12 * static_cast<double>(more);
        }
      }
      if (c < std::size(costs)) *costs[c] = 0;
    }
  }
}

// Whatever costs, nothing is faster than a run in which nothing does.
TEST(PropertiesTest, NoCostIsAGainOverNone) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 300; ++i) {
    const VerifiedPlan plan = OnePortPlan(random);
    SCOPED_TRACE(fmt::format("seed {} case {}: {}", seed, i, Label(plan)));
    const Network network = OneRack(plan.header().nodes);
    CpuDrivenOptions options{.nic = RandomNic(random),
                             .host = RandomHost(random),
                             .wait = static_cast<WaitMode>(random.Below(3))};
    options.host.system_call = Picoseconds{random.Below(2'000)} * kNs;
    options.host.system_copy_rate = random.Pick(std::array{0.0, 1e8, 1e9, 1e10});
    const auto ideal = RunHosts(plan, network, {});
    const auto driven = RunHosts(plan, network, options);
    const auto posted = RunPrepostedAlone(plan, network, {.costs = options.nic});
    ASSERT_TRUE(ideal.ok() && driven.ok() && posted.ok());
    ASSERT_GE(driven->groups[0].completion, ideal->groups[0].completion);
    ASSERT_GE(posted->completion, ideal->groups[0].completion);
  }
}

// Where nothing else takes time.
TEST(PropertiesTest, ADelayCostsAtMostItsLength) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  int costly = 0;
  for (int i = 0; i < 400; ++i) {
    const VerifiedPlan plan = OnePortPlan(random);
    const Network network = OneRack(plan.header().nodes, random.Below(3) * 1e-6);
    const Picoseconds ideal = RunHosts(plan, network, {})->groups[0].completion;
    const Picoseconds length = random.Between(1, 4'000) * kNs;
    const HostDelay delay{NodeId(random.Below(plan.header().nodes)),
                          random.Below(static_cast<size_t>(ideal)), length};
    const Picoseconds time = RunHosts(plan, network, {.delays = {delay}})->groups[0].completion;
    ASSERT_GE(time, ideal) << "seed " << seed << " case " << i;
    ASSERT_LE(time, ideal + length) << "seed " << seed << " case " << i;
    costly += time > ideal;
  }
  EXPECT_GT(costly, 100);
}

// What the cuts of the network carry at most holds for hosts, too: racks of all sizes and rates,
// slow paths, and hosts that take their time, over TCP as well.
TEST(PropertiesTest, CpuDrivenIsNeverBelowTheBound) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 200; ++i) {
    const Spec spec = test::RandomSpecOnRacks(random);
    const VerifiedPlan plan = test::CompileOrDie(spec);
    Network network = *spec.topology->First(spec.nodes);
    if (random.Coin()) test::SlowRandomPairs(random, &network);
    SCOPED_TRACE(fmt::format("seed {} case {}: {}", seed, i, test::Label(spec)));
    CpuDrivenOptions options{.wait = static_cast<WaitMode>(random.Below(3))};
    if (random.Coin()) options.nic = RandomNic(random);
    if (random.Coin()) options.host = RandomHost(random);
    if (random.Coin()) {
      options.host.system_call = Picoseconds{random.Below(2'000)} * kNs;
      options.host.system_copy_rate = random.Pick(std::array{1e8, 5e9, 1e11});
    }
    const auto run = RunHosts(plan, network, options);
    ASSERT_TRUE(run.ok()) << run.status().ToString();
    const double bound = BoundNetwork(network, spec.root, *spec.message_bytes).seconds;
    ASSERT_GE(static_cast<double>(run->groups[0].completion), bound * 1e12 * (1 - 1e-9));
  }
}

std::vector<uint32_t> RandomOrder(test::Random& random, size_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  random.Shuffle(order);
  return order;
}

/// Groups of other plans on hosts of their own choice, some at once and some later.
struct RandomGroups {
  std::vector<Spec> specs;
  std::vector<VerifiedPlan> plans;
  std::vector<Group> groups;

  RandomGroups(test::Random& random, uint32_t hosts) {
    const size_t count = random.Between(2, 4);
    for (size_t g = 0; g < count; ++g) {
      specs.push_back(test::RandomSpec(random, {.nodes_max = hosts, .blocks_max = 10}));
      plans.push_back(test::CompileOrDie(specs.back()));
    }
    for (const VerifiedPlan& plan : plans) {
      Group& group = groups.emplace_back();
      group.plan = &plan;
      const std::vector<uint32_t> order = RandomOrder(random, hosts);
      for (uint32_t n = 0; n < plan.header().nodes; ++n) group.hosts.emplace_back(order[n]);
      if (random.Coin()) group.start = Picoseconds{random.Below(5'000)} * kNs;
    }
  }
};

// Each of several groups takes at least what it would take at best alone: what leaves its root, and
// what comes to each host.
TEST(PropertiesTest, NoGroupIsBelowItsBound) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 150; ++i) {
    const uint32_t hosts = random.Between(2, 12);
    Network network = OneRack(hosts, random.Below(3) * 1e-6);
    for (Network::Node& node : network.nodes) {
      node.out_rate = 1e9 / random.Between(1, 4);
      node.in_rate = 1e9 / random.Between(1, 4);
    }
    const RandomGroups it(random, hosts);
    SCOPED_TRACE(fmt::format("seed {} case {}: first {}", seed, i, test::Label(it.specs[0])));
    const NicCosts nic = RandomNic(random);
    const auto posted = RunPreposted(it.groups, network, {.costs = nic});
    const auto driven = RunCpuDriven(it.groups, network, {.nic = nic, .host = RandomHost(random)});
    ASSERT_TRUE(posted.ok()) << posted.status().ToString();
    ASSERT_TRUE(driven.ok()) << driven.status().ToString();
    for (size_t g = 0; g < it.groups.size(); ++g) {
      const Group& group = it.groups[g];
      Network own = network;  // as the plan's nodes see it
      own.nodes.clear();
      for (const NodeId host : group.hosts) own.nodes.push_back(network.nodes[host.index()]);
      const Picoseconds took[] = {posted->groups[g].completion - group.start,
                                  driven->groups[g].completion - group.start};
      const uint64_t bytes = *it.specs[g].message_bytes;
      const double bound = BoundNetwork(own, it.specs[g].root, bytes).seconds;
      for (const Picoseconds time : took)
        ASSERT_GE(static_cast<double>(time), bound * 1e12 * (1 - 1e-9)) << g;
    }
  }
}

// Where rings hold everything, nothing about hosts moves what NICs do from the doorbells on.
TEST(PropertiesTest, HostsMoveNothingThatIsPreposted) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 150; ++i) {
    const Spec spec = test::RandomSpecOnRacks(random);
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const Network network = *spec.topology->First(spec.nodes);
    SCOPED_TRACE(fmt::format("seed {} case {}: {}", seed, i, test::Label(spec)));
    PrepostedOptions options{.costs = RandomNic(random)};
    options.lower.mode = random.Coin() ? nic::LoweringMode::kInline : nic::LoweringMode::kManaged;
    const auto ideal = RunPrepostedAlone(plan, network, options);
    options.host = RandomHost(random);
    options.host.cores = random.Between(1, 3);
    options.host.preemptions_per_second = random.Coin() ? 1e5 : 0;
    options.host.preemption_length = 50'000 * kNs;
    options.wait = static_cast<WaitMode>(random.Below(3));
    options.delays = {{NodeId(random.Below(spec.nodes)), random.Below(2'000'000), 900'000 * kNs}};
    options.neighbours = {{NodeId(random.Below(spec.nodes)), 2, 10'000 * kNs}};
    options.seed = random.Below(1'000'000);
    const auto run = RunPrepostedAlone(plan, network, options);
    ASSERT_TRUE(ideal.ok() && run.ok()) << run.status().ToString();
    for (uint32_t n = 0; n < spec.nodes; ++n) {
      ASSERT_EQ(run->nodes[n].doorbells, ideal->nodes[n].doorbells) << n;
      ASSERT_EQ(run->nodes[n].received, ideal->nodes[n].received) << n;
      ASSERT_EQ(run->nodes[n].completion, ideal->nodes[n].completion) << n;
      ASSERT_EQ(run->nodes[n].rearms, 0u);
    }
  }
}

// A root that has two receivers at once: both have the block at 2 T, or one after the other.
TEST(PropertiesTest, HowAPortIsSharedIsSeen) {
  const VerifiedPlan plan = test::CompileOrDie({.nodes = 3,
                                                .message_bytes = kBlockBytes,
                                                .block_bytes = kBlockBytes,
                                                .algorithm = "sequential",
                                                .ready = *ParseReady("channel"),
                                                .send_window = *ParseSendWindow("none")});
  const Picoseconds block = kBlockBytes * kNs;
  for (const PortSharing sharing : kPortSharings) {
    const bool is_fifo = sharing == PortSharing::kFifo;
    const NicCosts costs{.port_sharing = sharing};
    const auto posted = RunPrepostedAlone(plan, OneRack(3), {.costs = costs});
    const auto driven = RunHosts(plan, OneRack(3), {.nic = costs});
    ASSERT_TRUE(posted.ok() && driven.ok());
    for (const auto& [first, second] :
         {std::pair(posted->nodes[1].completion, posted->nodes[2].completion),
          std::pair(driven->groups[0].nodes[1].completion,
                    driven->groups[0].nodes[2].completion)}) {
      EXPECT_EQ(std::min(first, second), is_fifo ? block : 2 * block);
      EXPECT_EQ(std::max(first, second), 2 * block);
    }
  }
}

/// The same network with other numbers for nodes and for racks.
Network Renumbered(const Network& network, const std::vector<uint32_t>& new_node,
                   const std::vector<uint32_t>& new_rack) {
  Network other = network;
  for (size_t r = 0; r < network.racks.size(); ++r) other.racks[new_rack[r]] = network.racks[r];
  for (size_t n = 0; n < network.nodes.size(); ++n) {
    other.nodes[new_node[n]] = network.nodes[n];
    other.nodes[new_node[n]].rack = new_rack[network.nodes[n].rack];
  }
  if (network.links.empty()) return other;
  const auto racks = static_cast<uint32_t>(network.racks.size());
  for (Network::Link& link : other.links) {
    for (uint32_t* end : {&link.from, &link.to})
      if (*end < racks) *end = new_rack[*end];
  }
  // Of equal ways the same: which one a pair takes goes by numbers.
  std::vector<uint32_t> old_rack(racks);
  for (uint32_t r = 0; r < racks; ++r) old_rack[new_rack[r]] = r;
  other.route_begin = {0};
  other.route_links.clear();
  for (uint32_t to = 0; to < racks; ++to) {
    for (uint32_t from = 0; from < racks; ++from) {
      const auto way = network.LinksBetween(old_rack[from], old_rack[to]);
      other.route_links.insert(other.route_links.end(), way.begin(), way.end());
      other.route_begin.push_back(static_cast<uint32_t>(other.route_links.size()));
    }
  }
  return other;
}

// The same multicast with other numbers for nodes and racks, by both executors; and one plan on
// other hosts. In a plan for other numbers a host rings its doorbells, a queue has its WAITs, and a
// port that sends one message at a time has those that are ready at once, in the order of these:
// where that decides nothing.
TEST(PropertiesTest, RenumberingNodesAndRacksPermutesTimes) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 150; ++i) {
    const Network topology = test::RandomTopology(random, 5);
    const auto nodes = static_cast<uint32_t>(topology.nodes.size());
    const Network network = *topology.First(nodes);
    const std::vector<uint32_t> new_node = RandomOrder(random, nodes);
    const Network other = Renumbered(network, new_node, RandomOrder(random, network.racks.size()));
    Spec spec{.nodes = nodes,
              .message_bytes = random.Between(1, 12) * 10'000,
              .block_bytes = 10'000,
              .algorithm = random.Pick(std::array{"chain", "binomial_tree", "binomial_pipeline",
                                                  "circulant", "scatter_allgather"}),
              .ready = *ParseReady(random.Pick(std::array{"window=1", "window=3", "channel"})),
              .send_window = *ParseSendWindow(random.Pick(std::array{"none", "1", "2"}))};
    Spec other_spec = spec;
    other_spec.root = NodeId(new_node[0]);
    for (uint32_t n = 0; n < nodes; ++n) {
      spec.order.push_back(NodeId(n));
      other_spec.order.push_back(NodeId(new_node[n]));
    }
    SCOPED_TRACE(fmt::format("seed {} case {}: {}", seed, i, test::Label(spec)));
    const NicCosts all_costs = RandomNic(random);
    NicCosts costs = all_costs;
    costs.doorbell_interval = costs.wait = 0;
    costs.port_sharing = PortSharing::kPerQp;
    const VerifiedPlan plan = test::CompileOrDie(spec), other_plan = test::CompileOrDie(other_spec);
    const auto run = RunPrepostedAlone(plan, network, {.costs = costs});
    const auto other_run = RunPrepostedAlone(other_plan, other, {.costs = costs});
    ASSERT_TRUE(run.ok() && other_run.ok());
    // Of hosts that take time, too, the plan being the same; else what they do first goes by
    // number.
    const CpuDrivenOptions ideal{.nic = costs};
    const auto hosts = RunHosts(plan, network, ideal);
    const auto other_hosts = RunHosts(other_plan, other, ideal);
    ASSERT_TRUE(hosts.ok() && other_hosts.ok());
    std::vector<NodeId> moved;
    for (const uint32_t n : new_node) moved.push_back(NodeId(n));
    const Group group{.plan = &plan, .hosts = moved};
    // The plan being the same, its nodes on other hosts, whatever costs.
    costs = all_costs;
    const CpuDrivenOptions busy{.nic = costs, .host = RandomHost(random)};
    const auto here = RunHosts(plan, network, busy);
    const auto there = RunCpuDriven({&group, 1}, other, busy);
    const auto posted_here = RunPrepostedAlone(plan, network, {.costs = costs});
    const auto posted_there = RunPreposted({&group, 1}, other, {.costs = costs});
    ASSERT_TRUE(here.ok() && there.ok() && posted_here.ok() && posted_there.ok());
    for (uint32_t n = 0; n < nodes; ++n) {
      ASSERT_EQ(other_run->nodes[new_node[n]].completion, run->nodes[n].completion) << n;
      ASSERT_EQ(other_hosts->groups[0].nodes[new_node[n]].completion,
                hosts->groups[0].nodes[n].completion)
          << n;
      ASSERT_EQ(there->groups[0].nodes[n].completion, here->groups[0].nodes[n].completion) << n;
      ASSERT_EQ(there->hosts[new_node[n]].busy, here->hosts[n].busy) << n;
      ASSERT_EQ(posted_there->groups[0].nodes[n].completion, posted_here->nodes[n].completion) << n;
    }
  }
}

}  // namespace
}  // namespace prepost::sim::properties_test
