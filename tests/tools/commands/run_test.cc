// SPDX-License-Identifier: Apache-2.0
//
// `prepost run` as a user sees it: copies, exit codes, messages, and what is left behind when
// something dies half-way. A run is held at a point of its progress by stopping (SIGSTOP) one of
// its nodes or, offloaded, its process, so that nothing but the bound after a death depends on
// time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/sanitizers.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_folder.h"

namespace prepost::run_test {
namespace {

using test::Command;
using test::Process;
using test::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kLargeBytes = size_t{96} << 20;
constexpr size_t kTries = 4;  ///< to hold a run, each with an input twice as large
constexpr uint32_t kNodes = 5;

/// Everything must have ended 2 s after a death; the rest is slack for a loaded machine.
constexpr std::chrono::seconds kEndMax{2 + 3};

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
                                          copies_,   "--executor", executor_};
    if (executor_ == "cpu") arguments.insert(arguments.end(), {"--transport", transport_});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  /// The way to the copy in `folder` that the launcher of `run` has open, which may have no name;
  /// "": none.
  static std::string OpenCopy(const Command& run, const std::string& folder) {
    std::error_code error;
    std::filesystem::directory_iterator file(fmt::format("/proc/{}/fd", run.pid()), error);
    for (; !error && file != std::filesystem::directory_iterator(); file.increment(error)) {
      std::error_code gone;
      const std::string path = std::filesystem::read_symlink(file->path(), gone);
      if (!gone && path.starts_with(folder)) return file->path();
    }
    return "";
  }

  /// Whether the byte at `fraction` of the message has arrived at `node` of a run on CPUs.
  bool Arrived(const Command& run, uint32_t node, double fraction) const {
    std::ifstream file(OpenCopy(run, fmt::format("{}/node-{}/", copies_, node)), std::ios::binary);
    const double last = static_cast<double>(std::filesystem::file_size(input_) - 1);
    file.seekg(static_cast<std::streamoff>(fraction * last));
    const int byte = file.get();
    return byte != EOF && byte != 0;
  }

  /// An input that is larger each time, and nothing of the try before.
  void PrepareTry(size_t index) {
    if (!std::filesystem::exists(input_) || index > 0) WriteInput(kLargeBytes << index);
    std::filesystem::remove_all(copies_);
  }

  /// A run on CPUs that cannot end by itself.
  struct HeldRun {
    std::unique_ptr<Command> command;
    std::map<uint32_t, Process> nodes;  ///< all
    int Wait() const { return command->Wait(); }
    std::string err() const { return command->err(); }
    size_t err_lines() const { return command->err_lines(); }
  };

  /// Starts a run down the chain 0 > 1 > 2 > 3 > 4 and holds it, with node `held` stopped and
  /// `fraction` of the message at node 1: 0 a first block, below 0 perhaps nothing. For fractions
  /// above 0 the stopped node must be behind node 1, which does not depend on it. Whether the node
  /// was stopped too late is seen from its last byte; then the input was too small.
  HeldRun Hold(double fraction, uint32_t held, std::vector<std::string> more = {},
               const std::string& failure_max = "20") {
    more.insert(more.end(), {"--algorithm", "chain", "--failure-max", failure_max});
    for (size_t i = 0; i < kTries; ++i) {
      PrepareTry(i);
      HeldRun run = {.command = std::make_unique<Command>(Arguments(more)), .nodes = {}};
      const Command& command = *run.command;
      if (!command.WaitForNodes(kNodes)) continue;
      for (const auto& [node, pid] : command.Nodes()) run.nodes.emplace(node, Process(pid));
      if (run.nodes.size() < kNodes) continue;
      if (fraction >= 0 && !command.WaitUntil([&] { return Arrived(command, held, 0); })) continue;
      run.nodes.at(held).Stop();
      if (Arrived(command, held, 1) || !command.running()) continue;
      if (fraction > 0) {
        EXPECT_TRUE(command.WaitUntil([&] { return Arrived(command, 1, fraction); }));
      }
      return run;
    }
    ADD_FAILURE() << "no run could be held";
    return {};
  }

