// SPDX-License-Identifier: Apache-2.0
#include "backends/emulated/group_devices.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <random>
#include <utility>

#include "backends/emulated/device.h"
#include "backends/emulated/fabric.h"
#include "backends/nic/host/nic_player_device.h"

namespace prepost::emulated {
namespace {

/// The fabrics of this process, each as long as a member of its group has it. This is what one wire
/// between NICs is where there is hardware, so that there is one for all sessions.
class Fabrics {
 public:
  /// By a name that no other process has.
  Result<std::pair<std::string, std::shared_ptr<Fabric>>> Make(uint32_t nics) {
    auto fabric = std::make_shared<Fabric>(nics, EngineOptions());
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
  SoftwareGroupDevices(const GroupDevicesSpec& spec, nic::DeviceFactory make)
      : spec_(spec), make_(std::move(make)) {}

  std::string kind() const override { return spec_.device; }
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
  Result<std::unique_ptr<PlayerDevice>> Open(uint32_t index) override {
    Nic& nic = fabric_->nic(NodeId(index * spec_.nodes + spec_.self.value));
    std::unique_ptr<nic::Device> device;
    if (!make_) {
      device = std::make_unique<EmulatedDevice>(nic);
    } else {
      Result<std::unique_ptr<nic::Device>> made = make_(nic);
      if (!made.ok()) return made.status();
      device = *std::move(made);
    }
    return std::unique_ptr<PlayerDevice>(std::make_unique<nic::NicPlayerDevice>(
        std::move(device), nic::DeviceProfile(), nic::LowerOptions()));
  }

 private:
  const GroupDevicesSpec spec_;
  const nic::DeviceFactory make_;
  std::shared_ptr<Fabric> fabric_;
};

}  // namespace

std::unique_ptr<GroupDevices> MakeGroupDevices(const GroupDevicesSpec& spec,
                                               nic::DeviceFactory make) {
  return std::make_unique<SoftwareGroupDevices>(spec, std::move(make));
}

}  // namespace prepost::emulated
