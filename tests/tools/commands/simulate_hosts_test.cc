// SPDX-License-Identifier: Apache-2.0
//
// prepost simulate with noise and slow ports of some hosts only: named, so many that are drawn, or
// a share of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/simulate_fixture.h"

namespace prepost::simulate_hosts_test {
namespace {

using test::SimulateSweepTest;
using test::SimulateTest;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr const char* kPreempt = "rate=5000,for=20us";

/// The hosts of the only flag that draws.
std::vector<uint32_t> DrawnIn(const Json& json) {
  EXPECT_EQ(json["drawn_hosts"].size(), 1u);
  return json["drawn_hosts"][0]["hosts"];
}

// Catches preemptions of hosts that are not meant, and none of those that are.
TEST_F(SimulateTest, PreemptionsOfSomeHosts) {
  const auto run = [&](std::vector<std::string> preempts, const std::string& seed = "1") {
    std::vector<std::string> flags = {"--executor", "cpu", "--seed", seed};
    for (const std::string& preempt : preempts) flags.insert(flags.end(), {"--preempt", preempt});
    return SimulateJson(flags);
  };
  const std::string of_all = kPreempt;
  const Json plain = SimulateJson({"--executor", "cpu"}), all = run({of_all});
  EXPECT_EQ(run({"share=1," + of_all})["cpu"], all["cpu"]);
  EXPECT_EQ(run({"hosts=8," + of_all})["cpu"], all["cpu"]);
  EXPECT_EQ(run({"hosts=0," + of_all})["cpu"], plain["cpu"]);
  const Json two = run({of_all + ",hosts=2"});
  EXPECT_GT(two["cpu"]["delayed_seconds"], 0);
  EXPECT_LT(two["cpu"]["delayed_seconds"], all["cpu"]["delayed_seconds"]);
  // The same hosts by their names.
  std::vector<std::string> named;
  for (const uint32_t host : DrawnIn(two))
    named.push_back("node=" + std::to_string(host) + "," + of_all);
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(run(named)["cpu"], two["cpu"]);
  EXPECT_EQ(DrawnIn(run({of_all + ",share=0.25"})), DrawnIn(two));
  EXPECT_NE(DrawnIn(run({of_all + ",hosts=2"}, "2")), DrawnIn(two));
  // Of all hosts but these.
  std::vector<std::string> others = {of_all};
  for (const uint32_t host : DrawnIn(two))
    others.push_back("node=" + std::to_string(host) + ",rate=1e-9,for=0s");
  EXPECT_LT(run(others)["cpu"]["delayed_seconds"], all["cpu"]["delayed_seconds"]);
}

TEST_F(SimulateTest, NeighboursOfSomeHosts) {
  const auto cpu = [&](std::vector<std::string> neighbours) {
    std::vector<std::string> flags = {"--executor", "cpu", "--wait", "polling"};
    for (const std::string& it : neighbours) flags.insert(flags.end(), {"--neighbours", it});
    return SimulateJson(flags);
  };
  const std::string slices = "count=1,slice=20us";
  EXPECT_EQ(cpu({"share=1," + slices})["cpu"], cpu({slices})["cpu"]);
  const Json two = cpu({"hosts=2," + slices});
  std::vector<std::string> named;
  for (const uint32_t host : DrawnIn(two))
    named.push_back("node=" + std::to_string(host) + "," + slices);
  EXPECT_EQ(cpu(named)["cpu"], two["cpu"]);
  EXPECT_GT(two["cpu"]["completion_seconds"],
            cpu({"hosts=0," + slices})["cpu"]["completion_seconds"]);
}

TEST_F(SimulateTest, SlowPortsOfSomeNodes) {
  const Json two = SimulateJson({"--slow", "hosts=2,factor=0.25"});
  std::vector<std::string> named;
  for (const uint32_t host : DrawnIn(two))
    named.insert(named.end(), {"--slow", std::to_string(host) + "=0.25"});
  const Json by_name = SimulateJson(named);
  for (const char* executor : {"offload", "cpu"}) EXPECT_EQ(two[executor], by_name[executor]);
  EXPECT_EQ(two["bound_seconds"], by_name["bound_seconds"]);
  EXPECT_GT(two["bound_seconds"], SimulateJson({})["bound_seconds"]);
}

// Catches hosts that change when another flag does: when there are others of this kind, when more
// is drawn, or another executor runs.
TEST_F(SimulateTest, WhoIsDrawnFollowsFromTheSeed) {
  const std::vector<uint32_t> slow = DrawnIn(SimulateJson({"--slow", "hosts=3,factor=0.5"}));
  EXPECT_EQ(slow.size(), 3u);
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--slow", "random=0.5,factor=0.5"},
           {"--slow", "3=0.5"},
           {"--preempt", "hosts=2,rate=1,for=1us", "--neighbours", "share=0.5,count=1,slice=1ms"},
           {"--executor", "cpu", "--wait", "polling"},
           {"--groups", "2"}}) {
    std::vector<std::string> flags = {"--slow", "hosts=3,factor=0.5"};
    flags.insert(flags.end(), more.begin(), more.end());
    EXPECT_EQ(SimulateJson(flags)["drawn_hosts"][0]["hosts"], slow) << more[0];
  }
}

