// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/software_device.h"

#include <algorithm>

#include "backends/mlx5/stand_in/stand_in.h"
#include "tools/flags/command.h"

namespace prepost::tools {

const std::vector<SoftwareDevice>& SoftwareDevices() {
  static const std::vector<SoftwareDevice> devices = {
      {.name = "emulated", .what = "NICs in software that execute the bytes of preposted queues"},
      {.name = "mlx5:emulated",
       .what = "the same NICs behind the mlx5 device code and a stand-in for kernel and firmware",
       .make = [](nic::NicModel& nic) {
         return mlx5::OpenOnStandIn(nic, {.is_ethernet = true});  // there are not LIDs for all
       }}};
  return devices;
}

std::vector<std::string> SoftwareDeviceNames() {
  std::vector<std::string> names;
  for (const SoftwareDevice& device : SoftwareDevices()) names.push_back(device.name);
  return names;
}

Status CheckSoftwareDevice(const std::string& name) {
  const Status known = CheckWord("--device", name, SoftwareDeviceNames());
  if (known.ok()) return {};
  return {known.code(), known.message() + "; a card carries one node per machine: prepost node"};
}

const SoftwareDevice& FindSoftwareDevice(const std::string& name) {
  const std::vector<SoftwareDevice>& devices = SoftwareDevices();
  if (name.empty()) return devices.front();
  const auto found = std::ranges::find(devices, name, &SoftwareDevice::name);
  PREPOST_CHECK(found != devices.end());
  return *found;
}

}  // namespace prepost::tools
