// SPDX-License-Identifier: Apache-2.0
//
// Several groups at once in virtual time, preposted and CPU-driven: what they share and what they
// do not, who starts when, and that a group alone is the single run that other tests know.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "compiler/schedules/schedule.h"
#include "sim/runs/cpu_driven.h"
#include "sim/runs/group.h"
#include "sim/runs/preposted.h"
#include "tests/support/networks.h"
#include "tests/support/plans.h"
#include "tests/support/preposted_alone.h"
#include "tests/support/random.h"

namespace prepost::sim::groups_test {
namespace {

using testing::HasSubstr;

constexpr uint64_t kBlockBytes = 1000;
constexpr Picoseconds kUs = 1000 * kPicosecondsPerNanosecond;
constexpr Picoseconds kBlockTime = kUs;  // of kBlockBytes at the rate of MakeNetwork()

/// 1 byte per ns and no latency.
Network MakeNetwork(uint32_t nodes) { return test::OneRack(nodes, 1e9); }

VerifiedPlan PlanFor(const std::string& algorithm, uint32_t nodes, uint32_t blocks) {
  return test::PlanWithWindowsOf1(algorithm, nodes, blocks, kBlockBytes);
}

std::vector<NodeId> Hosts(std::vector<uint32_t> numbers) {
  std::vector<NodeId> hosts;
  for (const uint32_t number : numbers) hosts.push_back(NodeId(number));
  return hosts;
}

/// What both executors report about a group.
struct Times {
  Picoseconds start = 0;
  Picoseconds completion = 0;
  std::vector<Picoseconds> nodes;

