// SPDX-License-Identifier: Apache-2.0
//
// What TCP carries over a long path, as modelled, against the closed forms that there are.
#include "ir/analysis/tcp_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace prepost {
namespace {

constexpr double kMegabit = 1e6 / 8;

Network::Link Path(double rate, double round_trip, uint32_t streams = 1) {
  return {.rate = rate, .latency = round_trip / 2, .streams = streams};
}

// Catches windows that open too slowly or too fast: so many doublings are lost to slow start.
TEST(TcpRateTest, SlowStartCostsItsDoublings) {
  for (const uint32_t streams : {1u, 8u}) {
    const Network::Link path = Path(400 * kMegabit, 0.06, streams);
    const uint64_t bytes = 64 << 20;
    const double late = TcpSecondsOf(path, bytes) - static_cast<double>(bytes) / path.rate;
    const double in_pipe = path.rate * 0.06 / (1448.0 * 10 * streams);
    EXPECT_NEAR(late, 0.06 * (std::log2(in_pipe) - 1), 1.5 * 0.06) << streams;
  }
}

// RFC 9438, 5.2: 1.054 segments / (RTT^0.25 p^0.75) in the long run, where CUBIC is not limited by
// the path. Catches a growth or a decrease that is not CUBIC's.
TEST(TcpRateTest, InTheLongRunItIsCubics) {
  for (const auto& [round_trip, loss] : {std::pair(0.06, 1e-4), {0.12, 1e-4}, {0.06, 1e-5}}) {
    Network::Link path = Path(10'000 * kMegabit, round_trip);
    path.loss = loss;
    TcpStreams streams(path, /*seed=*/7);
    double sum = 0;
    constexpr uint32_t kSteps = 40'000, kSettling = 4'000;
    for (uint32_t i = 0; i < kSettling + kSteps; ++i) {
      if (i >= kSettling) sum += streams.rate();
      streams.Step(streams.window());
    }
    const double expected = 1.054 * 1448 / (std::pow(round_trip, 0.25) * std::pow(loss, 0.75));
    EXPECT_NEAR(sum / kSteps / expected, 1, 0.25) << round_trip << " " << loss;
  }
}

TEST(TcpRateTest, MoreStreamsAndPacingHelp) {
  Network::Link lossy = Path(400 * kMegabit, 0.12);
  lossy.loss = 1e-4;
  const uint64_t bytes = 256 << 20;
  const double one = TcpSecondsOf(lossy, bytes);
  lossy.streams = 8;
  EXPECT_LT(TcpSecondsOf(lossy, bytes), 0.8 * one);

  Network::Link policed = Path(100 * kMegabit, 0.12);
  policed.policer = {.rate = 50 * kMegabit, .burst = 1e6};
  const uint64_t some = 48 << 20;  // its first seconds, after slow start has met the policer
  const double free = TcpSecondsOf(policed, some);
  policed.pace = 47.5 * kMegabit;
  const double paced = TcpSecondsOf(policed, some);
  EXPECT_LT(paced, 0.95 * free);
  EXPECT_NEAR(paced, static_cast<double>(some) / (47.5 * kMegabit), 1.5);
}

TEST(TcpRateTest, ShortPathsCarryTheirRate) {
  EXPECT_FALSE(IsLong(Path(400 * kMegabit, 0.004)));
  EXPECT_DOUBLE_EQ(TcpSecondsOf(Path(kMegabit, 0.004), 125'000), 1);
  EXPECT_TRUE(IsLong(Path(400 * kMegabit, 0.005)));
}

// Catches links of a route of which only one is looked at.
TEST(TcpRateTest, SeveralLinksAreOnePath) {
  Network network;
  network.racks = {{.name = "a", .up_rate = 1, .down_rate = 1},
                   {.name = "b", .up_rate = 1, .down_rate = 1},
                   {.name = "c", .up_rate = 1, .down_rate = 1}};
  for (const auto& [from, to, rate] : {std::tuple(0u, 1u, 8.0), {1u, 2u, 5.0}}) {
    for (const bool back : {false, true}) {
      network.links.push_back({.from = back ? to : from,
                               .to = back ? from : to,
                               .rate = rate,
                               .latency = 0.01,
                               .loss = 0.1,
                               .streams = from + 1,
                               .mtu = 9000 - from});
    }
  }
  network.links[0].policer = {.rate = 7, .burst = 100};
  network.links[2].policer = {.rate = 4, .burst = 200};
  ASSERT_TRUE(network.FindRoutes().ok());
  const Network::Link path = PathOf(network, network.LinksBetween(0, 2));
  EXPECT_EQ(path.rate, 5);
  EXPECT_EQ(path.capacity(), 4);
  EXPECT_DOUBLE_EQ(path.latency, 0.02);
  EXPECT_NEAR(path.loss, 0.19, 1e-12);
  EXPECT_EQ(path.streams, 2u);
  EXPECT_EQ(path.mtu, 8999u);
}

}  // namespace
}  // namespace prepost
