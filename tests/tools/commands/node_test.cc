// SPDX-License-Identifier: Apache-2.0
//
// `prepost node` as a user sees it: a process per node, each at an address of its own of this
// machine's loopback interface. A transfer down the chain 0 > 1 > 2 > 3 is held by stopping
// (SIGSTOP) node 3, so that nothing but the bound after a failure depends on time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "runtime/group/peers_file.h"
#include "runtime/transport/tcp/tcp_address.h"
#include "tests/support/command.h"
#include "tests/support/loopback.h"
#include "tests/support/random_bytes.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_folder.h"

namespace prepost::node_test {
namespace {

using std::chrono::milliseconds;
using test::Command;
using test::Process;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr uint32_t kNodes = 4;
constexpr uint32_t kLast = kNodes - 1;
constexpr size_t kLargeBytes = size_t{200} << 20;
constexpr size_t kTries = 3;  ///< to hold a transfer, each with a message twice as large

/// Everyone must know 2.5 s after a failure (--failure-max 2s); the rest is slack for a loaded
/// machine.
constexpr milliseconds kEndMax{2500 + 4000};

class NodeTest : public ::testing::Test {
 protected:
  using Clock = std::chrono::steady_clock;

  NodeTest() {
    std::ofstream(secret_) << "the secret of this test\n";
    EXPECT_EQ(chmod(secret_.c_str(), 0600), 0);
    std::ofstream peers(peers_);
    for (uint32_t node = 0; node < kNodes; ++node) {
      peers << fmt::format("{} {}\n", node, test::LoopbackAddress(node));
    }
    EXPECT_TRUE(std::filesystem::create_directory(copies_));
  }

  void MakePlan(size_t bytes, const std::string& algorithm = "chain") {
    std::vector<std::byte> block = test::RandomBytes(1 << 20);
    std::ofstream out(input_, std::ios::binary);
    for (size_t left = bytes; left > 0;) {
      // No page is like another, so that a copy whose blocks are exchanged is another file.
      for (size_t page = 0; page < block.size(); page += 4096) {
        const size_t place = left - page;
        std::memcpy(&block[page], &place, sizeof(place));
      }
      const size_t step = std::min(left, block.size());
      out.write(reinterpret_cast<const char*>(block.data()), static_cast<std::streamsize>(step));
      left -= step;
    }
    out.close();
    CompilePlan(plan_, algorithm);
  }
  void CompilePlan(const std::string& path, const std::string& algorithm) {
    Command compile({"compile", "--nodes", std::to_string(kNodes), "--message", input_,
                     "--block-bytes", "256KiB", "--algorithm", algorithm, "-o", path});
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
  }

  std::string CopyOf(uint32_t node) const { return copies_ + "/" + std::to_string(node); }
  /// `more`: flags with their values, instead of those that stand there already.
  std::vector<std::string> Arguments(uint32_t node,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"node",
                                          plan_,
                                          "--node",
                                          std::to_string(node),
                                          "--peers",
                                          peers_,
                                          "--secret-file",
                                          secret_,
                                          node == 0 ? "--input" : "--output",
                                          node == 0 ? input_ : CopyOf(node)};
    for (size_t i = 0; i < more.size(); ++i) {
      const auto there = std::ranges::find(arguments, more[i]);
      if (there == arguments.end() || i + 1 == more.size()) {
        arguments.push_back(more[i]);
      } else {
        *(there + 1) = more[++i];
      }
    }
    return arguments;
  }
  void Start(uint32_t node, const std::vector<std::string>& more = {}) {
    commands_[node] = std::make_unique<Command>(Arguments(node, more));
  }
  void StartAllBut(uint32_t absent, const std::vector<std::string>& more = {}) {
    for (uint32_t node = 0; node < kNodes; ++node) {
      if (node != absent) Start(node, more);
    }
  }
  Command& At(uint32_t node) { return *commands_[node]; }