  /// Starts an offloaded run and stops it when it has made its folder, before it has any copy.
  std::unique_ptr<Command> HoldOffloaded() {
    for (size_t i = 0; i < kTries; ++i) {
      PrepareTry(i);
      auto run = std::make_unique<Command>(Arguments());
      if (!run->WaitUntil([&] { return std::filesystem::exists(copies_); })) continue;
      const Process process(run->pid());
      process.Stop();
      if (run->running() && !std::filesystem::exists(copies_ + "/node-1/image")) return run;
    }
    ADD_FAILURE() << "no run could be held";
    return nullptr;
  }

  static std::chrono::steady_clock::time_point EndDue() {
    return std::chrono::steady_clock::now() + kEndMax;
  }
  void ExpectNothingLeft(const HeldRun& run, std::chrono::steady_clock::time_point due) {
    EXPECT_LE(std::chrono::steady_clock::now(), due) << "the command ended too late";
    for (const auto& [node, process] : run.nodes) EXPECT_TRUE(process.Ended(due)) << node;
    EXPECT_FALSE(std::filesystem::exists(copies_));
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      EXPECT_THAT(entry.path().string(), Not(HasSubstr("prepost")));
    }
  }
  void ExpectCopies() {
    for (uint32_t node = 1; node < kNodes; ++node) {
      EXPECT_TRUE(test::ReadText(fmt::format("{}/node-{}/image", copies_, node)) ==
                  test::ReadText(input_))
          << node;
    }
    EXPECT_EQ(test::CountFiles(copies_), kNodes - 1u);
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
  const std::string trace_ = folder_ / "trace.json";
  std::string executor_ = "cpu";
  std::string transport_ = "tcp";
};

