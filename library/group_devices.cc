// SPDX-License-Identifier: Apache-2.0
#include "library/group_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "backends/emulated/device.h"
#include "backends/emulated/fabric.h"
#include "backends/registry.h"

namespace prepost {
namespace {

using emulated::Fabric;

/// The fabrics of this process, each as long as a member of its group has it. This is what one wire
/// between NICs is where there is hardware, so that there is one for all sessions.
class Fabrics {
 public:
  /// By a name that no other process has.
  Result<std::pair<std::string, std::shared_ptr<Fabric>>> Make(uint32_t nics) {
    auto fabric = std::make_shared<Fabric>(nics, emulated::EngineOptions());
    PREPOST_RETURN_IF_ERROR(fabric->Start(Fabric::Until::kStopped));
    std::random_device random;
    const std::string name =
        fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
    const std::lock_guard lock(mutex_);
    std::erase_if(fabrics_, [](const auto& it) { return it.second.expired(); });
    fabrics_[name] = fabric;
    return std::pair(name, std::move(fabric));
  }
  std::shared_ptr<Fabric> Find(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = fabrics_.find(name);
    return found == fabrics_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Fabric>> fabrics_;
};
Fabrics& TheFabrics() {
  static Fabrics fabrics;
  return fabrics;
}

/// Of each node as many NICs as devices.
class SoftwareGroupDevices final : public GroupDevices {
 public:
  explicit SoftwareGroupDevices(const GroupDevicesSpec& spec)
      : spec_(spec), software_(FindSoftwareDevice(spec.device)) {}

  const char* kind() const override { return software_.name.c_str(); }
  Result<std::string> Found() override {
    auto made = TheFabrics().Make(spec_.nodes * kGroupDevices);
    if (!made.ok()) return made.status();
    fabric_ = std::move(made->second);
    return made->first;
  }
  Status Join(const std::string& place) override {
    fabric_ = TheFabrics().Find(place);
    if (fabric_ != nullptr) return {};
    return Rejected(
        fmt::format("this member is not in the root's process, and device {} connects "
                    "members of one process only",
                    spec_.device));
  }
  Result<OpenedDevice> Open(uint32_t index) override {
    emulated::Nic& nic = fabric_->nic(NodeId(index * spec_.nodes + spec_.self.value));
    OpenedDevice opened;
    if (!software_.make) {
      opened.device = std::make_unique<emulated::EmulatedDevice>(nic);
      return opened;
    }
    Result<std::unique_ptr<nic::Device>> device = software_.make(nic);
    if (!device.ok()) return device.status();
    opened.device = *std::move(device);
    return opened;
  }

 private:
  const GroupDevicesSpec spec_;
  const SoftwareDevice& software_;
  std::shared_ptr<Fabric> fabric_;
};

class Cards final : public GroupDevices {
 public:
  explicit Cards(const GroupDevicesSpec& spec) : spec_(spec) {}

  const char* kind() const override { return "verbs"; }
  Result<std::string> Found() override { return std::string("verbs"); }
  Status Join(const std::string&) override { return {}; }
  Result<OpenedDevice> Open(uint32_t) override {
    Result<std::unique_ptr<mlx5::Mlx5Device>> card =
        OpenHardware(spec_.device, {.needs_cross_channel = spec_.executor == "offload"});
    if (!card.ok()) return card.status();
    const nic::DeviceProfile limits = Narrowed({}, spec_.device, (*card)->capabilities());
    return OpenedDevice{.device = *std::move(card), .limits = limits};
  }

 private:
  const GroupDevicesSpec spec_;
};

}  // namespace

Result<std::unique_ptr<GroupDevices>> FindGroupDevices(const GroupDevicesSpec& spec) {
  const std::vector<std::string> software = SoftwareDeviceNames();
  if (std::ranges::find(software, spec.device) != software.end())
    return std::unique_ptr<GroupDevices>(std::make_unique<SoftwareGroupDevices>(spec));
  auto cards = std::make_unique<Cards>(spec);
  PREPOST_RETURN_IF_ERROR(cards->Open(0).status());
  return std::unique_ptr<GroupDevices>(std::move(cards));
}

}  // namespace prepost
