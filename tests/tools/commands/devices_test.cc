// SPDX-License-Identifier: Apache-2.0
//
// `prepost devices` as a user sees it: on any machine, with RDMA hardware or without, it lists the
// software devices first and succeeds. What is said of hardware is in tests/backends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/command.h"

namespace prepost::devices_test {
namespace {

using test::Command;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(DevicesCommandTest, ListsSoftwareDevicesFirst) {
  Command devices({"devices"});
  ASSERT_EQ(devices.Wait(), 0) << devices.err();
  EXPECT_THAT(devices.out(), StartsWith("device "));
  EXPECT_THAT(devices.out(), HasSubstr("\nemulated "));
  EXPECT_THAT(devices.out(), HasSubstr("\nmlx5:emulated "));
}

TEST(DevicesCommandTest, JsonHasEveryDevice) {
  Command devices({"devices", "--json"});
  ASSERT_EQ(devices.Wait(), 0) << devices.err();
  const auto json = nlohmann::json::parse(devices.out());
  ASSERT_GE(json["devices"].size(), 2u);
  EXPECT_EQ(json["devices"][0]["name"], "emulated");
  EXPECT_EQ(json["devices"][1]["name"], "mlx5:emulated");
  bool has_hardware = false;
  for (const auto& device : json["devices"]) {
    has_hardware = has_hardware || device["kind"] == "hardware";
    EXPECT_TRUE(device["can_offload"].is_boolean());
    EXPECT_FALSE(device["why"].get<std::string>().empty());
  }
  // Either there is hardware, or it says why not.
  EXPECT_EQ(!has_hardware, json.contains("hardware"));
}

TEST(DevicesCommandTest, TakesNoArguments) {
  Command devices({"devices", "mlx5_0"});
  EXPECT_EQ(devices.Wait(), 2);
  EXPECT_THAT(devices.err(), HasSubstr("unexpected argument 'mlx5_0'"));
}

}  // namespace
}  // namespace prepost::devices_test