  friend bool operator==(const Times&, const Times&) = default;
};
void PrintTo(const Times& times, std::ostream* out) {
  *out << fmt::format("{} to {}: {}", times.start, times.completion, fmt::join(times.nodes, " "));
}

template <typename Run>
std::vector<Times> TimesOf(const Result<Run>& run) {
  EXPECT_TRUE(run.ok()) << run.status().ToString();
  std::vector<Times> all;
  if (!run.ok()) return all;
  for (const auto& group : run->groups) {
    Times& times = all.emplace_back(Times{group.start, group.completion, {}});
    for (const auto& node : group.nodes) times.nodes.push_back(node.completion);
    EXPECT_EQ(group.completion, std::ranges::max(times.nodes));
  }
  return all;
}

enum class Kind { kOffload, kHosts };

/// One of them; all that takes time beside links is `nic`, or nothing.
class GroupsTest : public testing::TestWithParam<Kind> {
 protected:
  static std::vector<Times> Run(const std::vector<Group>& groups, const Network& network,
                                const NicCosts& nic = {}) {
    if (GetParam() == Kind::kOffload) {
      return TimesOf(RunPreposted(groups, network, {.costs = nic}));
    }
    return TimesOf(RunCpuDriven(groups, network, {.nic = nic, .host = {.cores = 64}}));
  }
  static std::string ErrorOf(const std::vector<Group>& groups, const Network& network) {
    return GetParam() == Kind::kOffload ? RunPreposted(groups, network).status().ToString()
                                        : RunCpuDriven(groups, network).status().ToString();
  }
};

INSTANTIATE_TEST_SUITE_P(Both, GroupsTest, testing::Values(Kind::kOffload, Kind::kHosts),
                         [](const auto& test) {
                           return test.param == Kind::kOffload ? "Offload" : "Hosts";
                         });

TEST_P(GroupsTest, OppositeDirectionsDoNotNoticeEachOther) {
  const VerifiedPlan plan = PlanFor("chain", 2, 10);
  const auto times =
      Run({{.plan = &plan}, {.plan = &plan, .hosts = Hosts({1, 0})}}, MakeNetwork(2));
  ASSERT_EQ(times.size(), 2u);
  for (const Times& group : times) EXPECT_EQ(group.completion, 10 * kBlockTime);
}

TEST_P(GroupsTest, TheSameDirectionIsSharedFairly) {
  const VerifiedPlan plan = PlanFor("chain", 2, 10);
  const VerifiedPlan longer = PlanFor("chain", 2, 25);
  const auto times =
      Run({{.plan = &plan}, {.plan = &longer}, {.plan = &longer}, {.plan = &plan}}, MakeNetwork(2));
  ASSERT_EQ(times.size(), 4u);
  // Four share the port until the short ones are through, then two.
  EXPECT_EQ(times[0].completion, 4 * 10 * kBlockTime);
  EXPECT_EQ(times[3].completion, 4 * 10 * kBlockTime);
  EXPECT_EQ(times[1].completion, (4 * 10 + 2 * 15) * kBlockTime);
  EXPECT_EQ(times[2].completion, (4 * 10 + 2 * 15) * kBlockTime);
}

// All of them start at node 0: its port has the sum to carry.
TEST_P(GroupsTest, GroupsOnOnePortTakeTheSum) {
  const VerifiedPlan plan = PlanFor("chain", 3, 8);
  std::vector<Group> groups;
  for (uint32_t i = 0; i < 5; ++i) {
    groups.push_back({.plan = &plan, .hosts = Hosts({0, 1 + 2 * i, 2 + 2 * i})});
  }
  for (const Times& group : Run(groups, MakeNetwork(11))) {
    // Each block takes five times as long to leave node 0, and then goes on alone.
    EXPECT_EQ(group.nodes[0], 5 * 8 * kBlockTime);
    EXPECT_EQ(group.completion, 5 * 8 * kBlockTime + kBlockTime);
  }
}

// Rotated roots, as in RDMC's figure 10: every port carries what all groups together need, and the
// last byte of no group comes before that could be.
TEST_P(GroupsTest, RotatedGroupsFillEveryPort) {
  for (const char* algorithm : {"sequential", "chain", "binomial_pipeline"}) {
    for (const uint32_t nodes : {3u, 4u, 8u}) {
      const VerifiedPlan plan = PlanFor(algorithm, nodes, 12);
      std::vector<Group> groups;
      for (uint32_t g = 0; g < nodes; ++g) {
        std::vector<NodeId> hosts;
        for (uint32_t i = 0; i < nodes; ++i) hosts.push_back(NodeId((i + g) % nodes));
        groups.push_back({.plan = &plan, .hosts = hosts});
      }
      const std::vector<Times> times = Run(groups, MakeNetwork(nodes));
      const Picoseconds ports = Picoseconds{nodes - 1} * 12 * kBlockTime;
      Picoseconds last = 0;
      for (const Times& group : times) last = std::max(last, group.completion);
      EXPECT_GE(last, ports) << algorithm << " n=" << nodes;
      // By symmetry all are through at the same time.
      for (const Times& group : times) EXPECT_EQ(group.completion, last);
      if (std::string(algorithm) == "sequential") {
        EXPECT_EQ(last, ports);
      }
    }
  }
}

// The nodes of a chain are complete one after the other.
TEST_P(GroupsTest, OneComesAfterTheOther) {
  for (const char* algorithm : {"binomial_pipeline", "chain"}) {
    SCOPED_TRACE(algorithm);
    const VerifiedPlan plan = PlanFor(algorithm, 6, 9);
    const Picoseconds alone = Run({{.plan = &plan}}, MakeNetwork(6))[0].completion;
    EXPECT_EQ(alone, plan.header().rounds * kBlockTime);
    const auto times = Run({{.plan = &plan, .start = 3 * kUs},
                            {.plan = &plan, .start = kUs, .after = 0},
                            {.plan = &plan, .after = 1},
                            {.plan = &plan, .start = 10 * alone, .after = 1},
                            {.plan = &plan, .hosts = Hosts({8, 9, 10, 6, 7, 11}), .after = 0}},
                           MakeNetwork(12));
    ASSERT_EQ(times.size(), 5u);
    const std::vector<Picoseconds> starts = {3 * kUs, 3 * kUs + alone, 3 * kUs + 2 * alone,
                                             10 * alone, 3 * kUs + alone};
    for (size_t i = 0; i < times.size(); ++i) {
      EXPECT_EQ(times[i].start, starts[i]) << i;
      EXPECT_EQ(times[i].completion, starts[i] + alone) << i;
    }
  }
}

// Catches a start at the last final CQE on one side, and at the last host's notice of it on the
// other. One block, and its acknowledgement, take what the network needs; then the host sees it.
TEST_P(GroupsTest, TheNextStartsWhenAllHostsKnow) {
  const VerifiedPlan plan = test::CompileOrDie({.nodes = 2,
                                                .message_bytes = kBlockBytes,
                                                .block_bytes = kBlockBytes,
                                                .algorithm = "chain",
                                                .ready = *ParseReady("barrier")});
  Network network = MakeNetwork(3);
  network.rack_latency = 1e-6;
  const std::vector<Group> groups = {{.plan = &plan},
                                     {.plan = &plan, .hosts = Hosts({1, 2}), .after = 0},
                                     {.plan = &plan, .after = 1}};
  const HostCosts host = {.cores = 64, .poll = 2'000, .completion = 5'000, .interrupt = 29'000};
  for (const WaitMode wait : {WaitMode::kPolling, WaitMode::kInterrupt}) {
    SCOPED_TRACE(Name(wait));
    const Picoseconds final_cqe = kBlockTime + 2 * kUs;
    const Picoseconds knows = final_cqe + (wait == WaitMode::kInterrupt ? host.interrupt : 0) +
                              host.poll + host.completion;
    const auto times = GetParam() == Kind::kOffload
                           ? TimesOf(RunPreposted(groups, network, {.host = host, .wait = wait}))
                           : TimesOf(RunCpuDriven(groups, network, {.host = host, .wait = wait}));
    ASSERT_EQ(times.size(), groups.size());
    for (size_t i = 0; i < times.size(); ++i)
      EXPECT_EQ(times[i].start, static_cast<Picoseconds>(i) * knows) << i;
  }
}

// Neighbours leave a core that nobody used to who comes: catches threads that poll on when they are
// done.
TEST(GroupsOfHostsTest, ThreadsThatAreDoneDoNotKeepTheCore) {
  const VerifiedPlan plan = test::CompileOrDie({.nodes = 2,
                                                .message_bytes = 10 * kBlockBytes,
                                                .block_bytes = kBlockBytes,
                                                .algorithm = "chain",
                                                .ready = *ParseReady("barrier")});
  const HostCosts host = {
      .completion = kUs * 3 / 10, .interrupt = kUs, .neighbours = 1, .slice = 7 * kUs};
  for (const WaitMode wait : {WaitMode::kPolling, WaitMode::kHybrid, WaitMode::kInterrupt}) {
    SCOPED_TRACE(Name(wait));
    const Picoseconds start = 1'000 * kUs;
    const std::vector<Group> groups = {{.plan = &plan},
                                       {.plan = &plan, .start = start + 5 * kUs, .after = 0},
                                       {.plan = &plan, .start = 2 * start, .after = 1}};
    const auto times = TimesOf(RunCpuDriven(groups, MakeNetwork(2), {.host = host, .wait = wait}));
    ASSERT_EQ(times.size(), groups.size());
    for (const Times& it : times)
      EXPECT_EQ(it.completion - it.start, times[0].completion - times[0].start);
  }
}

NicCosts RandomCosts(test::Random& random) {
  return {.wqe = random.Coin() ? random.Below(200'000) : 0,
          .wait = random.Coin() ? random.Below(200'000) : 0,
          .cqe = random.Coin() ? random.Below(300'000) : 0,
          .doorbell = random.Coin() ? random.Below(500'000) : 0,
          .message_overhead_bytes = random.Coin() ? random.Below(200) : 0};
}

// Whatever the plan, on whichever hosts, whenever it starts: to the picosecond.
TEST_P(GroupsTest, AGroupAloneIsTheSingleRun) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 150; ++i) {
    const Spec spec = test::RandomSpec(random, {.nodes_max = 12, .blocks_max = 20});
    SCOPED_TRACE(fmt::format("seed {} case {}: {}", seed, i, test::Label(spec)));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const uint32_t nodes = plan.header().nodes;
    const NicCosts nic = RandomCosts(random);
    Network network = MakeNetwork(nodes);
    network.rack_latency = random.Below(3) * 1e-6;
    const std::vector<Picoseconds> single = Run({{.plan = &plan}}, network, nic)[0].nodes;
    const Picoseconds start = random.Coin() ? 0 : Picoseconds{random.Below(100 * kUs)};
    Network larger = MakeNetwork(nodes + 3);
    larger.rack_latency = network.rack_latency;
    std::vector<uint32_t> hosts(nodes + 3);
    std::iota(hosts.begin(), hosts.end(), 0u);
    random.Shuffle(hosts);
    hosts.resize(nodes);
    const auto times = Run({{.plan = &plan, .hosts = Hosts(hosts), .start = start}}, larger, nic);
    ASSERT_EQ(times.size(), 1u);
    EXPECT_EQ(times[0].start, start);
    for (uint32_t n = 0; n < nodes; ++n) ASSERT_EQ(times[0].nodes[n], start + single[n]) << n;
  }
}

/// Groups of random members, some after others.
std::vector<Group> RandomGroups(test::Random& random, const std::vector<VerifiedPlan>& plans,
                                uint32_t hosts) {
  std::vector<Group> groups;
  for (uint32_t i = 0, count = random.Between(2, 7); i < count; ++i) {
    Group& group = groups.emplace_back();
    group.plan = &plans[random.Below(plans.size())];
    std::vector<uint32_t> members(hosts);
    std::iota(members.begin(), members.end(), 0u);
    random.Shuffle(members);
    members.resize(group.plan->header().nodes);
    group.hosts = Hosts(members);
    if (random.Coin()) group.start = Picoseconds{random.Below(20 * kUs)};
    if (i != 0 && random.Coin()) group.after = random.Below(i);
  }
  return groups;
}

// Also: every group delivers, whatever goes on beside it, and nothing comes before it can.
TEST_P(GroupsTest, RenumberingHostsChangesNothing) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  const uint32_t hosts = 9;
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(fmt::format("seed {} case {}", seed, i));
    std::vector<VerifiedPlan> plans;
    for (int p = 0; p < 3; ++p) {
      plans.push_back(PlanFor(random.Pick(std::array{"chain", "binomial_pipeline", "circulant"}),
                              random.Between(2, hosts), random.Between(1, 8)));
    }
    const std::vector<Group> groups = RandomGroups(random, plans, hosts);
    NicCosts nic = RandomCosts(random);
    nic.doorbell = nic.wait = 0;  // they follow numbers (docs/simulate.md)
    const std::vector<Times> times = Run(groups, MakeNetwork(hosts), nic);
    EXPECT_EQ(Run(groups, MakeNetwork(hosts), nic), times);
    std::vector<uint32_t> new_host(hosts);
    std::iota(new_host.begin(), new_host.end(), 0u);
    random.Shuffle(new_host);
    std::vector<Group> others = groups;
    for (Group& group : others) {
      for (NodeId& host : group.hosts) host = NodeId(new_host[host.index()]);
    }
    EXPECT_EQ(Run(others, MakeNetwork(hosts), nic), times);
    for (size_t g = 0; g < groups.size(); ++g) {
      const PlanHeader& header = groups[g].plan->header();
      EXPECT_GE(times[g].start, groups[g].start);
      const Picoseconds before = groups[g].after ? times[*groups[g].after].completion : 0;
      EXPECT_GE(times[g].start, before);
      EXPECT_GE(times[g].completion - times[g].start, header.payload.blocks * kBlockTime);
    }
  }
}

// A program that is freed before its doorbells are rung, which needs it.
TEST(PrepostedGroupsTest, WithoutKeptCqesAGroupStartsLate) {
  const VerifiedPlan plan = PlanFor("binomial_pipeline", 9, 20);
  const std::vector<Group> soon = {{.plan = &plan}};
  const std::vector<Group> later = {{.plan = &plan, .start = 5 * kUs}};
  for (const auto mode : {nic::LoweringMode::kInline, nic::LoweringMode::kManaged}) {
    const auto at_once =
        RunPreposted(soon, MakeNetwork(9), {.lower = {.mode = mode}, .keep_cqes = false});
    const auto late =
        RunPreposted(later, MakeNetwork(9), {.lower = {.mode = mode}, .keep_cqes = false});
    ASSERT_TRUE(at_once.ok() && late.ok());
    for (size_t n = 0; n < 9; ++n) {
      EXPECT_EQ(late->groups[0].nodes[n].completion,
                at_once->groups[0].nodes[n].completion + 5 * kUs);
    }
  }
}

// Rings that are re-armed, and CQEs that are not kept, are each group's own business.
TEST(PrepostedGroupsTest, GroupsWithShortRings) {
  const VerifiedPlan plan = PlanFor("binomial_pipeline", 5, 30);
  const nic::DeviceProfile tiny = {.name = "tiny", .sq_wqebbs = 16, .rq_wqes = 16};
  const std::vector<Group> groups = {{.plan = &plan},
                                     {.plan = &plan, .hosts = Hosts({4, 2, 0, 1, 3})},
                                     {.plan = &plan, .after = 0}};
  const auto all = RunPreposted(groups, MakeNetwork(5));
  for (const bool keep : {true, false}) {
    const auto run =
        RunPreposted(groups, MakeNetwork(5), {.lower = {.profile = tiny}, .keep_cqes = keep});
    ASSERT_TRUE(run.ok()) << run.status().ToString();
    EXPECT_EQ(TimesOf(run), TimesOf(all));
    for (const PrepostedResult::Group& group : run->groups) {
      uint64_t rearms = 0;
      for (const PrepostedAlone::Node& node : group.nodes) rearms += node.rearms;
      EXPECT_GT(rearms, 0u);
    }
  }
}

/// Blocks of a megabyte, ready window=1 and send_window=1, a path of factor `a` between every two
/// nodes of some pair: bandwidth, of that without it.
double Kept(Kind kind, const VerifiedPlan& plan, NodeId from, NodeId to, double a) {
  const uint32_t nodes = plan.header().nodes;
  const auto time = [&](const Network& network) {
    const Group group{.plan = &plan};
    return static_cast<double>(kind == Kind::kOffload
                                   ? TimesOf(RunPreposted({&group, 1}, network))[0].completion
                                   : TimesOf(RunCpuDriven({&group, 1}, network))[0].completion);
  };
  Network slow = MakeNetwork(nodes);
  slow.pairs.push_back({from, to, 1e9 * a});
  return time(MakeNetwork(nodes)) / time(slow);
}

// RDMC 4.5: the binomial pipeline uses a path in one round of l = log2 n only, so one of factor a
// takes l + 1/a - 1 rounds where l were: l a / (1 + (l - 1) a) of the bandwidth is kept. A chain
// uses it in each. Whichever path it is, of those that it uses.
TEST_P(GroupsTest, OneSlowPathCostsAPipelineLittle) {
  for (const uint32_t l : {2u, 3u, 4u, 6u}) {
    const uint32_t nodes = 1 << l;
    const VerifiedPlan plan = PlanFor("binomial_pipeline", nodes, 240);
    const VerifiedPlan chain = PlanFor("chain", nodes, 240);
    for (const double a : {0.9, 0.5, 0.2}) {
      SCOPED_TRACE(fmt::format("n={} a={}", nodes, a));
      const double kept = l * a / (1 + (l - 1) * a);
      EXPECT_NEAR(Kept(GetParam(), plan, NodeId(0), NodeId(1), a), kept, 0.02);
      EXPECT_NEAR(Kept(GetParam(), plan, NodeId(nodes - 1), NodeId(nodes / 2 - 1), a), kept, 0.02);
      const double steps = 240 + nodes - 2;
      EXPECT_NEAR(Kept(GetParam(), chain, NodeId(0), NodeId(1), a), steps / (steps + 240 / a - 240),
                  1e-3);
    }
  }
}

// All that goes from one host to another has the path's rate together, whichever group it is of.
TEST_P(GroupsTest, GroupsShareASlowPath) {
  const VerifiedPlan plan = PlanFor("chain", 2, 10);
  Network network = MakeNetwork(3);
  network.pairs = {{NodeId(0), NodeId(2), 0.25e9}};
  const auto times = Run({{.plan = &plan, .hosts = Hosts({0, 2})},
                          {.plan = &plan, .hosts = Hosts({0, 2})},
                          {.plan = &plan, .hosts = Hosts({0, 1})},
                          {.plan = &plan, .hosts = Hosts({2, 0})}},
                         network);
  ASSERT_EQ(times.size(), 4u);
  EXPECT_EQ(times[0].completion, 2 * 4 * 10 * kBlockTime);
  EXPECT_EQ(times[1].completion, 2 * 4 * 10 * kBlockTime);
  EXPECT_NEAR(static_cast<double>(times[2].completion), 10 * kBlockTime / 0.75, 20);
  EXPECT_EQ(times[3].completion, 10 * kBlockTime);
}

TEST_P(GroupsTest, SaysWhatCannotBeRun) {
  const VerifiedPlan plan = PlanFor("chain", 3, 2);
  const Group all{.plan = &plan};
  EXPECT_EQ(ErrorOf({all, {.plan = &plan, .hosts = Hosts({0, 2, 2})}}, MakeNetwork(4)),
            "group 1: host 2 is there twice");
  EXPECT_EQ(ErrorOf({all, {.plan = &plan, .after = 1}}, MakeNetwork(4)),
            "group 1: it comes after group 1, expected an earlier one");
  EXPECT_EQ(ErrorOf({all, all, {.plan = &plan, .start = -5}}, MakeNetwork(4)),
            "group 2: it starts at -5 ps");
  EXPECT_EQ(ErrorOf({all}, MakeNetwork(2)), "group 0: a plan of 3 nodes for 2 hosts");
  EXPECT_EQ(ErrorOf({}, MakeNetwork(2)), "");
}

}  // namespace
}  // namespace prepost::sim::groups_test
