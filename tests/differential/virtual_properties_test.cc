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

#include "prepost/backends/emulated/virtual_hosts.h"
#include "prepost/backends/emulated/virtual_offload.h"
#include "prepost/compiler/topology_network.h"
#include "prepost/ir/bounds.h"
#include "tests/support/networks.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"

namespace prepost::emulated {
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

Result<VirtualHosts> RunHosts(const Plan& plan, const Network& network,
                              const VirtualHostsOptions& options) {
  const VirtualGroup group{.plan = &plan};
  return RunVirtualHosts({&group, 1}, network, options);
}

/// Window 1 both ways: no port is shared.
Plan OnePortPlan(test::Random& random) {
  while (true) {
    Plan plan = test::CompileOrDie({.nodes = random.Between(2, 20),
                                    .message_bytes = random.Between(1, 12) * kBlockBytes,
                                    .block_bytes = kBlockBytes,
                                    .algorithm = random.Pick(test::SchedulesToRun()),
                                    .ready = *ParseReady("window=1"),
                                    .send_window = *ParseSendWindow("1")});
    if (plan.header().ports == 1) return plan;
  }
}

// Each cost by itself, the others 0. With others beside it a host's may make a run faster, since it
// changes the order in which threads find things; a NIC's may not
// (virtual_offload_test.cc).
TEST(VirtualPropertiesTest, CpuDrivenIsMonotoneInEveryCostAlone) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 120; ++i) {
    const Plan plan = OnePortPlan(random);
    VirtualHostsOptions options{.wait = static_cast<WaitMode>(random.Below(3))};
    Picoseconds* const costs[] = {&options.nic.wqe,
                                  &options.nic.cqe,
                                  &options.nic.doorbell,
                                  &options.nic.doorbell_interval,
                                  &options.host.post_send,
                                  &options.host.post_receive,
                                  &options.host.poll,
                                  &options.host.completion,
                                  &options.host.credit,
                                  &options.host.interrupt,
                                  &options.host.message_start,
                                  &options.host.message_setup,
                                  &options.host.system_call};
    for (size_t c = 0; c < std::size(costs); ++c) {
      SCOPED_TRACE(fmt::format("seed {} case {} cost {}", seed, i, c));
      Picoseconds last = 0;
      for (int step = 0; step < 3; ++step) {
        const auto run = RunHosts(plan, OneRack(plan.header().nodes), options);
        ASSERT_TRUE(run.ok()) << run.status().ToString();
        EXPECT_GE(run->groups[0].completion, last);
        last = run->groups[0].completion;
        *costs[c] += random.Between(1, 500) * kNs;
      }
      *costs[c] = 0;
    }
    // And in the latency and in copies.
    Picoseconds last = 0;
    for (const double latency : {0.0, 1e-6 * random.Below(3), 3e-6}) {
      const auto run = RunHosts(plan, OneRack(plan.header().nodes, latency), options);
      ASSERT_GE(run->groups[0].completion, last) << "seed " << seed << " case " << i;
      last = run->groups[0].completion;
    }
    last = 0;
    for (const double rate : {0.0, 1e10, 1e9, 1e8}) {
      options.host.system_copy_rate = rate;
      const auto run = RunHosts(plan, OneRack(plan.header().nodes), options);
      ASSERT_GE(run->groups[0].completion, last) << "seed " << seed << " case " << i;
      last = run->groups[0].completion;
    }
  }
}

