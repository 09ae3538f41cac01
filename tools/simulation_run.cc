// SPDX-License-Identifier: Apache-2.0
#include "tools/simulation_run.h"

#include <optional>
#include <utility>

#include "prepost/backends/emulated/profile_costs.h"
#include "prepost/backends/emulated/virtual_hosts.h"
#include "prepost/backends/emulated/virtual_offload.h"
#include "tools/ticker.h"

namespace prepost::tools {
namespace {

Status RunOffload(const SimulationOptions& options, Simulation* simulation) {
  std::optional<Ticker> ticker;
  if (!options.is_quiet) ticker.emplace("simulating preposted queues");
  emulated::VirtualOffloadOptions run_options;
  run_options.costs = emulated::NicCostsOf(simulation->profile.nic);
  const emulated::HostCosts host = emulated::HostCostsOf(simulation->profile);
  run_options.rearm = {.send = host.post_send, .receive = host.post_receive};
  run_options.lower = options.lower;
  Result<emulated::VirtualOffload> run =
      emulated::RunVirtualOffload(simulation->plan, simulation->network, run_options);
  if (!run.ok()) return run.status();
  simulation->mode = Name(options.lower.mode);
  simulation->offload = *std::move(run);
  return {};
}

Status RunCpu(const SimulationOptions& options, Simulation* simulation) {
  std::optional<Ticker> ticker;
  if (!options.is_quiet) ticker.emplace("simulating hosts");
  emulated::VirtualHostsOptions run_options;
  run_options.nic = emulated::NicCostsOf(simulation->profile.nic);
  run_options.host = emulated::HostCostsOf(simulation->profile);
  run_options.wait = options.wait;
  run_options.delays = options.delays;
  run_options.seed = simulation->seed;
  const emulated::VirtualGroup group = {.plan = &simulation->plan};
  Result<emulated::VirtualHosts> run =
      emulated::RunVirtualHosts({&group, 1}, simulation->network, run_options);
  if (!run.ok()) return run.status();
  simulation->wait = Name(options.wait);
  simulation->cpu = *std::move(run);
  return {};
}

}  // namespace

Status RunSimulation(const SimulationOptions& options, Simulation* simulation) {
  if (options.is_offload) PREPOST_RETURN_IF_ERROR(RunOffload(options, simulation));
  if (options.is_cpu) PREPOST_RETURN_IF_ERROR(RunCpu(options, simulation));
  return {};
}

}  // namespace prepost::tools
