// SPDX-License-Identifier: Apache-2.0
#include "backends/fabric_device.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "backends/fabric/domain.h"
#include "backends/fabric/endpoints.h"
#include "backends/fabric/fabric_endpoint.h"
#include "backends/triggered/deferred_program.h"
#include "backends/triggered/triggered_player.h"
#include "runtime/program.h"

namespace prepost {
namespace {

struct FabricProgram final : PlayerDevice::Program {
  explicit FabricProgram(triggered::DeferredProgram made) : works(std::move(made)) {}
  uint64_t work_requests() const override { return works.works.size() + works.receives(); }
  const triggered::DeferredProgram works;
};

/// The numeric address of this end; "": it has none.
std::string AddressOf(const TcpSocket& socket) {
  sockaddr_storage own = {};
  socklen_t bytes = sizeof(own);
  if (getsockname(socket.fd.get(), reinterpret_cast<sockaddr*>(&own), &bytes) != 0) return "";
  char text[INET6_ADDRSTRLEN] = "";
  if (own.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(own).sin_addr, text, sizeof(text));
  } else if (own.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(own).sin6_addr, text, sizeof(text));
  }
  return text;
}

class FabricDevice final : public PlayerDevice {
 public:
  explicit FabricDevice(FabricProvider provider) : provider_(std::move(provider)) {}

  Result<std::shared_ptr<const Program>> Lower(const VerifiedPlan& plan,
                                               NodeId node) const override {
    if (!provider_.is_triggered)
      return Rejected(fmt::format("device {} starts nothing by itself", provider_.name));
    auto works = triggered::LowerDeferred(plan, node, {.counters_max = provider_.counters_max});
    if (!works.ok()) return works.status();
    return std::shared_ptr<const Program>(std::make_shared<FabricProgram>(*std::move(works)));
  }

  Result<std::unique_ptr<Player>> MakePreposted(const Program& program, Task task) override {
    PREPOST_RETURN_IF_ERROR(OpenDomain(task));
    return triggered::MakeTriggeredPlayer(
        *domain_, static_cast<const FabricProgram&>(program).works, std::move(task));
  }

  Result<std::unique_ptr<Player>> MakeDriven(Task task) override {
    PREPOST_RETURN_IF_ERROR(OpenDomain(task));
    auto endpoints = fabric::Endpoints::Make(
        *domain_, {.plan = task.plan,
                   .node = task.node,
                   .ends = fabric::EndsOf(task.plan, ProgramOf(task.plan, task.node)),
                   .memory = task.context.memory});
    if (!endpoints.ok()) return endpoints.status();
    PREPOST_RETURN_IF_ERROR((*endpoints)
                                ->Connect(task.sockets, task.context.checkpoint,
                                          task.context.checkpoint_interval, task.answer_max));
    return std::unique_ptr<Player>(std::make_unique<CpuPlayer>(
        task.plan, task.node,
        std::make_unique<fabric::FabricEndpoint>(*std::move(endpoints), std::move(task.sockets),
                                                 task.context.wake_fd),
        task.context));
  }

 private:
  Status OpenDomain(const Task& task) {
    if (domain_ != nullptr) return {};
    auto domain = fabric::Domain::Open(
        {.provider = provider_.name.substr(sizeof(kFabricPrefix) - 1),
         .needs_triggers = provider_.is_triggered,
         .host = task.sockets.empty() ? "127.0.0.1" : AddressOf(task.sockets.front())});
    if (domain.ok()) domain_ = *std::move(domain);
    return domain.status();
  }

  const FabricProvider provider_;
  std::unique_ptr<fabric::Domain> domain_;
};

}  // namespace

bool IsFabricDevice(const std::string& name) { return name.starts_with(kFabricPrefix); }

Result<std::vector<FabricProvider>> FabricProviders() {
  const Result<std::vector<fabric::Provider>> found = fabric::Providers();
  if (!found.ok()) return found.status();
  std::vector<FabricProvider> providers;
  for (const fabric::Provider& provider : *found)
    providers.push_back(
        {kFabricPrefix + provider.name, provider.is_triggered, provider.counters_max});
  return providers;
}

Result<std::string> ListDeferredWork(const VerifiedPlan& plan, NodeId node, bool every_unit,
                                     uint32_t counters_max) {
  const auto program = triggered::LowerDeferred(plan, node, {.counters_max = counters_max});
  if (!program.ok()) return program.status();
  PREPOST_RETURN_IF_ERROR(triggered::ValidateDeferred(plan, *program));
  const std::string text = triggered::ListDeferred(plan, *program);
  return every_unit ? text : text.substr(0, text.find('\n') + 1);
}

Result<std::unique_ptr<PlayerDevice>> OpenFabric(const std::string& name, bool needs_triggers) {
  const auto failed = [&](const std::string& why) {
    return EnvironmentError(fmt::format("device {}: {} (see prepost devices)", name, why));
  };
  const Result<std::vector<FabricProvider>> providers = FabricProviders();
  if (!providers.ok()) return failed(providers.status().message());
  const auto found = std::ranges::find(*providers, name, &FabricProvider::name);
  if (found == providers->end()) return failed("libfabric has no such provider here");
  if (needs_triggers && !found->is_triggered)
    return failed("its provider starts no deferred work by itself");
  return std::unique_ptr<PlayerDevice>(std::make_unique<FabricDevice>(*found));
}

}  // namespace prepost
