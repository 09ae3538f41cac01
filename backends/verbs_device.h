// SPDX-License-Identifier: Apache-2.0
//
// Devices "verbs:NAME": any device of libibverbs, InfiniBand, RoCE or in software, driven by the CPU.
// Nothing here needs libibverbs' headers.
#ifndef PREPOST_BACKENDS_VERBS_DEVICE_H_
#define PREPOST_BACKENDS_VERBS_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "ir/status.h"
#include "runtime/player_device.h"

namespace prepost {

inline constexpr char kVerbsPrefix[] = "verbs:";

/// Whether `name` is "verbs:NAME", with options or without.
bool IsVerbsDevice(const std::string& name);

struct VerbsDeviceLine {
  std::string name;  ///< of the device: "verbs:rxe0"
  bool is_hardware = true;
  std::string what;
};
/// Of this machine. Errors (kEnvironment): there is no libibverbs, or this prepost was built without.
Result<std::vector<VerbsDeviceLine>> VerbsDevices();

/// `name`: "verbs:NAME[,port=N][,gid=N][,pkey=N]". The device is opened with the first player.
/// Errors: kUsage, an option is none; kEnvironment, there is no such device, or it is to be
/// preposted to, which none of these can be.
Result<std::unique_ptr<PlayerDevice>> OpenVerbs(const std::string& name, bool needs_offload);

}  // namespace prepost

#endif  // PREPOST_BACKENDS_VERBS_DEVICE_H_
