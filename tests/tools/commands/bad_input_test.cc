// SPDX-License-Identifier: Apache-2.0
//
// What a user can get wrong: one clear line on stderr, the exit code of docs/internals.md,
// nothing on stdout, no file.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost::bad_input_test {
namespace {

using test::Command;
using ::testing::HasSubstr;
using ::testing::Not;

class BadInputTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    test::WriteBytes(folder_ / name, std::as_bytes(std::span(text)));
  }

  /// Runs and expects `code` with exactly one line that holds `message`, and no file but those
  /// written here.
  void Expect(std::vector<std::string> arguments, int code, const std::string& message) {
    const size_t files = test::CountFiles(folder_.path());
    Command run(arguments);
    EXPECT_EQ(run.Wait(), code) << message << "\n" << run.err();
    EXPECT_THAT(run.err(), HasSubstr(message));
    EXPECT_EQ(run.err_lines(), 1u) << run.err();
    EXPECT_THAT(run.err(), Not(HasSubstr("\x1b"))) << "the terminal would obey";
    EXPECT_EQ(run.out(), "") << message;
    EXPECT_EQ(test::CountFiles(folder_.path()), files) << message;
  }

  /// compile with flags, to a file that must not appear.
  void ExpectCompile(std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), "compile");
    flags.insert(flags.end(), {"-o", folder_ / "plan.json"});
    Expect(flags, code, message);
  }
  void ExpectSpec(const std::string& text, const std::string& message) {
    Write("spec.json", text);
    ExpectCompile({folder_ / "spec.json"}, 1, message);
  }

  test::TempFolder folder_;
};

constexpr const char* kSpec =
    R"({"format": "prepost.spec", "version": "1.0", "collective": "multicast", )";

TEST_F(BadInputTest, Flags) {
  ExpectCompile({"--nodes", "2", "--message-bytes", "1", "--nodes", "3"}, 2,
                "--nodes: given 2 times, expected once (see --help)");
  ExpectCompile({"--message-bytes", "1"}, 2, "--nodes: the number of nodes is missing");
  ExpectCompile({"--nodes", "4", "--root", "4", "--message-bytes", "1"}, 1,
                "--root: root 4 is out of range, the nodes are 0 to 3");
  ExpectCompile({"--nodes", "4", "--message-bytes", "1", "--block-bytes", "0"}, 2,
                "--block-bytes: block size is 0 bytes");
  ExpectCompile({"--nodes", "-4"}, 2, "--nodes");
  ExpectCompile({"--nodes", "four"}, 2, "--nodes");
  ExpectCompile({"--nodes", "99999999999"}, 2, "--nodes");
  ExpectCompile({"--nodes", "4", "--message-bytes", "-5"}, 2, "--message-bytes");
  ExpectCompile({"--nodes", "4", "--message-bytes", "5 apples"}, 2,
                "--message-bytes: '5 apples' is no size");
  ExpectCompile({"--nodes", "4", "--message-bytes", "99999999999999GiB"}, 2, "is no size");
  ExpectCompile({"--nodes", "4", "--ready", "windw=2"}, 2,
                "--ready: unknown ready mode 'windw=2', did you mean 'window=1'?");
  ExpectCompile({"--nodes", "4", "--send-window", "0"}, 2, "--send-window: '0' is no window");
  ExpectCompile({"--nodes", "4", "--message", folder_ / "nothing"}, 1,
                "cannot open input " + (folder_ / "nothing: No such file"));
  ExpectCompile({"--nodes", "1048576", "--message-bytes", "1TiB", "--algorithm", "chain",
                 "--block-bytes", "1MiB"},
                1, "transfers, the limit is");
  ExpectCompile({"--node", "4"}, 2, "--node");
  ExpectCompile({"--nodes", "4", "--message-bytes", "1", "--skip-pass", "thni"}, 2,
                "no pass is called 'thni', did you mean 'thin'?");
}

