// SPDX-License-Identifier: Apache-2.0
//
// `prepost run` over devices of libraries: the providers of libfabric, driven by CPUs and
// preposted, and a device of libibverbs.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/support/command.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_folder.h"
#include "tests/support/verbs_device.h"

namespace prepost::run_over_library_test {
namespace {

using test::Command;

constexpr uint32_t kNodes = 5;

/// Over a library's device, and who moves the message.
struct LibraryWay {
  const char* name;
  const char* device;
  const char* executor = "cpu";
};
class RunOverLibraryTest : public ::testing::TestWithParam<LibraryWay> {
 protected:
  /// Skips the test where there is no such device.
  void SetUp() override {
    if (device_.empty()) device_ = test::VerbsDeviceOfTests();
    if (device_.empty()) GTEST_SKIP() << test::kNoVerbsDevice;
    Command devices({"devices"});
    devices.Wait();
    dead_ = devices.pid();
    if (devices.out().find(device_ + " ") != std::string::npos) return;
    ASSERT_FALSE(device_.starts_with("verbs:")) << devices.out();
    GTEST_SKIP() << "there is no such device here";
  }

  const test::TempFolder folder_;
  const std::string input_ = folder_ / "image";
  const std::string copies_ = folder_ / "copies";
  std::string device_ = GetParam().device;
  pid_t dead_ = 0;  ///< a process that has ended
};
INSTANTIATE_TEST_SUITE_P(Ways, RunOverLibraryTest,
                         ::testing::Values(LibraryWay{"triggered", "fabric:sockets", "offload"},
                                           LibraryWay{"sockets", "fabric:sockets"},
                                           LibraryWay{"tcp", "fabric:tcp"},
                                           LibraryWay{"shm", "fabric:shm"},
                                           LibraryWay{"verbs", ""}),
                         [](const auto& it) { return it.param.name; });

// Catches names in /dev/shm that stay, and preposted hosts that do more than start and wake up
// once.
TEST_P(RunOverLibraryTest, AllNodesGetTheMessage) {
  test::WriteBytes(input_, test::RandomBytes(3'000'001));
  struct stat pids = {};
  ASSERT_EQ(stat("/proc/self/ns/pid", &pids), 0);
  const std::string of_the_dead = fmt::format("/dev/shm/plan-{}-{}-0", pids.st_ino, dead_);
  if (device_ == "fabric:shm")
    std::ofstream(of_the_dead) << "as a process leaves it that is killed";
  const std::string executor = GetParam().executor;
  Command run({"run", "--nodes", std::to_string(kNodes), "--input", input_, "--output-dir", copies_,
               "--executor", executor, "--device", device_, "--ready", "window=1", "--json",
               "--trace", folder_ / "trace.json"});
  const auto began = std::chrono::steady_clock::now();
  std::set<pid_t> processes = {run.pid()};
  run.WaitUntil([&] {
    for (const auto& [node, process] : run.Nodes()) processes.insert(process);
    return false;  // to the end
  });
  ASSERT_EQ(run.Wait(), 0) << run.err();
  // On a busy machine others' signs of life wake them, too: one a second.
  const auto seconds =
      std::chrono::floor<std::chrono::seconds>(std::chrono::steady_clock::now() - began).count();
  for (uint32_t node = 1; node < kNodes; ++node) {
    EXPECT_EQ(test::ReadText(fmt::format("{}/node-{}/image", copies_, node)),
              test::ReadText(input_));
  }
  if (executor == "cpu") {
    EXPECT_EQ(processes.size(), kNodes + 1);
  }
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    int process = 0;  // other tests have names there, too
    if (std::sscanf(entry.path().filename().c_str(), "plan-%*u-%d-", &process) != 1) continue;
    EXPECT_FALSE(processes.contains(process)) << entry.path();
  }
  EXPECT_FALSE(std::filesystem::exists(of_the_dead));
  const auto report = nlohmann::json::parse(run.out());
  EXPECT_EQ(report["executor"], executor);
  const auto trace = nlohmann::json::parse(test::ReadText(folder_ / "trace.json"));
  for (const auto& host : trace["otherData"]["hosts"]) {
    EXPECT_EQ(host.value("wakeups_ns", nlohmann::json::array()).size(), host["wakeups"]);
  }
  for (const auto& node : report["nodes"]) {
    if (executor == "cpu") continue;
    EXPECT_EQ(node["host_posts"], 1);
    EXPECT_EQ(node["host_posts_during"], 0);
    EXPECT_LE(node["host_wakeups"], 1 + seconds);
  }
}

// Catches an input that a device cannot be told of as it is mapped, a copy that is not stored, and
// devices that are asked to combine.
TEST_P(RunOverLibraryTest, CollectivesAreDrivenByCpus) {
  const std::string plan = folder_ / "plan.json";
  Command compile({"compile", "--collective", "allreduce", "--combine", "sum:int32", "--algorithm",
                   "halving", "--nodes", "5", "--message-bytes", "400000", "--block-bytes", "20000",
                   "--ready", "window=2", "-o", plan});
  ASSERT_EQ(compile.Wait(), 0) << compile.err();
  test::WriteBytes(input_, test::RandomBytes(5 * 400'000));
  const std::string why = "a plan of allreduce, which combines: a NIC does not, CPUs do";
  if (GetParam().executor == std::string("offload")) {
    test::ExpectRefused(
        {"run", plan, "--input", input_, "--executor", "offload", "--device", device_}, 1, why,
        folder_);
  }
  Command run(
      {"run", plan, "--input", input_, "--output-dir", copies_, "--device", device_, "--json"});
  ASSERT_EQ(run.Wait(), 0) << run.err();
  EXPECT_EQ(run.err(), fmt::format("prepost: note: executor cpu: not preposted to device {}: {}\n",
                                   device_, why));
  const auto report = nlohmann::json::parse(run.out());
  EXPECT_EQ(report["detail"], device_);
  EXPECT_EQ(report["nodes"][4]["compared_with"], "inputs");
  // The outputs' files have what was summed in memory.
  for (uint32_t node = 1; node < kNodes; ++node) {
    EXPECT_TRUE(test::ReadText(fmt::format("{}/node-{}/image", copies_, node)) ==
                test::ReadText(copies_ + "/node-0/image"));
  }
}

}  // namespace
}  // namespace prepost::run_over_library_test
