// SPDX-License-Identifier: Apache-2.0
//
// Mlx5DeviceTest: two mlx5 devices over stand-ins that reach each other, and what goes by.
#ifndef PREPOST_TESTS_SUPPORT_MLX5_FIXTURE_H_
#define PREPOST_TESTS_SUPPORT_MLX5_FIXTURE_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/emulated/fabric.h"
#include "backends/mlx5/device.h"
#include "backends/mlx5/stand_in/stand_in.h"
#include "tests/support/verbs_spy.h"

namespace prepost::mlx5 {

/// The words of a mailbox that are not zero, each with its byte offset.
inline std::vector<std::string> Words(const std::vector<std::byte>& mailbox) {
  std::vector<std::string> words;
  for (size_t at = 0; at < mailbox.size(); at += 4) {
    const auto word = nic::LoadBigEndian<uint32_t>(mailbox.data() + at);
    if (word != 0) words.push_back(fmt::format("{:03x} {:08x}", at, word));
  }
  return words;
}

class Mlx5DeviceTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Mlx5Device>> Open(uint32_t node, StandInOptions options = {},
                                           Mlx5Options device_options = {}) {
    return Mlx5Device::Open(
        std::make_unique<test::VerbsSpy>(
            std::make_unique<StandIn>(fabric_->nic(NodeId(node)), options), notes_),
        device_options);
  }
  void Make(StandInOptions options = {}) {
    for (uint32_t node : {0u, 1u}) {
      auto device = Open(node, options);
      ASSERT_TRUE(device.ok()) << device.status().ToString();
      devices_[node] = *std::move(device);
    }
    notes_.commands.clear();
  }
  std::vector<std::string> Command(size_t index) const { return Words(notes_.commands.at(index)); }
  std::string OpenError(StandInOptions options, Mlx5Options device_options = {}) {
    const auto device = Open(0, options, device_options);
    EXPECT_EQ(device.status().code(), StatusCode::kEnvironment);
    return device.status().message();
  }
  const std::vector<std::string>& misuses() const { return fabric_->engine().misuses(); }

  std::unique_ptr<emulated::Fabric> fabric_ =
      std::make_unique<emulated::Fabric>(2, emulated::EngineOptions{});
  test::SpyNotes notes_;
  std::unique_ptr<Mlx5Device> devices_[2];
};

}  // namespace prepost::mlx5

#endif  // PREPOST_TESTS_SUPPORT_MLX5_FIXTURE_H_
