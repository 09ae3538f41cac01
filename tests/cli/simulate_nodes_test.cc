// SPDX-License-Identifier: Apache-2.0
//
// What prepost simulate says of each node and its host, from outside: of one plan and of several
// groups, in text, JSON and CSV.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost {
namespace {

using ::testing::ContainsRegex;
using Json = nlohmann::json;

class SimulateNodesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    test::OutputOf({"compile", "--nodes", "6", "--message-bytes", "4MiB", "-o", plan_});
  }
  std::string Simulate(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"simulate", plan_, "--profile", profile_});
    return test::OutputOf(flags);
  }
  Json SimulateJson(std::vector<std::string> flags) {
    flags.push_back("--json");
    return Json::parse(Simulate(flags));
  }

  test::TempFolder folder_;
  const std::string plan_ = folder_ / "plan.json";
  const std::string profile_ = test::ProfilePath("fractus");
};

uint64_t SumOf(const Json& hosts, const char* key) {
  uint64_t sum = 0;
  for (const Json& host : hosts) sum += host.at(key).get<uint64_t>();
  return sum;
}

// Catches posts before the start that are not told, or of which compare says another number.
TEST_F(SimulateNodesTest, PostsBeforeAreThoseOfCompare) {
  const Json found = SimulateJson({}), twice = SimulateJson({"--groups", "2"});
  const Json compared = Json::parse(test::OutputOf(
      {"compare", plan_, "--clock", "virtual", "--profile", profile_, "--json"}))["comparisons"][0];
  for (const auto& [executor, way] : {std::pair("cpu", "cpu-driven"), {"offload", "preposted"}}) {
    SCOPED_TRACE(executor);
    const Json& run = found[executor];
    EXPECT_EQ(run["posts_before"], compared[way]["work_requests_before"]);
    EXPECT_EQ(run["posts"], compared[way]["work_requests"]);
    EXPECT_EQ(SumOf(run["hosts"], "posts_before"), run["posts_before"]);
    EXPECT_EQ(twice[executor]["posts_before"], 2 * run["posts_before"].get<uint64_t>());
  }
  // Each op is posted once, before or on the way.
  const Json stats = Json::parse(test::OutputOf({"stats", plan_, "--json"}));
  const uint64_t before = found["cpu"]["posts_before"];
  EXPECT_GT(before, 0u);
  EXPECT_EQ(before + found["cpu"]["posts"].get<uint64_t>(), stats["ops"]);
  const std::string text = Simulate({"--per-node"});
  EXPECT_THAT(text, ContainsRegex("posts before +" + found["offload"]["posts_before"].dump() +
                                  " +" + std::to_string(before) + "\n"));
  EXPECT_THAT(text, ContainsRegex("hosts, CPU-driven +posts before +looks"));
}

}  // namespace
}  // namespace prepost
