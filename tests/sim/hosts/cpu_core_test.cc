// SPDX-License-Identifier: Apache-2.0
#include "sim/hosts/cpu_core.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/random.h"

namespace prepost::sim::cpu_core_test {
namespace {

HostDelay Delay(Picoseconds at, Picoseconds length) { return {NodeId(0), at, length}; }

TEST(CpuCoreTest, WorkTakesItsTime) {
  CpuCore core({}, {}, 1);
  EXPECT_EQ(core.WorkEnd(5, 0), 5);
  EXPECT_EQ(core.WorkEnd(5, 10), 15);
  EXPECT_EQ(core.WorkEnd(100, 1), 101);
  EXPECT_EQ(core.busy(), 11);
  EXPECT_EQ(core.delayed(), 0);
}

TEST(CpuCoreTest, DelaysPutWorkOff) {
  CpuCore core({}, {Delay(100, 10), Delay(200, 50), Delay(220, 60)}, 1);
  EXPECT_EQ(core.WorkEnd(90, 10), 100);  // over when the delay begins
  EXPECT_EQ(core.WorkEnd(100, 0), 110);  // however short
  EXPECT_EQ(core.WorkEnd(110, 0), 110);
  EXPECT_EQ(core.WorkEnd(190, 15), 285);  // two that overlap are one, from 200 to 280
  EXPECT_EQ(core.busy(), 25);
  EXPECT_EQ(core.delayed(), 90);
}

// Against each picosecond by itself.
TEST(CpuCoreTest, AgreesWithAWalk) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  test::Random random(seed);
  for (int i = 0; i < 300; ++i) {
    std::vector<bool> is_away(3000);
    std::vector<HostDelay> delays;
    for (uint32_t j = random.Below(8); j > 0; --j) {
      delays.push_back(Delay(random.Below(900), random.Below(100)));
      for (Picoseconds t = delays.back().at; t < delays.back().at + delays.back().length; ++t) {
        is_away[static_cast<size_t>(t)] = true;
      }
    }
    CpuCore core({}, delays, 1);
    for (Picoseconds at = 0; at < 900; at += random.Below(50)) {
      Picoseconds left = random.Below(60);
      size_t walk = static_cast<size_t>(at);
      while (is_away[walk]) ++walk;
      const Picoseconds work = left;
      for (; left > 0; ++walk) left -= is_away[walk] ? 0 : 1;
      EXPECT_EQ(core.WorkEnd(at, work), static_cast<Picoseconds>(walk)) << at << " " << work;
      at = static_cast<Picoseconds>(walk);
    }
  }
}

// A core that is away for half of the time takes twice as long, about.
TEST(CpuCoreTest, PreemptionsComeAsOftenAsTheyShould) {
  for (const bool vary : {false, true}) {
    HostCosts costs;
    costs.preemptions_per_second = 1e6;
    costs.preemption_length = kPicosecondsPerSecond / 1'000'000;
    costs.preemption_lengths_vary = vary;
    CpuCore core(costs, {}, 3);
    const Picoseconds work = kPicosecondsPerSecond / 50;  // 20,000 preemptions
    const Picoseconds end = core.WorkEnd(0, work);
    EXPECT_NEAR(static_cast<double>(end) / static_cast<double>(work), 2, 0.05) << vary;
    EXPECT_EQ(core.delayed(), end - work);
    CpuCore same(costs, {}, 3);
    EXPECT_EQ(same.WorkEnd(0, work), end);
    CpuCore other(costs, {}, 4);
    EXPECT_NE(other.WorkEnd(0, work), end);
  }
}

/// A core that loses as much time as `away` of what it has, in pieces of `length`.
HostCosts Preempted(double per_second, double away, bool vary) {
  HostCosts costs;
  costs.preemptions_per_second = per_second;
  costs.preemption_length = std::max<Picoseconds>(1, ToPicoseconds(away / per_second * 1e12));
  costs.preemption_lengths_vary = vary;
  return costs;
}

// An hour of work with 3.6e9 preemptions, and an hour without any: neither is drawn one by one.
TEST(CpuCoreTest, ManyPreemptionsTakeNoTimeToDraw) {
  for (const bool vary : {false, true}) {
    for (const double away : {0.001, 1.0, 99.0}) {
      SCOPED_TRACE(fmt::format("{} {}", vary, away));
      const Picoseconds delay = kStepMax / 2;
      CpuCore core(Preempted(1e6, away, vary), {Delay(delay, 7 * kStepMax)}, 3);
      const Picoseconds end = core.WorkEnd(0, kStepMax);
      EXPECT_NEAR(static_cast<double>(end - 7 * kStepMax) / static_cast<double>(kStepMax), 1 + away,
                  1e-4 * (1 + away));
      EXPECT_EQ(core.delayed(), end - kStepMax);
      EXPECT_GE(core.WorkEnd(end + 1000 * kStepMax, 5), end + 1000 * kStepMax + 5);
    }
  }
}

// Drawn one by one or as a sum: the same mean and spread of the time that work takes. Both sides of
// the number from which it is a sum.
TEST(CpuCoreTest, SumsOfPreemptionsSpreadAsTheyDo) {
  for (const bool vary : {false, true}) {
    for (const double count : {990.0, 1500.0}) {
      SCOPED_TRACE(fmt::format("{} {}", vary, count));
      const Picoseconds work = kPicosecondsPerSecond;
      double sum = 0, squares = 0;
      constexpr int kRuns = 1000;
      for (int seed = 0; seed < kRuns; ++seed) {
        CpuCore core(Preempted(count, 1, vary), {}, static_cast<uint64_t>(seed));
        const double end = static_cast<double>(core.WorkEnd(0, work)) / static_cast<double>(work);
        sum += end;
        squares += end * end;
      }
      const double mean = sum / kRuns;
      const double deviation = std::sqrt(squares / kRuns - mean * mean);
      const double expected = std::sqrt((vary ? 2 : 1) / count);
      EXPECT_NEAR(mean, 2, 5 * expected / std::sqrt(kRuns));
      EXPECT_NEAR(deviation, expected, 0.12 * expected);
    }
  }
}

// After a long time a core is away as often as it is at all, whether it was queried before or not.
TEST(CpuCoreTest, IdleCoresAreAwayAsOftenAsOthers) {
  for (const bool vary : {false, true}) {
    for (const double cycles : {900.0, 1e9}) {
      SCOPED_TRACE(fmt::format("{} {}", vary, cycles));
      const HostCosts costs = Preempted(1e6, 3, vary);
      const auto at = ToPicoseconds(cycles * 4e6);
      int away = 0;
      double wait = 0;
      constexpr int kRuns = 2000;
      for (int seed = 0; seed < kRuns; ++seed) {
        CpuCore core(costs, {}, static_cast<uint64_t>(seed));
        const Picoseconds end = core.WorkEnd(at, 0);
        away += end > at;
        wait += static_cast<double>(end - at) / 3e6;
      }
      EXPECT_NEAR(away, 0.75 * kRuns, 0.04 * kRuns);
      // What is left of the length at a random moment: half of a fixed one, all of an exponential.
      EXPECT_NEAR(wait / away, vary ? 1 : 0.5, vary ? 0.1 : 0.04);
    }
  }
}

// Once in a thousand years is never, and so is what ends after the clock.
TEST(CpuCoreTest, RareAndLateIsNever) {
  CpuCore core(Preempted(1e-9, 100, true), {Delay(kNever - 10, 20)}, 2);
  EXPECT_EQ(core.WorkEnd(0, 5), 5);
  EXPECT_EQ(core.WorkEnd(kNever - 100, 50), kNever - 50);
  EXPECT_EQ(core.WorkEnd(kNever - 50, 50), kNever);
  EXPECT_EQ(core.WorkEnd(kNever, 0), kNever);
  CpuCore busy(Preempted(1e6, 99, false), {}, 2);
  EXPECT_EQ(busy.WorkEnd(kNever / 50, kNever / 50), kNever);
  EXPECT_EQ(busy.WorkEnd(kNever - 5, 1000), kNever);
}

HostCosts Beside(uint32_t neighbours, Picoseconds slice) {
  return {.neighbours = neighbours, .slice = slice};
}

// A slice, then one of each neighbour, from when it woke.
TEST(CpuCoreTest, NeighboursTakeTurns) {
  CpuCore core(Beside(2, 10), {}, 1);
  EXPECT_EQ(core.WorkEnd(0, 10), 10);
  EXPECT_EQ(core.WhenBack(10), 30);
  EXPECT_EQ(core.WorkEnd(30, 25), 95);   // 30..40, 60..70, 90..95
  EXPECT_EQ(core.WorkEnd(105, 1), 121);  // away from 100 to 120
  core.Wake(135);                        // they have it, but who wakes goes first
  EXPECT_EQ(core.WorkEnd(135, 10), 145);
  EXPECT_EQ(core.WorkEnd(145, 1), 166);
  EXPECT_EQ(core.WhenBack(1'000'000'000'000), 1'000'000'000'005);  // in 30k + 145..165: away
  CpuCore free({}, {}, 1);
  free.Wake(5);
  EXPECT_EQ(free.WorkEnd(5, 1'000'000), 1'000'005);
}

// Turns, delays and preemptions in each other's way: against each picosecond by itself. Work goes
// on until it is done, however many turns are in between; those are not walked through one by one.
TEST(CpuCoreTest, TurnsAndDelaysAgreeWithAWalk) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  test::Random random(seed);
  for (int i = 0; i < 300; ++i) {
    const Picoseconds slice = 1 + random.Below(40);
    const uint32_t count = 1 + random.Below(3);
    std::vector<HostDelay> delays;
    for (uint32_t j = random.Below(4); j > 0; --j)
      delays.push_back(Delay(random.Below(2000), random.Below(200)));
    CpuCore core(Beside(count, slice), delays, 1);
    Picoseconds woken = 0;
    const auto is_away = [&](Picoseconds t) {
      return (t - woken) % (slice * (1 + count)) >= slice ||
             std::ranges::any_of(
                 delays, [&](const HostDelay& d) { return t >= d.at && t < d.at + d.length; });
    };
    for (Picoseconds at = 0; at < 3000; at += random.Below(100)) {
      if (random.Below(3) == 0) core.Wake(woken = at);
      const Picoseconds work = random.Below(400);
      Picoseconds walk = at;
      while (is_away(walk)) ++walk;
      for (Picoseconds left = work; left > 0; ++walk) left -= is_away(walk) ? 0 : 1;
      EXPECT_EQ(core.WorkEnd(at, work), walk) << at << " " << work << " " << slice;
      at = walk;
    }
  }
}

// An hour of work in slices of 1 ns is not walked through, either.
TEST(CpuCoreTest, ManyTurnsTakeNoTimeToTake) {
  CpuCore core(Beside(3, 1000), {}, 1);
  EXPECT_EQ(core.WorkEnd(0, kStepMax), 4 * kStepMax - 3000);
  EXPECT_EQ(core.WorkEnd(kNever - 1000, kStepMax), kNever);
}

TEST(CpuCoreTest, BytesTakeTheirTime) {
  EXPECT_EQ(TimeOf(uint64_t{1} << 31, 1), kNever);
  EXPECT_EQ(TimeOf(9'000'000, 1), 9'000'000 * kPicosecondsPerSecond);
  EXPECT_EQ(TimeOf(1000, 0), 0);
  EXPECT_EQ(TimeOf(1000, 1e9), 1'000'000);
  EXPECT_EQ(TimeOf(1, 3e12), 0);
  EXPECT_EQ(TimeOf(2, 3e12), 1);
}

}  // namespace
}  // namespace prepost::sim::cpu_core_test
