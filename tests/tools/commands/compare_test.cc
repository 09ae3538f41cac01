// SPDX-License-Identifier: Apache-2.0
//
// prepost compare from outside: plans and specs, what is refused, its JSON, and its end by Ctrl-C.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost::compare_test {
namespace {

using nlohmann::json;
using test::Command;
using testing::HasSubstr;

constexpr std::string_view kSpec =
    R"({"x-first": {"format": "prepost.plan"}, "nodes": 4, "version": "1.0", "format": )"
    R"("prepost.spec", "collective": "multicast", "algorithm": "binomial_pipeline", )"
    R"("block_bytes": 1000, "message_bytes": 5000})";

size_t CountThreads(pid_t pid) {
  size_t count = 0;
  std::error_code error;  // the process may end meanwhile
  std::filesystem::directory_iterator at("/proc/" + std::to_string(pid) + "/task", error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) ++count;
  return count;
}

class CompareTest : public testing::Test {
 protected:
  void SetUp() override {
    test::WriteBytes(spec_, std::as_bytes(std::span(kSpec)));
    Command compile({"compile", spec_, "-o", plan_});
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
  }

  std::string Compare(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "compare");
    Command compare(arguments);
    EXPECT_EQ(compare.Wait(), 0) << compare.err();
    EXPECT_EQ(compare.err(), "");
    return compare.out();
  }
  void ExpectRefused(std::vector<std::string> arguments, int code, const std::string& message) {
    arguments.insert(arguments.begin(), "compare");
    test::ExpectRefused(arguments, code, message, folder_);
  }

  test::TempFolder folder_;
  const std::string spec_ = folder_ / "spec.json";
  const std::string plan_ = folder_ / "plan.json";
};

// What is compared is preposted one way, and collectives are not: one reason, whether it is a plan,
// a spec or flags, and what takes it.
TEST_F(CompareTest, OtherCollectivesAreRefusedWithWhatTakesThem) {
  ExpectRefused(
      {"--collective", "allreduce", "--combine", "sum:int32", "--nodes", "3", "--bytes", "12"}, 1,
      "--collective: a spec of allreduce: what is compared is CPU-driven and preposted, "
      "and NICs carry multicasts alone; run and simulate take it, driven by CPUs");
  constexpr std::string_view kAlltoall =
      R"({"format": "prepost.spec", "version": "1.0", "collective": "alltoall", "nodes": 3,)"
      R"( "message_bytes": 9})";
  test::WriteBytes(spec_, std::as_bytes(std::span(kAlltoall)));
  ExpectRefused({spec_}, 1, "spec.json: a spec of alltoall: what is compared is");
  ExpectRefused({spec_, "--clock", "virtual", "--profile", "fractus"}, 1, "a spec of alltoall");
  test::OutputOf({"compile", spec_, "-o", plan_});
  ExpectRefused({plan_}, 1, "run and simulate take it, driven by CPUs");
}

TEST_F(CompareTest, CountsComeBeforeTimesAndThenWhatTheyMean) {
  for (const std::string& path : {plan_, spec_}) {
    const std::string out = Compare({path, "--repeat", "2"});
    const size_t counts = out.find("doorbells during it");
    const size_t times = out.find("last node done, median");
    const size_t meaning = out.find("The NICs are emulated");
    ASSERT_NE(meaning, std::string::npos) << out;
    EXPECT_LT(counts, times);
    EXPECT_LT(times, meaning);
  }
}

// Catches a head that leaves out what the plan is, as other commands print it, or how it is
// carried.
TEST_F(CompareTest, SaysWhatThePlanIs) {
  const std::vector<std::string> flags = {
      "--nodes",       "3", "--bytes",       "5000", "--root",      "2",    "--ready", "window=2",
      "--send-window", "3", "--block-bytes", "1000", "--algorithm", "chain"};
  std::vector<std::string> compare = flags;
  compare.insert(compare.end(), {"--repeat", "2", "--mode", "managed", "--masters", "lane"});
  EXPECT_THAT(Compare(compare),
              testing::StartsWith(
                  "chain: 3 nodes, root 2; 5000 bytes in 5 blocks of 1000; ready window=2, send "
                  "window 3\nqueues managed by one master per lane, device profile default; hosts "
                  "wait by interrupt\nemulated NICs; 2 repetitions each way, alternating; 0 busy "
                  "threads beside them, on "));
  for (const char* clock : {"real", "virtual"}) {
    SCOPED_TRACE(clock);
    compare = flags;
    compare.insert(compare.end(), {"--clock", clock, "--json"});
    if (clock == std::string("virtual")) {
      compare.insert(compare.end(), {"--profile", test::ProfilePath("fractus")});
    } else {
      compare.insert(compare.end(), {"--repeat", "1"});
    }
    const json it = json::parse(Compare(compare))["comparisons"][0];
    EXPECT_EQ(it["algorithm"], "chain");
    EXPECT_EQ(it["root"], 2);
    EXPECT_EQ(it["ready"], "window=2");
    EXPECT_EQ(it["send_window"], 3);
  }
}

