// SPDX-License-Identifier: Apache-2.0
//
// What prepost simulate reports about each node and its host, from outside: of one plan and of
// several groups, in text, JSON and CSV.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/read_csv.h"
#include "tests/support/simulate_fixture.h"

namespace prepost::simulate_nodes_test {
namespace {

using test::ReadCsv;

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class SimulateNodesTest : public test::SimulatePlanTest {
 protected:
  SimulateNodesTest() : SimulatePlanTest("6", "4MiB") {}

  const std::string profile_ = test::ProfilePath("fractus");
};

uint64_t SumOf(const Json& hosts, const char* key) {
  uint64_t sum = 0;
  for (const Json& host : hosts) sum += host.at(key).get<uint64_t>();
  return sum;
}

// Catches posts before the start that are not reported, or for which compare reports another
// number.
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
  EXPECT_THAT(text, ContainsRegex("hosts, CPU-driven +posts before +polls"));
}

/// The lines from `head` on to the next empty one, with blanks folded.
std::string TableOf(const std::string& text, const std::string& head) {
  const size_t begin = text.find("\n" + head);
  EXPECT_NE(begin, std::string::npos) << head;
  std::istringstream in(text.substr(begin + 1));
  std::string table;
  for (std::string line; std::getline(in, line) && !line.empty(); table += "\n") {
    std::istringstream words(line);
    for (std::string word; words >> word;) table += word + " ";
  }
  return table;
}

// Catches nodes of groups that are left out, or reported otherwise than those of one plan.
TEST_F(SimulateNodesTest, AGroupsNodesAreToldAsAPlans) {
  const Json plain = SimulateJson({"--causes"});
  const Json one = SimulateJson({"--causes", "--groups", "1"});
  for (const char* executor : {"offload", "cpu"}) {
    SCOPED_TRACE(executor);
    for (const char* key : {"node_seconds", "node_known_seconds", "hosts", "time_by_cause"}) {
      EXPECT_EQ(plain[executor][key].size(), 6u) << key;
      EXPECT_EQ(one[executor]["groups"][0][key], plain[executor][key]) << key;
    }
  }
  EXPECT_EQ(one["offload"]["groups"][0]["node_final_seconds"],
            plain["offload"]["node_final_seconds"]);
  const std::string text = Simulate({"--causes", "--per-node"});
  std::string of_group = Simulate({"--causes", "--per-node", "--groups", "1"});
  EXPECT_THAT(of_group, HasSubstr("  group 0, node 5 "));
  for (size_t at = 0; (at = of_group.find("group 0, ")) != std::string::npos;)
    of_group.erase(at, std::string("group 0, ").size());
  for (const char* head : {"has it at", "hosts, preposted", "hosts, CPU-driven",
                           "time by cause, preposted", "time by cause, CPU-driven"})
    EXPECT_EQ(TableOf(of_group, head), TableOf(text, head));
}

// Catches times and hosts of another group or node, and groups whose start is not their root's.
TEST_F(SimulateNodesTest, EachGroupHasItsNodes) {
  const std::string workload = folder_ / "workload.json";
  std::ofstream(workload) << R"({"format": "prepost.workload", "version": "1.0", "hosts": 9,
    "groups": [{"plan": "plan.json", "hosts": [0, 1, 2, 3, 4, 5]},
               {"plan": "plan.json", "hosts": [8, 2, 7, 3, 6, 5], "start": "50us"},
               {"spec": {"message_bytes": 1048576}, "hosts": [3, 1], "after": 0}]})";
  const std::vector<std::string> base = {"simulate", "--workload", workload, "--profile", profile_};
  std::vector<std::string> with_json = base;
  with_json.insert(with_json.end(), {"--json", "--causes"});
  const Json json = Json::parse(test::OutputOf(with_json));
  for (const char* executor : {"offload", "cpu"}) {
    SCOPED_TRACE(executor);
    const Json& groups = json[executor]["groups"];
    EXPECT_EQ(groups[1]["node_host"], Json({8, 2, 7, 3, 6, 5}));
    uint64_t posts = 0;
    for (const Json& group : groups) {
      const auto times = group["node_seconds"].get<std::vector<double>>();
      const auto knows = group["node_known_seconds"].get<std::vector<double>>();
      ASSERT_EQ(times.size(), group["node_host"].size());
      EXPECT_EQ(group["node_host"][0], group["root"]);
      EXPECT_EQ(times[0], group["start_seconds"]) << "the root has it from the start";
      EXPECT_EQ(std::ranges::max(times), group["completion_seconds"]);
      EXPECT_EQ(std::ranges::max(knows), group["known_seconds"]);
      posts += SumOf(group["hosts"], "posts_before");
      const auto is_last = [&](const Json& it) { return it == group["last_node"]; };
      EXPECT_EQ(std::ranges::count_if(group["time_by_cause"], is_last), 1);
    }
    EXPECT_EQ(posts, json[executor]["posts_before"]);
  }
  std::vector<std::string> with_nodes = base;
  with_nodes.push_back("--per-node");
  EXPECT_THAT(TableOf(test::OutputOf(with_nodes), "has it at"),
              ContainsRegex("group 1, node 8 50us 50us \ngroup 1, node 2 "));
}