/// What is the same over every transport.
class RunOverTest : public RunTest, public ::testing::WithParamInterface<const char*> {
 protected:
  RunOverTest() { transport_ = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Transports, RunOverTest, ::testing::Values("tcp", "shm"),
                         [](const auto& transport) { return std::string(transport.param); });

/// What is the same whoever carries the message.
class RunEachTest : public RunTest, public ::testing::WithParamInterface<const char*> {
 protected:
  RunEachTest() { executor_ = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Executors, RunEachTest, ::testing::Values("cpu", "offload"),
                         [](const auto& executor) { return std::string(executor.param); });

TEST_P(RunEachTest, WritesACopyPerReceiver) {
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

TEST_F(RunTest, Seals) {
  WriteInput(3'000'000);
  Command run(Arguments({"--block-bytes", "64KiB", "--seal"}));
  ASSERT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("tcp, sealed"));
  ExpectCopies();
}

TEST_F(RunTest, OnlyConnectionsAreSealed) {
  WriteInput(1000);
  ExpectFailure({"run", "--nodes", "2", "--input", input_, "--seal", "--transport", "shm"}, 2,
                "--seal is for connections, of which --transport shm has none");
  ExpectFailure({"run", "--nodes", "2", "--input", input_, "--seal", "--executor", "offload"}, 2,
                "--seal: what goes over --executor offload the NIC itself moves");
  ExpectFailure({"run", "--nodes", "2", "--input", input_, "--seal", "--device", "fabric:tcp"}, 2,
                "--seal: what goes over --device fabric:tcp the NIC itself moves");
}

TEST_P(RunOverTest, WaitsAsItIsTold) {
  WriteInput(300'000);
  for (const char* wait : {"polling", "hybrid", "interrupt"}) {
    Command run(Arguments({"--block-bytes", "1000", "--wait", wait}));
    EXPECT_EQ(run.Wait(), 0) << run.err();
    ExpectCopies();
  }
}

TEST_F(RunTest, AutoSaysWhichExecutorItTakesAndWhy) {
  WriteInput(1000);
  Command run({"run", "--nodes", "2", "--input", input_});
  EXPECT_EQ(run.Wait(), 0);
  EXPECT_THAT(run.err(), ::testing::StartsWith("prepost: note: executor cpu: "));
  EXPECT_EQ(run.err_lines(), 1u);
}

// It takes the device that is named if the plan fits it; else CPUs carry the message.
TEST_F(RunTest, AutoOffloadsWhatFitsTheDevice) {
  WriteInput(40'000);
  const std::vector<std::string> arguments = {"run",   "--nodes",      "2",        "--algorithm",
                                              "chain", "--device",     "emulated", "--input",
                                              input_,  "--block-bytes"};
  const auto run = [&](const char* block_bytes, const char* ready) {
    std::vector<std::string> words = arguments;
    words.insert(words.end(), {block_bytes, "--ready", ready});
    Command command(words);
    EXPECT_EQ(command.Wait(), 0) << command.err();
    return command.err() + command.out();
  };
  EXPECT_THAT(run("1000", "auto"),
              AllOf(HasSubstr("executor offload: the plan fits device emulated"),
                    HasSubstr("executor offload on emulated")));
  EXPECT_THAT(run("1", "barrier"),
              AllOf(HasSubstr("executor cpu: not preposted to device emulated: "),
                    HasSubstr("the limit is")));
}

// Flags that are passed over without a word, because the other executor is chosen.
TEST_F(RunTest, AutoSaysWhatTheExecutorCannotUse) {
  WriteInput(1000);
  const std::vector<std::string> spec = {"run", "--nodes", "2", "--input", input_};
  const auto with = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> words = spec;
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
  };
  Command waits(with({"--device", "emulated", "--wait", "hybrid"}));
  EXPECT_EQ(waits.Wait(), 0) << waits.err();
  EXPECT_THAT(waits.err(), HasSubstr("the plan fits device emulated; --wait is not used\n"));
  EXPECT_EQ(waits.err_lines(), 1u);
  for (const auto& [flags, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--seed", "3"}, "--seed is for offload: add --executor offload or --device"},
           {{"--scheduler", "random"}, "--scheduler is for offload: add"},
           {{"--mode", "managed"}, "--mode is for offload: add"},
           {{"--seed", "3", "--device", "emulated", "--transport", "tcp"},
            "--transport is for CPUs"}}) {
    Command refused(with(flags));
    EXPECT_EQ(refused.Wait(), 2) << flags.front();
    EXPECT_THAT(refused.err(), HasSubstr(message));
  }
}

// A variable that a script has not set, taken for a device that was not named.
TEST_F(RunTest, DevicesHaveNames) {
  WriteInput(1000);
  const std::vector<std::vector<std::string>> commands = {
      {"run", "--nodes", "2", "--input", input_, "--device", ""},
      {"compare", "--nodes", "2", "--bytes", "100", "--device", ""},
      {"node", "plan.json", "--node", "0", "--peers", "peers.txt", "--device", ""},
      {"probe", "--device", ""}};
  for (const std::vector<std::string>& words : commands) {
    Command command(words);
    EXPECT_EQ(command.Wait(), 2) << words.front();
    EXPECT_THAT(command.err(), HasSubstr("--device: expected the name of a device, found ''"));
    EXPECT_EQ(command.err_lines(), 1u);
  }
}

// An error about memory that does not say whose, and what to do.
TEST_F(RunTest, PrepostedMessagesThatDoNotFitIntoMemorySaySo) {
  if (test::kIsSanitized)
    GTEST_SKIP() << "sanitizers need more address space than the limit of this test";
  WriteInput(1);
  std::filesystem::resize_file(input_, uint64_t{1} << 30);
  Command run({"run", "--nodes", "3", "--input", input_, "--device", "emulated"},
              {"/usr/bin/prlimit", "--as=1600000000"});
  EXPECT_EQ(run.Wait(), 3);
  EXPECT_THAT(run.err(), HasSubstr("the message and 2 copies of 1073741824 bytes must fit into "
                                   "memory, with --executor cpu they need not"));
}

TEST_F(RunTest, PrintsJson) {
  WriteInput(1000);
  Command run({"run", "--nodes", "1", "--input", input_, "--json"});
  ASSERT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(run.out(), AllOf(HasSubstr("\"executor\": \"cpu\""), HasSubstr("\"copies\": 0"),
                               HasSubstr("\"message_bytes\": 1000")));
  Command text({"run", "--nodes", "1", "--input", input_});  // not "all 0 copies"
  ASSERT_EQ(text.Wait(), 0) << text.err();
  EXPECT_THAT(text.out(), HasSubstr("one node has the message, nothing was sent: BLAKE2b-256 "));
}

TEST_F(RunTest, OffloadedCopiesDoNotDependOnTheScheduler) {
  executor_ = "offload";
  WriteInput(3'000'000);
  for (const char* seed : {"1", "2", "3"}) {
    Command run(Arguments({"--block-bytes", "64KiB", "--device", "emulated", "--scheduler",
                           "adversarial", "--seed", seed}));
    ASSERT_EQ(run.Wait(), 0) << run.err();
    EXPECT_THAT(run.out(), HasSubstr("executor offload on emulated"));
    ExpectCopies();
  }
}

TEST_F(RunTest, OffloadedOverTheMlx5Device) {
  executor_ = "offload";
  WriteInput(3'000'000);
  Command run(Arguments({"--block-bytes", "64KiB", "--device", "mlx5:emulated"}));
  ASSERT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("executor offload on mlx5:emulated"));
  ExpectCopies();
}

TEST_F(RunTest, UnknownDeviceIsAUsageError) {
  executor_ = "offload";
  WriteInput(1000);
  ExpectFailure(Arguments({"--device", "mlx5:emulate"}), 2,
                "--device: unknown name 'mlx5:emulate', did you mean 'mlx5:emulated'?; known are "
                "emulated, mlx5:emulated");
}

TEST_F(RunTest, APlanThatDoesNotFitTheDeviceIsRefused) {
  WriteInput(40'000);
  ExpectFailure(
      {"run", "--nodes", "2", "--algorithm", "chain", "--ready", "barrier", "--block-bytes", "1",
       "--input", input_, "--output-dir", copies_, "--executor", "offload"},
      1, "the limit is");
}

// At 1 node 1 has its copy and waits to be asked for its sum.
TEST_P(RunOverTest, AKilledNodeEndsTheRun) {
  for (const double fraction : {-1.0, 0.0, 0.5, 1.0}) {
    for (uint32_t victim = 0; victim < kNodes; ++victim) {
      SCOPED_TRACE(fmt::format("node {} at {}", victim, fraction));
      const HeldRun run = Hold(fraction, /*held=*/victim == 4 ? 3 : 4);
      const auto due = EndDue();
      run.nodes.at(victim).Signal(SIGKILL);
      EXPECT_EQ(run.Wait(), 1);
      EXPECT_THAT(run.err(), AllOf(HasSubstr(fmt::format("node {} ", victim)),
                                   HasSubstr("killed by signal 9")));
      EXPECT_EQ(run.err_lines(), 1u) << run.err();
      ExpectNothingLeft(run, due);
      if (HasFailure()) return;
    }
  }
}

TEST_P(RunOverTest, AKilledLauncherEndsTheRun) {
  for (const double fraction : {-1.0, 0.0, 0.5, 1.0}) {
    SCOPED_TRACE(fraction);
    const HeldRun run = Hold(fraction, /*held=*/3);
    const auto due = EndDue();
    kill(run.command->pid(), SIGKILL);
    run.nodes.at(3).Continue();
    EXPECT_EQ(run.Wait(), 128 + SIGKILL);
    ExpectNothingLeft(run, due);
    EXPECT_THAT(run.err(), HasSubstr("the launching process died"));
    EXPECT_EQ(run.err_lines(), 1u) << run.err();
    if (HasFailure()) return;
  }
}

// The last byte is there, so the kill comes while sums are taken, copies are committed or nodes are
// released. Catches half-committed sets, and temporary files that stay.
TEST_P(RunOverTest, AKillAtTheEndLeavesAllCopiesOrNone) {
  WriteInput(kLargeBytes);
  for (uint32_t victim = 0; victim < kNodes; ++victim) {
    SCOPED_TRACE(fmt::format("node {}", victim));
    Command run(Arguments({"--algorithm", "chain"}));
    ASSERT_TRUE(run.WaitForNodes(kNodes));
    const std::map<uint32_t, pid_t> nodes = run.Nodes();
    run.WaitUntil([&] { return Arrived(run, 4, 1); });
    if (run.running() && nodes.contains(victim)) kill(nodes.at(victim), SIGKILL);
    if (run.Wait() == 0) {
      ExpectCopies();
    } else {
      EXPECT_THAT(run.err(), HasSubstr("killed by signal 9"));
      EXPECT_FALSE(std::filesystem::exists(copies_));
    }
    std::filesystem::remove_all(copies_);
  }
}

// As at a terminal, where every process of the group gets the signal: catches a report that blames
// a node.
TEST_P(RunOverTest, InterruptionCleansUp) {
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const bool group : {false, true}) {
      SCOPED_TRACE(std::to_string(signal) + (group ? " to all" : " to the launcher"));
      const HeldRun run = Hold(0.25, /*held=*/4);
      const auto due = EndDue();
      const pid_t pid = run.command->pid();
      kill(group ? -pid : pid, signal);
      EXPECT_EQ(run.Wait(), 130);
      EXPECT_EQ(run.err(), "prepost: interrupted\n");
      ExpectNothingLeft(run, due);
      if (HasFailure()) return;
    }
  }
}

TEST_F(RunTest, InterruptionCleansUpAnOffloadedRun) {
  executor_ = "offload";
  for (const int signal : {SIGINT, SIGTERM}) {
    SCOPED_TRACE(signal);
    const std::unique_ptr<Command> run = HoldOffloaded();
    ASSERT_NE(run, nullptr);
    kill(run->pid(), signal);
    kill(run->pid(), SIGCONT);
    EXPECT_EQ(run->Wait(), 130);
    EXPECT_EQ(run->err(), "prepost: interrupted\n");
    EXPECT_FALSE(std::filesystem::exists(copies_));
  }
}

TEST_P(RunOverTest, AnInputTruncatedMeanwhileIsAnError) {
  WriteInput(kLargeBytes);
  const HeldRun run = Hold(0.0, /*held=*/1);
  const uintmax_t bytes = std::filesystem::file_size(input_);
  std::filesystem::resize_file(input_, 1000);
  const auto due = EndDue();
  run.nodes.at(1).Continue();
  EXPECT_EQ(run.Wait(), 1);
  EXPECT_THAT(run.err(),
              HasSubstr(fmt::format("truncated meanwhile: it has 1000 bytes, expected {}", bytes)));
  EXPECT_EQ(run.err_lines(), 1u) << run.err();
  ExpectNothingLeft(run, due);
}

// An offloaded run reads its input before it starts: it has all of it, or fails. Catches copies
// with a hole, and a SIGBUS.
TEST_F(RunTest, AnInputTruncatedMeanwhileIsReadBeforeOrAnError) {
  executor_ = "offload";
  const std::unique_ptr<Command> run = HoldOffloaded();
  ASSERT_NE(run, nullptr);
  const std::string original = test::ReadText(input_);
  std::filesystem::resize_file(input_, 1000);
  kill(run->pid(), SIGCONT);
  if (run->Wait() == 0) {
    test::WriteBytes(input_, std::as_bytes(std::span(original)));
    ExpectCopies();
  } else {
    EXPECT_EQ(run->Wait(), 1);
    EXPECT_THAT(run->err(), HasSubstr(input_));
    EXPECT_EQ(run->err_lines(), 1u) << run->err();
    EXPECT_FALSE(std::filesystem::exists(copies_));
  }
}

TEST_P(RunOverTest, AStoppedNodeIsNamed) {
  for (const uint32_t node : {0u, 2u}) {
    SCOPED_TRACE(node);
    const HeldRun run = Hold(node == 0 ? -1.0 : 0.0, node, {}, /*failure_max=*/"2s");
    const auto due = EndDue();
    EXPECT_EQ(run.Wait(), 1);
    EXPECT_THAT(run.err(), AllOf(HasSubstr(fmt::format("node {} (process ", node)),
                                 HasSubstr(") has said nothing for 1200 ms")));
    EXPECT_EQ(run.err_lines(), 1u) << run.err();
    ExpectNothingLeft(run, due);
  }
}

// Also catches a launcher that takes no notice when it goes on.
TEST_P(RunOverTest, AStoppedLauncherEndsTheRun) {
  const HeldRun run = Hold(0.0, /*held=*/3, {}, /*failure_max=*/"2s");
  kill(run.command->pid(), SIGSTOP);
  run.nodes.at(3).Continue();
  const auto due = EndDue();
  for (const auto& [node, process] : run.nodes) EXPECT_TRUE(process.Ended(due)) << node;
  kill(run.command->pid(), SIGCONT);
  EXPECT_EQ(run.Wait(), 1);
  EXPECT_THAT(run.err(), HasSubstr("the launching process died or was stopped"));
  ExpectNothingLeft(run, EndDue());
}

// As Ctrl-Z and fg do. Catches time in which a process was stopped itself and that counts as
// another's silence.
TEST_P(RunOverTest, GoesOnAfterAllWereStopped) {
  const HeldRun run = Hold(0.0, /*held=*/2, {}, /*failure_max=*/"0.6");
  const auto signal_all = [&run](int signal) {
    kill(run.command->pid(), signal);
    for (const auto& [node, process] : run.nodes) process.Signal(signal);
  };
  signal_all(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(900));
  signal_all(SIGCONT);
  EXPECT_EQ(run.Wait(), 0) << run.err();
  ExpectCopies();
}

// Catches copies that are left on the disk, all of them or those that fitted.
TEST_P(RunEachTest, AFullDiskIsAnError) {
  const test::SmallDisk disk(folder_ / "disk");
  if (const std::string obstacle = disk.Obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  // Too large for any copy, and too large only for the last of them.
  for (const size_t bytes : {size_t{3'000'000}, size_t{700'000}}) {
    WriteInput(bytes);
    Command run({"run", "--nodes", "3", "--input", input_, "--output-dir", disk.path() + "/copies",
                 "--executor", executor_},
                disk.wrapper());
    EXPECT_EQ(run.Wait(), 1);
    EXPECT_THAT(run.err(), HasSubstr("No space left on device"));
    EXPECT_EQ(run.err_lines(), 1u) << run.err();
  }
}

// More nodes than the machine has cores, and all schedules: catches what is sized for a few peers,
// such as files, and nodes that need a core each.
TEST_P(RunOverTest, ManyNodesOnOneMachine) {
  WriteInput(5000);
  for (const char* algorithm : {"chain", "sequential", "binomial_pipeline"}) {
    Command run({"run", "--nodes", "100", "--algorithm", algorithm, "--block-bytes", "1000",
                 "--input", input_, "--executor", "cpu", "--transport", transport_});
    EXPECT_EQ(run.Wait(), 0) << run.err();
    EXPECT_THAT(run.out(), HasSubstr("all 99 copies are identical"));
  }
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
                "is a folder, expected a regular file");
  ExpectFailure({"run", "--nodes", "3", "--input", input_, "--output-dir", input_ + "/x",
                 "--executor", "cpu"},
                1, "Not a directory");
}

TEST_P(RunEachTest, WritesATrace) {
  WriteInput(100'000);
  Command run(Arguments({"--trace", trace_}));
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_EQ(run.err(), "");
  EXPECT_THAT(test::ReadText(trace_),
              AllOf(HasSubstr("\"outcome\":\"completed\""),
                    HasSubstr(fmt::format("\"executor\":\"{}\"", executor_))));
  const auto trace = nlohmann::json::parse(test::ReadText(trace_));
  for (const auto& host : trace["otherData"]["hosts"]) {
    EXPECT_EQ(host.value("wakeups_ns", nlohmann::json::array()).size(), host["wakeups"]);
  }
  ExpectCopies();
}

// Queues that are longer than their rings: hosts wake up more than once.
TEST_F(RunTest, TracesTellWhenPrepostedHostsWokeUp) {
  WriteInput(1'000'000);
  Command run({"run", "--nodes", "3", "--input", input_, "--block-bytes", "10kB", "--ready",
               "window=1", "--executor", "offload", "--device-profile", "tiny", "--trace", trace_});
  ASSERT_EQ(run.Wait(), 0) << run.err();
  const auto trace = nlohmann::json::parse(test::ReadText(trace_));
  for (const auto& host : trace["otherData"]["hosts"]) {
    EXPECT_GT(host["wakeups"], 1);
    EXPECT_EQ(host["wakeups_ns"].size(), host["wakeups"]);
    EXPECT_GE(host["wakeups_ns"][0], trace["otherData"]["start_ns"]);
  }
}

// The trace of a run that fails is what explains it.
TEST_F(RunTest, AFailedRunLeavesItsTraceAndSaysSo) {
  // Blocks that take long, so that node 4 has none when it is stopped.
  const HeldRun run = Hold(0.25, /*held=*/4, {"--trace", trace_, "--block-bytes", "32MiB"});
  EXPECT_FALSE(std::filesystem::exists(trace_));
  run.nodes.at(2).Signal(SIGKILL);
  EXPECT_EQ(run.Wait(), 1);
  EXPECT_THAT(run.err(), AllOf(HasSubstr("killed by signal 9"), HasSubstr(trace_ + " holds")));
  const std::string trace = test::ReadText(trace_);
  EXPECT_THAT(trace, HasSubstr("\"outcome\":\"node 2 "));
  EXPECT_THAT(trace, HasSubstr("\"ph\":\"X\",\"pid\":1"));
  EXPECT_THAT(trace, Not(HasSubstr("\"ph\":\"X\",\"pid\":4")));
}

TEST_F(RunTest, AnInterruptedRunLeavesNoTrace) {
  const HeldRun run = Hold(0.25, /*held=*/4, {"--trace", trace_});
  kill(run.command->pid(), SIGINT);
  EXPECT_EQ(run.Wait(), 130);
  EXPECT_EQ(run.err(), "prepost: interrupted\n");
  EXPECT_EQ(test::CountFiles(folder_.path()), 1u);
}

// Found only after the transfer, a path that cannot be written would waste it.
TEST_F(RunTest, TracePathsAreTriedBeforeTheTransfer) {
  WriteInput(1000);
  ExpectFailure(Arguments({"--trace", folder_ / "none/trace.json"}), 1, "cannot write");
  ExpectFailure(Arguments({"--trace", folder_.path()}), 1, "cannot write");
  ExpectFailure(Arguments({"--trace", "-"}), 2, "--trace");
  ExpectFailure(Arguments({"--trace", input_}), 2, "which is read");
  std::filesystem::create_symlink(input_, folder_ / "link");
  ExpectFailure(Arguments({"--trace", folder_ / "link"}), 2, "which is read");
  EXPECT_EQ(test::CountFiles(folder_.path()), 2u);
}

TEST_F(RunTest, UnknownNamesAreUsageErrors) {
  WriteInput(1000);
  ExpectFailure({"run", "--nodes", "2", "--input", input_, "--executor", "cpuu"}, 2,
                "unknown name 'cpuu', did you mean 'cpu'?");
  transport_ = "tpc";
  ExpectFailure(Arguments(), 2, "unknown name 'tpc', did you mean 'tcp'?");
  ExpectFailure({"run", "--input", input_}, 2, "needs a PLAN, a SPEC or flags");
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
}  // namespace prepost::run_test
