// SPDX-License-Identifier: Apache-2.0
//
// OpenHardware: the NIC that --device names, for every subcommand that works on one.
#ifndef PREPOST_BACKENDS_HARDWARE_H_
#define PREPOST_BACKENDS_HARDWARE_H_

#include <memory>
#include <string>

#include "backends/mlx5/device.h"
#include "backends/mlx5/verbs.h"
#include "backends/nic/program/device_profile.h"
#include "ir/status.h"

namespace prepost::tools {

/// Opens device `name` of `library`, which is null where there is none (mlx5::RdmaCore()). Errors
/// (kEnvironment), with the name: there is no such device, no permission, no DEVX, no active port,
/// a missing capability.
Result<std::unique_ptr<mlx5::Mlx5Device>> OpenHardware(const std::string& name,
                                                       mlx5::VerbsLibrary* library,
                                                       const mlx5::Mlx5Options& options = {});

/// What fits both `profile` and the device called `name` that says so of itself.
nic::DeviceProfile Narrowed(nic::DeviceProfile profile, const std::string& name,
                            const mlx5::Capabilities& capabilities);

}  // namespace prepost::tools

#endif  // PREPOST_BACKENDS_HARDWARE_H_
