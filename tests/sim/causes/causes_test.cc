// SPDX-License-Identifier: Apache-2.0
//
// Time by cause and critical paths: for every schedule, both executors and all shipped profiles
// they add up to what the run took, to the picosecond, nothing is left unexplained, and telling
// changes nothing. And closed forms of two nodes, and of the RDMC paper's Table 1.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "compiler/schedules/schedule.h"
#include "sim/causes/time_by_cause.h"
#include "sim/cluster/profile.h"
#include "sim/network/link_traffic.h"
#include "sim/runs/cpu_driven.h"
#include "sim/runs/preposted.h"
#include "tests/support/networks.h"
#include "tests/support/plans.h"
#include "tests/support/preposted_alone.h"
#include "tests/support/random.h"

namespace prepost::sim::causes_test {
namespace {

constexpr Picoseconds kNs = kPicosecondsPerNanosecond;
constexpr Picoseconds kUs = 1000 * kNs;
constexpr std::array kProfiles = {"apt", "fractus", "ndr400", "sierra", "stampede", "tcp-10g"};

Profile ReadProfileOf(const std::string& name) {
  const std::string path = PREPOST_SOURCE_DIR "/examples/profiles/" + name + ".json";
  std::ifstream in(path);
  Result<Profile> profile = ReadProfile(in, path);
  EXPECT_TRUE(profile.ok()) << profile.status().ToString();
  return profile.ok() ? *std::move(profile) : Profile{};
}

/// What both executors say of the same thing.
struct Ran {
  std::vector<Picoseconds> completions;  ///< by node
  std::vector<Picoseconds> received;     ///< by node: its last block is there
  Picoseconds known = 0;                 ///< by all hosts
  std::vector<LinkUse> uses;
  uint64_t retries = 0;           ///< for receives
  uint64_t rearms = 0;            ///< of rings
  Picoseconds stopped = 0;        ///< hosts, by delays and preemptions
  std::vector<uint64_t> wakeups;  ///< by node
};

Ran RunOffload(const VerifiedPlan& plan, const Network& network, const PrepostedOptions& options) {
  const auto run = RunPrepostedAlone(plan, network, options);
  EXPECT_TRUE(run.ok()) << run.status().ToString();
  Ran ran;
  if (!run.ok()) return ran;
  for (const auto& node : run->nodes) {
    ran.completions.push_back(node.completion);
    ran.received.push_back(node.received);
    ran.known = std::max(ran.known, node.known);
    ran.rearms += node.rearms;
    ran.wakeups.push_back(node.wakeups);
  }
  ran.retries = run->counters.rnr_retries;
  for (const auto& link : run->links) ran.uses.push_back(link.use);
  return ran;
}

Ran RunHosts(const VerifiedPlan& plan, const Network& network, const CpuDrivenOptions& options) {
  const Group group{.plan = &plan};
  const auto run = RunCpuDriven({&group, 1}, network, options);
  EXPECT_TRUE(run.ok()) << run.status().ToString();
  Ran ran;
  if (!run.ok()) return ran;
  for (const auto& node : run->groups[0].nodes) {
    ran.completions.push_back(node.completion);
    ran.received.push_back(node.received);
    ran.known = std::max(ran.known, node.completion);
    ran.wakeups.push_back(node.work.wakeups);
  }
  for (const auto& host : run->hosts) ran.stopped += host.delayed;
  ran.retries = run->counters.rnr_retries;
  for (const auto& link : run->links) ran.uses.push_back(link.use);
  return ran;
}

Picoseconds SumOf(const CauseTimes& times) {
  return std::accumulate(times.begin(), times.end(), Picoseconds{0});
}

/// The headline's time, to the last receiver's data, and what comes after it.
void ExpectHeadlineExplained(const TimeTrail& trail, const VerifiedPlan& plan, const Ran& ran) {
  Picoseconds completion = 0;
  for (uint32_t i = 0; i < ran.received.size(); ++i) {
    if (NodeId(i) != plan.header().collective.root)
      completion = std::max(completion, ran.received[i]);
  }
  const std::vector<PathLink> path = CriticalPath(trail, CompletionOf(trail, 0));
  ASSERT_EQ(SumOf(SumOf(path)), completion);
  if (!path.empty()) {
    ASSERT_NE(path.back().message, kNoMessage) << "it ends with a block";
    ASSERT_EQ(path.back().until, completion);
  }
  const CauseTimes after = SumOf(CriticalPath(trail, KnownOf(trail, 0), completion));
  ASSERT_EQ(SumOf(after), ran.known - completion);
}

void ExpectExplained(const TimeTrail& trail, const VerifiedPlan& plan, const Ran& ran) {
  for (uint32_t i = 0; i < ran.completions.size(); ++i) {
    SCOPED_TRACE(fmt::format("node {}", i));
    const Picoseconds completion = ran.completions[i];
    const StepId end = trail.EndOf(0, NodeId(i));
    ASSERT_EQ(trail.step(end).at, completion);
    const std::vector<PathLink> path = CriticalPath(trail, end);
    const CauseTimes times = SumOf(path);
    ASSERT_EQ(SumOf(times), completion);
    ASSERT_EQ(times[static_cast<size_t>(TimeCause::kOther)], 0);
    ASSERT_EQ(times[static_cast<size_t>(TimeCause::kStart)], 0);
    // What has not happened takes no time: these stand for what is not known better.
    if (ran.retries == 0) {
      ASSERT_EQ(times[static_cast<size_t>(TimeCause::kRetry)], 0);
    }
    if (ran.rearms == 0) {
      ASSERT_EQ(times[static_cast<size_t>(TimeCause::kRearm)], 0);
    }
    ASSERT_LE(times[static_cast<size_t>(TimeCause::kStopped)], ran.stopped);
    size_t folded = 0;
    for (const PathRun& run : Fold(trail, path)) {
      ASSERT_EQ(run.first, folded);
      folded += run.count * run.times;
    }
    ASSERT_EQ(folded, path.size());
    const NodeTimes parts = TimesOf(trail, 0, NodeId(i));
    ASSERT_EQ(parts.sum(), completion);
    const std::span<const Picoseconds> wakeups = trail.WakeupsOf(0, NodeId(i));
    ASSERT_EQ(wakeups.size(), ran.wakeups[i]);
    ASSERT_TRUE(std::ranges::is_sorted(wakeups));
    ASSERT_TRUE(wakeups.empty() || wakeups.back() <= ran.known);
    for (const Picoseconds part : {parts.remote_setup, parts.remote_transfers, parts.local_setup,
                                   parts.transfers, parts.copy, parts.waiting}) {
      ASSERT_GE(part, 0);
    }
    if (NodeId(i) == plan.header().collective.root) {
      ASSERT_EQ(parts.remote_setup + parts.remote_transfers, 0);
    }
  }
  ASSERT_NO_FATAL_FAILURE(ExpectHeadlineExplained(trail, plan, ran));
  for (const TimedMessage& it : trail.messages()) {
    ASSERT_NE(it.departed, kNotSeen);
    ASSERT_LE(it.departed, it.left);
    ASSERT_LE(it.left, it.arrived);
    ASSERT_LE(it.arrived, it.landed);
    ASSERT_EQ(trail.step(it.landed_step).at, it.landed);
    if (it.acknowledged != kNotSeen) {
      ASSERT_LE(it.landed, it.acknowledged);
    }
  }
}

void ExpectSame(const Ran& a, const Ran& b) {
  ASSERT_EQ(a.completions, b.completions);
  ASSERT_EQ(a.uses.size(), b.uses.size());
  for (size_t i = 0; i < a.uses.size(); ++i) {
    ASSERT_EQ(a.uses[i].bytes, b.uses[i].bytes);
    ASSERT_EQ(a.uses[i].busy, b.uses[i].busy);
  }
}

VerifiedPlan PlanFor(const std::string& algorithm, uint32_t nodes, uint32_t blocks,
                     uint64_t block_bytes, const char* ready = "auto",
                     const char* send_window = "auto") {
  return test::CompileOrDie({.nodes = nodes,
                             .message_bytes = blocks * block_bytes,
                             .block_bytes = block_bytes,
                             .algorithm = algorithm,
                             .ready = *ParseReady(ready),
                             .send_window = *ParseSendWindow(send_window)});
}

// Catches whatever takes time and is not reported, reported twice, or reported for the wrong one.
TEST(CausesTest, EverySchedulesTimeAddsUpInEveryProfile) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  test::Random random(seed);
  for (const std::string& algorithm : test::SchedulesToRun()) {
    for (const char* name : kProfiles) {
      const Profile profile = ReadProfileOf(name);
      const char* ready =
          random.Pick(std::array{"auto", "window=1", "window=2", "channel", "retry"});
      const char* window = random.Pick(std::array{"auto", "1", "2", "none"});
      const VerifiedPlan plan =
          PlanFor(algorithm, 1 + random.Below(40), 1 + random.Below(9),
                  random.Pick(std::array{1ull, 4096ull, 1ull << 18}), ready, window);
      const Network network = profile.NetworkOf(plan.header().nodes);
      SCOPED_TRACE(fmt::format("{} {} n={} k={} ready={} send_window={}", algorithm, name,
                               plan.header().nodes, plan.header().payload.blocks, ready, window));
      if (!profile.is_tcp) {
        const auto mode = random.Coin() ? nic::LoweringMode::kInline : nic::LoweringMode::kManaged;
        PrepostedOptions options = {
            .costs = profile.nic,
            .host = profile.host,
            .wait = random.Pick(std::array{WaitMode::kPolling, WaitMode::kInterrupt}),
            .lower = {.mode = mode}};
        const Ran plain = RunOffload(plan, network, options);
        TimeTrail trail;
        options.trail = &trail;
        const Ran told = RunOffload(plan, network, options);
        SCOPED_TRACE(Name(mode));
        ASSERT_NO_FATAL_FAILURE(ExpectSame(plain, told));
        ASSERT_NO_FATAL_FAILURE(ExpectExplained(trail, plan, told));
      }
      CpuDrivenOptions options = {.nic = profile.nic,
                                  .host = profile.host,
                                  .wait = random.Pick(std::array{
                                      WaitMode::kPolling, WaitMode::kHybrid, WaitMode::kInterrupt}),
                                  .seed = seed};
      options.host.hybrid_polling = random.Below(100) * kUs;
      if (random.Coin()) {
        options.host.preemptions_per_second = 2000;
        options.host.preemption_length = 20 * kUs;
      }
      if (random.Coin())
        options.delays = {{NodeId(random.Below(plan.header().nodes)), 30 * kUs, 55 * kUs}};
      const Ran plain = RunHosts(plan, network, options);
      TimeTrail trail;
      options.trail = &trail;
      const Ran told = RunHosts(plan, network, options);
      SCOPED_TRACE(Name(options.wait));
      ASSERT_NO_FATAL_FAILURE(ExpectSame(plain, told));
      ASSERT_NO_FATAL_FAILURE(ExpectExplained(trail, plan, told));
    }
  }
}

// The same without any costs, where many things happen at one time; and with rings that are short.
TEST(CausesTest, NoCostsAndShortRingsAddUp) {
  for (const std::string& algorithm : test::SchedulesToRun()) {
    const Network network = Network::Uniform(11);
    SCOPED_TRACE(algorithm);
    for (const bool is_short : {false, true}) {
      const VerifiedPlan plan = PlanFor(algorithm, 11, 40, 1000, is_short ? "window=1" : "auto");
      for (const Picoseconds cost : {Picoseconds{0}, 100 * kNs}) {
        PrepostedOptions options = {
            .costs = {.wqe = cost, .wait = cost, .cqe = cost, .doorbell = cost}};
        options.host = {.post_send = cost, .post_receive = cost, .poll = cost};
        if (is_short) options.lower.profile.sq_wqebbs = options.lower.profile.rq_wqes = 16;
        TimeTrail trail, host_trail;
        options.trail = &trail;
        const Ran ran = RunOffload(plan, network, options);
        ASSERT_NO_FATAL_FAILURE(ExpectExplained(trail, plan, ran));
        CpuDrivenOptions hosts = {.nic = options.costs, .trail = &host_trail};
        if (is_short) hosts.ring_wqes_max = 2;
        const Ran driven = RunHosts(plan, network, hosts);
        ASSERT_NO_FATAL_FAILURE(ExpectExplained(host_trail, plan, driven));
      }
    }
  }
}

/// The rate of a block per us, two nodes, `blocks` blocks without credits.
struct TwoNodes {
  explicit TwoNodes(uint32_t blocks) : plan(PlanFor("chain", 2, blocks, 1000, "barrier", "1")) {
    for (Network::Node& node : network.nodes) node.out_rate = node.in_rate = 1e9;
    network.rack_latency = 1e-6;
  }
  VerifiedPlan plan;
  Network network = Network::Uniform(2);
};

/// Of the last node's path, the time of one cause.
Picoseconds Of(const CauseTimes& times, TimeCause cause) {
  return times[static_cast<size_t>(cause)];
}

// docs/simulate.md: doorbell + wqe + wire + L + cqe + wait + wqe + cqe.
TEST(CausesTest, OneMessagePrepostedIsTheSumInTheDocs) {
  const TwoNodes two(1);
  TimeTrail trail;
  const NicCosts costs = {.wqe = 7 * kNs, .wait = 11 * kNs, .cqe = 13 * kNs, .doorbell = 17 * kNs};
  RunOffload(two.plan, two.network, {.costs = costs, .trail = &trail});
  const std::vector<PathLink> path = CriticalPath(trail, trail.EndOf(0, NodeId(1)));
  ASSERT_EQ(path.size(), 2u);
  const std::vector<PathPart> first = {{TimeCause::kDoorbell, 17 * kNs},
                                       {TimeCause::kWqe, 7 * kNs},
                                       {TimeCause::kWire, kUs},
                                       {TimeCause::kLatency, kUs},
                                       {TimeCause::kCqe, 13 * kNs}};
  EXPECT_EQ(path[0].parts, first);
  const std::vector<PathPart> last = {
      {TimeCause::kWait, 11 * kNs}, {TimeCause::kWqe, 7 * kNs}, {TimeCause::kCqe, 13 * kNs}};
  EXPECT_EQ(path[1].parts, last);
  const NodeTimes parts = TimesOf(trail, 0, NodeId(1));
  EXPECT_EQ(parts.remote_transfers, 2 * kUs);
  EXPECT_EQ(parts.remote_setup, (17 + 7 + 13) * kNs);
  EXPECT_EQ(parts.waiting, (11 + 7 + 13) * kNs);
  EXPECT_EQ(parts.transfers + parts.copy + parts.local_setup, 0);
}

// k blocks with send_window=1: a block, its acknowledgement, the next.
TEST(CausesTest, BlocksOneAfterTheOtherFold) {
  const TwoNodes two(20);
  TimeTrail trail;
  const Ran ran = RunOffload(two.plan, two.network, {.trail = &trail});
  const std::vector<PathLink> path = CriticalPath(trail, trail.EndOf(0, NodeId(1)));
  const CauseTimes times = SumOf(path);
  EXPECT_EQ(Of(times, TimeCause::kWire), 20 * kUs);
  EXPECT_EQ(Of(times, TimeCause::kLatency) + Of(times, TimeCause::kAcknowledge),
            ran.completions[1] - 20 * kUs);
  const std::vector<PathRun> runs = Fold(trail, path);
  ASSERT_EQ(runs.size(), 2u) << "the first, and the others";
  EXPECT_EQ(runs[1].count * runs[1].times, 19u);
}

// Two that share one port: each takes twice its time, half of it because of the other.
TEST(CausesTest, WhatOthersTakeOfALinkIsSharing) {
  const VerifiedPlan plan = PlanFor("sequential", 3, 1, 1000, "barrier", "none");
  Network network = test::OneRack(3, 1e9);
  TimeTrail trail;
  RunOffload(plan, network, {.trail = &trail});
  for (const uint32_t node : {1u, 2u}) {
    const CauseTimes times = SumOf(CriticalPath(trail, trail.EndOf(0, NodeId(node))));
    EXPECT_EQ(Of(times, TimeCause::kWire), kUs);
    EXPECT_EQ(Of(times, TimeCause::kSharing), kUs);
  }
}

// Catches host work that is reported for the wrong block, or in the wrong part.
TEST(CausesTest, OneBlockCpuDrivenIsTheSumOfTheHosts) {
  const TwoNodes two(1);
  TimeTrail trail;
  CpuDrivenOptions options = {.host = {.post_send = 3 * kNs,
                                       .poll = 0,
                                       .completion = 5 * kNs,
                                       .interrupt = 29 * kNs,
                                       .message_start = 31 * kNs,
                                       .message_setup = 37 * kNs,
                                       .first_block_copy_rate = 1e12},
                              .wait = WaitMode::kInterrupt,
                              .trail = &trail};
  RunHosts(two.plan, two.network, options);
  const std::vector<PathLink> path = CriticalPath(trail, trail.EndOf(0, NodeId(1)));
  ASSERT_EQ(path.size(), 2u);
  const std::vector<PathPart> first = {{TimeCause::kSetUp, 31 * kNs},
                                       {TimeCause::kPost, 3 * kNs},
                                       {TimeCause::kWire, kUs},
                                       {TimeCause::kLatency, kUs}};
  EXPECT_EQ(path[0].parts, first);
  const std::vector<PathPart> last = {{TimeCause::kInterrupt, 29 * kNs},
                                      {TimeCause::kCompletion, 5 * kNs},
                                      {TimeCause::kSetUp, 37 * kNs},
                                      {TimeCause::kCopy, kNs}};
  EXPECT_EQ(path[1].parts, last);
  const NodeTimes parts = TimesOf(trail, 0, NodeId(1));
  EXPECT_EQ(parts.remote_transfers, 2 * kUs);
  EXPECT_EQ(parts.remote_setup, 34 * kNs);
  EXPECT_EQ(parts.local_setup, 37 * kNs);
  EXPECT_EQ(parts.copy, kNs);
  EXPECT_EQ(parts.waiting, 34 * kNs);
}

// A delay of a relay is on the path, as long as it is.
TEST(CausesTest, ADelayIsToldAsOne) {
  const VerifiedPlan plan = PlanFor("chain", 4, 10, 1000, "window=1", "1");
  Network network = test::OneRack(4, 1e9);
  TimeTrail trail;
  RunHosts(plan, network, {.delays = {{NodeId(1), 5 * kUs, 100 * kUs}}, .trail = &trail});
  const CauseTimes times = SumOf(CriticalPath(trail, trail.EndOf(0, NodeId(3))));
  EXPECT_EQ(Of(times, TimeCause::kStopped), 100 * kUs);
}

// Groups that share hosts, links and cores, and wait for each other: each node's end of each group.
TEST(CausesTest, SeveralGroupsAddUp) {
  const Profile profile = ReadProfileOf("fractus");
  const VerifiedPlan plan = PlanFor("binomial_pipeline", 5, 6, 4096, "window=1", "1");
  const VerifiedPlan chain = PlanFor("chain", 4, 3, 4096);
  const std::vector<Group> groups = {
      {.plan = &plan},
      {.plan = &plan, .hosts = {NodeId(3), NodeId(1), NodeId(5), NodeId(0), NodeId(4)}},
      {.plan = &chain, .hosts = {NodeId(2), NodeId(4), NodeId(0), NodeId(5)}, .start = 7 * kUs},
      {.plan = &plan, .hosts = {}, .start = 9 * kUs, .after = 0},
      {.plan = &chain, .hosts = {}, .start = 900 * kUs, .after = 1}};
  Network network = profile.NetworkOf(6);
  network.nodes[1].duplex_rate = 1.5 * profile.host_rate();
  // What goes to other groups is reported separately, and takes nothing away.
  const auto expect_headlines = [&](const TimeTrail& trail, const auto& run) {
    const LinkTraffic traffic(trail, network);
    Picoseconds others = 0;
    for (uint32_t g = 0; g < groups.size(); ++g) {
      SCOPED_TRACE(fmt::format("group {}", g));
      const NodeId root = groups[g].plan->header().collective.root;
      const Picoseconds start = run.groups[g].start;
      Picoseconds received = start;
      for (uint32_t i = 0; i < run.groups[g].nodes.size(); ++i) {
        if (NodeId(i) != root) received = std::max(received, run.groups[g].nodes[i].received);
      }
      const StepId end = CompletionOf(trail, g);
      EXPECT_EQ(trail.step(end).at, received);
      EXPECT_EQ(trail.step(trail.StartOf(g)).at, start);
      const CauseTimes own = SumOf(CriticalPath(trail, end, start));
      CauseTimes apart = SumOf(CriticalPath(trail, end, start, &traffic));
      EXPECT_EQ(SumOf(apart), received - start);
      EXPECT_EQ(Of(apart, TimeCause::kStart), 0);
      const auto sharing = static_cast<size_t>(TimeCause::kSharing);
      others += std::exchange(apart[static_cast<size_t>(TimeCause::kOtherGroupsSharing)], 0);
      apart[sharing] = own[sharing];
      EXPECT_EQ(apart, own);
    }
    EXPECT_GT(others, 0);
  };
  const auto expect_sums = [&](const TimeTrail& trail, const auto& run) {
    for (uint32_t g = 0; g < groups.size(); ++g) {
      for (uint32_t i = 0; i < run.groups[g].nodes.size(); ++i) {
        SCOPED_TRACE(fmt::format("group {}, node {}", g, i));
        const Picoseconds completion = run.groups[g].nodes[i].completion;
        const CauseTimes times = SumOf(CriticalPath(trail, trail.EndOf(g, NodeId(i))));
        EXPECT_EQ(SumOf(times), completion);
        EXPECT_EQ(Of(times, TimeCause::kOther), 0);
        // Group 1 was over long before.
        EXPECT_EQ(Of(times, TimeCause::kStart), g == 4 ? 900 * kUs : g == 2 ? 7 * kUs : 0);
        const Picoseconds start = run.groups[g].start;
        EXPECT_EQ(TimesOf(trail, g, NodeId(i), start).sum(), completion - start);
      }
    }
    expect_headlines(trail, run);
  };
  for (const uint32_t cores : {1u, 2u}) {
    TimeTrail trail;
    CpuDrivenOptions options = {.nic = profile.nic, .host = profile.host, .trail = &trail};
    options.host.cores = cores;
    const auto run = RunCpuDriven(groups, network, options);
    ASSERT_TRUE(run.ok()) << run.status().ToString();
    expect_sums(trail, *run);
  }
  TimeTrail trail;
  const auto run = RunPreposted(groups, network, {.costs = profile.nic, .trail = &trail});
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  expect_sums(trail, *run);
}

/// Of each group's last receiver, from the start of the run.
std::vector<CauseTimes> PathsOf(const std::vector<Group>& groups, const Network& network,
                                bool is_offload, const HostCosts& host = {}) {
  TimeTrail trail;
  const Status status =
      is_offload ? RunPreposted(groups, network, {.trail = &trail}).status()
                 : RunCpuDriven(groups, network, {.host = host, .trail = &trail}).status();
  EXPECT_TRUE(status.ok()) << status.ToString();
  const LinkTraffic traffic(trail, network);
  std::vector<CauseTimes> paths;
  for (uint32_t g = 0; g < groups.size(); ++g)
    paths.push_back(SumOf(CriticalPath(trail, CompletionOf(trail, g), 0, &traffic)));
  return paths;
}

// Three messages leave one port, two of them of one group: each of those loses as much to the other
// as to the third. Catches the share of a link that is not the one in use: the ports into
// receivers.
TEST(CausesTest, WhatGoesToOtherGroupsIsTheirsByBytes) {
  const VerifiedPlan two = PlanFor("sequential", 3, 1, 1000, "barrier", "none");
  const VerifiedPlan one = PlanFor("chain", 2, 1, 1000, "barrier", "none");
  Network network = test::OneRack(6, 1e9);
  const std::vector<Group> groups = {{.plan = &two},
                                     {.plan = &one, .hosts = {NodeId(0), NodeId(3)}},
                                     {.plan = &one, .hosts = {NodeId(4), NodeId(5)}}};
  for (const bool is_offload : {true, false}) {
    const std::vector<CauseTimes> paths = PathsOf(groups, network, is_offload);
    EXPECT_EQ(Of(paths[0], TimeCause::kSharing), kUs);
    EXPECT_EQ(Of(paths[0], TimeCause::kOtherGroupsSharing), kUs + 1) << "a third, rounded";
    EXPECT_EQ(Of(paths[1], TimeCause::kSharing), 0);
    EXPECT_EQ(Of(paths[1], TimeCause::kOtherGroupsSharing), 2 * kUs + 1);
    EXPECT_EQ(Of(paths[2], TimeCause::kSharing) + Of(paths[2], TimeCause::kOtherGroupsSharing), 0);
    for (const CauseTimes& path : paths) EXPECT_EQ(Of(path, TimeCause::kWire), kUs);
  }
}

// A rack's uplinks, half as fast as a port, carry two groups: nobody shares a port.
TEST(CausesTest, RacksAreSharedByGroups) {
  const VerifiedPlan plan = PlanFor("chain", 2, 1, 1000, "barrier", "none");
  Network network = test::OneRack(4, 1e9);
  network.racks = {{.name = "a", .up_rate = 1e9, .down_rate = 1e9},
                   {.name = "b", .up_rate = 1e9, .down_rate = 1e9}};
  network.nodes[2].rack = network.nodes[3].rack = 1;
  const std::vector<CauseTimes> paths = PathsOf({{.plan = &plan, .hosts = {NodeId(0), NodeId(2)}},
                                                 {.plan = &plan, .hosts = {NodeId(1), NodeId(3)}}},
                                                network, /*is_offload=*/true);
  for (const CauseTimes& path : paths) {
    EXPECT_EQ(Of(path, TimeCause::kOtherGroupsSharing), kUs);
    EXPECT_EQ(Of(path, TimeCause::kSharing), 0);
  }
}

// Two groups in opposite directions between two ports that carry as much both ways as one way.
TEST(CausesTest, APortBothWaysIsSharedByGroups) {
  const VerifiedPlan plan = PlanFor("chain", 2, 1, 1000, "barrier", "none");
  Network network = test::OneRack(2, 1e9);
  for (Network::Node& node : network.nodes) node.duplex_rate = 1e9;
  const std::vector<CauseTimes> paths =
      PathsOf({{.plan = &plan}, {.plan = &plan, .hosts = {NodeId(1), NodeId(0)}}}, network,
              /*is_offload=*/true);
  for (const CauseTimes& path : paths) {
    EXPECT_EQ(Of(path, TimeCause::kWire), kUs);
    EXPECT_EQ(Of(path, TimeCause::kOtherGroupsSharing), kUs);
    EXPECT_EQ(Of(path, TimeCause::kSharing), 0);
  }
}

// Two roots on one core: the second starts when the first is through with its own start, and its
// core is another group's until then. On two cores nobody waits.
TEST(CausesTest, ACoreThatAnotherGroupHasIsToldAsThat) {
  const VerifiedPlan plan = PlanFor("chain", 2, 1, 1000, "barrier", "none");
  Network network = test::OneRack(3, 1e9);
  const std::vector<Group> groups = {{.plan = &plan},
                                     {.plan = &plan, .hosts = {NodeId(0), NodeId(2)}}};
  HostCosts host = {.post_send = 3 * kNs, .message_start = 31 * kNs};
  const std::vector<CauseTimes> paths = PathsOf(groups, network, /*is_offload=*/false, host);
  EXPECT_EQ(Of(paths[0], TimeCause::kOtherGroupsCore), 0);
  EXPECT_EQ(Of(paths[1], TimeCause::kOtherGroupsCore), 34 * kNs);
  EXPECT_EQ(Of(paths[1], TimeCause::kSetUp), 31 * kNs);
  host.cores = 2;
  for (const CauseTimes& path : PathsOf(groups, network, /*is_offload=*/false, host))
    EXPECT_EQ(Of(path, TimeCause::kOtherGroupsCore), 0);
}

// The same of hosts that write rings again, which is all that preposted ones do on the way.
TEST(CausesTest, RingsAreWrittenAgainOneGroupAfterTheOther) {
  const VerifiedPlan plan = PlanFor("chain", 2, 60, 1000, "window=1", "1");
  Network network = test::OneRack(3, 1e9);
  const std::vector<Group> groups = {{.plan = &plan},
                                     {.plan = &plan, .hosts = {NodeId(0), NodeId(2)}}};
  const auto waits = [&](uint32_t cores) {
    TimeTrail trail;
    PrepostedOptions options = {.host = {.cores = cores, .post_send = 5 * kUs}, .trail = &trail};
    options.lower.profile.sq_wqebbs = options.lower.profile.rq_wqes = 16;
    const auto run = RunPreposted(groups, network, options);
    EXPECT_TRUE(run.ok()) << run.status().ToString();
    Picoseconds sum = 0;
    for (const TimeStep& step : trail.steps()) {
      if (step.cause == TimeCause::kOtherGroupsCore) sum += step.at - trail.step(step.before).at;
    }
    return sum;
  };
  EXPECT_GT(waits(1), 5 * kUs);
  EXPECT_EQ(waits(2), 0);
}

// RDMC, "Pushing Bytes", Table 1: Stampede, 256 MB in blocks of 1 MB, 4 nodes; the farthest node.
// The structure: 2 blocks come before its first one is there, and 255 after it; most of the rest is
// waiting, about 1.1 us a block. The copy of the first block is none of the remote set-up of 11 us:
// hosts forward first.
TEST(CausesTest, TheFarthestNodeOnStampedeIsTheRdmcPapersTable1) {
  const Profile profile = ReadProfileOf("stampede");
  const VerifiedPlan plan = PlanFor("binomial_pipeline", 4, 256, 1 << 20, "window=1", "1");
  const auto parts_of = [&](double copy_rate) {
    TimeTrail trail;
    CpuDrivenOptions options = {
        .nic = profile.nic, .host = profile.host, .wait = WaitMode::kHybrid, .trail = &trail};
    options.host.first_block_copy_rate = copy_rate;
    RunHosts(plan, profile.NetworkOf(4), options);
    return TimesOf(trail, 0, NodeId(3));
  };
  constexpr Picoseconds kMs = 1000 * kUs;
  const NodeTimes plain = parts_of(0);
  // One way at a time, and then both ways at once, which are slower.
  EXPECT_NEAR(static_cast<double>(plain.remote_transfers) / 2, 210.7 * kUs, 0.2 * kUs);
  EXPECT_NEAR(static_cast<double>(plain.transfers) / 255, 239 * kUs, 2 * kUs);
  EXPECT_NEAR(static_cast<double>(plain.remote_setup), 11 * kUs, 4 * kUs);
  EXPECT_EQ(plain.local_setup, 4 * kUs);
  EXPECT_EQ(plain.copy, 0);
  EXPECT_LT(plain.waiting, kMs);
  EXPECT_GT(plain.waiting, 0);
  NodeTimes copied = parts_of(profile.host.copy_rate);
  EXPECT_NEAR(static_cast<double>(std::exchange(copied.copy, 0)), 215 * kUs, kUs);
  EXPECT_EQ(copied, plain);
}

}  // namespace
}  // namespace prepost::sim::causes_test