// Where nothing else takes time.
TEST(VirtualPropertiesTest, ADelayCostsAtMostItsLength) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  int costly = 0;
  for (int i = 0; i < 400; ++i) {
    const Plan plan = OnePortPlan(random);
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

// What the cuts of the network carry at most holds for hosts, too: racks of all sizes and rates, slow
// paths, and hosts that take their time, over TCP as well.
TEST(VirtualPropertiesTest, CpuDrivenIsNeverBelowTheBound) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 200; ++i) {
    const Spec spec = test::RandomSpecOnRacks(random);
    const Plan plan = test::CompileOrDie(spec);
    Network network = *NetworkOf(*spec.topology, spec.nodes);
    if (random.Coin()) test::SlowRandomPairs(random, &network);
    SCOPED_TRACE(fmt::format("seed {} case {}: {}", seed, i, test::Label(spec)));
    VirtualHostsOptions options{.wait = static_cast<WaitMode>(random.Below(3))};
    if (random.Coin()) options.nic = RandomNic(random);
    if (random.Coin()) options.host = RandomHost(random);
    if (random.Coin()) {
      options.host.system_call = Picoseconds{random.Below(2'000)} * kNs;
      options.host.system_copy_rate = random.Pick(std::array{1e8, 5e9, 1e11});
    }
    const auto run = RunHosts(plan, network, options);
    ASSERT_TRUE(run.ok()) << run.status().ToString();
    for (const CutBound& cut : BoundSeconds(network, spec.root, *spec.message_bytes)) {
      ASSERT_GE(static_cast<double>(run->groups[0].completion), cut.seconds * 1e12 * (1 - 1e-9))
          << cut.cut;
    }
  }
}

// A root that has two receivers at once: both have the block at 2 T, or one after the other.
TEST(VirtualPropertiesTest, HowAPortIsSharedIsSeen) {
  const Plan plan = test::CompileOrDie({.nodes = 3,
                                        .message_bytes = kBlockBytes,
                                        .block_bytes = kBlockBytes,
                                        .algorithm = "sequential",
                                        .ready = *ParseReady("channel"),
                                        .send_window = *ParseSendWindow("none")});
  const Picoseconds block = kBlockBytes * kNs;
  for (const PortSharing sharing : kPortSharings) {
    const bool is_fifo = sharing == PortSharing::kFifo;
    const NicCosts costs{.port_sharing = sharing};
    const auto posted = RunVirtualOffload(plan, OneRack(3), {.costs = costs});
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
  return other;
}

std::vector<uint32_t> RandomOrder(test::Random& random, size_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  random.Shuffle(order);
  return order;
}

// The same multicast with other numbers for nodes and racks, by both executors. A host rings its
// doorbells, and a queue has its WAITs, in the order of numbers, so what each of these costs is 0.
TEST(VirtualPropertiesTest, RenumberingNodesAndRacksPermutesTimes) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 150; ++i) {
    const Topology topology = test::RandomTopology(random, 5);
    const auto nodes = static_cast<uint32_t>(topology.hosts.size());
    const Network network = *NetworkOf(topology, nodes);
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
    NicCosts costs = RandomNic(random);
    costs.doorbell_interval = costs.wait = 0;
    const PortSharing sharing = std::exchange(costs.port_sharing, PortSharing::kPerQp);
    const Plan plan = test::CompileOrDie(spec), other_plan = test::CompileOrDie(other_spec);
    const auto run = RunVirtualOffload(plan, network, {.costs = costs});
    const auto other_run = RunVirtualOffload(other_plan, other, {.costs = costs});
    ASSERT_TRUE(run.ok() && other_run.ok());
    // Of hosts that take time, too, the plan being the same; else what they do first goes by number.
    const VirtualHostsOptions ideal{.nic = costs};
    const auto hosts = RunHosts(plan, network, ideal);
    const auto other_hosts = RunHosts(other_plan, other, ideal);
    ASSERT_TRUE(hosts.ok() && other_hosts.ok());
    std::vector<NodeId> moved;
    for (const uint32_t n : new_node) moved.push_back(NodeId(n));
    const VirtualGroup group{.plan = &plan, .hosts = moved};
    // A port that sends one message at a time has those that are ready at once in the order of QPs,
    // which are the plan's.
    costs.port_sharing = sharing;
    const VirtualHostsOptions busy{.nic = costs, .host = RandomHost(random)};
    const auto here = RunHosts(plan, network, busy);
    const auto there = RunVirtualHosts({&group, 1}, other, busy);
    const auto posted_here = RunVirtualOffload(plan, network, {.costs = costs});
    const auto posted_there = RunVirtualOffloads({&group, 1}, other, {.costs = costs});
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
}  // namespace prepost::emulated
