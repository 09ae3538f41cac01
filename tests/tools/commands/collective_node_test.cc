// SPDX-License-Identifier: Apache-2.0
//
// `prepost node` of collectives other than multicasts: a process per node, each at an address of
// its own of the loopback interface, with its own input and output.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/collective.h"
#include "ir/json/plan_json.h"
#include "runtime/files/plan_folder.h"
#include "tests/support/collective_transfer.h"
#include "tests/support/command.h"
#include "tests/support/loopback.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_folder.h"

namespace prepost::collective_node_test {
namespace {

using test::Command;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class CollectiveNodeTest : public ::testing::Test {
 protected:
  CollectiveNodeTest() {
    std::ofstream(secret_) << "the secret of this test\n";
    EXPECT_EQ(chmod(secret_.c_str(), 0600), 0);
  }

  void MakePlan(const Spec& spec) {
    plan_.emplace(test::CompileOrDie(spec));
    std::ofstream out(plan_path_);
    WritePlan(*plan_, out);
    std::ofstream peers(peers_);
    for (uint32_t node = 0; node < spec.nodes; ++node)
      peers << fmt::format("{} {}\n", node, test::LoopbackAddress(node));
    std::filesystem::remove_all(outputs_);
    std::filesystem::create_directory(outputs_);
    commands_.clear();
    commands_.resize(spec.nodes);
  }
  void WriteInputs(const test::CollectiveTransfer& transfer) {
    for (uint32_t node = 0; node < plan_->header().nodes; ++node)
      test::WriteBytes(InputOf(node), transfer.input(NodeId(node)));
  }

  const PlanHeader& header() const { return plan_->header(); }
  std::string InputOf(uint32_t node) const { return folder_ / fmt::format("input-{}", node); }
  std::string OutputOf(uint32_t node) const { return fmt::format("{}/{}", outputs_, node); }
  bool HasInput(uint32_t node) const { return header().roles().IsSource(NodeId(node)); }
  bool HasOutput(uint32_t node) const { return header().roles().IsTarget(NodeId(node)); }
  /// Without its files.
  std::vector<std::string> Bare(uint32_t node, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {
        "node",    plan_path_, "--node",        fmt::to_string(node),
        "--peers", peers_,     "--secret-file", secret_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  void Start(uint32_t node, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = Bare(node, more);
    if (HasInput(node)) arguments.insert(arguments.end(), {"--input", InputOf(node)});
    if (HasOutput(node)) arguments.insert(arguments.end(), {"--output", OutputOf(node)});
    commands_[node] = std::make_unique<Command>(arguments);
  }
  void StartAll(const std::vector<std::string>& more = {}) {
    for (uint32_t node = 0; node < header().nodes; ++node) Start(node, more);
  }
  Command& At(uint32_t node) { return *commands_[node]; }

  void ExpectOutputs(const test::CollectiveTransfer& transfer) {
    for (uint32_t node = 0; node < header().nodes; ++node) {
      ASSERT_EQ(At(node).Wait(), 0) << "node " << node << ": " << At(node).err();
      EXPECT_EQ(At(node).err(), "");
      ASSERT_EQ(std::filesystem::exists(OutputOf(node)), HasOutput(node)) << node;
      if (!HasOutput(node)) continue;
      const std::string text = test::ReadText(OutputOf(node));
      EXPECT_TRUE(
          std::ranges::equal(std::as_bytes(std::span(text)), transfer.Expected(NodeId(node))))
          << node;
    }
  }

  test::TempFolder folder_;
  const std::string plan_path_ = folder_ / "plan.json";
  const std::string peers_ = folder_ / "peers";
  const std::string secret_ = folder_ / "secret";
  const std::string outputs_ = folder_ / "outputs";
  std::optional<VerifiedPlan> plan_;
  std::vector<std::unique_ptr<Command>> commands_;
};

Spec SpecOf(CollectiveKind kind, uint32_t nodes, const std::string& algorithm = "") {
  Spec spec{.collective = kind,
            .nodes = nodes,
            .message_bytes = 20'000,
            .block_bytes = 4096,
            .algorithm = algorithm.empty() ? test::SchedulesOf(kind, nodes).front() : algorithm};
  if (Combines(kind)) spec.combine = {.op = CombineOp::kSum, .type = ElementType::kInt32};
  return spec;
}

// The outputs of every kind and schedule, with the root elsewhere than at node 0. Catches an input
// that is taken at another node's offset, a leader that is not the root, and what nodes without an
// output write.
TEST_F(CollectiveNodeTest, EveryNodeGetsWhatItWants) {
  test::Random random(test::TestSeed());
  std::vector<Spec> specs;
  std::vector<std::string> labels;
  for (const CollectiveKind kind :
       {CollectiveKind::kReduce, CollectiveKind::kAllreduce, CollectiveKind::kReduceScatter,
        CollectiveKind::kAllgather, CollectiveKind::kGather, CollectiveKind::kScatter,
        CollectiveKind::kAlltoall}) {
    for (const std::string& algorithm : test::SchedulesOf(kind, /*members=*/4)) {
      Spec& spec = specs.emplace_back(SpecOf(kind, 4, algorithm));
      if (HasRoot(kind)) spec.root = NodeId(2);
      labels.emplace_back(Name(kind));
    }
  }
  specs = test::WithUnevenParts(std::move(specs), random);
  test::Sample sample(labels);
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(spec));
    MakePlan(spec);
    const test::CollectiveTransfer transfer(header(), random);
    WriteInputs(transfer);
    StartAll();
    ExpectOutputs(transfer);
    if (HasFailure()) return;
  }
}

// What the report says of outputs is what was compared, and no more.
TEST_F(CollectiveNodeTest, ReportsSayWhatWasCompared) {
  test::Random random(test::TestSeed());
  const auto play = [&](const Spec& spec, const std::vector<std::string>& more = {}) {
    MakePlan(spec);
    const test::CollectiveTransfer transfer(header(), random);
    WriteInputs(transfer);
    StartAll(more);
    ExpectOutputs(transfer);
  };
  play(SpecOf(CollectiveKind::kAllreduce, 3));
  EXPECT_THAT(At(0).out(), AllOf(HasSubstr("allreduce sum:int32"),
                                 HasSubstr("all 3 outputs are identical, after ")));
  EXPECT_THAT(At(1).out(), HasSubstr("the output of node 1 is identical with all others, after "));
  play(SpecOf(CollectiveKind::kReduce, 3));
  EXPECT_THAT(At(0).out(), HasSubstr("the output of node 0 is complete; the plan makes no other "
                                     "equal, so it is compared with nothing, after "));
  EXPECT_THAT(At(2).out(), AllOf(HasSubstr("node 2 gets no output and has done its part, after "),
                                 Not(HasSubstr("BLAKE2b"))));
  play(SpecOf(CollectiveKind::kScatter, 3), {"--json"});
  const Json leader = Json::parse(At(0).out()), other = Json::parse(At(2).out());
  EXPECT_EQ(leader["nodes"].size(), 3u);
  EXPECT_EQ(leader["nodes"][2]["compared_with"], "nothing");
  EXPECT_EQ(leader["nodes"][2]["blake2b_256"], other["nodes"][0]["blake2b_256"]);
  EXPECT_EQ(other["nodes"][0]["node"], 2);
  play(SpecOf(CollectiveKind::kAllgather, 3), {"--json"});
  EXPECT_EQ(Json::parse(At(1).out())["nodes"][0]["compared_with"], "outputs");
}

// A barrier has no files, and nobody passes it alone.
TEST_F(CollectiveNodeTest, BarriersHaveNoFiles) {
  Spec spec = SpecOf(CollectiveKind::kBarrier, 3);
  spec.combine = {.op = CombineOp::kAnd, .type = ElementType::kUint8};
  spec.message_bytes = 0;
  MakePlan(spec);
  for (uint32_t node = 0; node < 3; ++node) commands_[node] = std::make_unique<Command>(Bare(node));
  for (uint32_t node = 0; node < 3; ++node) {
    EXPECT_EQ(At(node).Wait(), 0) << At(node).err();
    EXPECT_THAT(At(node).out(), AllOf(HasSubstr("all 3 nodes have come to the barrier, after "),
                                      Not(HasSubstr("BLAKE2b"))));
  }
  test::WriteBytes(InputOf(0), {});
  test::ExpectRefused(Bare(0, {"--input", InputOf(0)}), 2, "--input: a barrier moves nothing",
                      folder_);
}

// Catches a helper that is asked for an input, or counts as one that has an output to compare.
TEST_F(CollectiveNodeTest, HelpersHaveNoFiles) {
  MakePlan(SpecOf(CollectiveKind::kGather, 3));
  std::ofstream(plan_path_)
      << R"({ "format": "prepost.plan", "version": "1.2", "generator": "a test",
    "collective": "gather", "algorithm": "by hand", "nodes": 3, "helpers": 1, "root": 0,
    "message": { "bytes": 8, "block_bytes": 8, "blocks": 2, "parts": 2 }, "scratch": 1,
    "ready": { "mode": "barrier" }, "send_window": null, "rounds": 2,
    "channels": [ { "from": 1, "to": 2, "lane": 0 }, { "from": 2, "to": 0, "lane": 0 } ],
    "programs": [
      { "node": 0, "ops": [ { "op": "recv", "channel": 1, "block": 1, "round": 1, "after": [] } ] },
      { "node": 1, "ops": [ { "op": "send", "channel": 0, "block": 1, "round": 0, "after": [] } ] },
      { "node": 2, "ops": [
        { "op": "recv", "channel": 0, "block": 1, "scratch": 0, "round": 0, "after": [] },
        { "op": "send", "channel": 1, "block": 1, "round": 1, "after": [0] } ] } ] })";
  std::ofstream(InputOf(0)) << "of node ";
  std::ofstream(InputOf(1)) << "0 and 1.";
  for (const std::string flag : {"--input", "--output"}) {
    test::ExpectRefused(Bare(2, {flag, InputOf(0)}), 2,
                        flag + ": node 2 is a helper, which passes on what others need", folder_);
  }
  commands_[0] =
      std::make_unique<Command>(Bare(0, {"--input", InputOf(0), "--output", OutputOf(0)}));
  commands_[1] = std::make_unique<Command>(Bare(1, {"--input", InputOf(1)}));
  commands_[2] = std::make_unique<Command>(Bare(2));
  for (uint32_t node = 0; node < 3; ++node) EXPECT_EQ(At(node).Wait(), 0) << At(node).err();
  EXPECT_EQ(test::ReadText(OutputOf(0)), "of node 0 and 1.");
  EXPECT_THAT(At(2).out(), HasSubstr("node 2 gets no output and has done its part, after "));
}

