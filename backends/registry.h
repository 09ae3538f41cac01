// SPDX-License-Identifier: Apache-2.0
//
// The registry: every device by its name. It lists them, opens them, or reports why not. Each
// backend that is built registers its kind of devices (CMakeLists.txt, prepost_devices); NICs in
// software, which are always there, are listed here.
#ifndef PREPOST_BACKENDS_REGISTRY_H_
#define PREPOST_BACKENDS_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "backends/nic/device.h"
#include "backends/nic/nic_model.h"
#include "backends/nic/program/lower.h"
#include "ir/base/status.h"
#include "runtime/device/device_kind.h"
#include "runtime/device/player_device.h"

namespace prepost {

/// NICs in software, which carry all nodes of a plan in one process.
struct SoftwareDevice {
  std::string name;
  std::string what;              ///< one line
  nic::DeviceFactory make = {};  ///< in front of emulated NICs; empty: their own device
};

/// The first is the default.
const std::vector<SoftwareDevice>& SoftwareDevices();
std::vector<std::string> SoftwareDeviceNames();
/// "" is the default. `name` must be one of SoftwareDeviceNames().
const SoftwareDevice& FindSoftwareDevice(const std::string& name);

/// A kind of devices that are opened by name, whether this prepost was built with it or not.
struct RegisteredKind {
  std::string prefix;                ///< of its names; "": those of no other kind
  std::string needs;                 ///< the library that it was or was not built with
  bool may_offload = true;           ///< some of them carry out programs by themselves
  const DeviceKind* kind = nullptr;  ///< null: not built
};
/// In the order in which they are listed; made by CMakeLists.txt.
const std::vector<RegisteredKind>& RegisteredKinds();
/// That of a device's name.
const RegisteredKind& KindOfDevice(const std::string& name);

/// Whether `name` is of a library whose devices any process of a machine can open at any time, so
/// that local nodes have one each: "fabric:tcp", "verbs:rxe0".
bool IsLibraryDevice(const std::string& name);

struct DeviceList {
  std::vector<ListedDevice> devices;
  std::string no_hardware;  ///< why there is none; "": there is some
};
/// The devices of this machine. Nothing is left on a device.
DeviceList ListDevices();
/// The entry of a library's device or a card. Errors (kEnvironment): it is not there, or its kind
/// is not built.
Result<ListedDevice> FindListed(const std::string& name);

/// Opens what carries one node per process: a card, or a library's device. Errors: those of
/// DeviceKind::Open(), or its kind is not built (kEnvironment).
Result<std::unique_ptr<PlayerDevice>> OpenPlayerDevice(const std::string& name,
                                                       const DeviceOptions& options = {});
Result<std::unique_ptr<PlayerDevice>> OpenPlayerDevice(const RegisteredKind& kind,
                                                       const std::string& name,
                                                       const DeviceOptions& options);
/// A card's queues, without a plan. Errors (kEnvironment): as above.
Result<std::unique_ptr<nic::Device>> OpenCard(const std::string& name);

/// What a member of a group has. NICs in software exist within a process: the group's leader makes
/// them, and the other members find them there. Others are opened by name, once here to see that it
/// can be done. Errors: those of OpenPlayerDevice().
Result<std::unique_ptr<GroupDevices>> OpenGroupDevices(const GroupDevicesSpec& spec);

}  // namespace prepost

#endif  // PREPOST_BACKENDS_REGISTRY_H_