  /// How many sockets at node's own address and port are in a state of /proc/net/tcp.
  static size_t CountSockets(uint32_t node, const std::string& state) {
    const TcpAddress address = *NumericAddress(test::LoopbackAddress(node));
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&address.storage) + 4;
    const std::string own = fmt::format(": {:02X}{:02X}{:02X}{:02X}:{:04X} ", bytes[3], bytes[2],
                                        bytes[1], bytes[0], kDefaultPort);
    std::ifstream table("/proc/net/tcp");
    size_t count = 0;
    for (std::string line; std::getline(table, line);) {
      const size_t at = line.find(own);
      if (at == std::string::npos) continue;
      if (line.substr(at + own.size()).find(" " + state + " ") == 13) ++count;
    }
    return count;
  }
  static bool IsListening(uint32_t node) { return CountSockets(node, "0A") > 0; }
  static size_t Connections(uint32_t node) { return CountSockets(node, "01"); }

  /// The chain's connections, two for data per pair and those to the root, are all there.
  static bool AreAllConnected() {
    for (uint32_t node = 0; node < kNodes; ++node) {
      if (IsListening(node)) return false;
    }
    return Connections(0) == 2 + kNodes - 1 && Connections(1) == 2 && Connections(2) == 2;
  }

  /// A transfer that is under way and cannot end, because node 3 is stopped. By default that is no
  /// failure for a while.
  void Hold(const std::vector<std::string>& more = {"--failure-max", "10"}) {
    for (size_t i = 0; i < kTries; ++i) {
      for (auto& command : commands_) command.reset();
      for (uint32_t node = 1; node < kNodes; ++node) std::filesystem::remove(CopyOf(node));
      MakePlan(kLargeBytes << i);
      if (HasFatalFailure()) return;
      Start(kLast, more);
      ASSERT_TRUE(At(kLast).WaitUntil([] { return IsListening(kLast); }));
      StartAllBut(kLast, more);
      if (!At(kLast).WaitUntil(AreAllConnected)) continue;
      Process(At(kLast).pid()).Stop();
      if (At(kLast).running() && At(0).running()) return;
    }
    FAIL() << "no transfer could be held";
  }
  /// Until the root is connected with nodes 1 (for data, too) and 3, so that they hear of a failure
  /// of node 2.
  void AwaitAllBut2() {
    ASSERT_TRUE(At(0).WaitUntil([] { return Connections(0) == 2 + 2; }));
  }

  /// The end of one node: its code, one line on stderr with `message`, within the bound.
  void ExpectEnds(uint32_t node, int code, const std::string& message, Clock::time_point failed) {
    EXPECT_EQ(At(node).Wait(), code) << "node " << node;
    EXPECT_LE(Clock::now(), failed + kEndMax) << "node " << node << " ended too late";
    if (code == 128 + SIGKILL) return;
    EXPECT_THAT(At(node).err(), HasSubstr(message)) << "node " << node;
    EXPECT_EQ(At(node).err_lines(), 1u) << At(node).err();
    EXPECT_EQ(At(node).out(), "");
  }
  void ExpectNothingLeft() {
    EXPECT_EQ(test::CountFiles(copies_), 0u);
    for (uint32_t node = 0; node < kNodes; ++node) EXPECT_FALSE(IsListening(node)) << node;
  }
  /// The root may say what plan would be better over TCP.
  static std::string WithoutAdvice(const std::string& err) {
    const bool is_advice = err.starts_with("prepost: note: over TCP this plan takes ");
    return is_advice ? err.substr(err.find('\n') + 1) : err;
  }
  /// `noted`: says `note` on stderr; the others nothing.
  void ExpectCopies(uint32_t noted = kNodes, const std::string& note = "") {
    for (uint32_t node = 0; node < kNodes; ++node) {
      ASSERT_EQ(At(node).Wait(), 0) << "node " << node << ": " << At(node).err();
      EXPECT_EQ(WithoutAdvice(At(node).err()), node == noted ? note : "");
      if (node == 0) continue;
      EXPECT_TRUE(test::ReadText(CopyOf(node)) == test::ReadText(input_)) << node;
    }
    EXPECT_EQ(test::CountFiles(copies_), kNodes - 1u);
  }

  test::TempFolder folder_;
  const std::string input_ = folder_ / "image";
  const std::string plan_ = folder_ / "plan.json";
  const std::string peers_ = folder_ / "peers";
  const std::string secret_ = folder_ / "secret";
  const std::string copies_ = folder_ / "copies";
  std::array<std::unique_ptr<Command>, kNodes> commands_;
};

