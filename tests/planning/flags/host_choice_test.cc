// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/host_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planning/flags/values.h"

namespace prepost::host_choice_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;
using ::testing::SizeIs;

constexpr DrawingFlag kSlow = DrawingFlag::kSlow;

Result<HostChoice> ChoiceOf(const std::string& text) {
  const auto parts = ParseParts(text, {"node", "hosts", "share", "rate"});
  EXPECT_TRUE(parts.ok()) << parts.status().ToString();
  return HostChoice::Of(*parts);
}

std::vector<uint32_t> Among(const std::string& text, uint32_t hosts, uint64_t seed = 1,
                            DrawingFlag flag = kSlow) {
  const auto chosen = ChoiceOf(text)->Among(hosts, seed, flag);
  EXPECT_TRUE(chosen.ok()) << chosen.status().ToString();
  std::vector<uint32_t> numbers;
  for (const NodeId host : *chosen) numbers.push_back(host.value);
  EXPECT_TRUE(std::ranges::is_sorted(numbers));
  return numbers;
}

TEST(HostChoiceTest, AllOneOrSome) {
  EXPECT_THAT(Among("rate=1", 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Among("node=3,rate=1", 4), ElementsAre(3));
  EXPECT_THAT(Among("hosts=3,rate=1", 8), SizeIs(3));
  EXPECT_THAT(Among("hosts=0", 8), IsEmpty());
  EXPECT_THAT(Among("hosts=8", 8), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_TRUE(ChoiceOf("rate=1")->is_of_all());
  EXPECT_TRUE(ChoiceOf("hosts=0")->is_drawn());
  EXPECT_FALSE(ChoiceOf("node=3")->is_drawn());
}

// Catches shares that are cut off, or drawn host by host, so that their number varies.
TEST(HostChoiceTest, AShareIsRoundedToTheNearestNumber) {
  for (const auto& [share, count] : std::vector<std::pair<std::string, size_t>>{
           {"0", 0}, {"0.04", 0}, {"0.05", 1}, {"0.1", 1}, {"0.26", 3}, {"0.95", 10}, {"1", 10}}) {
    for (uint64_t seed = 1; seed < 20; ++seed)
      EXPECT_THAT(Among("share=" + share, 10, seed), SizeIs(count)) << share;
  }
}

// The same on every machine and in every version: figures name their seeds.
TEST(HostChoiceTest, WhoIsDrawnIsFixed) {
  EXPECT_THAT(Among("hosts=3", 16), ElementsAre(1, 6, 15));
  EXPECT_THAT(Among("hosts=3", 16, 1, DrawingFlag::kPreempt), ElementsAre(6, 7, 8));
  EXPECT_THAT(Among("hosts=3", 16, 1, DrawingFlag::kNeighbours), ElementsAre(2, 6, 12));
  EXPECT_THAT(Among("hosts=3", 16, 2), ElementsAre(1, 2, 11));
}

// Catches a sweep over their number, or over nodes, in which each row has others.
TEST(HostChoiceTest, FewerAreAmongMore) {
  for (uint32_t count = 0; count < 16; ++count) {
    const std::string hosts = "hosts=";
    EXPECT_THAT(Among(hosts + std::to_string(count), 16),
                IsSubsetOf(Among(hosts + std::to_string(count + 1), 16)));
    EXPECT_EQ(Among(hosts + std::to_string(count), 16),
              Among("share=" + std::to_string(count / 16.0), 16));
  }
  // Of those drawn among 64 hosts the ones below 16 are also drawn among 16.
  std::vector<uint32_t> below = Among("hosts=12", 64);
  std::erase_if(below, [](uint32_t host) { return host >= 16; });
  EXPECT_THAT(below, IsSubsetOf(Among("hosts=12", 16)));
}

// Each host as often as another: 4 of 20, 5,000 times.
TEST(HostChoiceTest, NoHostIsPreferred) {
  constexpr int kSeeds = 5000;
  std::map<uint32_t, int> times;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const uint32_t host : Among("hosts=4", 20, seed)) ++times[host];
  }
  const double expected = kSeeds * 4.0 / 20, deviation = std::sqrt(expected * 16.0 / 20);
  ASSERT_THAT(times, SizeIs(20));
  for (const auto& [host, count] : times) EXPECT_NEAR(count, expected, 4.5 * deviation) << host;
}

TEST(HostChoiceTest, SaysWhatIsWrong) {
  const auto parts = [](const std::string& text) { return ChoiceOf(text).status().ToString(); };
  EXPECT_EQ(parts("hosts=1,share=0.5"), "'hosts' and 'share' are both there");
  EXPECT_EQ(parts("node=1,share=0.5"), "'node' and 'share' are both there");
  EXPECT_EQ(parts("hosts=-1"), "the number of hosts '-1' is no whole number");
  EXPECT_EQ(parts("hosts=0.5"), "the number of hosts '0.5' is no whole number");
  for (const char* share : {"1.01", "-0.1", "nan", "x", ""}) {
    EXPECT_EQ(parts(std::string("share=") + share),
              std::string("the share '") + share + "' is not from 0 to 1");
  }
  const auto among = [](const std::string& text) {
    const Status status = ChoiceOf(text)->Among(4, 1, kSlow).status();
    return std::pair(status.code(), status.ToString());
  };
  EXPECT_EQ(among("hosts=5"),
            std::pair(StatusCode::kRejected, std::string("5 hosts, and there are 4")));
  EXPECT_EQ(among("hosts=4000000"),
            std::pair(StatusCode::kUsage, std::string("4000000 hosts, and there are 4")));
  EXPECT_EQ(among("node=4"),
            std::pair(StatusCode::kRejected, std::string("no node '4', the nodes are 0 to 3")));
  EXPECT_EQ(among("node=x"),
            std::pair(StatusCode::kUsage, std::string("no node 'x', the nodes are 0 to 3")));
}

}  // namespace
}  // namespace prepost::host_choice_test
