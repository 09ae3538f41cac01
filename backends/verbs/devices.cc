// SPDX-License-Identifier: Apache-2.0
//
// Devices "verbs:NAME[,port=N][,gid=N][,pkey=N]": any device of libibverbs, InfiniBand, RoCE or in
// software, driven by the CPU. A device is opened with the first player.
#include "backends/verbs/devices.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "backends/verbs/queue_pairs.h"
#include "backends/verbs/rdma_device.h"

namespace prepost::verbs {
namespace {

constexpr char kPrefix[] = "verbs:";

class VerbsDevice final : public PlayerDevice {
 public:
  VerbsDevice(std::string name, Selection selection)
      : name_(std::move(name)), selection_(std::move(selection)) {}

  Result<std::shared_ptr<const Program>> Lower(const VerifiedPlan&, NodeId) const override {
    return Rejected("it starts nothing by itself");
  }
  void KeepMemory(std::span<std::byte> memory) override { kept_ = memory; }
  Result<std::unique_ptr<Player>> MakePreposted(const Program&, Task) override {
    return Rejected("it starts nothing by itself");
  }
  Result<std::unique_ptr<Player>> MakeDriven(Task task) override {
    if (device_ == nullptr) {
      auto opened = Device::Open(selection_, task.links->LocalHost());
      if (!opened.ok()) return OfDevice(opened.status());
      device_ = *std::move(opened);
      // Where that fails, as where little memory may be pinned, each message registers its own.
      static_cast<void>(device_->Keep(kept_));
    }
    PREPOST_RETURN_IF_ERROR(OfDevice(device_->TakeEventsBefore()));
    std::shared_ptr<QueuePairs> pairs = std::exchange(pairs_, nullptr);
    if (task.is_as_before && pairs != nullptr) {
      PREPOST_RETURN_IF_ERROR(OfDevice(pairs->Restart(task.context.memory)));
    } else {
      auto made = QueuePairs::Make(*device_, {task.plan, task.node}, task.context.memory);
      if (!made.ok()) return OfDevice(made.status());
      pairs = *std::move(made);
      PREPOST_RETURN_IF_ERROR(pairs->Connect(task));
    }
    if (task.is_kept) pairs_ = pairs;
    return MakeQueuedPlayer(std::move(pairs), std::move(task));
  }

 private:
  Status OfDevice(const Status& status) const {
    if (status.ok()) return status;
    return {status.code(), fmt::format("device {}: {}", name_, status.message())};
  }

  const std::string name_;
  const Selection selection_;
  std::span<std::byte> kept_;
  std::unique_ptr<Device> device_;
  std::shared_ptr<QueuePairs> pairs_;  ///< of the last player, if they are kept
};

class VerbsKind final : public DeviceKind {
 public:
  Result<std::vector<ListedDevice>> List() const override {
    const auto found = Survey();
    if (!found.ok()) return found.status();
    std::vector<ListedDevice> devices;
    for (const SurveyedDevice& device : *found)
      devices.push_back(
          {.name = kPrefix + device.name, .is_hardware = device.is_hardware, .why = device.what});
    return devices;
  }

  Result<std::unique_ptr<PlayerDevice>> Open(const std::string& name,
                                             const DeviceOptions& options) const override {
    const auto failed = [&](StatusCode code, const std::string& why) {
      return Status(code, fmt::format("device {}: {}", name, why));
    };
    auto selection = ParseSelection(name.substr(sizeof(kPrefix) - 1));
    if (!selection.ok()) return failed(selection.status().code(), selection.status().message());
    if (options.needs_offload)
      return failed(StatusCode::kEnvironment, "it starts nothing by itself");
    // What is wrong with it is known before anything is connected. A process that is forked
    // meanwhile would share what is opened here.
    const auto probe = Device::Open(*selection, "");
    if (!probe.ok()) return failed(probe.status().code(), probe.status().message());
    return std::unique_ptr<PlayerDevice>(
        std::make_unique<VerbsDevice>(name, *std::move(selection)));
  }

  std::string KindInGroup(const std::string&) const override { return "verbs"; }
};

}  // namespace

const DeviceKind& Devices() {
  static const VerbsKind kind;
  return kind;
}

}  // namespace prepost::verbs
