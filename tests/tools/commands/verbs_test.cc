// SPDX-License-Identifier: Apache-2.0
//
// The command over a device of libibverbs, a process per node, as users have it on several
// machines. Needs a device (tests/support/verbs_device.h).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/loopback.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_folder.h"
#include "tests/support/verbs_device.h"

namespace prepost::verbs_command_test {
namespace {

using test::Command;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kNodes = 4;
/// A peer that does not answer is lost after a second, others hear of it at once; the rest is slack
/// for a machine that is emulated.
constexpr std::chrono::seconds kEndMax{15};

class VerbsCommandTest : public ::testing::Test {
 protected:
  void TearDown() override {
    if (device_ != "verbs:rxe0") return;
    EXPECT_EQ(std::system("ip link set d0 up"), 0);  // NOLINT: a test's own machine
  }
  void SetUp() override {
    if (device_.empty()) GTEST_SKIP() << test::kNoVerbsDevice;
    std::ofstream(secret_) << "the secret of this test\n";
    ASSERT_EQ(chmod(secret_.c_str(), 0600), 0);
    std::ofstream peers(peers_);
    for (uint32_t node = 0; node < kNodes; ++node)
      peers << fmt::format("{} {}\n", node, test::LoopbackAddress(node));
  }

  void MakePlan(size_t bytes, const std::string& algorithm) {
    const std::vector<std::byte> block = test::RandomBytes(1 << 20);
    std::ofstream out(input_, std::ios::binary);
    for (size_t left = bytes; left > 0;) {
      const size_t step = std::min(left, block.size());
      out.write(reinterpret_cast<const char*>(block.data()), static_cast<std::streamsize>(step));
      left -= step;
    }
    out.close();
    Command compile({"compile", "--nodes", std::to_string(kNodes), "--message", input_,
                     "--block-bytes", "128KiB", "--algorithm", algorithm, "--ready", "window=2",
                     "-o", plan_});
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
  }
  std::string CopyOf(uint32_t node) const { return folder_ / fmt::format("copy-{}", node); }
  void StartAll(const std::string& wait = "interrupt") {
    for (uint32_t node = 0; node < kNodes; ++node) {
      nodes_.push_back(std::make_unique<Command>(std::vector<std::string>{
          "node", plan_, "--node", std::to_string(node), "--peers", peers_, "--secret-file",
          secret_, "--device", device_, "--executor", "cpu", "--wait", wait,
          node == 0 ? "--input" : "--output", node == 0 ? input_ : CopyOf(node)}));
    }
  }
  /// Until packets come, of which SoftRoCE counts all.
  void AwaitTransfer() { AwaitTransfer(*nodes_[0]); }
  void AwaitTransfer(const Command& command) {
    const std::string name = device_.substr(device_.find(':') + 1);
    const auto is_moving = [&] {
      std::ifstream counters(
          fmt::format("/sys/class/infiniband/{}/ports/1/hw_counters/rcvd_pkts", name));
      uint64_t packets = 0;
      counters >> packets;
      if (first_packets_ == 0) first_packets_ = packets + 1;
      return packets > first_packets_ + 200;
    };
    ASSERT_TRUE(command.WaitUntil(is_moving));
  }

