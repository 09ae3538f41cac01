// SPDX-License-Identifier: Apache-2.0
//
// The cards of this machine, for tests of devices. Not yet seen on hardware: which cards are taken
// is tested with a library of stand-ins, and so is the pair of devices.
#ifndef PREPOST_TESTS_SUPPORT_HARDWARE_DEVICES_H_
#define PREPOST_TESTS_SUPPORT_HARDWARE_DEVICES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/mlx5/device.h"
#include "backends/mlx5/verbs.h"
#include "ir/base/status.h"
#include "tests/support/test_queue.h"

namespace prepost::test {

/// A test's instance for one card; or for none, to say why.
struct HardwareChoice {
  std::string instance;  ///< letters, digits and underscores, unlike any other
  std::string device;    ///< as the library lists it; "": none
  std::string missing;   ///< without `device`
};

/// One for each device of the survey that can offload; else one with what the survey says. Null:
/// there is no library.
std::vector<HardwareChoice> ChooseHardware(mlx5::VerbsLibrary* library);

/// One card, opened twice: nodes that reach each other through its port.
class HardwareDevices final : public DeviceUnderTest {
 public:
  /// `settle` for cards that are software; empty: they are given time. Errors: those of
  /// VerbsLibrary::Open() and Mlx5Device::Open().
  static Result<std::unique_ptr<HardwareDevices>> Open(mlx5::VerbsLibrary& library,
                                                       const std::string& device,
                                                       std::function<void()> settle = {});

  nic::Device& device(uint32_t node) override { return *devices_[node]; }
  void Settle() override;

 private:
  explicit HardwareDevices(std::function<void()> settle) : settle_(std::move(settle)) {}

  std::function<void()> settle_;
  std::vector<std::unique_ptr<mlx5::Mlx5Device>> devices_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_HARDWARE_DEVICES_H_