// Catches nodes that the CSV leaves out or has in another's line, of one plan and of groups.
TEST_F(SimulateNodesTest, CsvHasALinePerNode) {
  const auto expect = [&](const std::map<std::string, std::string>& line, const Json& nodes,
                          size_t node) {
    EXPECT_EQ(line.at("node"), std::to_string(node));
    EXPECT_EQ(line.at("node_seconds"), nodes["node_seconds"][node].dump());
    EXPECT_EQ(line.at("node_known_seconds"), nodes["node_known_seconds"][node].dump());
    EXPECT_EQ(line.at("hosts.posts"), nodes["hosts"][node]["posts"].dump());
    EXPECT_EQ(line.at("time_by_cause.waiting_seconds"),
              nodes["time_by_cause"][node]["waiting_seconds"].dump());
  };
  const Json plain = SimulateJson({"--causes"}),
             groups = SimulateJson({"--causes", "--groups", "3"});
  const auto lines = ReadCsv(Simulate({"--causes", "--per-node", "--csv", "-"}));
  const auto of_groups =
      ReadCsv(Simulate({"--causes", "--per-node", "--csv", "-", "--groups", "3"}));
  ASSERT_EQ(lines.size(), 2u * 6);
  ASSERT_EQ(of_groups.size(), 2u * 3 * 6);
  size_t at = 0;
  for (const char* executor : {"offload", "cpu"}) {
    SCOPED_TRACE(executor);
    const size_t first = executor == std::string("cpu") ? 6 : 0;
    for (size_t i = 0; i < 6; ++i) expect(lines[first + i], plain[executor], i);
    for (size_t g = 0; g < 3; ++g) {
      const Json& group = groups[executor]["groups"][g];
      for (size_t i = 0; i < 6; ++i, ++at) {
        const auto& line = of_groups[at];
        EXPECT_EQ(line.at("executor"), executor);
        EXPECT_EQ(line.at("group"), std::to_string(g));
        EXPECT_EQ(line.at("groups.completion_seconds"), group["completion_seconds"].dump());
        EXPECT_EQ(line.at("node_host"), std::to_string((g + i) % 6));
        expect(line, group, i);
      }
    }
  }
}

// Catches a CSV of one run that is not that of the sweep with the same row, and rows of a sweep
// that have each other's nodes.
TEST_F(SimulateNodesTest, CsvIsForOneRunAndForSweeps) {
  const auto one = ReadCsv(Simulate({"--csv", "-"}));
  ASSERT_EQ(one.size(), 2u);
  EXPECT_EQ(one[1].at("posts_before"), SimulateJson({})["cpu"]["posts_before"].dump());
  EXPECT_FALSE(one[0].contains("node"));
  const std::string file = folder_ / "run.csv";
  EXPECT_THAT(Simulate({"--csv", file}), HasSubstr("all nodes have it after"));
  EXPECT_EQ(ReadCsv(test::ReadText(file)), one);
  const auto swept =
      ReadCsv(test::OutputOf({"simulate", "--profile", profile_, "--message-bytes", "1MiB",
                              "--algorithm", "chain", "--executor", "cpu", "--per-node", "--sweep",
                              "root=0,1,2", "--sweep", "nodes=2,3", "--csv", "-"}));
  std::vector<std::string> places;
  for (const auto& line : swept) {
    places.push_back(line.at("root") + " " + line.at("nodes") + " " + line.at("node"));
    EXPECT_EQ(line.at("error").empty(), !line.at("node").empty());
    EXPECT_EQ(line.at("node") == line.at("root"), line.at("node_seconds") == "0.0");
  }
  EXPECT_EQ(places, std::vector<std::string>({"0 2 0", "0 2 1", "0 3 0", "0 3 1", "0 3 2", "1 2 0",
                                              "1 2 1", "1 3 0", "1 3 1", "1 3 2", "2 2 ", "2 3 0",
                                              "2 3 1", "2 3 2"}));
}

}  // namespace
}  // namespace prepost::simulate_nodes_test