// Catches numbers that wrap (-1 was a seed), times that are no number and so in every range, and
// empty texts that were taken for the default.
TEST_F(BadInputTest, NumbersOfFlags) {
  const std::vector<std::string> run = {"run", "--nodes", "2", "--input", folder_ / "none"};
  const std::vector<std::string> compare = {"compare", "--nodes", "2", "--bytes", "1"};
  const std::vector<std::string> lower = {"lower", folder_ / "none"};
  const std::vector<std::string> draw = {"draw", folder_ / "none"};
  const auto expect = [&](std::vector<std::string> command, const std::string& flag,
                          const std::vector<std::string>& values, const std::string& range) {
    for (const std::string& value : values) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {flag, value});
      Expect(arguments, 2, fmt::format("{}: expected {}, found '{}'", flag, range, value));
    }
  };
  const std::string seconds = "a number from 0.001 to 1000000";
  for (const auto& command : {run, compare}) {
    expect(command, "--timeout", {"0", "nan", "-nan", "inf", "-3", "1e9", "1s", ""}, seconds);
    expect(command, "--idle-ms", {"nan", "-1", "1e7", "x"}, "a number from 0 to 1000000");
    expect(command, "--seed", {"-1", "18446744073709551616", "1.5", "0x3", ""},
           "a whole number from 0 to 18446744073709551615");
  }
  expect(compare, "--repeat", {"0", "10001", "nan", ""}, "a whole number from 1 to 10000");
  for (const auto& command : {lower, draw}) {
    expect(command, "--node", {"-1", "4294967296", "one", ""}, "a whole number from 0 to 1048575");
  }
  expect({"compile", "--message-bytes", "1"}, "--nodes", {"0", "-3", "1048577", "four", "1e3"},
         "a whole number from 1 to 1048576");
  expect(draw, "--block", {"-1", "16777216"}, "a whole number from 0 to 16777215");
}

// What a flag can never be is a usage error; what another plan would allow is rejected input.
TEST_F(BadInputTest, NumbersOutOfRange) {
  const auto never = [this](const std::string& flag, const std::string& value,
                            const std::string& range) {
    ExpectCompile({"--nodes", "4", "--message-bytes", "1", flag, value}, 2, flag + ": " + range);
  };
  never("--ready", "window=0", "'0' is no window, expected a number from 1 to 4294967295");
  never("--send-window", "0", "'0' is no window, expected a number from 1 to 4294967295");
  never("--algorithm", "kary_chain=0", "'0' is no fan-out, expected a number from 1 to 4294967295");
  never("--root", "1048576", "expected a whole number from 0 to 1048575, found '1048576'");
  never("--block-bytes", "5EiB", "block size of 5764607523034234880 bytes is above the limit of");
  ExpectCompile({"--nodes", "4", "--message-bytes", "5EiB"}, 2,
                "--message-bytes: message of 5764607523034234880 bytes is above the limit of");
  const std::string plan = folder_ / "eight.json";
  ASSERT_EQ(Command({"compile", "--nodes", "8", "--message-bytes", "9", "--algorithm",
                     "binomial_pipeline", "-o", plan})
                .Wait(),
            0);
  const auto of_plan = [&](std::vector<std::string> words, const std::string& message) {
    words.insert(words.begin() + 1, plan);
    Expect(words, 1, message);
  };
  of_plan({"draw", "--node", "9"}, "no node 9: the plan has nodes 0 to 7");
  of_plan({"draw", "--block", "1"}, "no block 1: the plan has blocks 0 to 0");
  of_plan({"draw", "--rounds", "7:9"}, "no round 9: the plan has rounds 0 to 2");
  of_plan({"lower", "--node", "8"}, "no node 8: the plan has nodes 0 to 7");
  of_plan({"explain", "9/1"}, "there is no node 9, the nodes are 0 to 7");
  of_plan({"explain", "0/99"}, "node 0 has no op 99");
  of_plan({"simulate", "--profile", "fractus", "--slow", "8=0.5"}, "no node '8', the nodes are 0");
}

// Catches a flag taken for the value that is missing, and written as a file.
TEST_F(BadInputTest, AFlagIsNoValue) {
  const std::vector<std::string> compile = {"compile", "--nodes", "4", "--message-bytes", "1"};
  const auto expect = [&](std::vector<std::string> more, const std::string& message) {
    more.insert(more.begin(), compile.begin(), compile.end());
    Expect(more, 2, message);
  };
  expect({"-o", "--root", "2"}, "-o: expected a value, found the flag '--root' (see --help)");
  expect({"-o", "-h"}, "-o: expected a value, found the flag '-h'");
  expect({"--root", "--output=x"}, "--root: expected a value, found the flag '--output'");
  expect({"--algorithm", "--dmup"}, "--algorithm: expected a value, found the flag '--dmup'");
  expect({"-o"}, "-o: expected a value (see --help)");
  expect({"--root="}, "--root: expected a value (see --help)");
  Expect({"draw", "plan.json", "--trace", "--node", "4"}, 2, "--trace: expected a value, found");
  Expect({"verify", "--send-depth", "--json", "plan.json"}, 2, "--send-depth: expected a value");
  EXPECT_FALSE(std::filesystem::exists("--root"));
  // It can be meant.
  EXPECT_EQ(Command({"compile", "--nodes", "2", "--message-bytes", "1",
                     "--output=" + (folder_ / "--nodes")})
                .Wait(),
            0);
}