// Each with its own node's program alone; the root with all. Catches numbers of channels that only
// who has the whole plan knows.
TEST_F(NodeTest, RolledPlansNeedNoOtherNodesProgram) {
  MakePlan(10'000'001);
  const auto compile = [&](const std::string& path, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"compile",
                                          "--nodes",
                                          std::to_string(kNodes),
                                          "--message-bytes",
                                          "any",
                                          "--block-bytes",
                                          "4KiB",
                                          "-o",
                                          path};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Command command(arguments);
    ASSERT_EQ(command.Wait(), 0) << command.err();
  };
  compile(plan_, {});
  const std::string size = "10000001";
  for (uint32_t node = 0; node < kNodes; ++node) {
    const std::string own = plan_ + std::to_string(node);
    compile(own, {"--node", std::to_string(node)});
    if (node == 0) {
      Start(node);
      continue;
    }
    commands_[node] = std::make_unique<Command>([&] {
      std::vector<std::string> arguments = Arguments(node, {"--message-bytes", size});
      arguments[1] = own;
      return arguments;
    }());
  }
  ExpectCopies();
  const auto refuses = [&](uint32_t node, const std::string& plan,
                           const std::vector<std::string>& more, int code,
                           const std::string& message) {
    std::vector<std::string> arguments = Arguments(node, more);
    arguments[1] = plan;
    Command command(arguments);
    EXPECT_EQ(command.Wait(), code);
    EXPECT_THAT(command.err(), HasSubstr(message));
    EXPECT_EQ(command.err_lines(), 1u) << command.err();
  };
  refuses(2, plan_ + "1", {"--message-bytes", size}, 1,
          "the program of node 2 is not in this file");
  refuses(2, plan_ + "2", {}, 2, "--message-bytes is needed");
  refuses(0, plan_, {"--message-bytes", "7"}, 1, "expected 7 as in the plan");
}

// A trace has all ops of all nodes, so its node unrolls the plan. Catches one that then has another
// hash than those that play the plan as it is, or other numbers of channels.
TEST_F(NodeTest, WhoTracesARolledPlanIsInTheSameGroup) {
  MakePlan(1'000'001);
  Command compile({"compile", "--nodes", std::to_string(kNodes), "--message-bytes", "any",
                   "--block-bytes", "4KiB", "-o", plan_});
  ASSERT_EQ(compile.Wait(), 0) << compile.err();
  const std::string trace = folder_ / "trace.json";
  Start(0);
  for (uint32_t node = 1; node < kNodes; ++node) {
    std::vector<std::string> more = {"--message-bytes", "1000001"};
    if (node == 2) more.insert(more.end(), {"--trace", trace});
    Start(node, more);
  }
  ExpectCopies(2, "prepost: note: a trace has all ops of a plan: the rolled plan is unrolled\n");
  EXPECT_TRUE(std::filesystem::exists(trace));

  // One node's file is not enough.
  const std::string own = plan_ + "2";
  Command alone({"compile", "--nodes", std::to_string(kNodes), "--message-bytes", "any", "--node",
                 "2", "-o", own});
  ASSERT_EQ(alone.Wait(), 0) << alone.err();
  std::vector<std::string> arguments =
      Arguments(2, {"--message-bytes", "1000001", "--trace", trace});
  arguments[1] = own;
  Command refused(arguments);
  EXPECT_EQ(refused.Wait(), 1);
  EXPECT_THAT(refused.err(), HasSubstr("programs of 1 of 4 nodes are there"));
  EXPECT_EQ(refused.err_lines(), 1u) << refused.err();
}

// Catches an error that reports connections only, where a file is of another order of nodes.
TEST_F(NodeTest, RolledProgramsOfOtherOrdersSaySo) {
  MakePlan(1000);
  for (uint32_t node = 0; node < kNodes; ++node) {
    const std::string own = plan_ + std::to_string(node);
    Command compile({"compile", "--nodes", std::to_string(kNodes), "--message-bytes", "any",
                     "--algorithm", "chain", "--order", node == 2 ? "0,2,1,3" : "0,1,2,3", "--node",
                     std::to_string(node), "-o", own});
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
    std::vector<std::string> more = {"--connect-timeout", "1.5"};
    if (node != 0) more.insert(more.end(), {"--message-bytes", "1000"});
    std::vector<std::string> arguments = Arguments(node, more);
    arguments[1] = own;
    commands_[node] = std::make_unique<Command>(arguments);
  }
  EXPECT_EQ(At(2).Wait(), 1);
  EXPECT_THAT(At(2).err(), HasSubstr("rolled plan made "
                                     "with the same order of nodes (--order, --topology"));
}

