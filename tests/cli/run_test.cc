// SPDX-License-Identifier: Apache-2.0
//
// `prepost run` as a user sees it: copies, exit codes, messages, and what is left behind when
// something dies half-way. A run is held at a point of its progress by stopping one of its nodes
// (SIGSTOP), so that nothing depends on time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost {
namespace {

using test::Command;
using test::Process;
using test::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kLargeBytes = size_t{96} << 20;
constexpr uint32_t kNodes = 5;

class RunTest : public ::testing::Test {
 protected:
  /// Bytes that repeat nowhere near and are never 0, so that a hole is seen as one.
  void WriteInput(size_t bytes) {
    std::vector<std::byte> content(bytes);
    uint32_t state = 1;
    for (std::byte& byte : content)
      byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24 | 1);
    test::WriteBytes(input_, content);
  }

  std::vector<std::string> Arguments(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"run",     "--nodes",    std::to_string(kNodes),
                                          "--input", input_,       "--output-dir",
                                          copies_,   "--executor", "cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  /// Whether the byte at `fraction` of the message has arrived at node 1.
  bool Arrived(const Command& run, double fraction) const {
    const std::string path = copies_ + "/node-1/.prepost-" + std::to_string(run.pid()) + ".partial";
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(fraction * kLargeBytes));
    const int byte = file.get();
    return byte != EOF && byte != 0;
  }

  /// Waits for `fraction` (below 0: until all nodes run) and stops node `held`; all nodes.
  std::map<uint32_t, Process> HoldAt(const Command& run, double fraction, uint32_t held) {
    EXPECT_TRUE(run.WaitForNodes(kNodes));
    std::map<uint32_t, Process> nodes;
    for (const auto& [node, pid] : run.Nodes()) nodes.emplace(node, Process(pid));
    EXPECT_TRUE(run.WaitUntil([&] { return fraction < 0 || Arrived(run, fraction); }));
    nodes.at(held).Signal(SIGSTOP);
    EXPECT_TRUE(run.running()) << "the run ended before it could be held";
    return nodes;
  }

  void ExpectNothingLeft(const std::map<uint32_t, Process>& nodes) {
    for (const auto& [node, process] : nodes) EXPECT_TRUE(process.Ended()) << "node " << node;
    EXPECT_FALSE(std::filesystem::exists(copies_));
  }

  /// Runs to the end, and expects failure with one line and nothing left.
  void ExpectFailure(const std::vector<std::string>& arguments, int code,
                     const std::string& message) {
    Command run(arguments);
    EXPECT_EQ(run.Wait(), code);
    EXPECT_THAT(run.err(), HasSubstr(message));
    EXPECT_EQ(run.err_lines(), 1u) << run.err();
    EXPECT_EQ(run.out(), "");
    EXPECT_FALSE(std::filesystem::exists(copies_));
  }

  TempFolder folder_;
  const std::string input_ = folder_ / "image";
  const std::string copies_ = folder_ / "copies";
};

TEST_F(RunTest, WritesACopyPerReceiver) {
  WriteInput(3'000'000);
  Command run(Arguments({"--block-bytes", "64KiB", "--root", "2"}));
  ASSERT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("all 4 copies are identical"));
  EXPECT_EQ(run.err(), "");
  for (const char* node : {"0", "1", "3", "4"}) {
    EXPECT_TRUE(test::ReadText(copies_ + "/node-" + node + "/image") == test::ReadText(input_))
        << node;
  }
  EXPECT_EQ(test::CountFiles(copies_), 4u);
}

TEST_F(RunTest, AutoSaysWhichExecutorItTakesAndWhy) {
  WriteInput(1000);
  Command run({"run", "--nodes", "2", "--input", input_});
  EXPECT_EQ(run.Wait(), 0);
  EXPECT_THAT(run.err(), ::testing::StartsWith("prepost: executor cpu: "));
  EXPECT_EQ(run.err_lines(), 1u);
}

TEST_F(RunTest, PrintsJson) {
  WriteInput(1000);
  Command run({"run", "--nodes", "1", "--input", input_, "--json"});
  ASSERT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(run.out(), AllOf(HasSubstr("\"executor\": \"cpu\""), HasSubstr("\"copies\": 0"),
                               HasSubstr("\"message_bytes\": 1000")));
}

TEST_F(RunTest, AKilledNodeEndsTheRun) {
  WriteInput(kLargeBytes);
  for (const double fraction : {-1.0, 0.0, 0.5}) {
    for (uint32_t victim = 0; victim < kNodes; ++victim) {
      SCOPED_TRACE("node " + std::to_string(victim) + " at " + std::to_string(fraction));
      Command run(Arguments());
      const auto nodes = HoldAt(run, fraction, /*held=*/(victim + 1) % kNodes);
      nodes.at(victim).Signal(SIGKILL);
      EXPECT_EQ(run.Wait(), 1);
      EXPECT_THAT(run.err(), AllOf(HasSubstr("node " + std::to_string(victim) + " "),
                                   HasSubstr("killed by signal 9")));
      EXPECT_EQ(run.err_lines(), 1u) << run.err();
      ExpectNothingLeft(nodes);
      if (HasFailure()) return;
    }
  }
}

TEST_F(RunTest, AKilledLauncherEndsTheRun) {
  WriteInput(kLargeBytes);
  for (const double fraction : {-1.0, 0.0, 0.5}) {
    SCOPED_TRACE(fraction);
    Command run(Arguments());
    const auto nodes = HoldAt(run, fraction, /*held=*/3);
    kill(run.pid(), SIGKILL);
    nodes.at(3).Continue();
    EXPECT_EQ(run.Wait(), 128 + SIGKILL);
    ExpectNothingLeft(nodes);
    EXPECT_THAT(run.err(), HasSubstr("the launching process died"));
    EXPECT_EQ(run.err_lines(), 1u) << run.err();
    if (HasFailure()) return;
  }
}

