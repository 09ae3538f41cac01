// SPDX-License-Identifier: Apache-2.0
//
// In place of verbs_device.cc where libibverbs' headers were not there.
#include "backends/verbs_device.h"

namespace prepost {

bool IsVerbsDevice(const std::string& name) { return name.starts_with(kVerbsPrefix); }

Result<std::vector<VerbsDeviceLine>> VerbsDevices() {
  return EnvironmentError("this prepost was built without libibverbs");
}

Result<std::unique_ptr<PlayerDevice>> OpenVerbs(const std::string& name, bool) {
  return EnvironmentError("device " + name + ": this prepost was built without libibverbs");
}

}  // namespace prepost
