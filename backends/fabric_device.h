// SPDX-License-Identifier: Apache-2.0
//
// Devices "fabric:PROVIDER": libfabric's providers, driven by the CPU, or, where a provider starts
// deferred work by itself, preposted. Nothing here needs libfabric's headers.
#ifndef PREPOST_BACKENDS_FABRIC_DEVICE_H_
#define PREPOST_BACKENDS_FABRIC_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/status.h"
#include "runtime/player_device.h"

namespace prepost {

inline constexpr char kFabricPrefix[] = "fabric:";

/// Whether `name` is "fabric:PROVIDER".
bool IsFabricDevice(const std::string& name);

struct FabricProvider {
  std::string name;           ///< of the device: "fabric:sockets"
  bool is_triggered = false;  ///< can be preposted to
  bool is_automatic = false;  ///< makes progress by itself
  uint32_t counters_max = 0;
};
/// Of this machine. Errors (kEnvironment): there is no libfabric, or this prepost was built without.
Result<std::vector<FabricProvider>> FabricProviders();

/// `name`: "fabric:PROVIDER". The provider is opened with the first player, at the address of its
/// first socket. Errors (kEnvironment): there is no such provider, or it is to be preposted to and
/// starts nothing by itself.
Result<std::unique_ptr<PlayerDevice>> OpenFabric(const std::string& name, bool needs_triggers);

}  // namespace prepost

#endif  // PREPOST_BACKENDS_FABRIC_DEVICE_H_
