// SPDX-License-Identifier: Apache-2.0
//
// What this folder registers (runtime/device/device_kind.h): any device of libibverbs.
#ifndef PREPOST_BACKENDS_VERBS_DEVICES_H_
#define PREPOST_BACKENDS_VERBS_DEVICES_H_

#include "runtime/device/device_kind.h"

namespace prepost::verbs {

const DeviceKind& Devices();

}  // namespace prepost::verbs

#endif  // PREPOST_BACKENDS_VERBS_DEVICES_H_
