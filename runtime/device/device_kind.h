// SPDX-License-Identifier: Apache-2.0
//
// DeviceKind: the devices of one backend, by name. Each backend that is built registers one
// (CMakeLists.txt, prepost_devices); backends/registry.h finds the right one for a name.
// GroupDevices: the devices that a member of a group has.
#ifndef PREPOST_RUNTIME_DEVICE_DEVICE_KIND_H_
#define PREPOST_RUNTIME_DEVICE_DEVICE_KIND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "runtime/device/player_device.h"

namespace prepost {

namespace nic {
struct LowerOptions;
}

struct ListedDevice {
  std::string name;
  bool is_hardware = false;
  bool can_offload = false;
  /// Whether what the CPU drives makes progress by itself, and not only while it is polled.
  bool is_automatic = true;
  std::string why = {};  ///< what it is; of hardware why it can or cannot offload
};

struct DeviceOptions {
  bool needs_offload = false;  ///< it must carry out programs by itself
  /// How queues of NICs are made, with a profile that the user allows; null: as they come.
  const nic::LowerOptions* lower = nullptr;
};

/// Functions may be called by any thread.
class DeviceKind {
 public:
  virtual ~DeviceKind() = default;

  /// Of this machine, and leaves nothing on them. Errors (kEnvironment): why there is none.
  virtual Result<std::vector<ListedDevice>> List() const = 0;
  /// The device `name`, for one node or member in this process. Errors, with the name:
  /// kEnvironment, it is not there, or lacks what is needed; kUsage, an option in the name is none.
  virtual Result<std::unique_ptr<PlayerDevice>> Open(const std::string& name,
                                                     const DeviceOptions& options) const = 0;
  /// What members of a group must have in common of it: "mlx5", "verbs", "fabric:tcp".
  virtual std::string KindInGroup(const std::string& name) const = 0;
};

/// Two messages of a group are under way at most, and each has a device of its own, so that neither
/// takes the other's events.
inline constexpr uint32_t kGroupDevices = 2;

/// What one member of a group opens. Used by one thread. Devices that it has opened go before it
/// does.
class GroupDevices {
 public:
  virtual ~GroupDevices() = default;

  /// "emulated", "mlx5", "verbs", "fabric:tcp": members must have the same.
  virtual std::string kind() const = 0;
  /// At the leader, once: makes what there must be, and says where, for Join() at the others.
  /// Errors: kEnvironment.
  virtual Result<std::string> Found() { return kind(); }
  /// Elsewhere, once, before Open(). Errors (kRejected): nothing of this member's can be reached
  /// there.
  virtual Status Join(const std::string& /*place*/) { return {}; }
  /// Device `index` of kGroupDevices, which must not be open. Errors: kEnvironment.
  virtual Result<std::unique_ptr<PlayerDevice>> Open(uint32_t index) = 0;
};

struct GroupDevicesSpec {
  std::string device;  ///< one of the registry's
  bool needs_offload = false;
  uint32_t nodes = 1;
  NodeId self;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_DEVICE_DEVICE_KIND_H_