TEST_F(CompareTest, JsonHasEverySample) {
  const json all = json::parse(Compare({spec_, "--bytes", "3000,64KiB", "--repeat", "3", "--stress",
                                        "2", "--wait", "polling", "--json"}));
  EXPECT_GE(all["machine"]["cores"], 1);
  ASSERT_EQ(all["comparisons"].size(), 2u);
  EXPECT_EQ(all["comparisons"][0]["message_bytes"], 3000);
  EXPECT_EQ(all["comparisons"][1]["message_bytes"], 65536);
  for (const json& it : all["comparisons"]) {
    EXPECT_EQ(it["nodes"], 4);
    EXPECT_EQ(it["stress_threads"], 2);
    EXPECT_EQ(it["wait"], "polling");
    EXPECT_GT(it["completion_ratio"]["of_medians"], 0);
    for (const char* way : {"cpu-driven", "preposted"}) {
      ASSERT_EQ(it[way]["samples"].size(), 3u) << way;
      EXPECT_EQ(it[way]["latency_ns"]["count"], 12) << way;
      for (const json& sample : it[way]["samples"]) {
        EXPECT_EQ(sample["latency_ns"].size(), 4u);
        EXPECT_GT(sample["completion_ns"], 0);
        EXPECT_EQ(sample["during"]["event_requests"], 0) << "pollers ask for none";
        EXPECT_EQ(sample["during"]["doorbells"] == 0, std::string(way) == "preposted");
      }
    }
  }
}

TEST_F(CompareTest, APlanFromStdinAndFlagsOverASpec) {
  Command piped({plan_}, {"/bin/sh", "-c", R"("$0" compare - --repeat 1 <"$1")"});
  EXPECT_EQ(piped.Wait(), 0) << piped.err();
  const json flags = json::parse(Compare({spec_, "--nodes", "3", "--repeat", "1", "--json"}));
  EXPECT_EQ(flags["comparisons"][0]["nodes"], 3);
  EXPECT_EQ(flags["comparisons"][0]["message_bytes"], 5000);
}

// Catches a size that is another's, with either clock.
TEST_F(CompareTest, ARolledPlanIsForEachSize) {
  const std::string rolled = folder_ / "rolled.json";
  test::OutputOf({"compile", spec_, "--message-bytes", "any", "-o", rolled});
  const std::vector<std::string> virtually = {"--bytes",
                                              "5000,9000",
                                              "--json",
                                              "--clock",
                                              "virtual",
                                              "--profile",
                                              test::ProfilePath("fractus")};
  const auto comparisons = [&](const std::string& path) {
    std::vector<std::string> arguments = virtually;
    arguments.insert(arguments.begin(), path);
    return json::parse(Compare(arguments))["comparisons"];
  };
  EXPECT_EQ(comparisons(rolled), comparisons(spec_));
  const json real =
      json::parse(Compare({rolled, "--bytes", "5000,9000", "--repeat", "1", "--json"}));
  EXPECT_EQ(real["comparisons"][1]["blocks"], 9);
  ExpectRefused({rolled}, 2, "--bytes: a rolled plan is for every size, say which");
  ExpectRefused({rolled, "--bytes", "1MiB", "--nodes", "3"}, 2,
                "--nodes: it is for a SPEC, and this is a plan");
}

TEST_F(CompareTest, WhatIsRefused) {
  ExpectRefused({}, 2, "compare needs a PLAN, a SPEC or flags such as --nodes");
  ExpectRefused({plan_, "--bytes", "1MiB"}, 2,
                "is for a SPEC or a rolled plan: a plan's is in its file");
  ExpectRefused({plan_, "--nodes", "3"}, 2, "--nodes: it is for a SPEC, and this is a plan");
  ExpectRefused({spec_, "--bytes", "64KiB,1 apple"}, 2, "--bytes: '1 apple' is no size");
  // Catches an empty size that is passed over: a transfer less than was asked for.
  ExpectRefused({spec_, "--bytes", "64KiB,,1MiB"}, 2, "--bytes: size 2 is empty");
  ExpectRefused({spec_, "--bytes", ",1MiB"}, 2, "--bytes: size 1 is empty");
  ExpectRefused({spec_, "--bytes", "1MiB,"}, 2, "--bytes: size 2 is empty");
  ExpectRefused({"--nodes", "4"}, 2, "--bytes: the size of the message is missing");
  ExpectRefused({plan_, "--repeat", "0"}, 2, "--repeat");
  ExpectRefused({plan_, "--stress", "-1"}, 2, "--stress");
  ExpectRefused({plan_, "--wait", "pollin"}, 2, "did you mean 'polling'?");
  ExpectRefused({plan_, "--idle-ms", "5"}, 2, "--idle-ms is for --wait hybrid");
  ExpectRefused({plan_, "--device", "mlx5"}, 2, "--device: unknown name 'mlx5'");
  ExpectRefused({folder_ / "nothing.json"}, 1, "nothing.json: cannot read: No such file");
  ExpectRefused({"--nodes", "300", "--bytes", "1kB"}, 1, "at most 256");
}

// A transfer's threads must all be gone, and the exit code say why.
TEST_F(CompareTest, CtrlCEndsIt) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Command compare({"compare", plan_, "--repeat", "10000", "--stress", "2"});
    EXPECT_TRUE(compare.WaitUntil([&] { return CountThreads(compare.pid()) > 4; }));
    kill(compare.pid(), signal);
    EXPECT_EQ(compare.Wait(), 130);
    EXPECT_EQ(compare.err(), "prepost: interrupted\n");
    EXPECT_EQ(compare.out(), "");
  }
}

// run takes the same files.
TEST_F(CompareTest, RunTakesASpecForItsInputsSize) {
  const std::string input = folder_ / "input";
  test::WriteBytes(input, std::vector<std::byte>(7777));
  Command run({"run", spec_, "--input", input, "--executor", "offload", "--json"});
  ASSERT_EQ(run.Wait(), 0) << run.err();
  const json report = json::parse(run.out());
  EXPECT_EQ(report["message_bytes"], 7777);
  EXPECT_EQ(report["copies"], 3);
}

}  // namespace
}  // namespace prepost::compare_test
