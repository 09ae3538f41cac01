// SPDX-License-Identifier: Apache-2.0
//
// Rolled plans from outside: what is said of them, where they may come from, and how what is wrong
// with them is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost::rolled_test {
namespace {

using test::Command;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RolledTest : public ::testing::Test {
 protected:
  RolledTest() {
    std::ofstream(input_) << "thirty bytes and not one more.";
    Compile(rolled_, {});
    Compile(alone_, {"--node", "1"});
  }
  static void Compile(const std::string& path, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"compile", "--nodes",         "3",    "--block-bytes",
                                          "1",       "--message-bytes", "any",  "-o",
                                          path,      "--algorithm",     "chain"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Command compile(arguments);
    EXPECT_EQ(compile.Wait(), 0) << compile.err();
  }
  /// `path`, whose `place`-th "offset" is increased by one, in another file.
  std::string Damaged(const std::string& path, int place) const {
    std::string text = test::ReadText(path);
    const std::string key = "\"offset\": ";
    size_t at = 0;
    for (int i = 0; i <= place; ++i) at = text.find(key, at) + key.size();
    const size_t end = text.find_first_of(" ,}", at);
    const std::string more = std::to_string(std::stoi(text.substr(at, end - at)) + 1);
    std::ofstream(folder_ / "damaged.json") << text.replace(at, end - at, more);
    return folder_ / "damaged.json";
  }
  void ExpectRefused(const std::vector<std::string>& arguments, int code, const std::string& text) {
    test::ExpectRefused(arguments, code, text, folder_);
  }
  /// That its arguments are executed with `path` coming through a pipe.
  static std::vector<std::string> Piping(const std::string& path) {
    return {"/bin/sh", "-c", "cat " + path + " | \"$@\"", "sh"};
  }

  test::TempFolder folder_;
  const std::string input_ = folder_ / "image";
  const std::string rolled_ = folder_ / "rolled.json";
  const std::string alone_ = folder_ / "alone.json";
};

// Catches a file with one node's program that is called valid as if all were there, or refused for
// what it lacks by design.
TEST_F(RolledTest, VerifySaysWhatIsProved) {
  Command whole({"verify", rolled_}), alone({"verify", alone_}), json({"verify", alone_, "--json"});
  EXPECT_EQ(whole.Wait(), 0) << whole.err();
  EXPECT_EQ(whole.out(), rolled_ +
                             ": valid for every message size: chain, 3 nodes, k + 1 rounds of k "
                             "blocks, ready barrier; every k up to 7 was checked, and larger ones "
                             "follow\n");
  EXPECT_EQ(alone.Wait(), 0) << alone.err();
  EXPECT_EQ(alone.out(),
            alone_ +
                ": right by itself for every message size: chain, 3 nodes, k + 1 rounds of k "
                "blocks, ready barrier; every k up to 7 was checked, and larger ones follow\n"
                "  proved: the programs of 1 of 3 nodes receive each block once, and before they "
                "send it\n"
                "  not proved: that they fit those of the other nodes (match, acyclic, order, "
                "ready, window, rounds), which needs the file of all\n");
  EXPECT_EQ(json.Wait(), 0) << json.err();
  EXPECT_THAT(json.out(), HasSubstr("\"programs\": 1"));
  EXPECT_THAT(json.out(), HasSubstr("\"match\",\n"));
}

// Catches commands that detect the kind of files but not of stdin or pipes, and a check that takes
// away what is read then.
TEST_F(RolledTest, ComesFromStdinAndPipes) {
  const auto output = [](const std::vector<std::string>& arguments,
                         const std::vector<std::string>& wrapper) {
    Command command(arguments, wrapper);
    EXPECT_EQ(command.Wait(), 0) << arguments[0] << ": " << command.err();
    return command.out();
  };
  const std::string flat = folder_ / "flat.json", spec = folder_ / "spec.json";
  std::ofstream(flat) << output({"unroll", "-", "--message", input_}, Piping(rolled_));
  std::ofstream(spec) << "{ \"format\": \"prepost.spec\", \"version\": \"1.0\", "
                         "\"collective\": \"multicast\", \"nodes\": 3 }";
  for (const std::string path : {"-", "/dev/stdin"}) {
    EXPECT_THAT(output({"verify", path}, Piping(rolled_)),
                StartsWith(path + ": valid for every message size"));
    EXPECT_THAT(output({"verify", path}, Piping(alone_)), StartsWith(path + ": right by itself"));
    EXPECT_THAT(output({"verify", path}, Piping(flat)), StartsWith(path + ": valid: chain"));
    for (const std::string& plan : {rolled_, flat, spec}) {
      EXPECT_THAT(output({"run", path, "--input", input_, "--transport", "shm"}, Piping(plan)),
                  HasSubstr("all 2 copies are identical"));
    }
    Command draw({"draw", path}, Piping(rolled_));
    EXPECT_EQ(draw.Wait(), 1);
    EXPECT_THAT(draw.err(), HasSubstr("a rolled plan, for every message size: prepost unroll"));
  }
}

// Of other collectives there is no plan for every size, and no command makes a multicast in its
// place.
TEST_F(RolledTest, OnlyMulticastsHaveOne) {
  for (const char* algorithm : {"chain", "ring", "auto"}) {
    test::ExpectRefused(
        {"compile", "--nodes", "4", "--collective", "allreduce", "--combine", "sum:float32",
         "--algorithm", algorithm, "--message-bytes", "any", "-o", folder_ / "none.json"},
        1,
        "--collective: only a multicast has a plan for any size: allreduce is "
        "compiled for one",
        folder_);
  }
}

// Two rolled plans, where plans of one size are wanted: what to do.
TEST_F(RolledTest, OtherCommandsSayHowToUnroll) {
  const std::string hint = rolled_ + ": a rolled plan, for every message size: prepost unroll " +
                           rolled_ + " --message-bytes N makes the plan for one\n";
  ExpectRefused({"diff", rolled_, rolled_}, 1, hint);
  ExpectRefused({"stats", rolled_}, 1, hint);
}

// Catches findings at ops of a plan that nobody has, and of nobody knows how many blocks.
TEST_F(RolledTest, FindingsNameTheSegment) {
  const std::string bad = Damaged(rolled_, 1);  // node 1 sends a block before it has it
  const std::string finding =
      bad + ": /programs/1/segments/0/slots/0/send: unrolled to k = 1 block: ";
  ExpectRefused({"verify", bad}, 1, finding);
  ExpectRefused({"unroll", bad, "--message-bytes", "1"}, 1, finding);
  const std::string alone = Damaged(alone_, 0);
  const std::string own = alone +
                          ": /programs/0/segments/0/slots/0/send: with 1 block: node 1 sends block "
                          "0 in round 0 before it has it\n";
  ExpectRefused({"verify", alone}, 1, own);
  ExpectRefused({"node", alone, "--node", "1", "--peers", "none", "--message-bytes", "1"}, 1,
                own.substr(alone.size()));
}

// Catches a message that blames the plan for the input, or does not say what helps.
TEST_F(RolledTest, AnInputThatDoesNotFitIsNamed) {
  std::filesystem::resize_file(input_, (1u << 24) + 1);
  const std::string text =
      ": message of 16777217 bytes in blocks of 1 makes 16777217 blocks, the limit is 16777216; "
      "compile the plan with --block-bytes 2 or more\n";
  ExpectRefused({"run", rolled_, "--input", input_, "--executor", "cpu"}, 1,
                "input " + input_ + text);
  ExpectRefused({"node", alone_, "--node", "1", "--peers", "none", "--message-bytes", "16777217"},
                1, "--message-bytes" + text);
  ExpectRefused({"unroll", rolled_, "--message-bytes", "16777217"}, 1, "--message-bytes" + text);
  ExpectRefused({"unroll", rolled_, "--message", input_}, 1, "--message" + text);
  std::filesystem::resize_file(input_, 0);
  Command empty({"run", rolled_, "--input", input_, "--executor", "cpu"});
  EXPECT_EQ(empty.Wait(), 0) << empty.err();
}

}  // namespace
}  // namespace prepost::rolled_test
