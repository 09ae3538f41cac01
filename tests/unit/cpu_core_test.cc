// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/emulated/cpu_core.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/random.h"

namespace prepost::emulated {
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
  const uint32_t seed = 5;
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

TEST(CpuCoreTest, BytesTakeTheirTime) {
  EXPECT_EQ(TimeOf(1000, 0), 0);
  EXPECT_EQ(TimeOf(1000, 1e9), 1'000'000);
  EXPECT_EQ(TimeOf(1, 3e12), 0);
  EXPECT_EQ(TimeOf(2, 3e12), 1);
}

}  // namespace
}  // namespace prepost::emulated