// A node reads its own shard. Catches one whose blocks lie elsewhere than those of the whole plan.
TEST_F(CollectiveNodeTest, ShardsAreEnough) {
  test::Random random(test::TestSeed());
  MakePlan(SpecOf(CollectiveKind::kAllreduce, 4));
  const std::string shards = folder_ / "shards";
  ASSERT_TRUE(WritePlanFolder(*plan_, shards, /*interrupt_fd=*/-1).ok());
  const test::CollectiveTransfer transfer(header(), random);
  WriteInputs(transfer);
  for (uint32_t node = 0; node < 4; ++node) {
    std::vector<std::string> arguments =
        Bare(node, {"--input", InputOf(node), "--output", OutputOf(node)});
    if (node % 2 == 1) arguments[1] = shards;
    commands_[node] = std::make_unique<Command>(arguments);
  }
  ExpectOutputs(transfer);
}

// CPUs drive a provider of libfabric, which is told of all memory. Catches an output that stays in
// memory and a device that is asked to combine.
TEST_F(CollectiveNodeTest, DevicesOfLibrariesAreDriven) {
  test::Random random(test::TestSeed());
  const std::string device = "fabric:sockets";
  Command devices({"devices"});
  devices.Wait();
  if (devices.out().find(device + " ") == std::string::npos)
    GTEST_SKIP() << "libfabric has no provider sockets here";
  MakePlan(SpecOf(CollectiveKind::kAllreduce, 3, "ring"));
  const test::CollectiveTransfer transfer(header(), random);
  WriteInputs(transfer);
  StartAll({"--device", device, "--executor", "cpu"});
  ExpectOutputs(transfer);
  EXPECT_THAT(At(0).out(), AllOf(HasSubstr("executor cpu on fabric:sockets; allreduce"),
                                 HasSubstr("all 3 outputs are identical")));
  test::ExpectRefused(Bare(0, {"--input", InputOf(0), "--device", device, "--executor", "offload"}),
                      1, "a plan of allreduce, which combines: a NIC does not, CPUs do", folder_);
}

