// SPDX-License-Identifier: Apache-2.0
//
// Routes over links: shortest ones in networks whose distances have closed forms, given ones,
// spread over equal ones, and what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/analysis/network.h"

namespace prepost {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void Join(Network* network, uint32_t from, uint32_t to, double latency = 1e-6, double rate = 1e9) {
  network->links.push_back({.from = from, .to = to, .rate = rate, .latency = latency});
  network->links.push_back({.from = to, .to = from, .rate = rate, .latency = latency});
}

/// One host per rack.
Network Racks(uint32_t racks, uint32_t switches = 0) {
  Network network;
  for (uint32_t rack = 0; rack < racks; ++rack) {
    network.racks.push_back({.name = fmt::format("r{}", rack), .up_rate = 1e9, .down_rate = 1e9});
    network.nodes.push_back({.rack = rack, .out_rate = 1e9, .in_rate = 1e9});
  }
  for (uint32_t i = 0; i < switches; ++i) network.switches.push_back(fmt::format("s{}", i));
  return network;
}

/// The ends that a route passes, the first rack's included.
std::vector<uint32_t> EndsOn(const Network& network, uint32_t from, uint32_t to) {
  std::vector<uint32_t> ends = {from};
  for (const uint32_t link : network.LinksBetween(from, to)) {
    EXPECT_EQ(network.links[link].from, ends.back());
    ends.push_back(network.links[link].to);
  }
  return ends;
}

// Catches routes that are longer than they must be, or that do not hang together.
TEST(RoutesTest, InATorusTheyAreAsLongAsTheWayAround) {
  constexpr uint32_t kWide = 5, kHigh = 4;
  Network network = Racks(kWide * kHigh);
  const auto at = [&](uint32_t x, uint32_t y) { return y % kHigh * kWide + x % kWide; };
  for (uint32_t y = 0; y < kHigh; ++y) {
    for (uint32_t x = 0; x < kWide; ++x) {
      Join(&network, at(x, y), at(x + 1, y));
      Join(&network, at(x, y), at(x, y + 1));
    }
  }
  ASSERT_TRUE(network.FindRoutes().ok());
  const auto around = [](uint32_t a, uint32_t b, uint32_t size) {
    const uint32_t apart = a > b ? a - b : b - a;
    return std::min(apart, size - apart);
  };
  for (uint32_t a = 0; a < kWide * kHigh; ++a) {
    for (uint32_t b = 0; b < kWide * kHigh; ++b) {
      const uint32_t apart =
          around(a % kWide, b % kWide, kWide) + around(a / kWide, b / kWide, kHigh);
      const std::vector<uint32_t> ends = EndsOn(network, a, b);
      EXPECT_EQ(ends.size(), apart + 1);
      EXPECT_EQ(ends.back(), b);
      EXPECT_NEAR(network.LatencyBetween(a, b), apart * 1e-6, 1e-15);
    }
  }
}

// Catches a fat tree of which one spine carries everything.
TEST(RoutesTest, PairsSpreadOverEqualWays) {
  constexpr uint32_t kLeaves = 8, kSpines = 4;
  Network network = Racks(kLeaves, kSpines);
  for (uint32_t leaf = 0; leaf < kLeaves; ++leaf)
    for (uint32_t spine = 0; spine < kSpines; ++spine) Join(&network, leaf, kLeaves + spine);
  ASSERT_TRUE(network.FindRoutes().ok());
  std::vector<uint32_t> used(kSpines);
  for (uint32_t a = 0; a < kLeaves; ++a) {
    std::set<uint32_t> from_here;
    for (uint32_t b = 0; b < kLeaves; ++b) {
      if (a == b) continue;
      const std::vector<uint32_t> ends = EndsOn(network, a, b);
      ASSERT_EQ(ends.size(), 3u);
      ++used[ends[1] - kLeaves];
      from_here.insert(ends[1]);
    }
    EXPECT_EQ(from_here.size(), kSpines) << a;
  }
  for (const uint32_t count : used) EXPECT_NEAR(count, kLeaves * (kLeaves - 1) / kSpines, 2);
}

TEST(RoutesTest, LatencyDecidesThenLinksThenWhatIsGiven) {
  Network network = Racks(3, 2);
  Join(&network, 0, 3, 2e-6);
  Join(&network, 3, 1, 2e-6);
  Join(&network, 1, 2, 4e-6);
  Join(&network, 0, 4, 5e-6);
  Join(&network, 4, 2, 3e-6);
  ASSERT_TRUE(network.FindRoutes().ok());
  EXPECT_THAT(EndsOn(network, 0, 1), ElementsAre(0, 3, 1));
  EXPECT_THAT(EndsOn(network, 0, 2),
              ElementsAre(0, 4, 2));  // as long as over 3 and 1, of fewer links
  network.routes = {{.from = 0, .to = 2, .over = {1}}};
  EXPECT_FALSE(network.FindRoutes().ok());  // 0 and 1 have no link
  network.routes[0].over = {3, 1};
  ASSERT_TRUE(network.FindRoutes().ok());
  EXPECT_THAT(EndsOn(network, 0, 2), ElementsAre(0, 3, 1, 2));
  EXPECT_THAT(EndsOn(network, 2, 0), ElementsAre(2, 1, 3, 0));
  EXPECT_THAT(EndsOn(network, 0, 1), ElementsAre(0, 3, 1));
  EXPECT_NEAR(network.LatencyBetween(2, 0), 8e-6, 1e-15);
  // What joins two racks is their way, however long: nobody sends over a third.
  network.routes.clear();
  Join(&network, 0, 1, 10e-6);
  ASSERT_TRUE(network.FindRoutes().ok());
  EXPECT_THAT(EndsOn(network, 0, 1), ElementsAre(0, 1));
}

// Catches a given route that takes the first of several links between two ends.
TEST(RoutesTest, GivenRoutesTakeTheBestLinkOfSeveral) {
  Network network = Racks(3);
  Join(&network, 0, 1, 50e-3);
  Join(&network, 0, 1, 1e-6);
  Join(&network, 1, 2, 1e-6);
  Join(&network, 0, 2, 1e-9);
  network.routes = {{.from = 0, .to = 2, .over = {1}}};
  ASSERT_TRUE(network.FindRoutes().ok());
  EXPECT_NEAR(network.LatencyBetween(0, 2), 2e-6, 1e-15);
}

// A star of 4096 racks, the most: catches a way that looks at all links of its hub at every step.
TEST(RoutesTest, ManyRacksAtOneSwitch) {
  Network star = Racks(kLinkedRacksMax, 1);
  for (uint32_t rack = 0; rack < kLinkedRacksMax; ++rack) Join(&star, rack, kLinkedRacksMax);
  ASSERT_TRUE(star.FindRoutes().ok());
  EXPECT_EQ(star.route_links.size(), 2 * kLinkedRacksMax * (kLinkedRacksMax - 1));
  star.racks.emplace_back();
  EXPECT_THAT(star.FindRoutes().ToString(), HasSubstr("4097 racks are too many"));
}

TEST(RoutesTest, SaysWhatDoesNotHoldTogether) {
  const auto error = [](Network network) { return network.FindRoutes().ToString(); };
  Network network = Racks(3);
  Join(&network, 0, 1);
  EXPECT_THAT(error(network), HasSubstr("/paths: no path leads from rack r"));
  Network far = network;
  Join(&far, 1, 2, 4000);
  EXPECT_THAT(error(far), HasSubstr("/paths/1/latency: a latency is from 0 s to"));
  Network itself = network;
  Join(&itself, 2, 2);
  EXPECT_THAT(error(itself), HasSubstr("/paths/1/between"));
  Network unknown = network;
  Join(&unknown, 2, 3);
  EXPECT_THAT(error(unknown), HasSubstr("/paths/1/between"));
  Join(&network, 1, 2);
  EXPECT_TRUE(network.FindRoutes().ok());
  network.routes = {{.from = 0, .to = 2, .over = {}}};
  EXPECT_THAT(error(network), HasSubstr("/routes/0/over: no path is between r0 and r2"));
  network.routes = {{.from = 0, .to = 3, .over = {}}};
  EXPECT_THAT(error(network), HasSubstr("/routes/0: a route is between"));
  network.routes = {{.from = 1, .to = 1, .over = {0}}};
  EXPECT_THAT(error(network), HasSubstr("/routes/0: a route is between"));
  // Ways so long that their sums would not be numbers any more.
  Network endless = Racks(2, 1000);
  for (uint32_t end = 2; end + 1 < 1002; ++end) Join(&endless, end, end + 1, 3600);
  Join(&endless, 0, 2, 3600);
  Join(&endless, 1, 1001, 3600);
  EXPECT_THAT(error(endless), HasSubstr("/paths: no path leads from rack"));
  Network line = Racks(kRouteLinksMax + 2);
  for (uint32_t rack = 0; rack + 1 < line.racks.size(); ++rack) Join(&line, rack, rack + 1);
  EXPECT_THAT(error(line), HasSubstr("has 17 paths, the limit is 16"));
}

}  // namespace
}  // namespace prepost
