// SPDX-License-Identifier: Apache-2.0
//
// The built `prepost simulate` of collectives other than multicasts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/simulate_fixture.h"

namespace prepost::collective_simulate_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

/// An allreduce of 8 nodes, as the command's flags say it.
class CollectiveSimulateTest : public testing::Test {
 protected:
  static Json SimulateJson(std::vector<std::string> flags, const std::string& profile) {
    flags.insert(flags.begin(),
                 {"simulate", "--profile", test::ProfilePath(profile), "--json", "--nodes", "8"});
    return Json::parse(test::OutputOf(flags));
  }
  void ExpectRefused(std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), {"simulate", "--nodes", "8", "--message-bytes", "1MiB"});
    test::ExpectRefused(flags, code, message, folder_);
  }

  const std::vector<std::string> allreduce_ = {"--collective", "allreduce",       "--combine",
                                               "sum:float32",  "--message-bytes", "64MiB"};
  test::TempFolder folder_;
};

// The report's words and figures, and that a plan's file gives the same as its flags.
TEST_F(CollectiveSimulateTest, TellsWhatMembersTake) {
  const Json json = SimulateJson(allreduce_, "tcp-10g");
  EXPECT_EQ(json["collective"], "allreduce");
  EXPECT_FALSE(json.contains("offload"));
  EXPECT_FALSE(json["cpu"].contains("root_known_seconds"));
  const double bound = json["bound_seconds"];
  EXPECT_NEAR(bound, 2 * 7 / 8.0 * (64 << 20) * 8 / 9.41e9 + 10e-6, 1e-9);
  EXPECT_GT(json["cpu"]["of_bound"], 1);
  EXPECT_LT(json["cpu"]["of_bound"], 1.2);
  const std::string plan = folder_ / "plan.json";
  std::vector<std::string> compile = {"compile",
                                      "--nodes",
                                      "8",
                                      "--algorithm",
                                      json["algorithm"],
                                      "--block-bytes",
                                      std::to_string(json["block_bytes"].get<uint64_t>()),
                                      "-o",
                                      plan};
  compile.insert(compile.end(), allreduce_.begin(), allreduce_.end());
  test::OutputOf(compile);
  const std::string text = test::OutputOf(
      {"simulate", plan, "--profile", test::ProfilePath("tcp-10g"), "--per-node", "--causes"});
  EXPECT_THAT(text, HasSubstr("all members are done after"));
  EXPECT_THAT(text, HasSubstr("\nis done at "));
  EXPECT_THAT(text, HasSubstr("\n  combine "));
  EXPECT_THAT(text, Not(HasSubstr("the root")));
  const Json of_file = Json::parse(
      test::OutputOf({"simulate", plan, "--profile", test::ProfilePath("tcp-10g"), "--json"}));
  EXPECT_EQ(of_file["cpu"]["completion_seconds"], json["cpu"]["completion_seconds"]);
}

// Where time goes adds up to when the last member is done, its last sum included.
TEST_F(CollectiveSimulateTest, CausesAddUp) {
  std::vector<std::string> flags = allreduce_;
  flags.insert(flags.end(), {"--causes", "--algorithm", "ring", "--block-bytes", "256KiB"});
  for (const char* profile : {"fractus", "tcp-10g"}) {
    const Json cpu = SimulateJson(flags, profile)["cpu"];
    double sum = 0;
    for (const auto& [cause, seconds] : cpu["critical_path_seconds"].items())
      sum += seconds.get<double>();
    EXPECT_NEAR(sum, cpu["completion_seconds"], 1e-9) << profile;
    EXPECT_GT(cpu["critical_path_seconds"]["combine"], 0) << profile;
    EXPECT_EQ(cpu["critical_path_seconds"]["other"], 0) << profile;
  }
}

TEST_F(CollectiveSimulateTest, SweepsAndChoosesByTheProfile) {
  const std::string csv =
      test::OutputOf({"simulate", "--profile", test::ProfilePath("tcp-10g"), "--nodes", "8",
                      "--collective", "allreduce", "--combine", "sum:float32", "--algorithm",
                      "auto", "--sweep", "message-bytes=1KiB:16MiB:x16384", "--csv", "-"});
  EXPECT_THAT(csv, HasSubstr("doubling"));
  EXPECT_THAT(csv, HasSubstr("ring"));
  EXPECT_THAT(csv, HasSubstr("\n1024,allreduce,"));
}

// Not in the words of multicasts; a collective that has a root says it.
TEST_F(CollectiveSimulateTest, SweepsInItsOwnWords) {
  const auto sweep = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"simulate", "--profile", test::ProfilePath("fractus"), "--nodes",
                                 "4", "--sweep", "message-bytes=1KiB,4KiB"});
    return test::OutputOf(flags);
  };
  const std::string all = sweep({"--collective", "allreduce", "--combine", "sum:float32",
                                 "--algorithm", "halving", "--block-bytes", "1KiB"});
  EXPECT_THAT(all, HasSubstr("\nallreduce, sum:float32, halving, 4 nodes, blocks of 1024\n"));
  EXPECT_THAT(all, HasSubstr("\nall members are done after\n"));
  EXPECT_THAT(all, Not(testing::AnyOf(HasSubstr("preposted"), HasSubstr("gain"))));
  EXPECT_THAT(sweep({"--collective", "gather", "--algorithm", "direct", "--root", "2"}),
              HasSubstr("\ngather, direct, 4 nodes, root 2, "));
}

TEST_F(CollectiveSimulateTest, RefusesWhatCannotBe) {
  const std::string fractus = test::ProfilePath("fractus");
  ExpectRefused({"--profile", fractus, "--collective", "allgather", "--executor", "offload"}, 1,
                "a plan of allgather: queues of NICs carry multicasts; use --executor cpu");
  ExpectRefused({"--profile", fractus, "--collective", "allreduce", "--combine", "sum:float32",
                 "--executor", "offload"},
                1,
                "a plan of allreduce, which combines: a NIC does not, CPUs do; use --executor cpu");
  ExpectRefused({"--profile", fractus, "--collective", "allreduce"}, 1, "--combine");
  // A profile from before there was such a value.
  std::ifstream in(fractus);
  Json profile = Json::parse(in);
  profile["host"].erase("combine_rate");
  const std::string old = folder_ / "old.json";
  std::ofstream(old) << profile;
  ExpectRefused({"--profile", old, "--collective", "allreduce", "--combine", "sum:float32"}, 1,
                "the profile does not say how fast a host combines: add host.combine_rate, or "
                "--set host.combine_rate=4GB/s");
  // Which an allgather does not need.
  test::OutputOf({"simulate", "--profile", old, "--nodes", "4", "--message-bytes", "1KiB",
                  "--collective", "allgather"});
}

}  // namespace
}  // namespace prepost::collective_simulate_test
