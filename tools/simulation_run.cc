// SPDX-License-Identifier: Apache-2.0
#include "tools/simulation_run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "prepost/backends/emulated/profile_costs.h"
#include "prepost/backends/emulated/virtual_hosts.h"
#include "prepost/backends/emulated/virtual_offload.h"
#include "tools/ticker.h"

namespace prepost::tools {
namespace {

/// The run ends with the last node's CQE; that its host sees it is no part of it.
void NoteDetection(Simulation* simulation) {
  const emulated::HostProfile& host = simulation->profile.host;
  const auto& nodes = simulation->offload->nodes;
  const auto last =
      std::ranges::max_element(nodes, {}, [](const auto& it) { return it.completion; });
  const bool sleeps = last != nodes.end() && last->ends_asleep;
  simulation->detection_seconds = (sleeps ? host.interrupt : 0) + host.poll + host.completion;
}

/// Of plans with more ops CQEs are not kept: 64 bytes each, in CQs rounded up, and nobody has asked to
/// see them. What is lost is the check of each against the plan at the end, and who waits for whom
/// if nothing happens any more.
constexpr size_t kOpsWithCqesMax = size_t{1} << 22;

/// How long a host looks before it sleeps.
emulated::Picoseconds PollingOf(WaitMode wait, const emulated::HostCosts& host) {
  switch (wait) {
    case WaitMode::kPolling:
      return emulated::kNever;
    case WaitMode::kHybrid:
      return host.hybrid_polling;
    case WaitMode::kInterrupt:
      break;
  }
  return 0;
}

Status RunOffload(const SimulationOptions& options, Simulation* simulation) {
  std::optional<Ticker> ticker;
  if (!options.is_quiet) ticker.emplace("simulating preposted queues");
  emulated::VirtualOffloadOptions run_options = OffloadOptionsOf(options, simulation->profile);
  run_options.keep_cqes = simulation->plan.ops().size() <= kOpsWithCqesMax;
  if (options.has_trail) {
    simulation->offload_trail = std::make_unique<emulated::TimeTrail>();
    run_options.trail = simulation->offload_trail.get();
  }
  Result<emulated::VirtualOffload> run =
      emulated::RunVirtualOffload(simulation->plan, simulation->network, run_options);
  if (!run.ok()) return run.status();
  simulation->mode = Name(options.lower.mode);
  simulation->offload = *std::move(run);
  NoteDetection(simulation);
  return {};
}

Status RunCpu(const SimulationOptions& options, Simulation* simulation) {
  std::optional<Ticker> ticker;
  if (!options.is_quiet) ticker.emplace("simulating hosts");
  emulated::VirtualHostsOptions run_options =
      HostsOptionsOf(options, simulation->profile, simulation->seed);
  if (options.has_trail) {
    simulation->cpu_trail = std::make_unique<emulated::TimeTrail>();
    run_options.trail = simulation->cpu_trail.get();
  }
  const emulated::VirtualGroup group = {.plan = &simulation->plan};
  Result<emulated::VirtualHosts> run =
      emulated::RunVirtualHosts({&group, 1}, simulation->network, run_options);
  if (!run.ok()) return run.status();
  simulation->wait = Name(options.wait);
  simulation->cpu = *std::move(run);
  return {};
}

}  // namespace

emulated::VirtualOffloadOptions OffloadOptionsOf(const SimulationOptions& options,
                                                 const emulated::Profile& profile) {
  const emulated::HostCosts host = emulated::HostCostsOf(profile);
  return {.costs = emulated::NicCostsOf(profile.nic),
          .rearm = {.send = host.post_send, .receive = host.post_receive},
          .polling = PollingOf(options.wait, host),
          .lower = options.lower};
}

emulated::VirtualHostsOptions HostsOptionsOf(const SimulationOptions& options,
                                             const emulated::Profile& profile, uint64_t seed) {
  emulated::HostCosts host = emulated::HostCostsOf(profile);
  if (options.copies_first_block) host.first_block_copy_rate = profile.host.copy_rate;
  return {.nic = emulated::NicCostsOf(profile.nic),
          .host = host,
          .wait = options.wait,
          .delays = options.delays,
          .seed = seed};
}

Status RunSimulation(const SimulationOptions& options, Simulation* simulation) {
  if (options.is_offload) PREPOST_RETURN_IF_ERROR(RunOffload(options, simulation));
  if (options.is_cpu) PREPOST_RETURN_IF_ERROR(RunCpu(options, simulation));
  return {};
}

}  // namespace prepost::tools
