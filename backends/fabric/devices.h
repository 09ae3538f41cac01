// SPDX-License-Identifier: Apache-2.0
//
// What this folder registers (runtime/device/device_kind.h): libfabric's providers.
#ifndef PREPOST_BACKENDS_FABRIC_DEVICES_H_
#define PREPOST_BACKENDS_FABRIC_DEVICES_H_

#include "runtime/device/device_kind.h"

namespace prepost::fabric {

const DeviceKind& Devices();

}  // namespace prepost::fabric

#endif  // PREPOST_BACKENDS_FABRIC_DEVICES_H_