TEST_F(BadInputTest, HelpAndVersion) {
  EXPECT_EQ(test::OutputOf({"help"}), test::OutputOf({"--help"}));
  EXPECT_EQ(test::OutputOf({"help", "help"}), test::OutputOf({"--help"}));
  EXPECT_EQ(test::OutputOf({"help", "compile"}), test::OutputOf({"compile", "--help"}));
  EXPECT_EQ(test::OutputOf({"version"}), test::OutputOf({"--version"}));
  EXPECT_EQ(test::OutputOf({"-v"}), test::OutputOf({"--version"}));
  Expect({"help", "complie"}, 2, "unknown subcommand 'complie', did you mean 'compile'?");
}

TEST_F(BadInputTest, StrayArguments) {
  Expect({"run", "plan.json", "image.raw"}, 2,
         "unexpected argument 'image.raw'; --input is required (see --help)");
  Expect({"run", "plan.json", "image.raw", "--inptu", "x"}, 2,
         "unknown flag '--inptu', did you mean '--input'?; --input is required");
  Expect({"compile", "--nodes", "4", "a", "b"}, 2, "unexpected argument 'b' (see --help)");
  Expect({"devices", "mlx5_0"}, 2, "unexpected argument 'mlx5_0'");
  Expect({"--jsno", "devices"}, 2, "unknown flag '--jsno'");
}

TEST_F(BadInputTest, NearNames) {
  const auto expect = [this](const std::string& flag, const std::string& value,
                             const std::string& message) {
    ExpectCompile({"--nodes", "4", "--message-bytes", "1", flag, value}, 2, message);
  };
  expect("--algorithm", "chian",
         "--algorithm: unknown algorithm 'chian', did you mean 'chain'?; known are sequential, ");
  expect("--algorithm", "binomail", "unknown algorithm 'binomail', did you mean 'binomial_tree'?");
  expect("--ready", "retyr", "did you mean 'retry'?; known are auto, barrier, channel, window=W");
  Expect({"simulate", "--profile", "fractos"}, 2,
         "--profile: 'fractos' is neither a file nor a shipped profile, did you mean 'fractus'?; "
         "shipped are apt, fractus, ");
  Expect({"calibrate", "--profile", "cluster"}, 2, "'cluster' is neither a file nor a shipped");
  Expect({"simulate", "--profile", "no/fractus"}, 1, "no/fractus: cannot read: No such file");
}

// A file of another kind than expected: what it is, and what is wanted.
TEST_F(BadInputTest, FilesOfOtherKinds) {
  const std::string plan = folder_ / "plan.json";
  ASSERT_EQ(Command({"compile", "--nodes", "2", "--message-bytes", "1", "-o", plan}).Wait(), 0);
  Expect({"draw", plan, "--trace", plan, "-o", folder_ / "x.svg"}, 1,
         "/format: expected a trace (prepost run --trace), found string \"prepost.plan\"");
  for (const char* command : {"verify", "draw", "lower", "stats"}) {
    Expect({command, folder_.path()}, 1,
           folder_.path() + ": a folder without index.json, expected the file of a plan");
  }
  ExpectCompile({"--nodes", "2", "--message", "/dev/null"}, 1,
                "--message: input /dev/null is a device, expected a regular file");
  ExpectCompile({"--nodes", "2", "--message", folder_.path()}, 1,
                "is a folder, expected a regular");
  for (const std::string file : {"/proc/self/status", "/proc/cpuinfo"}) {
    ExpectCompile({"--nodes", "2", "--message", file}, 1, file + " is made by the kernel");
    Expect({"run", plan, "--input", file}, 1,
           file + " is made by the kernel as it is read and has no size, expected a regular file");
  }
}