// The size of the message is part of what a group has in common. Catches a refusal that blames the
// plan, and a group that the wrong node has disturbed.
TEST_F(NodeTest, RolledPlansForOtherSizesAreToldBothSizes) {
  MakePlan(100'000);
  Command compile(
      {"compile", "--nodes", std::to_string(kNodes), "--message-bytes", "any", "-o", plan_});
  ASSERT_EQ(compile.Wait(), 0) << compile.err();
  Start(0);
  Start(1, {"--message-bytes", "100001"});
  EXPECT_EQ(At(1).Wait(), 1);
  EXPECT_THAT(At(1).err(), EndsWith(" refuses node 1: the message has 100001 bytes at node 1, "
                                    "100000 bytes at node 0 (--message-bytes, --input)\n"));
  EXPECT_EQ(At(1).err_lines(), 1u) << At(1).err();
  for (uint32_t node = 1; node < kNodes; ++node) Start(node, {"--message-bytes", "100000"});
  ExpectCopies();
}

TEST_F(NodeTest, EveryoneHasTheMessageInTheEnd) {
  for (const char* algorithm : {"binomial_pipeline", "binomial_tree"}) {
    MakePlan(10'000'001, algorithm);
    StartAllBut(kNodes);
    ExpectCopies();
    EXPECT_THAT(At(0).out(), HasSubstr("all 3 copies are identical"));
    EXPECT_THAT(At(2).out(), HasSubstr("the copy of node 2 is identical"));
    std::filesystem::remove_all(copies_);
    std::filesystem::create_directory(copies_);
  }
}

TEST_F(NodeTest, ReplacesAnOlderCopyAndPrintsJson) {
  MakePlan(100'000);
  std::ofstream(CopyOf(1)) << "an older copy";
  StartAllBut(kNodes, {"--json", "--wait", "hybrid"});
  ExpectCopies();
  EXPECT_THAT(At(0).out(), AllOf(HasSubstr("\"copies\": 3"), HasSubstr("\"wait\": \"hybrid\"")));
  EXPECT_THAT(At(1).out(), AllOf(HasSubstr("\"copies\": 1"), HasSubstr("\"node\": 1")));
}

// Each machine writes what its own node did; a picture takes them all.
TEST_F(NodeTest, TracesOfAllNodesMakeOnePicture) {
  MakePlan(1'000'000, "binomial_pipeline");
  std::vector<std::string> draw = {"draw", plan_, "-o", folder_ / "run.svg"};
  for (uint32_t node = 0; node < kNodes; ++node) {
    const std::string trace = folder_ / fmt::format("trace-{}.json", node);
    Start(node, {"--trace", trace});
    draw.insert(draw.end(), {"--trace", trace});
  }
  ExpectCopies();
  Command picture(draw);
  ASSERT_EQ(picture.Wait(), 0) << picture.err();
  EXPECT_THAT(test::ReadText(folder_ / "run.svg"), HasSubstr("receives end"));
  for (uint32_t node = 1; node < kNodes; ++node) {
    EXPECT_THAT(test::ReadText(folder_ / fmt::format("trace-{}.json", node)),
                AllOf(HasSubstr(fmt::format("\"pid\":{},", node)),
                      testing::Not(HasSubstr(fmt::format("\"pid\":{},", node - 1)))));
  }
}

TEST_F(NodeTest, AKilledNodeIsReportedByAll) {
  for (uint32_t victim = 0; victim < kNodes; ++victim) {
    SCOPED_TRACE(fmt::format("node {}", victim));
    ASSERT_NO_FATAL_FAILURE(Hold());
    const auto failed = Clock::now();
    kill(At(victim).pid(), SIGKILL);
    ExpectEnds(victim, 128 + SIGKILL, "", failed);
    for (uint32_t node = 0; node < kLast; ++node) {
      if (node != victim) ExpectEnds(node, 1, fmt::format("node {}", victim), failed);
    }
    if (victim != kLast) {
      kill(At(kLast).pid(), SIGCONT);
      ExpectEnds(kLast, 1, fmt::format("node {}", victim), Clock::now());
    }
    ExpectNothingLeft();
    if (HasFailure()) return;
  }
}

TEST_F(NodeTest, AnInterruptedNodeIsReportedByAll) {
  for (uint32_t victim = 0; victim < kLast; ++victim) {
    SCOPED_TRACE(fmt::format("node {}", victim));
    ASSERT_NO_FATAL_FAILURE(Hold());
    const auto failed = Clock::now();
    kill(At(victim).pid(), victim == 1 ? SIGTERM : SIGINT);
    ExpectEnds(victim, 130, "prepost: interrupted", failed);
    const std::string message = fmt::format("prepost: node {} ({}:{}) was interrupted\n", victim,
                                            test::LoopbackAddress(victim), kDefaultPort);
    for (uint32_t node = 0; node < kLast; ++node) {
      if (node != victim) ExpectEnds(node, 1, message, failed);
    }
    kill(At(kLast).pid(), SIGCONT);
    ExpectEnds(kLast, 1, message, Clock::now());
    ExpectNothingLeft();
    if (HasFailure()) return;
  }
}

// Before all have come: catches a group that learns of a failure only at its deadline.
TEST_F(NodeTest, AnInterruptWhileOthersAreAwaitedIsReportedByAll) {
  MakePlan(1000);
  for (const uint32_t victim : {0u, 1u}) {
    StartAllBut(kLast);
    // Nodes connect with each other for data when the root has let them in, so it has when node 1
    // has two such connections with each neighbour, beside the control connections at the root.
    ASSERT_TRUE(At(0).WaitUntil([] { return Connections(0) >= 4 && Connections(1) >= 2; }));
    const auto failed = Clock::now();
    kill(At(victim).pid(), SIGINT);
    ExpectEnds(victim, 130, "prepost: interrupted", failed);
    for (uint32_t node = 0; node < kLast; ++node) {
      if (node == victim) continue;
      ExpectEnds(node, 1,
                 fmt::format("node {} ({}:{}) was interrupted", victim,
                             test::LoopbackAddress(victim), kDefaultPort),
                 failed);
    }
    ExpectNothingLeft();
  }
}

TEST_F(NodeTest, AStoppedNodeIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Hold({"--failure-max", "2s"}));
  const auto failed = Clock::now();
  const std::string message = fmt::format("node 3 ({}:{}) has said nothing for 1200 ms",
                                          test::LoopbackAddress(kLast), kDefaultPort);
  for (uint32_t node = 0; node < kLast; ++node) ExpectEnds(node, 1, message, failed);
  kill(At(kLast).pid(), SIGCONT);
  ExpectEnds(kLast, 1, message, Clock::now());
  ExpectNothingLeft();
}

TEST_F(NodeTest, AStoppedRootIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Hold({"--failure-max", "2"}));
  const Process root(At(0).pid());
  root.Stop();
  kill(At(kLast).pid(), SIGCONT);
  const auto failed = Clock::now();
  for (uint32_t node = 1; node < kNodes; ++node) {
    ExpectEnds(node, 1, ", the root, has said nothing for 1200 ms", failed);
  }
  root.Continue();
  EXPECT_EQ(At(0).Wait(), 1);
  EXPECT_EQ(At(0).err_lines(), 1u) << At(0).err();
  ExpectNothingLeft();
}

