// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/fabric_device.h"
#include "backends/mlx5/rdma_core.h"
#include "backends/mlx5/stand_in/stand_in.h"
#include "backends/mlx5/survey.h"
#include "backends/nic/host/nic_player_device.h"
#include "backends/verbs_device.h"

namespace prepost {
namespace {

uint32_t EntriesOf(uint8_t log) { return uint32_t{1} << std::min<uint8_t>(log, 31); }

Result<std::unique_ptr<mlx5::Mlx5Device>> Open(const std::string& name, mlx5::VerbsLibrary* library,
                                               const mlx5::Mlx5Options& options) {
  if (library == nullptr) return EnvironmentError("this prepost was built without libmlx5");
  Result<std::unique_ptr<mlx5::Verbs>> verbs = library->Open(name);
  if (!verbs.ok()) return verbs.status();
  return mlx5::Mlx5Device::Open(*std::move(verbs), options);
}

}  // namespace

const std::vector<SoftwareDevice>& SoftwareDevices() {
  static const std::vector<SoftwareDevice> devices = {
      {.name = "emulated", .what = "NICs in software that execute the bytes of preposted queues"},
      {.name = "mlx5:emulated",
       .what = "the same NICs behind the mlx5 device code and a stand-in for kernel and firmware",
       .make = [](nic::NicModel& nic) {
         return mlx5::OpenOnStandIn(nic, {.is_ethernet = true});  // there are not LIDs for all
       }}};
  return devices;
}

std::vector<std::string> SoftwareDeviceNames() {
  std::vector<std::string> names;
  for (const SoftwareDevice& device : SoftwareDevices()) names.push_back(device.name);
  return names;
}

const SoftwareDevice& FindSoftwareDevice(const std::string& name) {
  const std::vector<SoftwareDevice>& devices = SoftwareDevices();
  if (name.empty()) return devices.front();
  const auto found = std::ranges::find(devices, name, &SoftwareDevice::name);
  PREPOST_CHECK(found != devices.end());
  return *found;
}

DeviceList ListDevices() {
  DeviceList list;
  for (const SoftwareDevice& device : SoftwareDevices()) {
    list.devices.push_back({device.name, false, true, device.what});
  }
  if (const auto providers = FabricProviders(); providers.ok()) {
    for (const FabricProvider& provider : *providers) {
      const std::string what =
          fmt::format("a provider of libfabric{}",
                      provider.is_triggered
                          ? fmt::format(", which starts deferred work by itself ({} counters)",
                                        provider.counters_max)
                          : ", which starts nothing by itself");
      list.devices.push_back({provider.name, false, provider.is_triggered, what});
    }
  }
  const auto devices = VerbsDevices();
  if (devices.ok()) {
    for (const VerbsDeviceLine& device : *devices)
      list.devices.push_back({device.name, device.is_hardware, false, device.what});
  }
  const mlx5::Hardware found = mlx5::SurveyMachine(mlx5::RdmaCore().get());
  list.no_hardware = found.why_none;
  for (const mlx5::SurveyedDevice& device : found.devices) {
    if (!device.is_mlx5 && devices.ok()) continue;  // it stands there already
    list.devices.push_back({device.name, true, device.can_offload, device.why});
  }
  // What stands there is some, whatever else is not.
  if (std::ranges::any_of(list.devices, &ListedDevice::is_hardware)) {
    list.no_hardware.clear();
  } else if (list.no_hardware.empty()) {
    list.no_hardware = "what libibverbs finds is made by drivers in software";
  }
  return list;
}

Result<std::unique_ptr<mlx5::Mlx5Device>> OpenHardware(const std::string& name,
                                                       const mlx5::Mlx5Options& options) {
  return OpenHardware(name, mlx5::RdmaCore().get(), options);
}

Result<std::unique_ptr<mlx5::Mlx5Device>> OpenHardware(const std::string& name,
                                                       mlx5::VerbsLibrary* library,
                                                       const mlx5::Mlx5Options& options) {
  Result<std::unique_ptr<mlx5::Mlx5Device>> device = Open(name, library, options);
  if (device.ok()) return device;
  return Status(device.status().code(), fmt::format("device {}: {} (see prepost devices)", name,
                                                    device.status().message()));
}

bool IsLibraryDevice(const std::string& name) {
  return IsFabricDevice(name) || IsVerbsDevice(name);
}

Result<std::unique_ptr<PlayerDevice>> OpenPlayerDevice(const std::string& name, bool needs_offload,
                                                       const nic::LowerOptions& lower,
                                                       mlx5::VerbsLibrary* library) {
  if (IsVerbsDevice(name)) return OpenVerbs(name, needs_offload);
  if (IsFabricDevice(name)) return OpenFabric(name, needs_offload);
  auto card = OpenHardware(name, library, {.needs_cross_channel = needs_offload});
  if (!card.ok()) return card.status();
  const mlx5::Capabilities& capabilities = (*card)->capabilities();
  nic::LowerOptions narrowed = lower;
  narrowed.profile = Narrowed(lower.profile, name, capabilities);
  const nic::DeviceProfile limits = Narrowed({}, name, capabilities);
  return std::unique_ptr<PlayerDevice>(
      std::make_unique<nic::NicPlayerDevice>(*std::move(card), limits, std::move(narrowed)));
}

Result<std::unique_ptr<PlayerDevice>> OpenPlayerDevice(const std::string& name, bool needs_offload,
                                                       const nic::LowerOptions& lower) {
  return OpenPlayerDevice(name, needs_offload, lower, mlx5::RdmaCore().get());
}

nic::DeviceProfile Narrowed(nic::DeviceProfile profile, const std::string& name,
                            const mlx5::Capabilities& capabilities) {
  profile.name = name;
  profile.sq_wqebbs = std::min(profile.sq_wqebbs, EntriesOf(capabilities.log_max_qp_sz));
  profile.rq_wqes = std::min(profile.rq_wqes, EntriesOf(capabilities.log_max_qp_sz));
  profile.cq_entries = std::min(profile.cq_entries, EntriesOf(capabilities.log_max_cq_sz));
  profile.cross_channel = profile.cross_channel && capabilities.cross_channel;
  profile.cq_ignore_overrun = profile.cq_ignore_overrun && capabilities.cq_ignore_overrun;
  return profile;
}

}  // namespace prepost
