// SPDX-License-Identifier: Apache-2.0
//
// `prepost run` of collectives other than multicasts: what it writes is what the inputs say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "ir/collective.h"
#include "tests/support/command.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/sample.h"
#include "tests/support/temp_folder.h"

namespace prepost::collective_run_test {
namespace {

using test::Command;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Bytes = std::vector<std::byte>;

constexpr CollectiveKind kKinds[] = {CollectiveKind::kReduce,        CollectiveKind::kAllreduce,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllgather,
                                     CollectiveKind::kGather,        CollectiveKind::kScatter,
                                     CollectiveKind::kAlltoall};

/// The sum of int32s.
Bytes Sum(const Bytes& a, const Bytes& b) {
  Bytes sum(a.size());
  for (size_t at = 0; at + 4 <= a.size(); at += 4) {
    uint32_t x, y;
    std::memcpy(&x, &a[at], 4);
    std::memcpy(&y, &b[at], 4);
    x += y;
    std::memcpy(&sum[at], &x, 4);
  }
  return sum;
}

/// What `node` must have, by what the collective is; `inputs` by node.
Bytes Expected(CollectiveKind kind, const std::vector<Bytes>& inputs, size_t part, uint32_t node) {
  const auto part_of = [&](const Bytes& all, size_t i) {
    const auto begin = all.begin() + static_cast<ptrdiff_t>(i * part);
    return Bytes(begin, begin + static_cast<ptrdiff_t>(part));
  };
  Bytes out;
  const auto append = [&](const Bytes& more) { out.insert(out.end(), more.begin(), more.end()); };
  switch (kind) {
    case CollectiveKind::kReduce:
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kReduceScatter:
      out = inputs[0];
      for (size_t i = 1; i < inputs.size(); ++i) out = Sum(out, inputs[i]);
      return kind == CollectiveKind::kReduceScatter ? part_of(out, node) : out;
    case CollectiveKind::kAllgather:
    case CollectiveKind::kGather:
      for (const Bytes& input : inputs) append(input);
      return out;
    case CollectiveKind::kAlltoall:
      for (const Bytes& input : inputs) append(part_of(input, node));
      return out;
    default:
      for (const Bytes& input : inputs)
        if (!input.empty()) return part_of(input, node);
      return out;
  }
}

// Every collective and schedule over both transports: catches pieces that are read from the wrong
// place of a peer's memory, and outputs in the order of ops.
TEST(CollectiveRunTest, OutputsAreWhatTheInputsSay) {
  test::Random random(test::TestSeed());
  test::TempFolder folder;
  struct Case {
    CollectiveKind kind;
    std::string schedule, transport;
    uint32_t nodes;
  };
  std::vector<Case> cases;
  std::vector<std::string> labels;
  for (const CollectiveKind kind : kKinds) {
    for (const uint32_t nodes : {4u, 5u}) {
      for (const std::string& schedule : test::SchedulesOf(kind, nodes)) {
        for (const char* transport : {"tcp", "shm"}) {
          cases.push_back({kind, schedule, transport, nodes});
          labels.push_back(std::string(Name(kind)) + "=" + schedule);
        }
      }
    }
  }
  test::Sample sample(labels);
  for (const Case& it : cases) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(std::string(Name(it.kind)) + " " + it.schedule + " over " + it.transport);
    const size_t part = 4 * (1 + random.Below(5000));
    const std::string plan = folder / "plan.json", input = folder / "input",
                      outputs = folder / "outputs";
    std::filesystem::remove_all(outputs);
    std::vector<std::string> compile = {"compile",
                                        "--collective",
                                        Name(it.kind),
                                        "--algorithm",
                                        it.schedule,
                                        "--nodes",
                                        std::to_string(it.nodes),
                                        "--message-bytes",
                                        std::to_string(part),
                                        "--block-bytes",
                                        "4KiB",
                                        "-o",
                                        plan};
    if (Combines(it.kind)) compile.insert(compile.end(), {"--combine", "sum:int32"});
    Command compiled(compile);
    ASSERT_EQ(compiled.Wait(), 0) << compiled.err();
    const Roles roles({.kind = it.kind}, it.nodes,
                      static_cast<uint32_t>(PartsOf(it.kind, it.nodes)));
    std::vector<Bytes> inputs;
    Bytes all;
    for (uint32_t node = 0; node < it.nodes; ++node) {
      Bytes& own = inputs.emplace_back(roles.Contributed(NodeId(node)).count * part);
      for (std::byte& byte : own) byte = static_cast<std::byte>(random.Below(256));
      all.insert(all.end(), own.begin(), own.end());
    }
    test::WriteBytes(input, all);
    Command run(
        {"run", plan, "--input", input, "--output-dir", outputs, "--transport", it.transport});
    ASSERT_EQ(run.Wait(), 0) << run.err();
    EXPECT_THAT(run.out(), HasSubstr("what the plan makes of the input"));
    for (uint32_t node = 0; node < it.nodes; ++node) {
      const std::string file = outputs + "/node-" + std::to_string(node) + "/input";
      const bool has_output = roles.IsTarget(NodeId(node));
      ASSERT_EQ(std::filesystem::exists(file), has_output);
      if (has_output) {
        const std::string text = test::ReadText(file);
        const Bytes expected = Expected(it.kind, inputs, part, node);
        EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(text)), expected)) << node;
      }
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// Catches outputs of a barrier, which has none to speak of.
TEST(CollectiveRunTest, AllComeToABarrier) {
  test::TempFolder folder;
  const std::string plan = folder / "plan.json", input = folder / "input";
  test::WriteBytes(input, {});
  for (const uint32_t nodes : {1u, 3u}) {
    test::OutputOf(
        {"compile", "--collective", "barrier", "--nodes", std::to_string(nodes), "-o", plan});
    EXPECT_THAT(test::OutputOf({"run", plan, "--input", input}),
                AllOf(HasSubstr(nodes == 1 ? "the only node has come to the barrier, after "
                                           : "all 3 nodes have come to the barrier, after "),
                      Not(HasSubstr("output")), Not(HasSubstr("BLAKE2b"))));
  }
}

// A barrier carries nothing, and asks for nothing; whatever else does.
TEST(CollectiveRunTest, ABarrierNeedsNoInput) {
  test::TempFolder folder;
  const std::string plan = folder / "plan.json";
  test::OutputOf({"compile", "--collective", "barrier", "--nodes", "3", "-o", plan});
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"run", plan},
        {"run", "--collective", "barrier", "--nodes", "3", "--transport", "shm"}})
    EXPECT_THAT(test::OutputOf(flags), HasSubstr("all 3 nodes have come to the barrier, after "));
  test::ExpectRefused({"run", plan, "--output-dir", folder / "out"}, 2,
                      "--output-dir: outputs have the name of --input, which is not given", folder);
  test::OutputOf({"compile", "--nodes", "3", "--message-bytes", "3", "-o", plan});
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"run", plan},
        {"run", "--nodes", "3"},
        {"run", "--nodes", "3", "--collective", "allgather"}})
    test::ExpectRefused(flags, 2, "--input is required (see --help)", folder);
}

