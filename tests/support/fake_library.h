// SPDX-License-Identifier: Apache-2.0
//
// FakeLibrary: a machine with RDMA devices of the test's choice, each behind a stand-in, for code
// that opens devices by their names.
#ifndef PREPOST_TESTS_SUPPORT_FAKE_LIBRARY_H_
#define PREPOST_TESTS_SUPPORT_FAKE_LIBRARY_H_

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/emulated/fabric.h"
#include "backends/mlx5/stand_in/stand_in.h"
#include "backends/mlx5/verbs.h"
#include "backends/nic/nic_model.h"

namespace prepost::test {

struct FakeDevice {
  std::string name;
  bool is_mlx5 = true;
  mlx5::StandInOptions options = {};
  std::string refusal = {};  ///< of Open()
};

class FakeLibrary final : public mlx5::VerbsLibrary {
 public:
  /// Each Open() is on the other NIC of two of its own that reach each other.
  explicit FakeLibrary(std::vector<FakeDevice> devices)
      : devices_(std::move(devices)),
        fabric_(std::in_place, /*nodes=*/2, emulated::EngineOptions()) {
    nics_ = {&fabric_->nic(NodeId(0)), &fabric_->nic(NodeId(1))};
  }
  /// mlx5_0, over `nic`, which must outlive it and the devices that it opens.
  explicit FakeLibrary(nic::NicModel& nic, const mlx5::StandInOptions& options = {})
      : devices_{{.name = "mlx5_0", .options = options}}, nics_{&nic} {}

  Result<std::vector<mlx5::DeviceEntry>> Devices() override {
    std::vector<mlx5::DeviceEntry> entries;
    for (const FakeDevice& it : devices_) entries.push_back({it.name, it.is_mlx5});
    return entries;
  }
  Result<std::unique_ptr<mlx5::Verbs>> Open(const std::string& name) override {
    const auto found = std::ranges::find(devices_, name, &FakeDevice::name);
    if (found == devices_.end()) {
      return EnvironmentError(fmt::format("there is no RDMA device {}", name));
    }
    if (!found->refusal.empty()) return EnvironmentError(found->refusal);
    nic::NicModel& nic = *nics_[opened_++ % nics_.size()];
    return std::unique_ptr<mlx5::Verbs>(std::make_unique<mlx5::StandIn>(nic, found->options));
  }
  /// Of the NICs of its own.
  emulated::Fabric& fabric() { return *fabric_; }

 private:
  std::vector<FakeDevice> devices_;
  std::optional<emulated::Fabric> fabric_;  // if the NICs are its own
  std::vector<nic::NicModel*> nics_;
  size_t opened_ = 0;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_FAKE_LIBRARY_H_
