// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/noise_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "ir/analysis/network.h"
#include "planning/flags/host_choice.h"
#include "planning/flags/slow_flag.h"

namespace prepost::noise_flags_test {
namespace {

using sim::HostNeighbours;
using sim::HostPreemptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr uint32_t kHosts = 16;

std::vector<NodeId> Drawn(const std::string& hosts, DrawingFlag flag) {
  return HostChoice::Of({{"hosts", hosts}})->Among(kHosts, 1, flag).value();
}

// Catches hosts that have the preemptions of another flag, or stand out of order.
TEST(NoiseFlagsTest, NamedHostsHaveTheirOwn) {
  const NodeId first = Drawn("2", DrawingFlag::kPreempt).front();
  const std::string named = "node=" + std::to_string(first.value);
  NoiseFlags flags;
  flags.preempt = {"rate=1,for=1us", "hosts=2,rate=20,for=2us", named + ",rate=3,for=3us",
                   "for=4us,lengths=exponential,rate=4,node=15"};
  const auto list = flags.Preemptions(kHosts, 1);
  ASSERT_TRUE(list.ok()) << list.status().ToString();
  ASSERT_THAT(*list, SizeIs(3));
  EXPECT_TRUE(std::ranges::is_sorted(*list, {}, &HostPreemptions::host));
  EXPECT_EQ(list->at(0).host, first);
  EXPECT_EQ(list->at(0).per_second, 3);
  EXPECT_EQ(list->at(0).length, 3'000'000);
  EXPECT_EQ(list->at(1).per_second, 20);
  EXPECT_FALSE(list->at(1).lengths_vary);
  EXPECT_EQ(list->at(2).host, NodeId(15));
  EXPECT_TRUE(list->at(2).lengths_vary);
  const auto settings = flags.Settings();
  ASSERT_TRUE(settings.ok());
  ASSERT_THAT(*settings, SizeIs(3)) << "those of all hosts";
  EXPECT_EQ(settings->at(0).text, "host.preemption.rate=1");
  flags.neighbours = {"hosts=2,count=1,slice=1ms", "node=0,count=7,slice=2ms"};
  const auto neighbours = flags.Neighbours(kHosts, 1);
  ASSERT_TRUE(neighbours.ok());
  EXPECT_TRUE(std::ranges::is_sorted(*neighbours, {}, &HostNeighbours::host));
  EXPECT_EQ(neighbours->at(0).count, 7u);
}

// Catches hosts that change with what other flags draw.
TEST(NoiseFlagsTest, EachFlagDrawsByItself) {
  NoiseFlags alone, all;
  alone.slow = {"hosts=3,factor=0.5"};
  all.slow = {"0->1=0.5", "random=0.5,factor=0.25", "factor=0.5,hosts=3"};
  all.preempt = {"share=0.5,rate=1,for=1us"};
  all.neighbours = {"hosts=5,count=1,slice=1ms", "count=2,slice=1ms"};
  const auto drawn = all.Drawn(kHosts, 1);
  ASSERT_TRUE(drawn.ok());
  ASSERT_THAT(*drawn, SizeIs(3));
  EXPECT_EQ(drawn->at(0).flag, "--slow factor=0.5,hosts=3");
  EXPECT_EQ(drawn->at(0).hosts, alone.Drawn(kHosts, 1)->at(0).hosts);
  EXPECT_EQ(drawn->at(1).hosts, Drawn("8", DrawingFlag::kPreempt));
  EXPECT_EQ(drawn->at(2).hosts, Drawn("5", DrawingFlag::kNeighbours));
  EXPECT_NE(Drawn("5", DrawingFlag::kPreempt), Drawn("5", DrawingFlag::kNeighbours));
  EXPECT_NE(alone.Drawn(kHosts, 2)->at(0).hosts, drawn->at(0).hosts);
}

TEST(NoiseFlagsTest, SaysWhetherTheSeedMatters) {
  const auto is_drawn = [](const std::vector<std::string>& slow,
                           const std::vector<std::string>& preempt,
                           const std::vector<std::string>& neighbours) {
    NoiseFlags flags;
    flags.slow = slow;
    flags.preempt = preempt;
    flags.neighbours = neighbours;
    return flags.IsDrawn();
  };
  EXPECT_FALSE(is_drawn({}, {}, {}));
  EXPECT_FALSE(
      is_drawn({"3=0.5", "0->1=0.5"}, {}, {"count=1,slice=1ms", "node=1,count=1,slice=1s"}));
  EXPECT_TRUE(is_drawn({"random=0.5,factor=0.5"}, {}, {}));
  EXPECT_TRUE(is_drawn({"factor=0.5,share=0.5"}, {}, {}));
  EXPECT_TRUE(is_drawn({}, {"node=1,rate=1,for=1us"}, {}));
  EXPECT_TRUE(is_drawn({}, {}, {"count=1,hosts=2,slice=1ms"}));
}

// Catches nodes that are slow by the product of two factors, or by the higher one.
TEST(NoiseFlagsTest, SlowNodesHaveTheLowerFactor) {
  const auto rates = [](const std::vector<std::string>& slow) {
    Network network;
    network.nodes.resize(kHosts, {.out_rate = 8, .in_rate = 4});
    network.nodes[0].duplex_rate = 10;
    const Status status = SlowNetwork(slow, 1, &network);
    EXPECT_TRUE(status.ok()) << status.ToString();
    std::multiset<double> out;
    for (const Network::Node& node : network.nodes) {
      EXPECT_EQ(node.out_rate, 2 * node.in_rate);
      out.insert(node.out_rate);
    }
    return out;
  };
  EXPECT_EQ(rates({"hosts=4,factor=0.5"}).count(4), 4u);
  EXPECT_EQ(rates({"share=0.25,factor=0.5"}), rates({"hosts=4,factor=0.5"}));
  const std::string node = std::to_string(Drawn("1", DrawingFlag::kSlow).front().value);
  const std::multiset<double> lower = rates({node + "=0.25", "hosts=4,factor=0.5"});
  EXPECT_EQ(lower.count(2), 1u);
  EXPECT_EQ(lower.count(4), 3u);
  EXPECT_EQ(rates({"hosts=4,factor=0.25", node + "=0.5"}).count(2), 4u);
}

TEST(NoiseFlagsTest, SaysWhatIsWrong) {
  const auto slow = [](const std::vector<std::string>& texts) {
    Network network;
    network.nodes.resize(4);
    return SlowNetwork(texts, 1, &network).ToString();
  };
  EXPECT_THAT(slow({"hosts=5,factor=0.5"}),
              HasSubstr("--slow: 'hosts=5,factor=0.5': 5 hosts, and there are 4; the form is "));
  EXPECT_THAT(slow({"hosts=2"}), HasSubstr("no factor"));
  EXPECT_THAT(slow({"factor=0.5"}), HasSubstr("random, hosts or share is missing"));
  EXPECT_THAT(slow({"hosts=2,random=0.5,factor=0.5"}), HasSubstr("random is of paths"));
  EXPECT_THAT(slow({"hosts=2,share=0.5,factor=0.5"}),
              HasSubstr("'hosts' and 'share' are both there"));
  EXPECT_THAT(slow({"hosts=2,factor=0.5", "share=0.5,factor=0.1"}),
              HasSubstr("hosts or share is there twice"));
  EXPECT_THAT(slow({"share=2,factor=0.5"}), HasSubstr("the share '2' is not from 0 to 1"));
  EXPECT_THAT(slow({"hosts=2,factor=0"}), HasSubstr("the factor '0' is not above 0"));
  EXPECT_THAT(slow({"hosts=2,factor=0.5,node=1"}), HasSubstr("'node=1' is unknown"));
  const auto preempt = [](const std::vector<std::string>& texts) {
    NoiseFlags flags;
    flags.preempt = texts;
    const Status settings = flags.Settings().status();
    return (settings.ok() ? flags.Preemptions(4, 1).status() : settings).ToString();
  };
  EXPECT_THAT(preempt({"hosts=5,rate=1,for=1us"}), HasSubstr("5 hosts, and there are 4; the form"));
  EXPECT_THAT(preempt({"hosts=1,rate=1,for=1us", "share=1,rate=1,for=1us"}),
              HasSubstr("--preempt: 'share=1,rate=1,for=1us': hosts or share is there twice"));
  EXPECT_THAT(preempt({"node=1,rate=1,for=1us", "node=1,rate=2,for=1us"}),
              HasSubstr("node 1 is there twice"));
  EXPECT_THAT(preempt({"rate=1,for=1us", "rate=2,for=1us"}),
              HasSubstr("all hosts are there twice"));
  EXPECT_THAT(preempt({"node=1,rate=1000,for=1s"}),
              HasSubstr("--preempt: 'node=1,rate=1000,for=1s': cores are away 1000 times as long"));
  EXPECT_THAT(preempt({"node=4,rate=1,for=1us"}), HasSubstr("no node '4', the nodes are 0 to 3"));
}

}  // namespace
}  // namespace prepost::noise_flags_test
