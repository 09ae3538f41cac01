// SPDX-License-Identifier: Apache-2.0
//
// prepost simulate of several groups, --groups and --workload, from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/simulate_fixture.h"

namespace prepost::simulate_groups_test {
namespace {

using test::Command;
using test::SimulateTest;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// Catches groups that do not share, that are not rotated, and sums and means that are not.
TEST_F(SimulateTest, RotatedGroups) {
  const Json plain = SimulateJson({});
  const Json one = SimulateJson({"--groups", "1"});
  const Json three = SimulateJson({"--groups", "3"});
  for (const char* executor : {"offload", "cpu"}) {
    SCOPED_TRACE(executor);
    EXPECT_EQ(one[executor]["completion_seconds"], plain[executor]["completion_seconds"]);
    EXPECT_EQ(one[executor]["of_bound"], plain[executor]["of_bound"]);
    for (const char* key : {"skew_seconds", "doorbells", "posts", "wakeups", "arming_seconds"})
      EXPECT_EQ(one[executor][key], plain[executor][key]) << key;
    EXPECT_EQ(three[executor]["doorbells"], 3 * plain[executor]["doorbells"].get<int>());
    EXPECT_GT(three[executor]["arming_seconds"],
              2 * plain[executor]["arming_seconds"].get<double>());
    const Json& run = three[executor];
    EXPECT_GE(run["of_bound"].get<double>(), 1.0);
    double mean = 0, last = 0, square = 0;
    ASSERT_EQ(run["groups"].size(), 3u);
    for (size_t g = 0; g < 3; ++g) {
      const Json& group = run["groups"][g];
      EXPECT_EQ(group["root"], g);
      EXPECT_EQ(group["latency_seconds"], group["completion_seconds"]);
      mean += group["latency_seconds"].get<double>() / 3;
      last = std::max(last, group["completion_seconds"].get<double>());
    }
    for (const Json& group : run["groups"]) {
      square += std::pow(group["latency_seconds"].get<double>() - mean, 2) / 3;
    }
    EXPECT_DOUBLE_EQ(run["completion_seconds"], last);
    EXPECT_NEAR(run["latency_mean_seconds"], mean, 1e-12);
    EXPECT_NEAR(run["latency_deviation_seconds"], std::sqrt(square), 1e-12);
    EXPECT_DOUBLE_EQ(run["aggregate_bytes_per_second"], 3 * 8 * 1048576 / last);
    EXPECT_GT(last, 2 * plain[executor]["completion_seconds"].get<double>());
  }
  const std::string text = Simulate({"--groups", "3"});
  EXPECT_THAT(text, HasSubstr("modelled, with the profile Fractus"));
  EXPECT_THAT(text, HasSubstr("group 2, root 2"));
}

class SimulateWorkloadTest : public SimulateTest {
 protected:
  static Json Run(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"simulate", "--profile", test::ProfilePath("fractus"), "--json"});
    Command command(flags);
    EXPECT_EQ(command.Wait(), 0) << command.err();
    return Json::parse(command.out());
  }
  std::string Write(const std::string& groups) {
    std::ofstream(path_) << R"({"format": "prepost.workload", "version": "1.0", "hosts": 9,
        "spec": {"block_bytes": 1048576}, "groups": [)"
                         << groups << "]}";
    return path_;
  }
  const std::string path_ = folder_ / "workload.json";
};