// The size of a part is what the input says: catches one that is that of the message, or of a node.
TEST(CollectiveRunTest, FlagsAreAPlanOfTheInputsSize) {
  test::TempFolder folder;
  const std::string plan = folder / "plan.json", input = folder / "input";
  struct Case {
    CollectiveKind kind;
    uint64_t parts;  // in the input
  };
  for (const auto& [kind, parts] :
       {Case{CollectiveKind::kReduce, 3}, Case{CollectiveKind::kAllreduce, 3},
        Case{CollectiveKind::kReduceScatter, 9}, Case{CollectiveKind::kAllgather, 3},
        Case{CollectiveKind::kGather, 3}, Case{CollectiveKind::kScatter, 3},
        Case{CollectiveKind::kAlltoall, 9}}) {
    SCOPED_TRACE(Name(kind));
    constexpr uint64_t kPart = 4000;
    Bytes bytes(parts * kPart);
    test::Random random(test::TestSeed());
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Below(256));
    test::WriteBytes(input, bytes);
    std::vector<std::string> flags = {"--collective", Name(kind), "--nodes", "3"};
    if (HasRoot(kind)) flags.insert(flags.end(), {"--root", "1"});
    if (Combines(kind)) flags.insert(flags.end(), {"--combine", "sum:int32"});
    std::vector<std::string> compile = {"compile", "--message-bytes", std::to_string(kPart), "-o",
                                        plan};
    compile.insert(compile.end(), flags.begin(), flags.end());
    test::OutputOf(compile);
    std::vector<std::string> run = {"run", "--input", input, "--json"};
    run.insert(run.end(), flags.begin(), flags.end());
    const auto of_flags = nlohmann::json::parse(test::OutputOf(run));
    const auto of_plan =
        nlohmann::json::parse(test::OutputOf({"run", plan, "--input", input, "--json"}));
    ASSERT_EQ(of_flags["nodes"].size(), 3u);
    for (size_t node = 0; node < 3; ++node) {
      EXPECT_EQ(of_flags["nodes"][node]["blake2b_256"], of_plan["nodes"][node]["blake2b_256"]);
    }
    bytes.push_back(std::byte{});
    test::WriteBytes(input, bytes);
    test::ExpectRefused(run, 1,
                        "has " + std::to_string(bytes.size()) + " bytes, no multiple of " +
                            std::to_string(parts * (Combines(kind) ? 4 : 1)),
                        folder);
  }
  test::WriteBytes(input, Bytes(10));
  test::ExpectRefused(
      {"run", "--collective", "allgather", "--part-bytes", "3,0,4", "--input", input}, 1,
      "has 10 bytes, expected 7: the inputs of 3 nodes", folder);
  test::ExpectRefused({"run", "--collective", "allgather", "--nodes", "2", "--input", input,
                       "--executor", "offload"},
                      1, "--collective: a plan of allgather: queues of NICs carry multicasts",
                      folder);
}