// Catches a report that leaves the reader to guess, or lists a thousand hosts.
TEST_F(SimulateSweepTest, SaysWhichHostsAreDrawn) {
  const auto deviations = [&](const std::string& nodes, std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"--nodes", nodes, "--message-bytes", "1", "--executor", "offload"});
    return SimulateJson(flags)["deviations"];
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(deviations("16", {"--slow", "hosts=3,factor=0.5"}),
            Json(Words{"--slow hosts=3,factor=0.5 (hosts 1, 6 and 15)", "seed 1"}));
  EXPECT_EQ(deviations("4", {"--preempt", "hosts=1,rate=1,for=1us"})[0].get<std::string>().find(
                "--preempt hosts=1,rate=1,for=1us (host "),
            0u);
  EXPECT_EQ(deviations("4", {"--slow", "share=0.1,factor=0.5"}),
            Json(Words{"--slow share=0.1,factor=0.5 (none of 4 hosts)", "seed 1"}));
  const std::string many = deviations("1000", {"--slow", "share=0.5,factor=0.5"})[0];
  EXPECT_THAT(many, testing::EndsWith(" and 492 more)"));
  EXPECT_EQ(std::ranges::count(many, ','), 8);
  const Json json = SimulateJson({"--nodes", "1000", "--message-bytes", "1", "--executor",
                                  "offload", "--slow", "share=0.5,factor=0.5"});
  EXPECT_EQ(DrawnIn(json).size(), 500u);
  EXPECT_THAT(Simulate({"--nodes", "16", "--message-bytes", "1", "--slow", "hosts=3,factor=0.5"}),
              HasSubstr(", but --slow hosts=3,factor=0.5 (hosts 1, 6 and 15), seed 1: "));
}

// Catches values with commas that a sweep takes apart, and rows that are not what they say.
TEST_F(SimulateSweepTest, NumbersOfHostsAreSwept) {
  const Json sweep =
      SimulateJson({"--nodes", "8", "--message-bytes", "1MiB", "--executor", "cpu", "--per-node",
                    "--sweep", "slow=hosts=0,factor=0.5;hosts=2,factor=0.5;share=1,factor=0.5"});
  ASSERT_EQ(sweep["rows"].size(), 3u);
  for (const size_t i : {0u, 1u, 2u}) {
    const Json& run = sweep["rows"][i]["simulation"];
    EXPECT_EQ(DrawnIn(run).size(), std::vector<size_t>({0, 2, 8})[i]);
    const Json alone = SimulateJson({"--nodes", "8", "--message-bytes", "1MiB", "--executor", "cpu",
                                     "--slow", sweep["rows"][i]["values"]["slow"]});
    EXPECT_EQ(run["cpu"], alone["cpu"]);
    EXPECT_EQ(run["deviations"], alone["deviations"]);
  }
  const std::string text = Simulate({"--message-bytes", "1MiB", "--executor", "cpu", "--slow",
                                     "hosts=6,factor=0.5", "--sweep", "nodes=4,8"});
  EXPECT_THAT(text,
              AllOf(HasSubstr(", but --slow hosts=6,factor=0.5, seed 1\n"),
                    HasSubstr("6 hosts, and there are 4; the form is"), Not(HasSubstr("(hosts"))));
}

TEST_F(SimulateTest, RefusesHostsThatThereAreNot) {
  const auto expect = [&](std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), {"--profile", test::ProfilePath("fractus")});
    ExpectRefused(flags, code, message);
  };
  expect({"--preempt", "hosts=9,rate=1,for=1us"}, 1,
         "prepost: --preempt: 'hosts=9,rate=1,for=1us': 9 hosts, and there are 8; the form is ");
  expect({"--neighbours", "hosts=9,count=1,slice=1ms"}, 1,
         "prepost: --neighbours: 'hosts=9,count=1,slice=1ms': 9 hosts, and there are 8");
  expect({"--slow", "hosts=9,factor=0.5"}, 1,
         "prepost: --slow: 'hosts=9,factor=0.5': 9 hosts, and there are 8; the form is ");
  expect({"--preempt", "share=1.5,rate=1,for=1us"}, 2, "the share '1.5' is not from 0 to 1");
  expect({"--preempt", "share=0.5,hosts=2,rate=1,for=1us"}, 2,
         "'hosts' and 'share' are both there");
  expect({"--neighbours", "node=1,share=0.5,count=1,slice=1ms"}, 2,
         "'node' and 'share' are both there");
  expect({"--slow", "share=-0.5,factor=0.5"}, 2, "the share '-0.5' is not from 0 to 1");
  expect({"--preempt", "rate=1,for=1us", "--preempt", "rate=2,for=1us"}, 2,
         "all hosts are there twice");
}

}  // namespace
}  // namespace prepost::simulate_hosts_test
