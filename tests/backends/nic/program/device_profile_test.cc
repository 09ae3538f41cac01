// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/program/device_profile.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace prepost::nic::device_profile_test {
namespace {

Result<DeviceProfile> Read(const std::string& text, std::vector<std::string>* warnings = nullptr) {
  std::istringstream in(text);
  return ReadDeviceProfile(in, "d", warnings);
}

/// A file with these limits, and with `capabilities` if given.
std::string File(const std::string& limits,
                 const std::string& capabilities = R"("cd": true, "cq_oi": true)") {
  return R"({"format": "prepost.device", "version": "1.0", "name": "small", "limits": {)" + limits +
         R"(}, "capabilities": {)" + capabilities + "}}";
}

// A limit that is read into another one's place.
TEST(DeviceProfileTest, ReadsEveryMember) {
  const auto profile = Read(File(
      R"("sq_wqebbs": 16, "rq_wqes": {"value": 17, "source": "a page"}, "cq_entries": 18, "qps": 19,
         "cqs": 20, "message_bytes": 21, "wq_ahead": 22, "cq_ahead": 23, "x-note": [1])",
      R"("cd": {"value": true}, "cq_oi": false)"));
  ASSERT_TRUE(profile.ok()) << profile.status().ToString();
  const DeviceProfile expected = {.name = "small",
                                  .sq_wqebbs = 16,
                                  .rq_wqes = 17,
                                  .cq_entries = 18,
                                  .qps = 19,
                                  .cqs = 20,
                                  .message_bytes = 21,
                                  .wq_ahead = 22,
                                  .cq_ahead = 23,
                                  .cross_channel = true,
                                  .cq_ignore_overrun = false};
  EXPECT_EQ(*profile, expected);
}

TEST(DeviceProfileTest, LimitsHaveDefaults) {
  const auto profile = Read(
      R"({"format": "prepost.device", "version": "1.0", "name": "default",
          "capabilities": {"cd": true, "cq_oi": true}})");
  ASSERT_TRUE(profile.ok()) << profile.status().ToString();
  EXPECT_EQ(*profile, DeviceProfile{});
}

TEST(DeviceProfileTest, SaysWhereAndWhatIsWrong) {
  const std::pair<std::string, const char*> cases[] = {
      {File(R"("sq_wqebb": 16)"),
       "d:1:85: /limits/sq_wqebb: unknown key, did you mean 'sq_wqebbs'?"},
      {File(R"("qps": 0)"), "d:1:84: /limits/qps: expected 1 or more, found 0"},
      {File(R"("sq_wqebbs": 3)"), "d:1:90: /limits/sq_wqebbs: expected 4 or more, found 3"},
      {File(R"("rq_wqes": {"value": 65537})"),
       "d:1:102: /limits/rq_wqes/value: 65537 is too large, the limit is 65536"},
      {File(R"("qps": -1)"),
       "d:1:85: /limits/qps: expected an integer from 1 to 16777216, found -1"},
      {File(R"("qps": true)"),
       "d:1:86: /limits/qps: expected an integer from 1 to 16777216, found a boolean"},
      {File(R"("qps": [])"), "d:1:83: /limits/qps: expected a scalar or an object, found an array"},
      {File(R"("qps": {})"), "d:1:84: /limits/qps: key 'value' is missing"},
      {File(R"("qps": {"value": 1, "sources": ""})"),
       "d:1:104: /limits/qps/sources: unknown key, did you mean 'source'?"},
      {File(R"("qps": {"value": 1, "source": 7})"),
       "d:1:107: /limits/qps/source: expected a string, found 7"},
      {File(R"("qps": 1, "qps": 2)"), "d:1:90: /limits/qps: the key stands here twice"},
      {File("", R"("cd": 1, "cq_oi": true)"),
       "d:1:103: /capabilities/cd: expected true or false, found 1"},
      {File("", R"("cd": true)"), "d:1:106: /capabilities: key 'cq_oi' is missing"},
      {R"({"format": "prepost.plan"})",
       "d:1:25: /format: expected \"prepost.device\", found string \"prepost.plan\""},
      {R"({"format": "prepost.device", "version": "2.0"})",
       "d:1:45: /version: version 2.0 is not supported, this program reads 1.x"},
      {R"({"format": "prepost.device", "version": "1.0", "limits": 4})",
       "d:1:59: /limits: expected an object, found 4"},
      {R"({"format": "prepost.device"})",
       "d:1:28: keys are missing: /version, /name, /capabilities"},
      {"7", "d:1:1: expected an object, found 7"},
      {"", "d:1:0: the file is empty"}};
  for (const auto& [text, error] : cases) {
    EXPECT_EQ(Read(text).status().ToString(), error) << text;
  }
}

TEST(DeviceProfileTest, WarnsOfNewerMinorVersions) {
  std::vector<std::string> warnings;
  std::string text = File("");
  text.replace(text.find("1.0"), 3, "1.1");
  EXPECT_TRUE(Read(text, &warnings).ok());
  EXPECT_EQ(warnings,
            std::vector<std::string>{"version 1.1 is newer than 1.0, which this program knows"});
}

}  // namespace
}  // namespace prepost::nic::device_profile_test