// Catches groups with another plan, at another time or on other hosts than the file says.
TEST_F(SimulateWorkloadTest, GroupsAreWhatTheFileSays) {
  const Json plain = SimulateJson({});
  const Json run = Run({"--workload", Write(R"(
      {"plan": "plan.json"},
      {"plan": "plan.json", "hosts": [8, 1, 2, 3, 4, 5, 6, 7], "after": 0},
      {"spec": {"message_bytes": 8388608}, "hosts": [7, 1, 2, 3, 4, 5, 6, 0], "start": "1s"},
      {"spec": {"message_bytes": 1048576, "algorithm": "chain"}, "hosts": [8, 0], "start": 2})")});
  EXPECT_EQ(run["modelled"], true);
  EXPECT_EQ(run["hosts"], 9);
  EXPECT_EQ(run["groups"], 4);
  for (const char* executor : {"offload", "cpu"}) {
    SCOPED_TRACE(executor);
    const double alone = plain[executor]["completion_seconds"];
    const Json& groups = run[executor]["groups"];
    const auto figure = [&](size_t group, const char* key) {
      return groups[group][key].get<double>();
    };
    EXPECT_DOUBLE_EQ(figure(0, "completion_seconds"), alone);
    EXPECT_DOUBLE_EQ(figure(1, "start_seconds"), figure(0, "known_seconds"));
    EXPECT_DOUBLE_EQ(figure(1, "waited_seconds"), figure(0, "known_seconds"));
    EXPECT_NEAR(figure(1, "latency_seconds"), alone, 1e-9 + 0.01 * alone);
    EXPECT_EQ(groups[2]["root"], 7);
    EXPECT_EQ(figure(2, "start_seconds"), 1);
    EXPECT_EQ(figure(2, "waited_seconds"), 0);
    EXPECT_GT(figure(3, "completion_seconds"), 2);
    EXPECT_LT(figure(3, "latency_seconds"), alone);
    EXPECT_EQ(groups[3]["message_bytes"], 1048576);
    EXPECT_DOUBLE_EQ(run[executor]["completion_seconds"], figure(3, "completion_seconds"));
    EXPECT_EQ(run[executor]["latency_p1_seconds"], groups[3]["latency_seconds"]);
    EXPECT_EQ(run[executor]["latency_p25_seconds"], groups[3]["latency_seconds"]);
    EXPECT_GT(run[executor]["latency_p50_seconds"], groups[3]["latency_seconds"]);
    EXPECT_GE(run[executor]["of_bound"].get<double>(), 1.0);
  }
}

// Host 8 is in the second group only.
TEST_F(SimulateWorkloadTest, LinksAndDelaysAreThoseOfHosts) {
  const std::string file = Write(R"({"spec": {"message_bytes": 9999999}, "hosts": [0, 1]},
                                    {"spec": {"message_bytes": 9999999}, "hosts": [3, 8]})");
  const Json plain = Run({"--workload", file});
  for (const auto& flags : std::vector<std::vector<std::string>>{
           {"--slow", "3->8=0.5"}, {"--slow", "8=0.5"}, {"--delay", "node=8,at=0s,for=3ms"}}) {
    const Json other = Run({"--workload", file, flags[0], flags[1]});
    EXPECT_EQ(other["cpu"]["groups"][0], plain["cpu"]["groups"][0]);
    // A host that receives is not needed for that, but to know.
    const char* const figure = flags[0] == "--delay" ? "known_seconds" : "latency_seconds";
    EXPECT_GT(other["cpu"]["groups"][1][figure], plain["cpu"]["groups"][1][figure]);
  }
}

// A spec in a workload is the plan that compile makes of the same: catches a key that is not read,
// or not over that of all groups.
TEST_F(SimulateWorkloadTest, SpecsOfCollectives) {
  const auto compile = [&](const std::string& name, std::vector<std::string> flags) {
    flags.insert(flags.begin(), "compile");
    flags.insert(flags.end(), {"--block-bytes", "1MiB", "-o", folder_ / name});
    test::OutputOf(flags);
  };
  compile("sums.json", {"--collective", "allreduce", "--combine", "sum:int32", "--deterministic",
                        "--nodes", "4", "--message-bytes", "4MiB", "--algorithm", "chain"});
  compile("all.json", {"--collective", "alltoall", "--algorithm", "pairwise", "--part-bytes",
                       "0,9000000;1,0", "--ready", "barrier"});
  compile("barrier.json", {"--collective", "barrier", "--nodes", "5"});
  std::ofstream(path_) << R"({"format": "prepost.workload", "version": "1.0", "hosts": 9,
    "spec": {"collective": "allreduce", "combine": {"op": "sum", "type": "int32"}, "nodes": 4,
             "message_bytes": 4194304},
    "groups": [
      {"plan": "sums.json"},
      {"spec": {"algorithm": "chain", "deterministic": true}, "start": "1s"},
      {"plan": "all.json", "start": "2s"}, {"plan": "barrier.json", "start": "4s"},
      {"spec": {"message_bytes": 1048576, "algorithm": "ring"}, "start": "6s"}]})";
  const auto latencies = [&] {
    std::vector<double> all;
    const Json run = Run({"--workload", path_, "--executor", "cpu"});
    for (const Json& group : run["cpu"]["groups"])
      all.push_back(group["latency_seconds"].get<double>());
    return all;
  };
  std::vector<double> found = latencies();
  EXPECT_NEAR(found[1], found[0], 1e-9);
  EXPECT_LT(found[4], found[0]);
  std::ofstream(path_) << R"({"format": "prepost.workload", "version": "1.0", "hosts": 9,
    "groups": [
      {"plan": "all.json"}, {"plan": "barrier.json", "start": "2s"},
      {"spec": {"collective": "alltoall", "part_bytes": [[0, 9000000], [1, 0]], "nodes": 2,
                "algorithm": "pairwise", "ready": "barrier"}, "start": "3s"},
      {"spec": {"collective": "barrier", "algorithm": "dissemination", "nodes": 5},
       "start": "5s"}]})";
  found = latencies();
  EXPECT_NEAR(found[2], found[0], 1e-9);
  EXPECT_NEAR(found[3], found[1], 1e-9);
  const auto expect = [&](const std::string& spec, const std::string& message) {
    Write("{\"spec\": " + spec + "}");
    test::ExpectRefused(
        {"simulate", "--profile", test::ProfilePath("fractus"), "--workload", path_}, 1, message,
        folder_);
  };
  expect(R"({"collective": "alltoall", "message_bytes": 1})",
         "/groups/0/spec/algorithm: no schedule of alltoall is called 'binomial_pipeline'; there "
         "are pairwise, bruck");
  expect(R"({"collective": "allredcue"})", "did you mean 'allreduce'?");
  expect(R"({"collective": "allreduce", "message_bytes": 4, "algorithm": "ring"})",
         "/groups/0/spec/combine: what allreduce does to values is missing");
  expect(R"({"collective": "allgather", "part_bytes": [[1, 2], [3]], "algorithm": "ring"})",
         "/groups/0/spec: part_bytes: row 2 has 1 size, expected 2");
  expect(R"({"collective": "barrier", "algorithm": "chain"})",
         "/groups/0/spec/algorithm: no schedule of barrier is called 'chain'");
  // A barrier has one schedule, whatever the others have.
  std::ofstream(path_) << R"({"format": "prepost.workload", "version": "1.0", "hosts": 4,
    "spec": {"collective": "allreduce", "combine": "sum:float32", "algorithm": "ring"},
    "groups": [{"spec": {"message_bytes": 4096}}, {"spec": {"collective": "barrier"}},
               {"spec": {"collective": "reduce", "algorithm": "chain", "message_bytes": 4096,
                         "root": 2}},
               {"spec": {"collective": "multicast", "algorithm": "chain", "message_bytes": 1}}]})";
  EXPECT_THAT(
      test::OutputOf({"simulate", "--profile", test::ProfilePath("fractus"), "--workload", path_}),
      testing::AllOf(HasSubstr("\n  group 0, allreduce  "), HasSubstr("\n  group 1, barrier  "),
                     HasSubstr("\n  group 2, reduce, root 2  "),
                     HasSubstr("\n  group 3, root 0  ")));
}

