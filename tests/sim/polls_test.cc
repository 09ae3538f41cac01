// SPDX-License-Identifier: Apache-2.0
//
// When hosts of virtual time poll for completions: how they wait, and who else has their cores.
#include <gtest/gtest.h>

#include "sim/runs/cpu_driven.h"
#include "tests/support/host_run_fixture.h"

namespace prepost::sim::polls_test {
namespace {

constexpr Picoseconds kNs = kPicosecondsPerNanosecond;
constexpr Picoseconds kUs = 1000 * kNs;

class PollsTest : public HostRunTest {};

// A poll does not begin while the core is away: then it finds all that has come meanwhile, and the
// thread polls once, not twice.
TEST_F(PollsTest, LooksBeginWhenTheCoreIsThere) {
  const VerifiedPlan plan = PlanFor("chain", 2, 4, "barrier", "none");
  const CpuDrivenResult run = RunPlan(plan, {.host = {.poll = 10 * kNs, .completion = 100 * kNs},
                                             .delays = {{NodeId(1), 0, 20 * kBlockTime}}});
  EXPECT_EQ(run.groups[0].nodes[1].work.polls, 1u);
  EXPECT_EQ(run.groups[0].nodes[1].completion, 20 * kBlockTime + 10 * kNs + 4 * 100 * kNs);
  EXPECT_EQ(run.hosts[1].delayed, 20 * kBlockTime);
}

// Where in a poll a block comes makes no difference.
TEST_F(PollsTest, PollingFindsABlockWithinOneLook) {
  const VerifiedPlan plan = PlanFor("chain", 2, 1, "barrier");
  for (const Picoseconds poll : {0 * kNs, 1 * kNs, 300 * kNs, 999 * kNs, 1000 * kNs, 7000 * kNs}) {
    EXPECT_EQ(TimeOfRun(plan, {.host = {.poll = poll}}), kBlockTime + poll) << poll;
  }
}

TEST_F(PollsTest, HybridHostsSleepAfterAWhile) {
  const VerifiedPlan plan = PlanFor("chain", 2, 10);
  HostCosts costs = {.interrupt = 5 * kUs, .hybrid_polling = kBlockTime};
  const CpuDrivenResult polls = RunPlan(plan, {.host = costs, .wait = WaitMode::kHybrid});
  EXPECT_EQ(polls.groups[0].completion, 10 * kBlockTime);
  EXPECT_EQ(polls.groups[0].nodes[1].work.wakeups, 0u);
  costs.hybrid_polling = kBlockTime - 1;
  const CpuDrivenResult sleeps = RunPlan(plan, {.host = costs, .wait = WaitMode::kHybrid});
  EXPECT_GE(sleeps.groups[0].completion, 10 * (kBlockTime + costs.interrupt));
  EXPECT_GE(sleeps.groups[0].nodes[1].work.wakeups, 10u);
}

// Polls that take long count to their end.
TEST_F(PollsTest, HybridHostsPollFromTheEndOfALook) {
  const VerifiedPlan plan = PlanFor("chain", 2, 10, "barrier");
  const HostCosts costs = {.completion = kBlockTime * 3 / 4,
                           .interrupt = kBlockTime / 100,
                           .hybrid_polling = kBlockTime * 5 / 4};
  const CpuDrivenResult run = RunPlan(plan, {.host = costs, .wait = WaitMode::kHybrid});
  // A block comes a block time after the sender has seen to the one before.
  EXPECT_EQ(run.groups[0].completion, 10 * kBlockTime * 7 / 4);
  EXPECT_EQ(run.groups[0].nodes[1].work.wakeups, 0u);
}

// Who polls never sleeps, so it has the core every other slice only, and sees a block when it has
// it again. Who sleeps has the core when it is woken, and works on it for as long as a slice.
TEST_F(PollsTest, NeighboursHitWhoPolls) {
  const VerifiedPlan plan = PlanFor("chain", 2, 1, "barrier");
  for (const Picoseconds slice : {300 * kNs, 400 * kNs, 499 * kNs, 500 * kNs, 999 * kNs, 2 * kUs}) {
    for (const uint32_t count : {1u, 2u}) {
      HostCosts costs = {
          .completion = 100 * kNs, .interrupt = 5 * kUs, .neighbours = count, .slice = slice};
      const Picoseconds into = kBlockTime % ((1 + count) * slice);  // a turn
      const Picoseconds back = into < slice ? kBlockTime : kBlockTime - into + (1 + count) * slice;
      const Picoseconds left = into < slice ? slice - into : slice;  // of the slice
      const Picoseconds turn = left < costs.completion ? count * slice : 0;
      EXPECT_EQ(TimeOfRun(plan, {.host = costs}), back + costs.completion + turn)
          << slice << " " << count;
      const CpuDrivenOptions sleeps = {.host = costs, .wait = WaitMode::kInterrupt};
      EXPECT_EQ(TimeOfRun(plan, sleeps), kBlockTime + costs.interrupt + costs.completion);
      // Two slices and a half of work.
      costs.completion = 5 * slice / 2;
      EXPECT_EQ(TimeOfRun(plan, {.host = costs, .wait = WaitMode::kInterrupt}),
                kBlockTime + costs.interrupt + costs.completion + 2 * count * slice);
      // A hybrid host has slept for a while; then it is the same.
      costs.hybrid_polling = kBlockTime / 2;
      EXPECT_EQ(TimeOfRun(plan, {.host = costs, .wait = WaitMode::kHybrid}),
                kBlockTime + costs.interrupt + costs.completion + 2 * count * slice);
    }
  }
}

// Of one host: of node 1 when it is to receive, of nobody else.
TEST_F(PollsTest, NeighboursAreOfAHost) {
  const VerifiedPlan plan = PlanFor("chain", 3, 1, "barrier");
  const Picoseconds slice = 600 * kNs;
  const auto time = [&](uint32_t host) {
    return TimeOfRun(plan, {.neighbours = {{NodeId(host), 1, slice}}});
  };
  EXPECT_EQ(time(0), 2 * kBlockTime);
  EXPECT_EQ(time(1), 4 * slice);  // it forwards at 2 slices, and sees that it has been sent at 4
  EXPECT_EQ(time(2), 4 * slice);
}

// Of these hosts what they have, of the others what HostCosts says: as if all had it but the others
// none, draw for draw.
TEST_F(PollsTest, PreemptionsAreOfHosts) {
  const VerifiedPlan plan = PlanFor("chain", 3, 4, "barrier");
  const HostCosts often = {
      .completion = 100 * kNs, .preemptions_per_second = 1e6, .preemption_length = 2 * kUs};
  const HostCosts never = {.completion = 100 * kNs};
  const auto all = [&](uint32_t host) { return HostPreemptions{NodeId(host), 1e6, 2 * kUs}; };
  const auto none = [&](uint32_t host) { return HostPreemptions{NodeId(host), 0, 0}; };
  const Picoseconds of_all = TimeOfRun(plan, {.host = often});
  const Picoseconds of_none = TimeOfRun(plan, {.host = never});
  EXPECT_EQ(TimeOfRun(plan, {.host = never, .preemptions = {all(0), all(1), all(2)}}), of_all);
  EXPECT_EQ(TimeOfRun(plan, {.host = often, .preemptions = {none(0), none(1), none(2)}}), of_none);
  const Picoseconds of_one = TimeOfRun(plan, {.host = never, .preemptions = {all(1)}});
  EXPECT_GT(of_one, of_none);
  EXPECT_EQ(TimeOfRun(plan, {.host = often, .preemptions = {none(0), none(2)}}), of_one);
}

}  // namespace
}  // namespace prepost::sim::polls_test