TEST_F(BadInputTest, AMissingMessageIsNotAnEmptyOne) {
  ExpectCompile({"--nodes", "4"}, 2, "--message-bytes: the size of the message is missing (see");
}

// What was unset in a script is not the flag left out.
TEST_F(BadInputTest, EmptyNames) {
  Expect({"compile", "--nodes", "4", "--message-bytes", "1", "-o", ""}, 2,
         "expected the name of a file, found ''");
  ExpectCompile({"--nodes", "4", "--message-bytes", "1", "--order", ""}, 2,
                "expected the name of a list of nodes or a file, found ''");
  ExpectCompile({"--nodes", "4", "--message", ""}, 2, "--message: expected the name of a file");
  Expect({"verify", ""}, 2, "expected the name of a file, found ''");
  Expect({"run", "--nodes", "4", "--input", ""}, 2, "--input: expected the name of a file");
}

// Catches what a terminal obeys, and lines that break, whether in an argument or in a file.
TEST_F(BadInputTest, RawBytesAreEscaped) {
  Expect({"verify", folder_ / "a\x1b[31m\n\xff.json"}, 1, "a\\x1b[31m\\x0a\\xff.json: cannot read");
  Expect({"verify", folder_ / "a\n  prepost: b"}, 1, "a\\x0a  prepost: b: cannot read");
  ExpectSpec(std::string(kSpec) + "\"nodes\": 2, \"algorithm\": \"ch\\u009bain\"}",
             "unknown algorithm 'ch\\xc2\\x9bain'");
}

// Catches plans that nobody can verify afterwards, and refusals that come late.
TEST_F(BadInputTest, PlansOfEverySize) {
  const auto expect = [this](std::vector<std::string> more, int code, const std::string& message) {
    more.insert(more.begin(), {"--nodes", "8", "--message-bytes", "any"});
    ExpectCompile(more, code, message);
  };
  expect(
      {"--send-window", "1000000000"}, 1,
      "--send-window: a send window of 1000000000 is too large for a plan of every message size, "
      "the limit is 1024");
  expect({"--ready", "window=100000"}, 1, "--ready: a receive window of 100000 is too large");
  expect({"--node", "8"}, 1, "node 8 is out of range");
  Expect({"compile", "--nodes", "8", "--message-bytes", "any", "--encoding", "shards", "-o",
          folder_.path()},
         2, "--encoding shards is for plans of one message size");
}

// What a flag says is not in the spec's file.
TEST_F(BadInputTest, FlagsOverASpec) {
  Write("spec.json",
        std::string(kSpec) +
            R"("nodes": 4, "message_bytes": 1, "algorithm": "chain", "block_bytes": 1048576})");
  ExpectCompile({folder_ / "spec.json", "--order", "0,1"}, 1,
                "prepost: --order: an order names each of the 4 nodes once, found 2");
  ExpectCompile({folder_ / "spec.json", "--block-bytes", "0"}, 2,
                "prepost: --block-bytes: block size is 0 bytes, expected 1 or more");
  ExpectCompile({folder_ / "spec.json", "--message-bytes", "100MB", "--block-bytes", "1"}, 1,
                "prepost: --block-bytes: message of 100000000 bytes in blocks of 1 makes "
                "100000000 blocks");
  ExpectCompile({folder_ / "spec.json", "--message-bytes", "5EiB"}, 2,
                "prepost: --message-bytes: message of 5764607523034234880 bytes is above");
  Expect({"compare", folder_ / "spec.json", "--bytes", "1,5EiB"}, 2,
         "prepost: --bytes: message of 5764607523034234880 bytes is above");
  ExpectCompile({folder_ / "spec.json", "--message-bytes", "100TB"}, 1,
                "spec.json: /block_bytes: message of 100000000000000 bytes in blocks of 1048576 ");
  ExpectCompile({folder_ / "spec.json", "--root", "4"}, 1, "prepost: --root: root 4 is out of");
}