// Catches a node that checks its output only when the group waits for it.
TEST_F(NodeTest, ACopyThatCannotBeWrittenEndsItsNodeAlone) {
  MakePlan(100'000);
  StartAllBut(2);
  AwaitAllBut2();
  Start(2, {"--output", folder_ / "none/copy"});
  ExpectEnds(2, 1, "cannot create " + (folder_ / "none/copy: No such file or directory"),
             Clock::now());
  Start(2);
  ExpectCopies();

  for (const char* place : {"/dev/null", "/tmp"}) {
    Command run(Arguments(2, {"--output", place}));
    EXPECT_EQ(run.Wait(), 1);
    EXPECT_THAT(run.err(), HasSubstr(fmt::format("cannot write {}", place)));
  }
}

// Catches a part of a copy that is left on the disk, and peers that wait for its node.
TEST_F(NodeTest, AFullDiskEndsAll) {
  const test::SmallDisk disk(folder_ / "disk");
  if (const std::string obstacle = disk.Obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  MakePlan(3'000'000);
  StartAllBut(2);
  AwaitAllBut2();
  commands_[2] =
      std::make_unique<Command>(Arguments(2, {"--output", disk.path() + "/copy"}), disk.wrapper());
  const auto failed = Clock::now();
  ExpectEnds(2, 1, "No space left on device", failed);
  for (const uint32_t node : {0u, 1u, 3u}) ExpectEnds(node, 1, "No space left on device", failed);
  ExpectNothingLeft();
}

TEST_F(NodeTest, WhoIsWrongIsRefusedAndTheGroupGoesOn) {
  MakePlan(100'000);
  StartAllBut(2);
  const std::string other_secret = folder_ / "other-secret";
  std::ofstream(other_secret) << "not the secret of this test\n";
  EXPECT_EQ(chmod(other_secret.c_str(), 0600), 0);
  const std::string other_plan = folder_ / "other.json";
  CompilePlan(other_plan, "binomial_tree");
  std::vector<std::string> with_other_plan = Arguments(2);
  with_other_plan[1] = other_plan;
  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {Arguments(2, {"--secret-file", other_secret}), "refuses node 2: the secrets differ\n"},
      {with_other_plan, "refuses node 2: it has another plan or other options\n"}};
  for (const auto& [arguments, message] : wrong) {
    Command refused(arguments);
    EXPECT_EQ(refused.Wait(), 1);
    EXPECT_THAT(refused.err(), HasSubstr(message));
    EXPECT_EQ(refused.err_lines(), 1u);
  }
  Start(2);
  ExpectCopies();
}

TEST_F(NodeTest, ATakenPortIsAnError) {
  MakePlan(1000);
  Start(2, {"--connect-timeout", "60"});
  ASSERT_TRUE(At(2).WaitUntil([] { return IsListening(2); }));
  Command second(Arguments(2));
  EXPECT_EQ(second.Wait(), 3);
  EXPECT_THAT(second.err(), AllOf(HasSubstr("node 2 cannot listen on "),
                                  HasSubstr(":7811: Address already in use")));
  EXPECT_EQ(second.err_lines(), 1u);
}

TEST_F(NodeTest, APeerThatNeverComesIsNamedByAll) {
  MakePlan(1000);
  StartAllBut(2, {"--connect-timeout", "1.5"});
  for (const uint32_t node : {0u, 1u, 3u}) {
    EXPECT_EQ(At(node).Wait(), 1);
    EXPECT_THAT(At(node).err(), AllOf(HasSubstr("not connected with all nodes after 1.5 s: "),
                                      HasSubstr("node 2 (")))
        << node;
    EXPECT_EQ(At(node).err_lines(), 1u) << At(node).err();
  }
  ExpectNothingLeft();
}

// Catches a node that goes on with one that does not seal, and an error that does not say at which
// it lies.
TEST_F(NodeTest, NodesThatSealAndOthersAreNoGroup) {
  MakePlan(1000);
  for (uint32_t node = 0; node < 4; ++node) {
    std::vector<std::string> more = {"--connect-timeout", "2"};
    if (node != 2) more.push_back("--seal");
    Start(node, more);
  }
  for (uint32_t node = 0; node < 4; ++node) EXPECT_EQ(At(node).Wait(), 1) << node;
  for (const uint32_t node : {0u, 2u}) {
    EXPECT_THAT(At(node).err(),
                HasSubstr("node 0 seals its connections, node 2 does not; give --seal "
                          "at all nodes, or at none"));
    EXPECT_EQ(At(node).err_lines(), 1u) << At(node).err();
  }
  ExpectNothingLeft();
}

// Catches a node that goes over TCP, or waits for its peers, although its NIC is missing.
TEST_F(NodeTest, ADeviceThatIsNotThereIsAMissingEnvironment) {
  MakePlan(1000);
  for (const char* executor : {"auto", "cpu", "offload"}) {
    for (const uint32_t node : {0u, 1u}) {
      Start(node, {"--executor", executor, "--device", "mlx5_99"});
      EXPECT_EQ(At(node).Wait(), 3) << executor;
      EXPECT_THAT(At(node).err(), HasSubstr("device mlx5_99: ")) << executor;
      EXPECT_EQ(At(node).err_lines(), 1u) << At(node).err();
      EXPECT_EQ(At(node).out(), "");
    }
  }
  ExpectNothingLeft();
}

TEST_F(NodeTest, WrongFlagsAreUsageErrors) {
  MakePlan(1000);
  Command beyond(Arguments(7));
  EXPECT_EQ(beyond.Wait(), 1);
  EXPECT_EQ(beyond.err(), "prepost: no node 7: the plan has nodes 0 to 3\n");
  std::vector<std::string> no_secret = Arguments(1);
  no_secret.erase(no_secret.begin() + 6, no_secret.begin() + 8);
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {no_secret, "a secret is needed, the same on all machines: --secret-file FILE, or "},
      {Arguments(0, {"--output", "x"}), "node 0 is the root of the plan and has the message"},
      {Arguments(1, {"--input", input_}), "--input is for the root of the plan, node 0"},
      {Arguments(1, {"--port", "9-8"}), "--port: '9-8' is no range"},
      {Arguments(1, {"--bind", "x y"}), "--bind: 'x y' is no address"},
      {Arguments(1, {"--wait", "poling"}), "did you mean 'polling'?"},
      {Arguments(1, {"--failure-max", "50ms"}), "--failure-max: expected 0.1 to 3600 seconds"},
      {Arguments(1, {"--failure-max", "2 weeks"}), "got '2 weeks'"},
      {Arguments(1, {"--executor", "ofload"}), "did you mean 'offload'?"},
      {Arguments(1, {"--executor", "offload"}), "--executor offload needs a --device"},
      {Arguments(1, {"--device", "emulated"}), "emulated NICs live in one process"},
      {Arguments(1, {"--device", "mlx5:emulated"}), "emulated NICs live in one process"},
      {Arguments(1, {"--seal", "--device", "mlx5_99"}),
       "--seal: what goes over --device mlx5_99 the NIC itself moves, which seals nothing"},
      {Arguments(1, {"--mode", "managed"}), "--mode is for offload to a --device"},
      {Arguments(1, {"--device", "mlx5_99", "--executor", "cpu", "--mode", "managed"}),
       "--mode is for offload to a --device"},
      {Arguments(1, {"--device", "mlx5_99", "--executor", "offload", "--trace", "t"}),
       "--trace is for --executor cpu"},
      {Arguments(1, {"--device", "mlx5_99", "--executor", "offload", "--wait", "polling"}),
       "--wait is for CPUs"}};
  for (const auto& [arguments, message] : cases) {
    Command run(arguments);
    EXPECT_EQ(run.Wait(), 2) << message;
    EXPECT_THAT(run.err(), HasSubstr(message));
    EXPECT_EQ(run.err_lines(), 1u) << run.err();
  }
  EXPECT_EQ(chmod(secret_.c_str(), 0644), 0);
  Command open_secret(Arguments(1));
  EXPECT_EQ(open_secret.Wait(), 1);
  EXPECT_THAT(open_secret.err(), HasSubstr("can be used by others (mode 0644)"));
}

// Whoever has shards and whoever has the plan in one file play the same plan: catches a hash that
// tells them apart, and ids of channels that mean different things to them.
TEST_F(NodeTest, NodesWithShardsJoinThoseWithTheWholePlan) {
  MakePlan(size_t{3} << 20, "binomial_pipeline");
  const std::string shards = copies_ + "/shards";
  Command compile({"compile", "--nodes", std::to_string(kNodes), "--message", input_,
                   "--block-bytes", "256KiB", "--algorithm", "binomial_pipeline", "--encoding",
                   "shards", "-o", shards});
  ASSERT_EQ(compile.Wait(), 0) << compile.err();
  std::filesystem::remove(shards + "/node-00002.json");  // nobody needs it
  for (uint32_t node = 0; node < kNodes; ++node) {
    std::vector<std::string> arguments = Arguments(node);
    if (node % 2 == 1) arguments[1] = shards;
    commands_[node] = std::make_unique<Command>(arguments);
  }
  for (uint32_t node = 0; node < kNodes; ++node) {
    EXPECT_EQ(At(node).Wait(), 0) << At(node).err();
    if (node == 0) continue;
    EXPECT_EQ(test::ReadText(CopyOf(node)), test::ReadText(input_));
  }
}

}  // namespace
}  // namespace prepost::node_test
