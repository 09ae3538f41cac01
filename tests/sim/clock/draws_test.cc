// SPDX-License-Identifier: Apache-2.0
#include "sim/clock/draws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/hosts/cpu_core.h"

namespace prepost::sim::draws_test {
namespace {

// The same numbers on every machine: exactly these. They were found by another program, from the
// definitions in draws.cc and what the standard says of mt19937_64.
TEST(DrawsTest, AreTheSameEverywhere) {
  Draws draws(42);
  for (const double draw : {0x1.82a3befaddcbdp-1, 0x1.472f1f73724a1p-1}) {
    EXPECT_EQ(draws.Uniform(), draw);
  }
  for (const double draw :
       {0x1.1814dc629c7f4p+0, 0x1.032b846d0bbd4p+0, 0x1.8cce56c282740p+1, 0x1.81baef38522f0p-4}) {
    EXPECT_EQ(draws.Exponential(), draw);
  }
  for (const double draw : {0x1.92561c3e00340p-2, -0x1.2a0a7e55330a0p-1, 0x1.b5672ae7ba800p-1}) {
    EXPECT_EQ(draws.Normal(), draw);
  }
}

// What a core of a model makes of them, one by one and as a sum.
TEST(DrawsTest, CoresAreAwayTheSameEverywhere) {
  HostCosts costs;
  costs.preemptions_per_second = 1000;
  costs.preemption_length = kPicosecondsPerSecond / 10'000;
  for (const bool vary : {false, true}) {
    costs.preemption_lengths_vary = vary;
    CpuCore core(costs, {}, 7);
    EXPECT_EQ(core.WorkEnd(0, kPicosecondsPerSecond / 100), vary ? 10'677'833'610 : 11'100'000'000);
    EXPECT_EQ(core.WorkEnd(kPicosecondsPerSecond, 5 * kPicosecondsPerSecond),
              vary ? 6'502'871'556'098 : 6'512'280'069'509);
  }
}

// Mean, spread and tail of an exponential distribution, within 5 deviations of 200,000 draws.
TEST(DrawsTest, ExponentialOnesAreThat) {
  Draws draws(3);
  constexpr int kDraws = 200'000;
  double sum = 0, squares = 0;
  int beyond = 0, below = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double draw = draws.Exponential();
    ASSERT_GE(draw, 0);
    sum += draw;
    squares += draw * draw;
    beyond += draw > 3 ? 1 : 0;
    below += draw < 0.25 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 1, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 2, 5 * std::sqrt(20.0 / kDraws));
  EXPECT_NEAR(beyond, kDraws * std::exp(-3), 5 * std::sqrt(kDraws * std::exp(-3)));
  EXPECT_NEAR(below, kDraws * (1 - std::exp(-0.25)), 5 * std::sqrt(kDraws * 0.22));
}

TEST(DrawsTest, NormalOnesAreThat) {
  Draws draws(4);
  constexpr int kDraws = 200'000;
  double sum = 0, squares = 0;
  int beyond = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double draw = draws.Normal();
    sum += draw;
    squares += draw * draw;
    beyond += draw > 2 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(beyond, kDraws * 0.02275, 0.06 * kDraws * 0.02275);
}

}  // namespace
}  // namespace prepost::sim::draws_test