// What libraries throw, and outputs that nobody checks.
TEST_F(BadInputTest, FilesThatFailLate) {
  Expect({"verify", "/proc/self/mem"}, 1, "/proc/self/mem: cannot read: ");
  ExpectCompile({"/proc/self/mem"}, 1, "/proc/self/mem: cannot read: ");
  Expect({"compile", "--nodes", "2", "--message-bytes", "1", "-o", std::string(300, 'a')}, 1,
         "cannot write: File name too long");
  const std::string plan = folder_ / "plan.json";
  ASSERT_EQ(Command({"compile", "--nodes", "2", "--message-bytes", "1", "-o", plan}).Wait(), 0);
  Write("input", "a");
  for (const std::string& command :
       {std::string("verify "), std::string("lower "), std::string("draw "),
        std::string("run --input ") + (folder_ / "input ")}) {
    // The wrapper gets the command and its (one) argument: a plan's path.
    Command run({plan}, {"/bin/sh", "-c", "exec \"$0\" " + command + "\"$1\" >/dev/full"});
    EXPECT_EQ(run.Wait(), 1) << command;
    EXPECT_THAT(run.err(), HasSubstr("cannot write")) << command;
  }
}

TEST_F(BadInputTest, CommandsAndFlagsThatDoNotExist) {
  Expect({"complie"}, 2, "unknown subcommand 'complie', did you mean 'compile'?");
  Expect({}, 2, "subcommand");
  Expect({"compile", "--algoritm", "chain"}, 2,
         "unknown flag '--algoritm', did you mean '--algorithm'?");
  Expect({"verify"}, 2, "PLAN");
}

// Catches messages about keys and tokens where a file is something else that the command knows.
TEST_F(BadInputTest, WhatIsNoPlanIsCalledByItsName) {
  const std::string trace = folder_ / "trace.json";
  Write("trace.json", R"({"otherData": {"format": "prepost.trace"}})");
  Expect({"draw", trace}, 1,
         "trace.json: the trace of a run, expected a plan: prepost draw PLAN --trace");
  Expect({"simulate", trace, "--profile", "apt"}, 1, "trace.json: the trace of a run");
  Write("text.goal", "// a chain\nnum_ranks 2\n");
  Expect({"stats", folder_ / "text.goal"}, 1, "text.goal: a GOAL text, of which prepost import ");
}

// A channel alone, and credits, which `explain` prints.
TEST_F(BadInputTest, OpsAreSuggestedInTheFormThatIsMeant) {
  const std::string plan = folder_ / "plan.json";
  ASSERT_EQ(Command({"compile", "--nodes", "3", "--message-bytes", "3", "--block-bytes", "1",
                     "--algorithm", "chain", "--ready", "window=1", "-o", plan})
                .Wait(),
            0);
  Expect({"explain", plan, "1>2"}, 2, ":BLOCK, did you mean '1>2:0'?");
  Expect({"explain", plan, "2>1"}, 2, "; node 2 sends no block to node 1");
  Expect({"explain", plan, "credit 2>1"}, 2,
         "; a credit is named by its op: the first of these is '2/0'");
}