TEST_F(SimulateWorkloadTest, StandsAlone) {
  const std::string file = Write(R"({"spec": {"message_bytes": 10}})");
  const auto expect = [&](std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(),
                 {"simulate", "--profile", test::ProfilePath("fractus"), "--workload", file});
    test::ExpectRefused(flags, code, message, folder_);
  };
  expect({plan_}, 2, "--workload says what is sent");
  expect({"--nodes", "3"}, 2, "--nodes: --workload says what is sent");
  expect({"--groups", "3"}, 2, "--groups: --workload says what is sent");
  expect({"--message-bytes", "3"}, 2, "--message-bytes: --workload says what is sent");
  expect({"--sweep", "ready=barrier,window=1"}, 2, "--sweep ready: --workload says what is sent");
  expect({"--delay", "node=9,at=1s,for=1s"}, 1, "the nodes are 0 to 8");
  std::ofstream(file) << "{";
  expect({}, 1, "workload.json:1:1: ");
  Write(R"({"spec": {"message_bytes": 10, "block_bytes": "auto"}})");
  expect({}, 1, "/groups/0/spec: block_bytes: nothing is chosen for groups that share a network");
  Write(R"({"spec": {"message_bytes": 10, "algorithm": "auto"}})");
  expect({}, 1, "expected a name such as \"chain\", found \"auto\"");
}

}  // namespace
}  // namespace prepost::simulate_groups_test
