// SPDX-License-Identifier: Apache-2.0
//
// prepost stats and prepost explain from outside: their texts, JSON that says the same, and what
// they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/command.h"
#include "tests/support/golden.h"
#include "tests/support/temp_folder.h"

namespace prepost::stats_test {
namespace {

using test::Command;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class StatsTest : public ::testing::Test {
 protected:
  void Compile(std::vector<std::string> flags) {
    flags.insert(flags.begin(), "compile");
    flags.insert(flags.end(), {"-o", plan_});
    Command compile(flags);
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
  }
  /// Eight nodes, eight blocks, the last one short.
  void CompilePipeline() {
    Compile({"--nodes", "8", "--message-bytes", "790", "--block-bytes", "100", "--algorithm",
             "binomial_pipeline"});
  }
  std::string Print(const std::vector<std::string>& arguments) {
    Command command(arguments);
    EXPECT_EQ(command.Wait(), 0) << command.err();
    EXPECT_EQ(command.err(), "");
    return command.out();
  }
  void ExpectRefused(const std::vector<std::string>& arguments, int code,
                     const std::string& message) {
    test::ExpectRefused(arguments, code, message, folder_);
  }

  void WriteTopology(const std::string& rest) {
    std::ofstream(topology_) << R"({ "format": "prepost.topology", "version": "1.0", )" << rest
                             << "}";
  }
  /// Whose hosts and uplinks have `rate`.
  void WriteTwoRacksOfFour(const std::string& rate) {
    WriteTopology(R"("host_rate": ")" + rate + R"(", "up_rate": ")" + rate + R"(",
        "rack_latency": "1us", "core_latency": "2us", "racks": [
            { "name": "a", "hosts": "a[1-4]" }, { "name": "b", "hosts": "b[1-4]" } ])");
  }
  Json OverTopology() {
    return Json::parse(Print({"stats", plan_, "--topology", topology_, "--json"}));
  }
  void ExpectGoldenOverTopology(const std::string& golden) {
    std::string text = Print({"stats", plan_, "--topology", topology_});
    text.replace(text.find(topology_), topology_.size(), "racks.json");
    test::ExpectGolden(golden, text);
  }

  test::TempFolder folder_;
  const std::string topology_ = folder_ / "racks.json";
  const std::string plan_ = folder_ / "plan.json";
};

TEST_F(StatsTest, Texts) {
  CompilePipeline();
  test::ExpectGolden("analysis/stats-pipeline.txt", Print({"stats", plan_}));
  test::ExpectGolden("analysis/stats-pipeline-nodes.txt", Print({"stats", plan_, "--per-node"}));
  test::ExpectGolden("analysis/explain-op.txt", Print({"explain", plan_, "5/13"}));
  test::ExpectGolden("analysis/explain-message.txt", Print({"explain", plan_, "0>4:2"}));
  test::ExpectGolden("analysis/explain-node.txt", Print({"explain", plan_, "5"}));
  Compile({"--nodes", "5", "--message-bytes", "1", "--block-bytes", "1MiB", "--algorithm",
           "binomial_tree"});
  test::ExpectGolden("analysis/stats-tree.txt", Print({"stats", plan_}));
  test::ExpectGolden("analysis/explain-slack.txt", Print({"explain", plan_, "1>3:0"}));
}

// Ranges, expressions and bounds of collectives, in words.
TEST_F(StatsTest, Collectives) {
  const std::string file = plan_;
  const auto compile = [&](const std::string& collective, const std::string& algorithm) {
    std::vector<std::string> flags = {"--collective",    collective, "--algorithm",   algorithm,
                                      "--nodes",         "6",        "--block-bytes", "1KiB",
                                      "--message-bytes", "6KiB"};
    if (collective == "allreduce") flags.insert(flags.end(), {"--combine", "sum:float32"});
    Compile(flags);
  };
  compile("allreduce", "halving");
  test::ExpectGolden("analysis/stats-allreduce.txt", Print({"stats", file}));
  test::ExpectGolden("analysis/explain-allreduce-block.txt", Print({"explain", file, ":2"}));
  test::ExpectGolden("analysis/explain-allreduce-op.txt", Print({"explain", file, "2/9"}));
  const Json block = Json::parse(Print({"explain", file, ":2", "--json"}));
  EXPECT_EQ(block["block"]["values"][0]["operands"], 6);
  EXPECT_EQ(block["block"]["values"][0]["at"], Json({0, 1, 2, 3, 4, 5}));
  const Json stats = Json::parse(Print({"stats", file, "--json"}));
  EXPECT_EQ(stats["port_bound"]["blocks"], 10);
  EXPECT_EQ(stats["combine"], Json({{"op", "sum"}, {"type", "float32"}}));
  ExpectRefused({"explain", file, ":6"}, 1, "there is no block 6, the blocks are 0 to 5");
  compile("alltoall", "bruck");
  test::ExpectGolden("analysis/stats-alltoall.txt", Print({"stats", file}));
  compile("gather", "binomial");
  EXPECT_THAT(Print({"explain", file, "0"}), HasSubstr("chain back to the start"));
}

// Bounds over two racks of four, by hand: an alltoall of 1 MB parts has 16 of them to pass from one
// rack to the other, each way, at 1 GB/s.
TEST_F(StatsTest, CollectivesOverATopology) {
  WriteTwoRacksOfFour("8Gbit/s");
  Compile({"--collective", "alltoall", "--nodes", "8", "--message-bytes", "1MB", "--block-bytes",
           "1MB", "--algorithm", "pairwise"});
  ExpectGoldenOverTopology("analysis/stats-alltoall-topology.txt");
  const auto on = [&] { return OverTopology()["topology"]; };
  Json alltoall = on();
  EXPECT_EQ(alltoall["cuts"][0]["cut"], "out of rack a");
  EXPECT_EQ(alltoall["cuts"][0]["bytes"], 16e6);
  EXPECT_DOUBLE_EQ(alltoall["cuts"][0]["seconds"], 0.016);
  EXPECT_EQ(alltoall["links_bound"]["rounds"], 16);
  EXPECT_DOUBLE_EQ(alltoall["latency_bound"]["seconds"], 4e-6);  // 3 rounds, one between racks
  EXPECT_GE(alltoall["modelled_seconds"], alltoall["seconds_bound"]);
  EXPECT_GE(alltoall["limited_rounds"], alltoall["limited_rounds_bound"]);
  EXPECT_EQ(alltoall["crossings"]["needed"], nullptr);
  Compile({"--collective", "allreduce", "--combine", "sum:float32", "--nodes", "8",
           "--message-bytes", "8MB", "--algorithm", "halving"});
  const Json allreduce = on();
  EXPECT_DOUBLE_EQ(allreduce["cuts"][0]["seconds"], 0.014);  // 2 x 7 / 8 x 8 MB of all ports
  EXPECT_GE(allreduce["modelled_seconds"], allreduce["seconds_bound"]);
  // Of parts of sizes of their own, those that pass: all but the root's own of 7 MB.
  Compile({"--collective", "gather", "--root", "5", "--algorithm", "direct", "--part-bytes",
           "1MB,0,2MB,0,0,7MB,1MB,0"});
  EXPECT_EQ(on()["cuts"][0]["bytes"], 4e6);  // into the root
}

// No schedule of any collective is below its bounds, over racks that are slow.
TEST_F(StatsTest, NoCollectiveIsBelowItsBounds) {
  WriteTopology(R"(
    "host_rate": "8Gbit/s", "up_rate": "3Gbit/s", "rack_latency": "1us", "core_latency": "5us",
    "racks": [ { "name": "a", "hosts": "a[1-3]" }, { "name": "b", "hosts": "b[1-2]" },
               { "name": "c", "hosts": "c[1-3]" } ])");
  struct Case {
    const char* collective;
    std::vector<const char*> algorithms;
  };
  for (const auto& [collective, algorithms] :
       std::vector<Case>{{"reduce", {"chain", "binomial_tree", "circulant"}},
                         {"allreduce", {"ring", "halving", "doubling"}},
                         {"reduce_scatter", {"ring", "halving"}},
                         {"allgather", {"ring", "halving"}},
                         {"gather", {"direct", "binomial"}},
                         {"scatter", {"direct", "binomial"}},
                         {"alltoall", {"pairwise", "bruck"}},
                         {"barrier", {"dissemination"}}}) {
    for (const char* algorithm : algorithms) {
      SCOPED_TRACE(std::string(collective) + " " + algorithm);
      std::vector<std::string> flags = {"--collective", collective, "--algorithm",
                                        algorithm,      "--nodes",  "8"};
      const std::string kind = collective;
      if (kind != "barrier")
        flags.insert(flags.end(), {"--message-bytes", "640000", "--block-bytes", "160000"});
      if (kind.find("reduce") != std::string::npos)
        flags.insert(flags.end(), {"--combine", "sum:float32"});
      Compile(flags);
      const Json on = OverTopology()["topology"];
      EXPECT_GE(on["modelled_seconds"].get<double>() * (1 + 1e-9),
                on["seconds_bound"].get<double>());
      EXPECT_GE(on["limited_rounds"], on["limited_rounds_bound"]);
      EXPECT_GE(on["seconds_bound"].get<double>() * (1 + 1e-9),
                on["network_bound"]["seconds"].get<double>());
    }
  }
}

// Two racks of four behind uplinks of one host's rate: the flat pipeline crosses again and again.
TEST_F(StatsTest, Topology) {
  WriteTwoRacksOfFour("8Gbit/s");
  Compile({"--nodes", "8", "--message-bytes", "8MB", "--block-bytes", "1MB"});
  ExpectGoldenOverTopology("analysis/stats-topology.txt");
  const Json stats = OverTopology();
  const Json& on = stats["topology"];
  EXPECT_EQ(on["racks"].size(), 2u);
  EXPECT_EQ(on["crossings"]["needed"], 1);
  EXPECT_EQ(on["crossings"]["enters_racks_once"], false);
  EXPECT_DOUBLE_EQ(on["cuts"][0]["seconds"], 0.008);  // 8 MB at 1 GB/s
  EXPECT_EQ(stats["per_node"][5]["rack"], 1);

  Compile({"--nodes", "9", "--message-bytes", "1"});
  ExpectRefused({"stats", plan_, "--topology", topology_}, 1,
                "racks.json: the topology has 8 hosts, the plan 9 nodes");
  ExpectRefused({"stats", plan_, "--topology", folder_ / "none"}, 1, "cannot read");
  ExpectRefused({"stats", "-", "--topology", "-"}, 2, "cannot both be stdin");
}

// 64 blocks of 16 bytes, whose bytes are nothing beside 1 us and 2 us per round: the latencies are
// what takes long, and a bound without them would be thousands of times too low. With few large
// blocks the links are, and latency comes after them.
TEST_F(StatsTest, LatencyMayBeTheBottleneck) {
  WriteTwoRacksOfFour("80Gbit/s");
  const auto stats_of = [&](std::vector<std::string> flags) {
    Compile(flags);
    return OverTopology();
  };
  const Json chain = stats_of(
      {"--nodes", "8", "--message-bytes", "1024", "--block-bytes", "16", "--algorithm", "chain"});
  const Json& first = chain["busiest"][0];
  EXPECT_EQ(first["resource"], "latency");
  EXPECT_EQ(first["rounds"], 70);
  EXPECT_NEAR(first["seconds"].get<double>(), 70e-6 + 64 * 1e-6, 1e-15);  // 64 rounds cross
  EXPECT_GT(first["busy_share"], 0.99);
  EXPECT_EQ(first["seconds"], chain["topology"]["latency_seconds"]);
  EXPECT_EQ(chain["busiest"][1]["resource"], "node_out");
  EXPECT_DOUBLE_EQ(chain["topology"]["latency_bound"]["seconds"].get<double>(), 4e-6);
  EXPECT_DOUBLE_EQ(chain["topology"]["seconds_bound"].get<double>(), 4e-6 + 1024 / 10e9);
  ExpectGoldenOverTopology("analysis/stats-latency.txt");

  const Json large = stats_of({"--nodes", "8", "--message-bytes", "8MB"});
  EXPECT_EQ(large["busiest"][0]["resource"], "rack_up");
  for (size_t i = 1; i < large["busiest"].size(); ++i) {
    EXPECT_GE(large["busiest"][i - 1]["seconds"], large["busiest"][i]["seconds"]);
  }
  const Json empty = stats_of({"--nodes", "2", "--message-bytes", "0"});
  EXPECT_EQ(empty["busiest"][0]["resource"], "latency");
  EXPECT_EQ(empty["busiest"][0]["busy_share"], 1.0);
  EXPECT_TRUE(empty["topology"]["links_bound"].is_null());  // both in one rack
  EXPECT_TRUE(empty["topology"]["latency_bound"]["crossing_seconds"].is_null());
}

// Catches lists that grow with the plan: a thousand nodes, and a chain of 1058 messages.
TEST_F(StatsTest, TextStaysShort) {
  Compile(
      {"--nodes", "1000", "--message-bytes", "60", "--block-bytes", "1", "--algorithm", "chain"});
  const auto lines = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  EXPECT_LE(lines(Print({"stats", plan_})), 40);
  EXPECT_LE(lines(Print({"explain", plan_, "999"})), 45);
  EXPECT_THAT(Print({"explain", plan_, "999"}), HasSubstr("1058 blocks, 0 credits"));
  EXPECT_THAT(Print({"explain", plan_, "999"}), HasSubstr("... 1028 more"));
}

TEST_F(StatsTest, JsonSaysTheSame) {
  CompilePipeline();
  const Json stats = Json::parse(Print({"stats", plan_, "--json"}));
  EXPECT_EQ(stats["rounds"], 10);
  EXPECT_EQ(stats["rounds_bound"]["rounds"], 10);
  EXPECT_EQ(stats["rounds_gap"]["rounds"], 0);
  EXPECT_EQ(stats["depth"]["blocks"], 10);
  EXPECT_EQ(stats["block_transfers"], 56);
  EXPECT_EQ(stats["last_block"]["skew"], 0);
  ASSERT_EQ(stats["per_node"].size(), 8u);
  for (uint32_t node = 1; node < 8; ++node) {
    EXPECT_EQ(stats["per_node"][node]["in"]["bytes"], 790);  // catches a full last block
    EXPECT_EQ(stats["per_node"][node]["in"]["blocks"], 8);
  }
  EXPECT_TRUE(stats["per_node"][0]["last_round"].is_null());
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  for (const Json& channel : stats["per_channel"]) {
    blocks += channel["blocks"].get<uint64_t>();
    bytes += channel["bytes"].get<uint64_t>();
  }
  EXPECT_EQ(blocks, 56u);
  EXPECT_EQ(bytes, 7u * 790);
  EXPECT_FALSE(stats.contains("topology"));

  const Json op = Json::parse(Print({"explain", plan_, "5/13", "--json"}));
  ASSERT_EQ(op["ops"].size(), 1u);
  EXPECT_EQ(op["ops"][0]["kind"], "send");
  EXPECT_EQ(op["ops"][0]["critical"], true);
  EXPECT_EQ(op["chain"].back()["start"], 0);
  const Json node = Json::parse(Print({"explain", plan_, "5", "--json"}));
  EXPECT_EQ(node["summary"]["blocks_in"], 8);
  EXPECT_EQ(Json::parse(Print({"explain", plan_, "0>4:2", "--json"}))["ops"].size(), 2u);
}

TEST_F(StatsTest, OneNodeAndNoBytes) {
  Compile({"--nodes", "1", "--message-bytes", "0"});
  EXPECT_THAT(Print({"stats", plan_}), HasSubstr("one node has it all"));
  EXPECT_THAT(Print({"explain", plan_, "0"}), HasSubstr("node 0, the root: 0 ops"));
  EXPECT_TRUE(Json::parse(Print({"stats", plan_, "--json"}))["last_block"].is_null());
  ExpectRefused({"explain", plan_, "0/0"}, 1, "node 0 has no ops");
  Compile({"--nodes", "2", "--message-bytes", "1"});
  EXPECT_THAT(Print({"stats", plan_}), HasSubstr("1 of 1 block transfer has no slack"));
  Compile({"--nodes", "3", "--message-bytes", "0"});
  EXPECT_THAT(Print({"stats", plan_}), HasSubstr("most bytes at node 1: 1 block, 0 bytes"));
}

// Catches sums in 64 bits: the largest message, 2^62 bytes, four times and more.
TEST_F(StatsTest, SumsBeyond64Bits) {
  const std::string bytes = "4611686018427387904";
  WriteTopology(R"("host_rate": "8Gbit/s", "up_rate": "8Gbit/s", "core_rate": "80Gbit/s",
    "racks": [ { "name": "a", "hosts": "a[1-2]" }, { "name": "b", "hosts": "b[1-998]" } ])");
  struct Sum {
    std::string nodes, of_root, in_rack_b;
    double copies;
  };
  for (const Sum& sum : {Sum{"3", "9223372036854775808", "4611686018427387904", 1},
                         Sum{"1000", "4607074332408960516096", "4602462646390533128192", 998}}) {
    Compile({"--nodes", sum.nodes, "--message-bytes", bytes, "--block-bytes", bytes, "--algorithm",
             "sequential"});
    EXPECT_THAT(Print({"stats", plan_}), HasSubstr(", " + sum.of_root + " bytes"));
    EXPECT_THAT(Print({"stats", plan_, "--per-node"}), HasSubstr(sum.of_root));
    const Json flat = Json::parse(Print({"stats", plan_, "--json"}));
    // Every digit as long as it fits 64 bits; then the nearest double.
    EXPECT_EQ(flat["per_node"][1]["in"]["bytes"].dump(), bytes);
    EXPECT_EQ(flat["per_node"][0]["out"]["bytes"].get<double>(), std::stod(sum.of_root));
    EXPECT_THAT(Print({"stats", plan_, "--topology", topology_}),
                HasSubstr("bottleneck      the port out of node 0"));
    const Json down = OverTopology()["topology"]["racks"][1]["down"];
    EXPECT_EQ(down["bytes"].get<double>(), std::stod(sum.in_rack_b));
    EXPECT_DOUBLE_EQ(down["seconds"].get<double>(), sum.copies * 0x1p62 / 1e9);
    if (sum.copies == 1) {
      EXPECT_EQ(down["bytes"].dump(), sum.in_rack_b);
    }
  }
  ExpectRefused({"compile", "--nodes", "3", "--message-bytes", "9223372036854775807", "-o", plan_},
                2, "9223372036854775807 bytes is above the limit of 4611686018427387904");
}

TEST_F(StatsTest, WhatIsRefused) {
  CompilePipeline();
  ExpectRefused({"explain", plan_, "8"}, 1, "the nodes are 0 to 7; did you mean '7'?");
  ExpectRefused({"explain", plan_, "5/30"}, 1, "its ops are 0 to 29; did you mean '5/29'?");
  ExpectRefused({"explain", plan_, "1>4:2"}, 1, "did you mean '0>4:2'?");
  ExpectRefused({"explain", plan_, "0>8:2"}, 1, "there is no node 8");
  ExpectRefused({"explain", plan_, "0>4:8"}, 1, "the blocks are 0 to 7; did you mean '0>4:7'?");
  ExpectRefused({"explain", plan_, "1>0:2"}, 1, "node 0 is the root");
  ExpectRefused({"explain", plan_, "5:12"}, 2, "did you mean '5/12'?");
  for (const char* what : {"", "x", "-1", "05", "5/", "5/12/1/3", "4294967296", "5/ 12"}) {
    ExpectRefused({"explain", plan_, what}, 2, "is no NODE, NODE/OP, FROM>TO:BLOCK or :BLOCK");
  }
  ExpectRefused({"explain", plan_}, 2, "WHAT");
  ExpectRefused({"stats"}, 2, "PLAN");
  ExpectRefused({"stats", plan_, "--per-node", "--json"}, 2, "excludes");
  ExpectRefused({"stats", folder_ / "none"}, 1, "cannot read");

  std::string text = test::ReadText(plan_);
  const std::string key = "\"rounds\": 10";
  text.replace(text.find(key), key.size(), "\"rounds\": 11");
  std::ofstream(plan_) << text;
  ExpectRefused({"stats", plan_}, 1, "fails verification: /rounds");
  ExpectRefused({"explain", plan_, "5/12"}, 1, "fails verification: /rounds");
}

}  // namespace
}  // namespace prepost::stats_test
