// SPDX-License-Identifier: Apache-2.0
//
// What this folder registers (runtime/device/device_kind.h): the mlx5 cards of this machine.
#ifndef PREPOST_BACKENDS_RDMA_CORE_DEVICES_H_
#define PREPOST_BACKENDS_RDMA_CORE_DEVICES_H_

#include "runtime/device/device_kind.h"

namespace prepost::rdma_core {

const DeviceKind& Devices();

}  // namespace prepost::rdma_core

#endif  // PREPOST_BACKENDS_RDMA_CORE_DEVICES_H_
