// SPDX-License-Identifier: Apache-2.0
//
// Devices "fabric:PROVIDER": libfabric's providers, driven by the CPU, or, where a provider starts
// deferred work by itself, preposted. A provider is opened with the first player, at the address of
// its links.
#include "backends/fabric/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "backends/fabric/domain.h"
#include "backends/fabric/endpoints.h"
#include "backends/fabric/triggered_player.h"
#include "backends/triggered/deferred_program.h"

namespace prepost::fabric {
namespace {

constexpr char kPrefix[] = "fabric:";
constexpr char kStartsNothing[] = "it starts nothing by itself";

struct FabricProgram final : PlayerDevice::Program {
  explicit FabricProgram(triggered::DeferredProgram made) : works(std::move(made)) {}
  uint64_t work_requests() const override { return works.works.size() + works.receives(); }
  const triggered::DeferredProgram works;
};

class FabricDevice final : public PlayerDevice {
 public:
  explicit FabricDevice(Provider provider) : provider_(std::move(provider)) {}

  bool is_automatic() const override { return provider_.is_automatic; }
  Result<std::shared_ptr<const Program>> Lower(const VerifiedPlan& plan,
                                               NodeId node) const override {
    if (!provider_.is_triggered) return Rejected(kStartsNothing);
    auto works = triggered::LowerDeferred(plan, node, {.counters_max = provider_.counters_max});
    if (!works.ok()) return works.status();
    return std::shared_ptr<const Program>(std::make_shared<FabricProgram>(*std::move(works)));
  }

  Result<std::unique_ptr<Player>> MakePreposted(const Program& program, Task task) override {
    if (!provider_.is_triggered) return Rejected(kStartsNothing);
    PREPOST_RETURN_IF_ERROR(OpenDomain(task));
    return MakeTriggeredPlayer(*domain_, static_cast<const FabricProgram&>(program).works,
                               std::move(task));
  }

  Result<std::unique_ptr<Player>> MakeDriven(Task task) override {
    PREPOST_RETURN_IF_ERROR(OpenDomain(task));
    std::shared_ptr<Endpoints> endpoints = std::exchange(endpoints_, nullptr);
    if (task.is_as_before && endpoints != nullptr) {
      PREPOST_RETURN_IF_ERROR(endpoints->Restart(task.context.memory));
    } else {
      auto made = Endpoints::Make(*domain_,
                                  {.ends = {task.plan, task.node}, .memory = task.context.memory});
      if (!made.ok()) return made.status();
      endpoints = *std::move(made);
      PREPOST_RETURN_IF_ERROR(endpoints->Connect(task));
    }
    // Where others may be preposted, they exchange endpoints for each message.
    if (task.is_kept && !provider_.is_triggered) endpoints_ = endpoints;
    return MakeQueuedPlayer(std::move(endpoints), std::move(task));
  }

 private:
  Status OpenDomain(const Task& task) {
    if (domain_ != nullptr) return {};
    const std::string host = task.links->LocalHost();
    auto domain = Domain::Open({.provider = provider_.name,
                                .needs_triggers = provider_.is_triggered,
                                .host = host.empty() ? "127.0.0.1" : host});
    if (domain.ok()) domain_ = *std::move(domain);
    return domain.status();
  }

  const Provider provider_;
  std::unique_ptr<Domain> domain_;
  std::shared_ptr<Endpoints> endpoints_;  ///< of the last player, if they are kept
};

class FabricKind final : public DeviceKind {
 public:
  Result<std::vector<ListedDevice>> List() const override {
    const Result<std::vector<Provider>> providers = Providers();
    if (!providers.ok()) return providers.status();
    std::vector<ListedDevice> devices;
    for (const Provider& provider : *providers)
      devices.push_back({.name = kPrefix + provider.name,
                         .can_offload = provider.is_triggered,
                         .is_automatic = provider.is_automatic,
                         .why = "a provider of libfabric, " + Starts(provider)});
    return devices;
  }

  Result<std::unique_ptr<PlayerDevice>> Open(const std::string& name,
                                             const DeviceOptions& options) const override {
    const auto failed = [&](const std::string& why) {
      return EnvironmentError(fmt::format("device {}: {} (see prepost devices)", name, why));
    };
    const Result<std::vector<Provider>> providers = Providers();
    if (!providers.ok()) return failed(providers.status().message());
    const auto found =
        std::ranges::find(*providers, name.substr(sizeof(kPrefix) - 1), &Provider::name);
    if (found == providers->end()) return failed("libfabric has no such provider here");
    if (options.needs_offload && !found->is_triggered)
      return failed("its provider starts no deferred work by itself");
    return std::unique_ptr<PlayerDevice>(std::make_unique<FabricDevice>(*found));
  }

  std::string KindInGroup(const std::string& name) const override { return name; }

 private:
  static std::string Starts(const Provider& provider) {
    if (!provider.is_triggered) return "which starts nothing by itself";
    return fmt::format("which starts deferred work by itself ({} counters)", provider.counters_max);
  }
};

}  // namespace

const DeviceKind& Devices() {
  static const FabricKind kind;
  return kind;
}

}  // namespace prepost::fabric
