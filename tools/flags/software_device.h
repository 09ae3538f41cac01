// SPDX-License-Identifier: Apache-2.0
//
// The devices without hardware, by the names that --device takes: what stands in front of the
// emulated NICs.
#ifndef PREPOST_TOOLS_FLAGS_SOFTWARE_DEVICE_H_
#define PREPOST_TOOLS_FLAGS_SOFTWARE_DEVICE_H_

#include <string>
#include <vector>

#include "backends/nic/nic_model.h"
#include "ir/status.h"

namespace prepost::tools {

struct SoftwareDevice {
  std::string name;
  std::string what;              ///< one line
  nic::DeviceFactory make = {};  ///< empty: the emulated NICs' own
};

/// The first is the default.
const std::vector<SoftwareDevice>& SoftwareDevices();
std::vector<std::string> SoftwareDeviceNames();
/// Ok if `name`, the value of --device, is one of them; else kUsage, with the near one.
Status CheckSoftwareDevice(const std::string& name);
/// `name` is one of them; empty: the default.
const SoftwareDevice& FindSoftwareDevice(const std::string& name);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_SOFTWARE_DEVICE_H_
