// SPDX-License-Identifier: Apache-2.0
//
// prepost simulate from outside: its text, JSON that says the same, and what it refuses. What the
// model says is tested where it is made (tests/differential/virtual_*).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost {
namespace {

using test::Command;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class SimulateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Command compile({"compile", "--nodes", "8", "--message-bytes", "8MiB", "-o", plan_});
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
  }
  std::string Simulate(std::vector<std::string> flags, const std::string& profile = "fractus") {
    flags.insert(flags.begin(), {"simulate", plan_, "--profile", Profile(profile)});
    Command command(flags);
    EXPECT_EQ(command.Wait(), 0) << command.err();
    return command.out();
  }
  Json SimulateJson(std::vector<std::string> flags, const std::string& profile = "fractus") {
    flags.push_back("--json");
    return Json::parse(Simulate(flags, profile));
  }
  static std::string Profile(const std::string& name) {
    return PREPOST_SOURCE_DIR "/examples/profiles/" + name + ".json";
  }
  void ExpectRefused(std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), {"simulate", plan_});
    test::ExpectRefused(flags, code, message, folder_);
  }

  test::TempFolder folder_;
  const std::string plan_ = folder_ / "plan.json";
};

// Catches figures that do not say that they are modelled, and a text that differs from the JSON.
TEST_F(SimulateTest, SaysThatItIsModelledAndWithWhat) {
  const std::string text = Simulate({"--per-node"});
  EXPECT_THAT(text, HasSubstr("modelled, with the profile Fractus"));
  EXPECT_THAT(text, HasSubstr("  node 7"));
  const Json json = SimulateJson({});
  EXPECT_EQ(json["modelled"], true);
  EXPECT_EQ(json["profile"]["name"], "Fractus");
  for (const char* executor : {"offload", "cpu"}) {
    SCOPED_TRACE(executor);
    EXPECT_GE(json[executor]["of_bound"].get<double>(), 1.0);
    EXPECT_EQ(json[executor]["node_seconds"].size(), 8u);
    char ratio[16];
    std::snprintf(ratio, sizeof(ratio), "%.3f", json[executor]["of_bound"].get<double>());
    EXPECT_THAT(text, HasSubstr(ratio));
  }
  EXPECT_LT(json["offload"]["completion_seconds"], json["cpu"]["completion_seconds"]);
  EXPECT_EQ(Simulate({"--json"}), Simulate({"--json"}));
}

// Catches delays that reach nobody, or the wrong one, or preposted queues.
TEST_F(SimulateTest, DelaysReachHostsOnly) {
  const Json plain = SimulateJson({});
  const Json delayed = SimulateJson({"--delay", "for=1ms,node=4,at=100us"});
  EXPECT_EQ(delayed["offload"], plain["offload"]);
  const double later = delayed["cpu"]["completion_seconds"].get<double>() -
                       plain["cpu"]["completion_seconds"].get<double>();
  EXPECT_GT(later, 0.5e-3);
  EXPECT_LE(later, 1e-3 + 1e-12);
}

TEST_F(SimulateTest, OneExecutorAlone) {
  EXPECT_FALSE(SimulateJson({"--executor", "cpu"}).contains("offload"));
  EXPECT_FALSE(SimulateJson({"--executor", "offload"}).contains("cpu"));
  EXPECT_FALSE(SimulateJson({}, "tcp-10g").contains("offload")) << "no NIC to prepost";
  EXPECT_EQ(SimulateJson({"--mode", "managed", "--executor", "offload"})["offload"]["mode"],
            "managed");
}

// Catches a network that is the profile's although another is given.
TEST_F(SimulateTest, ATopologyTakesTheNetworksPlace) {
  const std::string topology = folder_ / "slow.json";
  std::ofstream(topology) << R"({"format": "prepost.topology", "version": "1.0",
      "host_rate": "8Gbit/s", "up_rate": "8Gbit/s", "racks": [{"name": "r", "hosts": "h[0-7]"}]})";
  const Json json = SimulateJson({"--topology", topology});
  EXPECT_NEAR(json["bound_seconds"].get<double>(), 8.388608e-3, 1e-9);
}

TEST_F(SimulateTest, OneNodeNeedsNoTime) {
  Command compile({"compile", "--nodes", "1", "--message-bytes", "5", "-o", plan_});
  ASSERT_EQ(compile.Wait(), 0);
  const Json json = SimulateJson({});
  EXPECT_EQ(json["cpu"]["skew_seconds"], 0);
  EXPECT_TRUE(json["cpu"]["of_bound"].is_null());
}

TEST_F(SimulateTest, RefusesWhatItCannotModel) {
  ExpectRefused({}, 2, "--profile");
  const std::vector<std::string> profile = {"--profile", Profile("fractus")};
  const auto expect = [&](std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), profile.begin(), profile.end());
    ExpectRefused(flags, code, message);
  };
  expect({"--executor", "gpu"}, 2, "--executor: unknown name 'gpu'");
  expect({"--wait", "poling"}, 2, "did you mean 'polling'?");
  expect({"--delay", "node=8,at=1s,for=1s"}, 2, "no node '8', the nodes are 0 to 7");
  expect({"--delay", "node=1,at=1s"}, 2, "a part is missing");
  expect({"--delay", "node=1,at=1,for=1s"}, 2, "'1' is no latency");
  expect({"--delay", "node=1,node=2,at=1s,for=1s"}, 2, "'node' is there twice");
  expect({"--delay", "node=1,at=1s,for=1s,x=3"}, 2, "'x=3' is unknown");
  expect({"--executor", "offload", "--delay", "node=1,at=1s,for=1s"}, 2, "do not notice");
  expect({"--executor", "cpu", "--mode", "inline"}, 2, "is for preposted queues");
  ExpectRefused({"--profile", Profile("tcp-10g"), "--executor", "offload"}, 1, "over TCP");
  ExpectRefused({"--profile", folder_ / "none"}, 1, "cannot read");
  ExpectRefused({"--profile", plan_}, 1, "/format: expected \"prepost.profile\"");
}

}  // namespace
}  // namespace prepost
