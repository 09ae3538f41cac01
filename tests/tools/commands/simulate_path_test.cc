// SPDX-License-Identifier: Apache-2.0
//
// The ops of the critical path of prepost simulate --causes, from outside: those that explain
// takes, of the messages that stand beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/simulate_fixture.h"

namespace prepost::simulate_path_test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class SimulatePathTest : public test::SimulatePlanTest {
 protected:
  SimulatePathTest() : SimulatePlanTest("6", "8MiB") {}
  std::string Causes(std::vector<std::string> flags) {
    flags.push_back("--causes");
    return Simulate(flags, "sierra");  // no limit both ways, so that parts of the path repeat
  }
  /// What explain prints about an op.
  Json Explained(const std::string& op) {
    const Json json = Json::parse(test::OutputOf({"explain", plan_, op, "--json"}));
    EXPECT_EQ(json["ops"].size(), 1u);
    return json["ops"][0];
  }
  static std::string MessageOf(const Json& op) {
    const Json& it = op["message"];
    const std::string channel = it["from"].dump() + ">" + it["to"].dump();
    return it["block"].is_null() ? "credit " + channel : channel + ":" + it["block"].dump();
  }
};

// Catches ops counted otherwise than explain does, sends for receives, and those that are lost
// where steps are folded.
TEST_F(SimulatePathTest, OpsAreThoseOfExplain) {
  const Json json = Json::parse(Causes({"--json"}));
  const std::string text = Causes({});
  for (const auto& [executor, name] : {std::pair("offload", "preposted"), {"cpu", "CPU-driven"}}) {
    SCOPED_TRACE(executor);
    size_t messages = 0, folded = 0;
    std::string last;
    for (const Json& run : json[executor]["critical_path"]) {
      folded += run["times"].get<size_t>() - 1;
      for (const Json& link : run["links"]) {
        ASSERT_EQ(link["sends"].size(), link["message"] == "" ? 0 : run["times"].get<size_t>());
        ASSERT_EQ(link["receives"].size(), link["sends"].size());
        for (size_t i = 0; i < link["sends"].size(); ++i) {
          const Json send = Explained(link["sends"][i]), receive = Explained(link["receives"][i]);
          EXPECT_EQ(MessageOf(send), MessageOf(receive));
          EXPECT_EQ(send["node"], send["message"]["from"]);
          EXPECT_EQ(receive["node"], receive["message"]["to"]);
          if (i == 0) {
            EXPECT_EQ(link["message"], MessageOf(send));
          }
          last = link["sends"][i].get<std::string>();
        }
        messages += link["sends"].size();
      }
    }
    EXPECT_GT(folded, 0u) << "nothing is folded, the test is weak";
    EXPECT_THAT(text, HasSubstr("critical path, " + std::string(name) + ": " +
                                std::to_string(messages) + " messages\n"));
    EXPECT_THAT(text, HasSubstr("  " + last + " "));
  }
}

// Catches hosts where explain takes nodes of the plan.
TEST_F(SimulatePathTest, OpsOfGroupsAreOfTheirPlan) {
  const Json json = Json::parse(Causes({"--groups", "3", "--json"}));
  uint32_t turned = 0;
  for (const char* executor : {"offload", "cpu"}) {
    const Json& run = json[executor];
    const auto group = run["last_group"].get<uint32_t>();
    turned += group;
    for (const Json& folded : run["critical_path"]) {
      const Json& link = folded["links"][0];
      if (link["sends"].empty()) continue;
      Json send = Explained(link["sends"][0]);
      for (const char* end : {"from", "to"})
        send["message"][end] = (send["message"][end].get<uint32_t>() + group) % 6;
      EXPECT_EQ(link["message"], "group " + std::to_string(group) + " " + MessageOf(send));
    }
  }
  EXPECT_GT(turned, 0u) << "hosts are nodes, the test is weak";
  EXPECT_THAT(Causes({"--groups", "2"}), HasSubstr("message, by hosts "));
}

}  // namespace
}  // namespace prepost::simulate_path_test
