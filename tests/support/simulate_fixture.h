// SPDX-License-Identifier: Apache-2.0
//
// SimulatePlanTest, SimulateTest, SimulateSweepTest: the built `prepost simulate`, of one plan and
// of sweeps, with what it prints and refuses.
#ifndef PREPOST_TESTS_SUPPORT_SIMULATE_FIXTURE_H_
#define PREPOST_TESTS_SUPPORT_SIMULATE_FIXTURE_H_

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost::test {

/// A plan, simulated with profiles that are shipped.
class SimulatePlanTest : public testing::Test {
 protected:
  SimulatePlanTest(std::string nodes, std::string message_bytes)
      : nodes_(std::move(nodes)), message_bytes_(std::move(message_bytes)) {}
  void SetUp() override {
    Command compile({"compile", "--nodes", nodes_, "--message-bytes", message_bytes_,
                     "--block-bytes", "1MiB", "--algorithm", "binomial_pipeline", "-o", plan_});
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
  }
  std::string Simulate(std::vector<std::string> flags, const std::string& profile = "fractus") {
    flags.insert(flags.begin(), {"simulate", plan_, "--profile", ProfilePath(profile)});
    return OutputOf(flags);
  }
  nlohmann::json SimulateJson(std::vector<std::string> flags,
                              const std::string& profile = "fractus") {
    flags.push_back("--json");
    return nlohmann::json::parse(Simulate(flags, profile));
  }
  void ExpectRefused(std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), {"simulate", plan_});
    test::ExpectRefused(flags, code, message, folder_);
  }

  const std::string nodes_, message_bytes_;
  TempFolder folder_;
  const std::string plan_ = folder_ / "plan.json";
};

/// Of 8 nodes and 8 MiB.
class SimulateTest : public SimulatePlanTest {
 protected:
  SimulateTest() : SimulatePlanTest("8", "8MiB") {}
};

/// Of the profile Fractus, unless a test says otherwise.
class SimulateSweepTest : public testing::Test {
 protected:
  static std::string Simulate(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"simulate", "--profile", ProfilePath("fractus")});
    return OutputOf(flags);
  }
  static nlohmann::json SimulateJson(std::vector<std::string> flags) {
    flags.push_back("--json");
    return nlohmann::json::parse(Simulate(flags));
  }
  void ExpectRefused(std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), {"simulate", "--profile", ProfilePath("fractus")});
    test::ExpectRefused(flags, code, message, folder_);
  }

  TempFolder folder_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_SIMULATE_FIXTURE_H_