TEST_F(BadInputTest, Specs) {
  ExpectSpec("", "spec.json:1:");
  ExpectSpec("nodes: 4", "not JSON");
  ExpectSpec("[1, 2]", "expected an object, found an array");
  ExpectSpec(std::string(100'000, '['), "expected an object, found an array");
  ExpectSpec(kSpec + ("\"x-a\": " + std::string(100'000, '[')), "nested deeper than 64");
  ExpectSpec(kSpec + std::string("\"nodes\": 0}"),
             "spec.json:1:83: /nodes: expected 1 or more, found 0");
  ExpectSpec(kSpec + std::string("\"nodes\": -1}"),
             "/nodes: expected an integer from 1 to 4294967295, found -1");
  ExpectSpec(kSpec + std::string("\"nodes\": 1e99}"), "/nodes: expected an integer");
  ExpectSpec(kSpec + std::string("\"nodes\": 3, \"root\": 3}"), "/root: root 3 is out of range");
  ExpectSpec(kSpec + std::string("\"nodes\": 3, \"block_bytes\": 0}"),
             "/block_bytes: expected 1 or more, found 0");
  ExpectSpec(kSpec + std::string("\"nodes\": 3, \"message_bytes\": -7}"),
             "/message_bytes: expected an integer");
  ExpectSpec(kSpec + std::string("\"nodes\": 3, \"message_bytes\": 18446744073709551615}"),
             "/message_bytes: 18446744073709551615 is too large, the limit is 4611686018427387904");
  ExpectSpec(kSpec + std::string("\"nodes\": 3, \"algorithm\": \"chain\", \"block_bytes\": "
                                 "1048576, \"message_bytes\": 4611686018427387904}"),
             "spec.json: /block_bytes: message of 4611686018427387904 bytes in blocks of 1048576");
  ExpectSpec(kSpec + std::string("\"nodes\": 3, \"message_bytes\": 99999999999999999999999}"),
             "/message_bytes: expected");
  ExpectSpec(kSpec + std::string("\"nodes\": 3, \"algorithm\": \"treee\"}"),
             "unknown algorithm 'treee'");
  ExpectSpec(kSpec + std::string("\"nods\": 3}"), "/nods: unknown key, did you mean 'nodes'?");
  ExpectSpec(R"({"format": "prepost.spec", "version": "2.0", "collective": "multicast"})",
             "version 2.0 is not supported");
  ExpectSpec(R"({"format": "prepost.plan", "version": "1.0"})", "expected \"prepost.spec\"");
  ExpectCompile({folder_ / "missing.json"}, 1, "missing.json: cannot read: No such file");
  ExpectCompile({folder_.path()}, 1, "cannot read: Is a directory");
}

// A plan of another version, of a wrong form, or against the rules, for every command that takes
// one.
TEST_F(BadInputTest, Plans) {
  const std::string good = folder_ / "good.json";
  ASSERT_EQ(
      Command({"compile", "--nodes", "4", "--message-bytes", "3", "--block-bytes", "1", "-o", good})
          .Wait(),
      0);
  const std::string text = test::ReadText(good);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  Write("version.json", with("\"1.0\"", "\"3.0\""));
  Write("form.json", with("\"programs\": [", "\"programs\": [1, "));
  Write("input", "abc");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"verify"},
        {"draw"},
        {"lower"},
        {"run", "--input", folder_ / "input", "--executor", "cpu"},
        {"run", "--input", folder_ / "input", "--executor", "offload"}}) {
    const auto expect = [&](const std::string& name, const std::string& message) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.begin() + 1, folder_ / name);
      Expect(arguments, 1, message);
    };
    expect("version.json", "/version: version 3.0 is not supported");
    expect("form.json", "/programs/0: expected an object, found 1");
    expect("nothing.json", "cannot read: No such file");
  }
}

TEST_F(BadInputTest, PlansAgainstTheRules) {
  const std::string good = folder_ / "good.json";
  ASSERT_EQ(
      Command({"compile", "--nodes", "4", "--message-bytes", "3", "--block-bytes", "1", "-o", good})
          .Wait(),
      0);
  std::string text = test::ReadText(good);
  text.replace(text.find("\"block\": 2"), 10, "\"block\": 1");
  Write("wrong.json", text);
  Write("input", "abc");
  Command verify({"verify", folder_ / "wrong.json"});
  EXPECT_EQ(verify.Wait(), 1);
  EXPECT_THAT(verify.out(), HasSubstr("match: "));
  EXPECT_THAT(verify.out(), HasSubstr("/programs/"));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"lower", folder_ / "wrong.json", "-o", folder_ / "out.json"},
        {"draw", folder_ / "wrong.json", "-o", folder_ / "out.svg"},
        {"run", folder_ / "wrong.json", "--executor", "cpu", "--input", folder_ / "input",
         "--output-dir", folder_ / "copies"},
        {"run", folder_ / "wrong.json", "--executor", "offload", "--input", folder_ / "input",
         "--output-dir", folder_ / "copies"}}) {
    Command run(arguments);
    EXPECT_EQ(run.Wait(), 1);
    EXPECT_THAT(run.err(), HasSubstr("the plan fails verification"));
    EXPECT_EQ(run.err_lines(), 1u) << run.err();
    EXPECT_EQ(test::CountFiles(folder_.path()), 3u);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "copies"));
  }
}

// Catches a user with a NIC who gets a message about a wrong name, not about what takes it.
TEST_F(BadInputTest, DevicesThatAreNotThere) {
  Write("input", "abc");
  for (const char* executor : {"offload", "auto"}) {
    const auto expect = [&](const std::string& device, const std::string& message) {
      Expect({"run", "--nodes", "2", "--input", folder_ / "input", "--executor", executor,
              "--device", device},
             2, message);
    };
    expect("mlx5_9",
           "unknown name 'mlx5_9'; known are emulated, mlx5:emulated, or fabric:PROVIDER or "
           "verbs:NAME "
           "(see prepost devices); a card carries one node per "
           "machine: prepost node");
    expect("emulatd", "unknown name 'emulatd', did you mean 'emulated'?");
  }
  Expect({"probe", "--device", "emulatd"}, 2, "unknown name 'emulatd', did you mean 'emulated'?");
  Expect({"compare", "--nodes", "2", "--bytes", "1", "--device", "mlx5_9"}, 2,
         "--device: unknown name 'mlx5_9'; known are emulated");
}

