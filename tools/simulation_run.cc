// SPDX-License-Identifier: Apache-2.0
#include "tools/simulation_run.h"

#include <memory>
#include <optional>
#include <utility>

#include "prepost/backends/emulated/profile_costs.h"
#include "prepost/backends/emulated/virtual_hosts.h"
#include "prepost/backends/emulated/virtual_offload.h"
#include "tools/ticker.h"

namespace prepost::tools {
namespace {

/// The run ends with a CQE; that its host sees it is no part of it.
void NoteDetection(WaitMode wait, Simulation* simulation) {
  const emulated::HostProfile& host = simulation->profile.host;
  const double completion = static_cast<double>(simulation->offload->completion) /
                            static_cast<double>(emulated::kPicosecondsPerSecond);
  const bool polls = wait == WaitMode::kPolling ||
                     (wait == WaitMode::kHybrid && completion <= host.hybrid_polling);
  simulation->detection_seconds = (polls ? host.poll : host.interrupt) + host.completion;
}

Status RunOffload(const SimulationOptions& options, Simulation* simulation) {
  std::optional<Ticker> ticker;
  if (!options.is_quiet) ticker.emplace("simulating preposted queues");
  emulated::VirtualOffloadOptions run_options;
  run_options.costs = emulated::NicCostsOf(simulation->profile.nic);
  run_options.rearm = RearmCostsOf(simulation->profile);
  run_options.lower = options.lower;
  if (options.has_trail) {
    simulation->offload_trail = std::make_unique<emulated::TimeTrail>();
    run_options.trail = simulation->offload_trail.get();
  }
  Result<emulated::VirtualOffload> run =
      emulated::RunVirtualOffload(simulation->plan, simulation->network, run_options);
  if (!run.ok()) return run.status();
  simulation->mode = Name(options.lower.mode);
  simulation->offload = *std::move(run);
  NoteDetection(options.wait, simulation);
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

emulated::RearmCosts RearmCostsOf(const emulated::Profile& profile) {
  const emulated::HostCosts host = emulated::HostCostsOf(profile);
  return {.send = host.post_send, .receive = host.post_receive};
}

emulated::VirtualHostsOptions HostsOptionsOf(const SimulationOptions& options,
                                             const emulated::Profile& profile, uint64_t seed) {
  emulated::VirtualHostsOptions run;
  run.nic = emulated::NicCostsOf(profile.nic);
  run.host = emulated::HostCostsOf(profile);
  run.wait = options.wait;
  run.delays = options.delays;
  run.seed = seed;
  if (options.copies_first_block) run.host.first_block_copy_rate = profile.host.copy_rate;
  return run;
}

Status RunSimulation(const SimulationOptions& options, Simulation* simulation) {
  if (options.is_offload) PREPOST_RETURN_IF_ERROR(RunOffload(options, simulation));
  if (options.is_cpu) PREPOST_RETURN_IF_ERROR(RunCpu(options, simulation));
  return {};
}

}  // namespace prepost::tools
