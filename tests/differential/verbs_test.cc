// SPDX-License-Identifier: Apache-2.0
//
// Devices of libibverbs that are refused. Plans over them are in multicast_test.cc and
// collective_test.cc.
#include <gtest/gtest.h>

#include <string>

#include "backends/registry.h"
#include "tests/support/verbs_device.h"

namespace prepost::verbs_test {
namespace {

TEST(VerbsTest, RefusesWhatItCannot) {
  const std::string name = test::VerbsDeviceOfTests();
  if (name.empty()) GTEST_SKIP() << test::kNoVerbsDevice;
  EXPECT_FALSE(OpenPlayerDevice(name, {.needs_offload = true}).ok());
  for (const char* const options : {",port=9", ",gid=200", ",pkey=0x123"}) {
    const auto device = OpenPlayerDevice(name + options);
    ASSERT_FALSE(device.ok()) << options;
    EXPECT_EQ(device.status().code(), StatusCode::kEnvironment) << device.status().ToString();
  }
  EXPECT_FALSE(OpenPlayerDevice("verbs:none_of_this_name").ok());
}

}  // namespace
}  // namespace prepost::verbs_test