  const std::string device_ = test::VerbsDeviceOfTests();
  test::TempFolder folder_;
  const std::string input_ = folder_ / "image";
  const std::string plan_ = folder_ / "plan.json";
  const std::string peers_ = folder_ / "peers";
  const std::string secret_ = folder_ / "secret";
  std::vector<std::unique_ptr<Command>> nodes_;
  uint64_t first_packets_ = 0;
};

TEST_F(VerbsCommandTest, DevicesSaysWhatItIs) {
  Command devices({"devices", "--json"});
  ASSERT_EQ(devices.Wait(), 0) << devices.err();
  const auto list = nlohmann::json::parse(devices.out());
  for (const auto& device : list["devices"]) {
    if (device["name"] != device_) continue;
    EXPECT_EQ(device["kind"], "software");  // SoftRoCE
    EXPECT_EQ(device["can_offload"], false);
    EXPECT_THAT(device["why"].get<std::string>(), HasSubstr("port 1 of 1 active"));
    return;
  }
  FAIL() << devices.out();
}

TEST_F(VerbsCommandTest, NodesGetTheFile) {
  MakePlan(5'000'001, "binomial_pipeline");
  StartAll();
  for (uint32_t node = 0; node < kNodes; ++node) {
    ASSERT_EQ(nodes_[node]->Wait(), 0) << "node " << node << ": " << nodes_[node]->err();
    if (node == 0) continue;
    EXPECT_TRUE(test::ReadText(CopyOf(node)) == test::ReadText(input_)) << node;
  }
  EXPECT_THAT(nodes_[0]->out(), HasSubstr(device_));
}

// Catches hosts that wait for ever for what a dead peer will not send, and copies that are left.
TEST_F(VerbsCommandTest, AKilledNodeEndsAll) {
  MakePlan(48 << 20, "chain");
  for (const char* const wait : {"interrupt", "polling"}) {
    if (HasFatalFailure()) return;
    SCOPED_TRACE(wait);
    nodes_.clear();
    first_packets_ = 0;
    StartAll(wait);
    AwaitTransfer();
    kill(nodes_[2]->pid(), SIGKILL);
    const auto failed = Clock::now();
    for (const uint32_t node : {0u, 1u, 3u}) {
      EXPECT_EQ(nodes_[node]->Wait(), 1) << "node " << node;
      EXPECT_THAT(nodes_[node]->err(), HasSubstr("node 2")) << "node " << node;
      EXPECT_FALSE(std::filesystem::exists(CopyOf(node)));
    }
    EXPECT_LT(Clock::now() - failed, kEndMax);
  }
}

// An asynchronous event of the device. Catches nodes that only notice it by retries, or not at all.
TEST_F(VerbsCommandTest, APortThatGoesDownEndsAll) {
  if (device_ != "verbs:rxe0") GTEST_SKIP() << "only SoftRoCE's interface may be taken down";
  MakePlan(48 << 20, "chain");
  if (HasFatalFailure()) return;
  StartAll();
  AwaitTransfer();
  ASSERT_EQ(std::system("ip link set d0 down"), 0);  // NOLINT: a test's own machine
  for (uint32_t node = 0; node < kNodes; ++node) {
    EXPECT_EQ(nodes_[node]->Wait(), 1) << "node " << node;
    EXPECT_THAT(nodes_[node]->err(), HasSubstr("went down")) << "node " << node;
  }
}

TEST_F(VerbsCommandTest, InterruptLeavesNothing) {
  MakePlan(48 << 20, "chain");
  if (HasFatalFailure()) return;
  Command run({"run", plan_, "--input", input_, "--output-dir", folder_ / "copies", "--executor",
               "cpu", "--device", device_});
  AwaitTransfer(run);
  kill(run.pid(), SIGINT);
  EXPECT_EQ(run.Wait(), 128 + SIGINT);
  EXPECT_EQ(test::CountFiles(folder_ / "copies"), 0u);
}

TEST_F(VerbsCommandTest, PushGoesOverIt) {
  MakePlan(3'000'001, "chain");
  if (HasFatalFailure()) return;
  const std::string a = folder_ / "a", b = folder_ / "b";
  Command push({"push", input_, "--to", fmt::format("localhost:{},localhost:{}", a, b), "--device",
                device_, "--json"});
  ASSERT_EQ(push.Wait(), 0) << push.err();
  for (const std::string& target : {a, b})
    EXPECT_TRUE(test::ReadText(target + "/image") == test::ReadText(input_)) << target;
}

}  // namespace
}  // namespace prepost::verbs_command_test