// A NIC does not combine: a plan that does is refused with the reason, and auto takes the CPU.
TEST(CollectiveRunTest, DevicesAreRefused) {
  test::TempFolder folder;
  const std::string plan = folder / "plan.json", input = folder / "input";
  Command compiled({"compile", "--collective", "allreduce", "--combine", "sum:float32", "--nodes",
                    "3", "--message-bytes", "4KiB", "-o", plan});
  ASSERT_EQ(compiled.Wait(), 0) << compiled.err();
  test::WriteBytes(input, Bytes(3 * 4096));
  test::ExpectRefused({"run", plan, "--input", input, "--executor", "offload"}, 1,
                      "a plan of allreduce, which combines: a NIC does not, CPUs do", folder);
  Command automatic({"run", plan, "--input", input, "--device", "emulated", "--json"});
  EXPECT_EQ(automatic.Wait(), 0);
  EXPECT_THAT(
      automatic.err(),
      AllOf(HasSubstr("executor cpu: not preposted to device emulated: a plan of allreduce"),
            HasSubstr("CPUs do")));
  const auto report = nlohmann::json::parse(automatic.out());
  EXPECT_EQ(report["collective"], "allreduce");
  EXPECT_EQ(report["nodes"][2]["blake2b_256"], report["nodes"][0]["blake2b_256"]);
  test::WriteBytes(input, Bytes(4096));
  test::ExpectRefused({"run", plan, "--input", input}, 1,
                      "has 4096 bytes, expected 12288: the inputs of 3 nodes, one after the other",
                      folder);
}

// Somebody cuts the input short while it is read, summed or checked: an error or, if that was late,
// none; never the end of a process by a signal.
TEST(CollectiveRunTest, AnInputThatIsCutShortIsAnError) {
  test::TempFolder folder;
  const std::string plan = folder / "plan.json", input = folder / "input";
  test::OutputOf({"compile", "--collective", "allreduce", "--combine", "sum:float32", "--nodes",
                  "3", "--message-bytes", "24MiB", "--algorithm", "ring", "-o", plan});
  for (const char* transport : {"tcp", "shm"}) {
    for (const int after_ms : {60, 150, 300}) {
      SCOPED_TRACE(std::string(transport) + ", after " + std::to_string(after_ms) + " ms");
      std::ofstream(input).close();
      std::filesystem::resize_file(input, 3 * (24u << 20));
      Command run({"run", plan, "--input", input, "--transport", transport});
      std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
      std::filesystem::resize_file(input, 100);
      const int code = run.Wait();
      EXPECT_TRUE(code == 0 || code == 1) << code << ": " << run.err();
      EXPECT_THAT(run.err(), testing::Not(HasSubstr("signal")));
    }
  }
}

}  // namespace
}  // namespace prepost::collective_run_test