// As at a terminal, where every process of the group gets the signal: catches a report that blames
// a node.
TEST_F(RunTest, InterruptionCleansUp) {
  WriteInput(kLargeBytes);
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const bool group : {false, true}) {
      SCOPED_TRACE(std::to_string(signal) + (group ? " to all" : " to the launcher"));
      Command run(Arguments());
      const auto nodes = HoldAt(run, 0.25, /*held=*/1);
      kill(group ? -run.pid() : run.pid(), signal);
      EXPECT_EQ(run.Wait(), 130);
      EXPECT_EQ(run.err(), "prepost: interrupted\n");
      ExpectNothingLeft(nodes);
    }
  }
}

TEST_F(RunTest, AnInputTruncatedMeanwhileIsAnError) {
  WriteInput(kLargeBytes);
  Command run(Arguments());
  const auto nodes = HoldAt(run, 0.0, /*held=*/1);
  std::filesystem::resize_file(input_, 1000);
  nodes.at(1).Continue();
  EXPECT_EQ(run.Wait(), 1);
  EXPECT_THAT(run.err(), HasSubstr("truncated meanwhile: it has 1000 bytes, expected " +
                                   std::to_string(kLargeBytes)));
  EXPECT_EQ(run.err_lines(), 1u) << run.err();
  ExpectNothingLeft(nodes);
}

TEST_F(RunTest, ANodeThatHangsIsNamed) {
  WriteInput(kLargeBytes);
  Command run(Arguments({"--timeout", "0.5"}));
  const auto nodes = HoldAt(run, 0.0, /*held=*/2);
  EXPECT_EQ(run.Wait(), 1);
  EXPECT_THAT(run.err(), AllOf(HasSubstr("no progress for 500 ms: node 2 does not answer"),
                               HasSubstr("waits for")));
  ExpectNothingLeft(nodes);
}

TEST_F(RunTest, AFullDiskIsAnError) {
  const std::string disk = folder_ / "disk";
  std::filesystem::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "cannot mount a small file system: " << std::strerror(errno);
  }
  // Too large for any copy, and too large only for the last of them.
  for (const size_t bytes : {size_t{3'000'000}, size_t{700'000}}) {
    WriteInput(bytes);
    Command run({"run", "--nodes", "3", "--input", input_, "--output-dir", disk + "/copies",
                 "--executor", "cpu"});
    EXPECT_EQ(run.Wait(), 1);
    EXPECT_THAT(run.err(), AllOf(HasSubstr("cannot reserve " + std::to_string(bytes) + " bytes"),
                                 HasSubstr("No space left on device")));
    EXPECT_EQ(run.err_lines(), 1u) << run.err();
    EXPECT_TRUE(std::filesystem::is_empty(disk));
  }
  EXPECT_EQ(umount(disk.c_str()), 0);
}

TEST_F(RunTest, TooFewOpenFilesIsAnError) {
  WriteInput(1000);
  Command run({"run", "--nodes", "16", "--input", input_},
              {"/bin/sh", "-c", "ulimit -n 40; exec \"$0\" \"$@\""});
  EXPECT_EQ(run.Wait(), 3);
  EXPECT_THAT(run.err(), HasSubstr("open files on one machine, the limit is 40"));
}

TEST_F(RunTest, BadInputLeavesNothing) {
  ExpectFailure(Arguments(), 1, "cannot open input " + input_ + ": No such file or directory");
  WriteInput(1000);
  const std::string plan = folder_ / "plan.json";
  ASSERT_EQ(Command({"compile", "--nodes", "3", "--message-bytes", "999", "-o", plan}).Wait(), 0);
  ExpectFailure({"run", plan, "--input", input_, "--output-dir", copies_}, 1,
                "has 1000 bytes, expected 999");
  ExpectFailure({"run", plan, "--input", folder_.path(), "--output-dir", copies_}, 1,
                "is not a regular file");
  ExpectFailure({"run", "--nodes", "3", "--input", input_, "--output-dir", input_ + "/x",
                 "--executor", "cpu"},
                1, "Not a directory");
}

TEST_F(RunTest, UnknownNamesAreUsageErrors) {
  WriteInput(1000);
  ExpectFailure({"run", "--nodes", "2", "--input", input_, "--executor", "cpuu"}, 2,
                "unknown name 'cpuu', did you mean 'cpu'?");
  ExpectFailure(Arguments({"--transport", "tpc"}), 2, "unknown name 'tpc', did you mean 'tcp'?");
  ExpectFailure({"run", "--input", input_}, 2, "either a PLAN or flags");
}

TEST_F(RunTest, FlagsOfTheOtherExecutorAreUsageErrors) {
  WriteInput(1000);
  ExpectFailure(Arguments({"--scheduler", "random"}), 2,
                "--scheduler is for offload, not for --executor cpu");
  ExpectFailure(Arguments({"--seed", "1"}), 2, "--seed is for offload, not for --executor cpu");
  ExpectFailure(Arguments({"--device", "emulated"}), 2,
                "--device is for offload, not for --executor cpu");
  ExpectFailure(
      {"run", "--nodes", "2", "--input", input_, "--executor", "offload", "--transport", "tcp"}, 2,
      "--transport is for CPUs, not for --executor offload");
}

}  // namespace
}  // namespace prepost
