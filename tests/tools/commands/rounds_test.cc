// SPDX-License-Identifier: Apache-2.0
//
// prepost compile --rounds from outside: plans in every form, what goes with the flag and what does
// not, and how wrong rounds are named.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string_view>
#include <thread>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost::rounds_test {
namespace {

using test::Command;
using test::OutputOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RoundsTest : public ::testing::Test {
 protected:
  RoundsTest() { std::ofstream(chain_) << "0>1:0\n0>1:1 1>2:0\n1>2:1\n"; }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  void Compile(std::vector<std::string> flags) {
    flags.insert(flags.begin(), "compile");
    Command compile(flags);
    EXPECT_EQ(compile.Wait(), 0) << compile.err();
    EXPECT_EQ(compile.err(), "");
  }
  /// compile of the chain's rounds with flags that do not go with it.
  void ExpectRefused(std::vector<std::string> flags, int code, const std::string& text) {
    flags.insert(flags.begin(), {"compile", "--rounds", chain_, "-o", folder_ / "none.json"});
    test::ExpectRefused(flags, code, text, folder_);
  }

  test::TempFolder folder_;
  const std::string chain_ = folder_ / "chain.txt";
  const std::string plan_ = folder_ / "plan.json";
};

TEST_F(RoundsTest, MakeThePlanOfTheSchedule) {
  const std::string by_name = folder_ / "by_name.json";
  for (const char* ready : {"auto", "barrier", "channel", "window=2", "retry"}) {
    Compile({"--rounds", chain_, "--message-bytes", "15", "--block-bytes", "10", "--ready", ready,
             "--send-window", "1", "-o", plan_});
    Compile({"--algorithm", "chain", "--nodes", "3", "--message-bytes", "15", "--block-bytes", "10",
             "--ready", ready, "--send-window", "1", "-o", by_name});
    Command diff({"diff", plan_, by_name});
    EXPECT_EQ(diff.Wait(), 1);
    EXPECT_EQ(diff.out(),
              "same messages and order, different header\nheader: 1\n  algorithm: rounds, chain\n");
  }
}

TEST_F(RoundsTest, EveryEncodingIsTheSamePlan) {
  Compile({"--rounds", chain_, "-o", plan_});
  Compile({"--rounds", chain_, "--encoding", "columns", "-o", folder_ / "columns.json"});
  Compile({"--rounds", chain_, "--encoding", "shards", "-o", folder_ / "shards"});
  EXPECT_EQ(OutputOf({"diff", plan_, folder_ / "columns.json"}), "same\n");
  EXPECT_EQ(OutputOf({"diff", plan_, folder_ / "shards"}), "same\n");
  EXPECT_THAT(OutputOf({"compile", "--rounds", chain_, "--dump"}),
              StartsWith("plan multicast rounds: 3 nodes, root 0, 2097152 bytes in 2 blocks of "
                         "1048576, ready barrier, send window none, 3 rounds, 1 port\n"));
  EXPECT_THAT(OutputOf({"verify", plan_}), HasSubstr("valid: rounds, 3 nodes, 2 blocks"));
}

TEST_F(RoundsTest, RunsAndCanBeExplained) {
  const std::string input = Write("image", "thirty bytes and not one more.");
  Compile({"--rounds", chain_, "--message", input, "-o", plan_});
  for (const char* executor : {"cpu", "offload"}) {
    EXPECT_THAT(OutputOf({"run", plan_, "--input", input, "--executor", executor}),
                HasSubstr("all 2 copies are identical"));
  }
  EXPECT_THAT(OutputOf({"stats", plan_}), HasSubstr("rounds: 3 nodes, root 0; 30 bytes"));
  EXPECT_THAT(OutputOf({"explain", plan_, "1>2:0"}), HasSubstr("1>2:0"));
  EXPECT_THAT(OutputOf({"lower", plan_, "--node", "1"}), HasSubstr("node 1"));
  EXPECT_THAT(OutputOf({"draw", plan_, "-o", "-"}), HasSubstr("<svg"));
}

// Of another collective, with the file's heading and with flags. Catches flags that are not handed
// on, and a path that is taken for a place in a spec.
TEST_F(RoundsTest, AreThoseOfAnyCollective) {
  const std::string heading = Write("heading", "allreduce sum:int32\n0>1+0 1>0+0\n");
  const std::string bare = Write("bare", "0>1+0 1>0+0\n"), by_flags = folder_ / "by_flags.json";
  Compile({"--rounds", heading, "--message-bytes", "4000", "-o", plan_});
  Compile({"--rounds", bare, "--collective", "allreduce", "--combine", "sum:int32",
           "--message-bytes", "4000", "-o", by_flags});
  EXPECT_EQ(OutputOf({"diff", plan_, by_flags}), "same\n");
  EXPECT_THAT(OutputOf({"verify", plan_}), HasSubstr("valid: rounds, 2 nodes, 1 block"));
  const std::string twice = Write("twice", "reduce sum:int8\n0>1+0\n0>1+0\n");
  test::ExpectRefused({"compile", "--rounds", twice, "-o", folder_ / "none.json"}, 1,
                      twice + ":3:1: round 1: value: block 0, made of {0-1}, is combined with one",
                      folder_);
  ExpectRefused({"--collective", "reduce"}, 1, "--combine: what reduce does to values is missing");
  ExpectRefused({"--combine", "sum:int8"}, 1, "--combine: multicast combines nothing");
  ExpectRefused({"--deterministic"}, 2,
                "--deterministic: the rounds of --rounds say in which order");
}

TEST_F(RoundsTest, ComeThroughAPipe) {
  for (const std::string& text :
       {test::ReadText(chain_),
        std::string(R"( {"format": "prepost.rounds", "version": "1.0", "rounds": [["0>1:0"]]})")}) {
    const std::string path = Write("rounds", text);
    Command compile({"compile", "--rounds", "-", "-o", plan_},
                    {"/bin/sh", "-c", "cat " + path + " | \"$@\"", "sh"});
    EXPECT_EQ(compile.Wait(), 0) << compile.err();
  }
}

// Catches "there is nothing yet" that is taken for the end: a plan of fewer nodes, and exit code 0.
TEST_F(RoundsTest, ComeThroughAPipeThatDoesNotBlock) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  const int before = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  const auto before_handler = std::signal(SIGPIPE, SIG_IGN);
  ASSERT_GE(dup2(ends[0], STDIN_FILENO), 0);
  Command compile({"compile", "--rounds", "-", "-o", plan_});
  dup2(before, STDIN_FILENO);
  for (const int fd : {before, ends[0]}) close(fd);
  for (const std::string_view text : {"0>1:0\n", "0>1:1 1>2:0\n", "1>2:1\n"}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  close(ends[1]);
  std::signal(SIGPIPE, before_handler);
  EXPECT_EQ(compile.Wait(), 0) << compile.err();
  const std::string piped = test::ReadText(plan_);
  Compile({"--rounds", chain_, "-o", plan_});
  EXPECT_EQ(piped, test::ReadText(plan_));
}

TEST_F(RoundsTest, ANoteNamesMoreThanOnePort) {
  const std::string rounds = Write("ports.txt", "0>1:0 0>2:0\n");
  Command compile({"compile", "--rounds", rounds, "-o", plan_});
  EXPECT_EQ(compile.Wait(), 0);
  EXPECT_EQ(compile.err(), "prepost: note: " + rounds +
                               ":1:7: round 0: node 0 sends 2 blocks: the plan has 2 ports\n");
}

TEST_F(RoundsTest, RefuseFlagsThatChooseOrPlaceASchedule) {
  ExpectRefused({"--algorithm", "chain"}, 2,
                "--algorithm: the rounds of --rounds are the schedule");
  ExpectRefused({"--message-bytes", "any"}, 2, "--message-bytes: rounds are for as many blocks");
  ExpectRefused({"--message-bytes", "any", "--node", "1"}, 2, "--message-bytes: rounds are for");
  ExpectRefused({"--node", "1"}, 2, "--node");
  ExpectRefused({"--topology", "none.json"}, 2, "--topology: the rounds name the nodes themselves");
  ExpectRefused({"--order", "0,1,2"}, 2, "--order: the rounds name the nodes themselves");
  ExpectRefused({"--show-order"}, 2, "--show-order: the rounds name the nodes themselves");
  ExpectRefused({"--block-bytes", "auto"}, 2, "--block-bytes: auto chooses how many blocks");
  ExpectRefused({"--rules", "none.json"}, 2, "--rules: is for --algorithm auto");
  ExpectRefused({"spec.json"}, 2, "--rounds: is there instead of a spec");
  ExpectRefused({"--ready", "windw=1"}, 2, "--ready: unknown ready mode");
}

TEST_F(RoundsTest, RefuseFlagsThatDoNotFit) {
  ExpectRefused({"--root", "3"}, 1, "prepost: --root: root 3 is out of range");
  ExpectRefused({"--nodes", "4"}, 1, "prepost: " + chain_ + ": node 3 never gets any block\n");
  ExpectRefused({"--message-bytes", "30", "--block-bytes", "10"}, 1,
                "prepost: --block-bytes: 30 bytes in blocks of 10 bytes are 3 blocks");
  ExpectRefused({"--message-bytes", "1"}, 1, "prepost: --message-bytes: 1 byte in blocks of");
  const std::string ports = Write("ports.txt", "0>1:0 0>2:1\n1>2:0 2>1:1\n");
  test::ExpectRefused({"compile", "--rounds", ports, "--ready", "window=1", "-o", plan_}, 1,
                      "prepost: --ready: window=1 is too small", folder_);
}

TEST_F(RoundsTest, RefuseWrongRoundsWithTheirPlaces) {
  const std::string rounds = Write("wrong.txt", "0>1:0\n0>2:0 1>2:1\n0>1:1 0>2:0\n");
  Command compile({"compile", "--rounds", rounds, "-o", plan_});
  EXPECT_EQ(compile.Wait(), 1);
  EXPECT_EQ(compile.out(), "");
  EXPECT_EQ(compile.err(),
            "prepost: " + rounds +
                ":2:7: round 1: node 1 sends block 1, which it does not have yet: it gets it in "
                "round 2 (line 3)\n  " +
                rounds +
                ":3:7: round 2: node 2 gets block 0 a second time, it comes from node 0 in round 1 "
                "(line 2)\n");
  for (const auto& [name, text] : {std::pair("empty.txt", ""), std::pair("plan.txt", "{}"),
                                   std::pair("word.txt", "\x1b[1mchain")}) {
    const std::string path = Write(name, text);
    test::ExpectRefused({"compile", "--rounds", path, "-o", plan_}, 1, "prepost: " + path, folder_);
  }
  test::ExpectRefused({"compile", "--rounds", folder_ / "none"}, 1, "cannot read", folder_);
  test::ExpectRefused({"compile", "--rounds", folder_.path()}, 1, "cannot read", folder_);
  test::ExpectRefused({"compile", "--rounds", ""}, 2, "--rounds", folder_);
}

}  // namespace
}  // namespace prepost::rounds_test
