// SPDX-License-Identifier: Apache-2.0
//
// The registry: every device by its name. It lists them, opens them, or reports why not; nothing else
// names mlx5 cards, their stand-in, the emulated NIC, libfabric and libibverbs together. A new kind of
// device is added here.
#ifndef PREPOST_BACKENDS_REGISTRY_H_
#define PREPOST_BACKENDS_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "backends/mlx5/device.h"
#include "backends/mlx5/verbs.h"
#include "backends/nic/nic_model.h"
#include "backends/nic/program/device_profile.h"
#include "backends/nic/program/lower.h"
#include "ir/status.h"
#include "runtime/player_device.h"

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

struct ListedDevice {
  std::string name;
  bool is_hardware = false;
  bool can_offload = false;
  std::string why;  ///< what it is; of hardware why it can or cannot
};

struct DeviceList {
  std::vector<ListedDevice> devices;
  std::string no_hardware;  ///< why there is none; "": there is some
};

/// The devices of this machine. Nothing is left on a device.
DeviceList ListDevices();

/// Opens card `name` of this machine, or of `library`, which is null where there is none. Errors
/// (kEnvironment), with the name: there is no such card, no permission, no DEVX, no active port, a
/// missing capability.
Result<std::unique_ptr<mlx5::Mlx5Device>> OpenHardware(const std::string& name,
                                                       const mlx5::Mlx5Options& options = {});
Result<std::unique_ptr<mlx5::Mlx5Device>> OpenHardware(const std::string& name,
                                                       mlx5::VerbsLibrary* library,
                                                       const mlx5::Mlx5Options& options = {});

/// Whether `name` is of a library whose devices any process of a machine can open at any time, so that
/// local nodes have one each: "fabric:tcp", "verbs:rxe0".
bool IsLibraryDevice(const std::string& name);

/// Opens what carries one node per process: card `name`, of `library` as above, or a library's device.
/// `needs_offload`: it must carry out programs by itself. `lower`: how a card's queues are made, with a
/// profile that its user allows. Errors: those of OpenHardware(), OpenFabric() and OpenVerbs().
Result<std::unique_ptr<PlayerDevice>> OpenPlayerDevice(const std::string& name, bool needs_offload,
                                                       const nic::LowerOptions& lower,
                                                       mlx5::VerbsLibrary* library);
Result<std::unique_ptr<PlayerDevice>> OpenPlayerDevice(const std::string& name, bool needs_offload,
                                                       const nic::LowerOptions& lower = {});

/// What fits both `profile` and the card called `name` that reports these capabilities.
nic::DeviceProfile Narrowed(nic::DeviceProfile profile, const std::string& name,
                            const mlx5::Capabilities& capabilities);

}  // namespace prepost

#endif  // PREPOST_BACKENDS_REGISTRY_H_
