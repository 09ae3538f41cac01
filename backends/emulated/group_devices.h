// SPDX-License-Identifier: Apache-2.0
//
// The emulated NICs of a group whose members are sessions of one process.
#ifndef PREPOST_BACKENDS_EMULATED_GROUP_DEVICES_H_
#define PREPOST_BACKENDS_EMULATED_GROUP_DEVICES_H_

#include <memory>

#include "backends/nic/nic_model.h"
#include "runtime/device/device_kind.h"

namespace prepost::emulated {

/// `make`: what stands in front of NICs; empty: their own device.
std::unique_ptr<GroupDevices> MakeGroupDevices(const GroupDevicesSpec& spec,
                                               nic::DeviceFactory make);

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_GROUP_DEVICES_H_