// Every number of a listing out of range, words that are none, lines that are missing. Catches
// checks that trust the file's own numbers, and bytes of the file that steer the terminal.
TEST_F(BadInputTest, Listings) {
  const std::string plan = folder_ / "plan.json";
  ASSERT_EQ(
      Command({"compile", "--nodes", "4", "--message-bytes", "3", "--block-bytes", "1", "-o", plan})
          .Wait(),
      0);
  Command list({"lower", plan, "--list"});
  ASSERT_EQ(list.Wait(), 0);
  const std::string good = list.out();
  const auto expect = [&](const std::string& from, const std::string& to,
                          const std::string& message) {
    std::string text = good;
    ASSERT_NE(text.find(from), std::string::npos) << from;
    Write("queues.txt", text.replace(text.find(from), from.size(), to));
    Expect({"lower", "--from-list", folder_ / "queues.txt"}, 1, "queues.txt:" + message);
    Expect({"lower", plan, "--from-list", folder_ / "queues.txt", "-o", folder_ / "queues.bin"}, 1,
           "queues.txt:" + message);
  };
  expect("inline", "inlien", "1:9: expected \"inline\", found \"inlien");
  expect("message of 3 ", "message of -3 ", "1:28: expected a number up to");
  expect("message of 3 ", "message of 99999999999999999999 ", "1:28: expected a number up to");
  expect("blocks of 1,", "blocks of 0,", "1: blocks have no bytes");
  expect("RNR retries: ", "RNR retries: 9", "1:65: expected a number up to 7");
  expect("node 0\n", "node 4294967296\n", "2:6: expected a number up to");
  expect("node 0\n", "", "2:1: expected \"node \"");
  expect("ring: 1\n", "ring: 3\n", "3:30: expected a power of two, found");
  expect("ring: 1\n", "ring: \x1b[2J\n", "3:30: expected a number");
  expect("WAIT ", "WIAT ", "");
  expect("until CQE 0", "until CQE 16777216", "");
  expect("sq 000000", "sq 000001", "");
  Write("queues.txt", "");
  Expect({"lower", "--from-list", folder_ / "queues.txt"}, 1, "an empty file is no listing");
  Expect({"lower", "--from-list", plan}, 1, "1:1: expected \"queues: \"");
  Expect({"lower", "--from-list", folder_ / "none"}, 1, "cannot read: No such file");
  Expect({"lower", "--from-list", folder_.path()}, 1, "cannot read: Is a directory");
  Expect({"lower", "-", "--from-list", "-"}, 2, "cannot both be stdin");
  Expect({"verify", "-", plan, "-"}, 2, "stdin can be one of the plans");
  Expect({"lower", "--from-list", plan, "--mode", "managed"}, 2, "--mode is for lowering");
  Expect({"simulate", "-", "--profile", "-"}, 2, "only one of PLAN, --profile, --topology");
  Expect({"push", plan, "--to", "h:x", "--algorithm", "chian"}, 2,
         "--algorithm: unknown algorithm 'chian', did you mean 'chain'?");
}