TEST_F(CollectiveNodeTest, WhatDoesNotFitANodeIsRefused) {
  test::Random random(test::TestSeed());
  const auto refuses = [&](const std::vector<std::string>& arguments, int code,
                           const std::string& message) {
    test::ExpectRefused(arguments, code, message, folder_);
  };
  MakePlan(SpecOf(CollectiveKind::kGather, 3));
  WriteInputs(test::CollectiveTransfer(header(), random));
  refuses(Bare(1), 2, "node 1 contributes to the plan of gather and needs --input, of 20000 bytes");
  refuses(Bare(1, {"--input", InputOf(1), "--output", OutputOf(1)}), 2,
          "--output: in a plan of gather it is for node 0, not for node 1");
  test::WriteBytes(InputOf(1), std::vector<std::byte>(19'999));
  refuses(Bare(1, {"--input", InputOf(1)}), 1,
          "has 19999 bytes, expected 20000 as node 1 contributes in the plan");

  MakePlan(SpecOf(CollectiveKind::kAlltoall, 3));
  refuses(Bare(0, {"--input", InputOf(0)}), 1,
          "has 20000 bytes, expected 60000 as node 0 contributes in the plan, 3 parts of 20000 "
          "bytes");
  MakePlan(SpecOf(CollectiveKind::kScatter, 3));
  refuses(Bare(1, {"--input", InputOf(0)}), 2,
          "--input: in a plan of scatter it is for node 0, not for node 1");

  Spec own = SpecOf(CollectiveKind::kAllreduce, 3);
  own.combine.op = CombineOp::kUser;
  MakePlan(own);
  refuses(Bare(1, {"--input", InputOf(1)}), 1, "the operation is the caller's own");
  refuses({"run", plan_path_, "--input", InputOf(1)}, 1, "the operation is the caller's own");
}

// Nobody has an output in the end, and an older one stays.
TEST_F(CollectiveNodeTest, ANodeThatFailsOrDiesEndsAllWithoutOutputs) {
  const test::SmallDisk disk(folder_ / "disk");
  test::Random random(test::TestSeed());
  Spec spec = SpecOf(CollectiveKind::kAllreduce, 3, "ring");
  spec.message_bytes = 3u << 20;
  spec.block_bytes = 1u << 20;
  for (const bool dies : {true, false}) {
    if (const std::string obstacle = disk.Obstacle(); !dies && !obstacle.empty())
      GTEST_SKIP() << obstacle;
    MakePlan(spec);
    WriteInputs(test::CollectiveTransfer(header(), random));
    std::ofstream(OutputOf(1)) << "an older output";
    Start(0, {"--connect-timeout", "2"});
    Start(1, {"--connect-timeout", "2"});
    if (dies) {
      Start(2);
      test::Process(At(2).pid()).Stop();  // wherever it is: the others cannot get to the end
      kill(At(2).pid(), SIGKILL);
    } else {
      commands_[2] = std::make_unique<Command>(
          Bare(2, {"--input", InputOf(2), "--output", disk.path() + "/2"}), disk.wrapper());
    }
    for (const uint32_t node : {0u, 1u}) {
      EXPECT_EQ(At(node).Wait(), 1) << node;
      EXPECT_EQ(At(node).err_lines(), 1u) << At(node).err();
    }
    // Node 1 may not have come yet when all is over.
    EXPECT_THAT(At(0).err(), HasSubstr(dies ? "node 2" : "No space left on device"));
    EXPECT_EQ(At(2).Wait(), dies ? 128 + SIGKILL : 1);
    EXPECT_EQ(test::ReadText(OutputOf(1)), "an older output");
    EXPECT_EQ(test::CountFiles(outputs_), 1u);
  }
}

}  // namespace
}  // namespace prepost::collective_node_test
