// SPDX-License-Identifier: Apache-2.0
//
// prepost calibrate from outside: the profile that it writes, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost::calibrate_test {
namespace {

using test::Command;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class CalibrateTest : public ::testing::Test {
 protected:
  void ExpectRefused(std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), "calibrate");
    test::ExpectRefused(flags, code, message, folder_);
  }

  test::TempFolder folder_;
};

// Catches numbers that are kept from the base, a network that is not, and a profile that simulate
// does not take.
TEST_F(CalibrateTest, WritesAProfileThatSimulateTakes) {
  for (const char* name : {"fractus", "tcp-10g"}) {
    SCOPED_TRACE(name);
    const std::string made = folder_ / "here.json";
    Command calibrate({"calibrate", "--profile", test::ProfilePath(name), "--look", "50ms",
                       "--name", "here", "-o", made});
    ASSERT_EQ(calibrate.Wait(), 0) << calibrate.err();
    EXPECT_THAT(calibrate.out(), HasSubstr("host.post_send"));
    std::ifstream made_file(made), base_file(test::ProfilePath(name));
    const Json profile = Json::parse(made_file);
    const Json base = Json::parse(base_file);
    EXPECT_EQ(profile["name"], "here");
    EXPECT_EQ(profile["network"], base["network"]);
    EXPECT_EQ(profile["nic"], base["nic"]);
    EXPECT_EQ(profile["host"]["hybrid_polling"], base["host"]["hybrid_polling"]);
    for (const char* key :
         {"cores", "post_send", "post_receive", "poll", "completion", "credit", "interrupt",
          "message_start", "message_setup", "copy_rate", "combine", "combine_rate"}) {
      EXPECT_TRUE(profile["host"][key].contains("measured")) << key;
    }
    // What a host polls, and posts to, is not the same.
    const auto expect_how = [&](const char* key, const char* over_nics, const char* over_tcp) {
      const std::string how = profile["host"][key]["measured"];
      EXPECT_THAT(how, HasSubstr(base.contains("tcp") ? over_tcp : over_nics)) << key;
      EXPECT_THAT(how, Not(HasSubstr(base.contains("tcp") ? over_nics : over_tcp))) << key;
    };
    expect_how("poll", "look at a CQ", "epoll_wait that finds nothing");
    expect_how("post_send", "a doorbell", "the endpoint for TCP");
    expect_how("post_receive", "a WQE", "the endpoint for TCP");
    expect_how("completion", "the CQE of a block", "tcp.system_call");
    expect_how("credit", "the CQE of a credit", "tcp.system_call");
    EXPECT_TRUE(profile["control"]["system_call"].contains("measured"));
    EXPECT_TRUE(profile["control"]["latency"].contains("measured"));
    EXPECT_EQ(profile.contains("tcp"), base.contains("tcp"));
    if (profile.contains("tcp")) {
      EXPECT_TRUE(profile["tcp"]["system_call"].contains("measured"));
      EXPECT_TRUE(profile["tcp"]["copy_rate"].contains("measured"));
      EXPECT_TRUE(profile["tcp"]["segment_calls"].contains("measured"));
    }
    const std::string plan = folder_ / "plan.json";
    Command compile({"compile", "--nodes", "4", "--message-bytes", "4MiB", "-o", plan});
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
    Command simulate({"simulate", plan, "--profile", made, "--executor", "cpu"});
    EXPECT_EQ(simulate.Wait(), 0) << simulate.err();
    EXPECT_THAT(simulate.out(), HasSubstr("modelled, with the profile here"));
  }
}

// Catches what is measured and has no meaning in the profile, which is then refused.
TEST_F(CalibrateTest, BlocksThatAreCopiedAsAWholeHaveNoSegments) {
  std::ifstream file(test::ProfilePath("tcp-10g"));
  Json base = Json::parse(file);
  base["tcp"].erase("segment_bytes");
  base["tcp"].erase("segment_calls");
  const std::string whole = folder_ / "whole.json", made = folder_ / "made.json";
  std::ofstream(whole) << base;
  test::OutputOf({"calibrate", "--profile", whole, "--look", "0s", "-o", made});
  EXPECT_FALSE(Json::parse(test::ReadText(made))["tcp"].contains("segment_calls"));
}

// Catches names that grow each time.
TEST_F(CalibrateTest, CalibratedAgainItHasTheSameName) {
  const std::string once = folder_ / "once.json", twice = folder_ / "twice.json";
  const auto name_of = [&](const std::string& base, const std::string& made) {
    test::OutputOf({"calibrate", "--profile", base, "--look", "1us", "-o", made});
    const Json profile = Json::parse(test::ReadText(made));
    EXPECT_THAT(profile["cluster"].get<std::string>(), HasSubstr("network and NICs of Fractus, h"));
    return profile["name"].get<std::string>();
  };
  EXPECT_EQ(name_of(test::ProfilePath("fractus"), once), "Fractus, calibrated");
  EXPECT_EQ(name_of(once, twice), "Fractus, calibrated");
}

// Catches times that are rounded to nothing.
TEST_F(CalibrateTest, LooksForAsShortAsItIsTold) {
  const auto table = [&](const std::string& look) {
    Command calibrate({"calibrate", "--profile", test::ProfilePath("ndr400"), "--look", look, "-o",
                       folder_ / "here.json"});
    EXPECT_EQ(calibrate.Wait(), 0) << calibrate.err();
    return calibrate.out();
  };
  EXPECT_THAT(table("100us"), HasSubstr("host.preemption"));
  EXPECT_THAT(table("0s"), Not(HasSubstr("host.preemption")));
}

TEST_F(CalibrateTest, SaysWhatIsWrong) {
  ExpectRefused({"--profile", test::ProfilePath("fractus"), "--look", "soon"}, 2,
                "--look: 'soon' is no time, expected 0 or more and a unit");
  ExpectRefused({"--profile", test::ProfilePath("fractus"), "--look", "2000000s"}, 2,
                "more than an hour");
  ExpectRefused({"--profile", folder_ / "none.json"}, 1, "none.json");
  ExpectRefused({"--profile", test::ProfilePath("fractus"), "-o", folder_ / "no/here.json"}, 1,
                "no/here.json");
  const std::string broken = folder_ / "broken.json";
  std::ofstream(broken) << "{\"format\": \"prepost.profile\"";
  ExpectRefused({"--profile", broken}, 1, "broken.json:1:");
}

}  // namespace
}  // namespace prepost::calibrate_test
