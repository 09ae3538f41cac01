// SPDX-License-Identifier: Apache-2.0
//
// StandInLibrary: a machine with one mlx5 device, mlx5_0, that a stand-in plays over an emulated
// NIC, for code that opens devices by their names.
#ifndef PREPOST_TESTS_SUPPORT_STAND_IN_LIBRARY_H_
#define PREPOST_TESTS_SUPPORT_STAND_IN_LIBRARY_H_

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "prepost/backends/mlx5/stand_in.h"
#include "prepost/backends/mlx5/verbs.h"
#include "prepost/backends/nic/nic_model.h"
#include "tests/support/verbs_spy.h"

namespace prepost::test {

/// `nic` must outlive it and the devices that it opens.
class StandInLibrary final : public mlx5::VerbsLibrary {
 public:
  explicit StandInLibrary(nic::NicModel& nic, const mlx5::StandInOptions& options = {})
      : nic_(nic), options_(options) {}

  Result<std::vector<mlx5::DeviceEntry>> Devices() override {
    return std::vector<mlx5::DeviceEntry>{{"mlx5_0", true}};
  }
  Result<std::unique_ptr<mlx5::Verbs>> Open(const std::string& name) override {
    if (name != "mlx5_0") return EnvironmentError(fmt::format("there is no RDMA device {}", name));
    return std::unique_ptr<mlx5::Verbs>(
        std::make_unique<VerbsSpy>(std::make_unique<mlx5::StandIn>(nic_, options_), notes_));
  }
  const SpyNotes& notes() const { return notes_; }

 private:
  nic::NicModel& nic_;
  mlx5::StandInOptions options_;
  SpyNotes notes_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_STAND_IN_LIBRARY_H_
