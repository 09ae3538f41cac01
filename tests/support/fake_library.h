// SPDX-License-Identifier: Apache-2.0
//
// FakeLibrary: a machine with RDMA devices of the test's choice, each behind a stand-in.
#ifndef PREPOST_TESTS_SUPPORT_FAKE_LIBRARY_H_
#define PREPOST_TESTS_SUPPORT_FAKE_LIBRARY_H_

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "prepost/backends/emulated/fabric.h"
#include "prepost/backends/mlx5/stand_in.h"
#include "prepost/backends/mlx5/verbs.h"

namespace prepost::test {

struct FakeDevice {
  std::string name;
  bool is_mlx5 = true;
  mlx5::StandInOptions options = {};
  std::string refusal = {};  ///< of Open()
};

class FakeLibrary final : public mlx5::VerbsLibrary {
 public:
  explicit FakeLibrary(std::vector<FakeDevice> devices) : devices_(std::move(devices)) {}

  Result<std::vector<mlx5::DeviceEntry>> Devices() override {
    std::vector<mlx5::DeviceEntry> entries;
    for (const FakeDevice& it : devices_) entries.push_back({it.name, it.is_mlx5});
    return entries;
  }
  /// Each time on the other NIC of two that reach each other.
  Result<std::unique_ptr<mlx5::Verbs>> Open(const std::string& name) override {
    const auto found = std::ranges::find(devices_, name, &FakeDevice::name);
    if (found == devices_.end()) {
      return EnvironmentError(fmt::format("there is no RDMA device {}", name));
    }
    if (!found->refusal.empty()) return EnvironmentError(found->refusal);
    return std::unique_ptr<mlx5::Verbs>(
        std::make_unique<mlx5::StandIn>(fabric_.nic(NodeId(opened_++ % 2)), found->options));
  }
  emulated::Fabric& fabric() { return fabric_; }

 private:
  std::vector<FakeDevice> devices_;
  emulated::Fabric fabric_{2, {}};
  uint32_t opened_ = 0;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_FAKE_LIBRARY_H_
