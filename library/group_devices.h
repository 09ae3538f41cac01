// SPDX-License-Identifier: Apache-2.0
//
// GroupDevices: the NICs that one member of a group uses. Emulated ones exist within a process: the
// group's root makes them, and the other members find them there. Cards and providers of libfabric
// are opened by name.
#ifndef PREPOST_LIBRARY_GROUP_DEVICES_H_
#define PREPOST_LIBRARY_GROUP_DEVICES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "ir/ids.h"
#include "ir/status.h"
#include "runtime/player_device.h"

namespace prepost {

/// Two messages of a group are under way at most, and each has a device of its own, so that neither
/// takes the other's events.
inline constexpr uint32_t kGroupDevices = 2;

/// Used by one thread. Devices that it has opened go before it does.
class GroupDevices {
 public:
  virtual ~GroupDevices() = default;

  /// "emulated", "mlx5", "verbs", "fabric:tcp": members must have the same.
  virtual const char* kind() const = 0;
  /// At the root, once: makes what there must be, and says where, for Join() at the others. Errors:
  /// kEnvironment.
  virtual Result<std::string> Found() = 0;
  /// Elsewhere, once, before Open(). Errors (kRejected): nothing of this member's can be reached there.
  virtual Status Join(const std::string& place) = 0;
  /// Device `index` of kGroupDevices, which must not be open. Errors: kEnvironment.
  virtual Result<std::unique_ptr<PlayerDevice>> Open(uint32_t index) = 0;
};

struct GroupDevicesSpec {
  std::string device;    ///< one of the registry's
  std::string executor;  ///< cpu, offload or auto
  uint32_t nodes = 1;
  NodeId self;
};

/// Errors (kEnvironment): the card cannot be opened, or lacks what `executor` needs.
Result<std::unique_ptr<GroupDevices>> FindGroupDevices(const GroupDevicesSpec& spec);

}  // namespace prepost

#endif  // PREPOST_LIBRARY_GROUP_DEVICES_H_