// Folders, and devices that never end, where a file is named. Catches what is read as a whole
// before its size is looked at, and errors that are called internal.
TEST_F(BadInputTest, FilesThatAreNoneOrNeverEnd) {
  Write("x", "text");
  const std::vector<std::string> push = {"push", folder_ / "x", "--hosts"};
  const std::vector<std::string> rounds = {
      "compile", "--nodes", "2", "--message-bytes", "1", "-o", folder_ / "out", "--rounds"};
  const std::vector<std::string> sweep = {"simulate", "--profile", "fractus",
                                          "--sweep",  "seed=1,2",  "--workload"};
  const std::vector<std::string> listing = {"lower", "--from-list"};
  const auto expect = [&](std::vector<std::string> words, const std::string& path,
                          const std::string& message) {
    words.push_back(path);
    Expect(words, 1, message);
  };
  for (const auto& words : {push, rounds, sweep, listing})
    expect(words, folder_.path(), "cannot read: Is a directory");
  Write("no hosts", "# none\n\n");
  expect(push, folder_ / "no hosts", "no hosts: it names no host");
  Write("hosts", "a\nb\na\n");
  expect(push, folder_ / "hosts", "hosts:3: host a is named twice");
  Expect({"push", folder_ / "x", folder_.path(), folder_ / "none", "--to", "a:x"}, 1,
         fmt::format("is a folder; pack it: tar -c {0} | prepost push - --name NAME.tar ...; nor "
                     "can these be sent: {0}/none",
                     folder_.path()));
  expect(push, "/dev/zero", "/dev/zero: the file has more than 67108864 bytes");
  expect(sweep, "/dev/zero", "/dev/zero: the file has more than 67108864 bytes");
  expect(listing, "/dev/zero", "/dev/zero:1: a line of more than 65536 bytes");
  Write("comments", std::string(size_t{17} << 20, '#'));
  Write("blank", std::string(size_t{17} << 20, '\n'));
  expect({"import", "-o", folder_ / "out"}, folder_ / "blank", "bytes of comments and white space");
  expect(rounds, folder_ / "comments", "bytes without a transfer");
  expect(listing, folder_ / "blank", "comments of more than 16777216 bytes");
}

TEST_F(BadInputTest, OutputsThatCannotBeWritten) {
  Expect({"compile", "--nodes", "2", "--message-bytes", "1", "-o", folder_ / "no/plan.json"}, 1,
         "cannot write: No such file");
  Expect({"compile", "--nodes", "2", "--message-bytes", "1", "-o", folder_.path()}, 1,
         "cannot write: Is a directory");
  if (std::filesystem::exists("/dev/full")) {
    Expect({"compile", "--nodes", "2", "--message-bytes", "1", "-o", "/dev/full"}, 1,
           "/dev/full: cannot write");
  }
}

TEST_F(BadInputTest, ALinkStaysALink) {
  Write("target.json", "old");
  std::filesystem::create_symlink(folder_ / "target.json", folder_ / "link.json");
  ASSERT_EQ(
      Command({"compile", "--nodes", "2", "--message-bytes", "1", "-o", folder_ / "link.json"})
          .Wait(),
      0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link.json"));
  EXPECT_THAT(test::ReadText(folder_ / "target.json"), HasSubstr("prepost.plan"));
}

// Another user's link in a folder such as /tmp, which the system does not follow. Catches one whose
// target is found out and replaced all the same.
TEST_F(BadInputTest, AStrangersLinkIsNotFollowed) {
  std::ifstream setting("/proc/sys/fs/protected_symlinks");
  int is_protected = 0;
  if (geteuid() != 0 || !(setting >> is_protected) || is_protected == 0)
    GTEST_SKIP() << "needs root, to be two users, and fs.protected_symlinks";
  Write("victim", "mine");
  const std::string shared = folder_ / "shared";
  ASSERT_TRUE(std::filesystem::create_directory(shared));
  ASSERT_EQ(chmod(shared.c_str(), 01777), 0);
  const std::string link = shared + "/plan.json";
  std::filesystem::create_symlink(folder_ / "victim", link);
  ASSERT_EQ(lchown(link.c_str(), 1234, 1234), 0);
  Command compile({"compile", "--nodes", "2", "--message-bytes", "1", "-o", link});
  const int code = compile.Wait();  // root may replace the link
  EXPECT_EQ(test::ReadText(folder_ / "victim"), "mine");
  if (code == 0) {
    EXPECT_FALSE(std::filesystem::is_symlink(link));
  }
}

TEST_F(BadInputTest, OffloadedInputsOfAnotherSize) {
  Write("input", "abcd");
  const std::string plan = folder_ / "plan.json";
  ASSERT_EQ(Command({"compile", "--nodes", "3", "--message-bytes", "3", "-o", plan}).Wait(), 0);
  for (const char* executor : {"cpu", "offload"}) {
    Expect({"run", plan, "--executor", executor, "--input", folder_ / "input", "--output-dir",
            folder_ / "copies"},
           1, "has 4 bytes, expected 3 as in the plan");
    Expect({"run", plan, "--executor", executor, "--input", folder_ / "nothing"}, 1, "nothing");
    Expect({"run", plan, "--executor", executor, "--input", folder_.path()}, 1,
           "is a folder, expected a regular file");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "copies"));
  }
}

}  // namespace
}  // namespace prepost::bad_input_test
