// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/emulated/group_devices.h"
#include "backends/mlx5/cards.h"
#include "backends/mlx5/stand_in/stand_in.h"

namespace prepost {
namespace {

Status NotBuilt(const RegisteredKind& kind) {
  return EnvironmentError("this prepost was built without " + kind.needs);
}

Result<std::vector<ListedDevice>> ListOf(const RegisteredKind& kind) {
  if (kind.kind == nullptr) return NotBuilt(kind);
  return kind.kind->List();
}

/// Cards, or a library's devices, which members on several machines reach.
class NamedGroupDevices final : public GroupDevices {
 public:
  explicit NamedGroupDevices(const GroupDevicesSpec& spec)
      : spec_(spec), kind_(KindOfDevice(spec.device)) {}

  std::string kind() const override { return kind_.kind->KindInGroup(spec_.device); }
  Result<std::unique_ptr<PlayerDevice>> Open(uint32_t) override {
    return OpenPlayerDevice(kind_, spec_.device, {.needs_offload = spec_.needs_offload});
  }

 private:
  const GroupDevicesSpec spec_;
  const RegisteredKind& kind_;
};

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

const RegisteredKind& KindOfDevice(const std::string& name) {
  const std::vector<RegisteredKind>& kinds = RegisteredKinds();
  const auto is_of = [&](const RegisteredKind& kind) {
    return !kind.prefix.empty() && name.starts_with(kind.prefix);
  };
  const auto found = std::ranges::find_if(kinds, is_of);
  return found != kinds.end() ? *found : *std::ranges::find(kinds, "", &RegisteredKind::prefix);
}

bool IsLibraryDevice(const std::string& name) { return !KindOfDevice(name).prefix.empty(); }

DeviceList ListDevices() {
  DeviceList list;
  for (const SoftwareDevice& device : SoftwareDevices())
    list.devices.push_back({.name = device.name, .can_offload = true, .why = device.what});
  for (const RegisteredKind& kind : RegisteredKinds()) {
    Result<std::vector<ListedDevice>> found = ListOf(kind);
    if (!found.ok()) {
      if (kind.prefix.empty()) list.no_hardware = found.status().message();
      continue;
    }
    std::ranges::move(*found, std::back_inserter(list.devices));
  }
  // What stands there is some, whatever else is not.
  if (std::ranges::any_of(list.devices, &ListedDevice::is_hardware)) {
    list.no_hardware.clear();
  } else if (list.no_hardware.empty()) {
    list.no_hardware = "what libibverbs finds is made by drivers in software";
  }
  return list;
}

Result<ListedDevice> FindListed(const std::string& name) {
  const Result<std::vector<ListedDevice>> devices = ListOf(KindOfDevice(name));
  if (!devices.ok()) return devices.status();
  const auto found = std::ranges::find(*devices, name, &ListedDevice::name);
  if (found != devices->end()) return *found;
  return EnvironmentError(fmt::format("there is no device {} here", name));
}

Result<std::unique_ptr<PlayerDevice>> OpenPlayerDevice(const std::string& name,
                                                       const DeviceOptions& options) {
  return OpenPlayerDevice(KindOfDevice(name), name, options);
}

Result<std::unique_ptr<PlayerDevice>> OpenPlayerDevice(const RegisteredKind& kind,
                                                       const std::string& name,
                                                       const DeviceOptions& options) {
  if (kind.kind != nullptr) return kind.kind->Open(name, options);
  return EnvironmentError(
      fmt::format("device {}: {} (see prepost devices)", name, NotBuilt(kind).message()));
}

Result<std::unique_ptr<nic::Device>> OpenCard(const std::string& name) {
  const RegisteredKind& kind = KindOfDevice(name);
  const auto* const cards = dynamic_cast<const mlx5::Cards*>(kind.kind);
  if (cards == nullptr)
    return kind.kind == nullptr ? OpenPlayerDevice(kind, name, {}).status()
                                : EnvironmentError(fmt::format("device {} is no card", name));
  auto card = cards->OpenCard(name);
  if (!card.ok()) return card.status();
  return std::unique_ptr<nic::Device>(*std::move(card));
}

Result<std::unique_ptr<GroupDevices>> OpenGroupDevices(const GroupDevicesSpec& spec) {
  const std::vector<SoftwareDevice>& software = SoftwareDevices();
  const auto found = std::ranges::find(software, spec.device, &SoftwareDevice::name);
  if (found != software.end()) return emulated::MakeGroupDevices(spec, found->make);
  // The name is right, and the device can be opened.
  PREPOST_RETURN_IF_ERROR(
      OpenPlayerDevice(spec.device, {.needs_offload = spec.needs_offload}).status());
  return std::unique_ptr<GroupDevices>(std::make_unique<NamedGroupDevices>(spec));
}

}  // namespace prepost
