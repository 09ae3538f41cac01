// SPDX-License-Identifier: Apache-2.0
#include "planning/simulation/simulation_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/analysis/network.h"
#include "planning/text/messages.h"
#include "sim/network/fluid_network.h"
#include "sim/network/long_paths.h"
#include "sim/nics/time.h"
#include "sim/runs/cpu_driven.h"
#include "sim/runs/preposted.h"

namespace prepost {
namespace {

/// `status` without the position of the group where there is only one.
Status WithoutGroup(const sim::Simulation& it, const Status& status) {
  constexpr std::string_view kFirst = "group 0: ";
  if (it.is_of_groups || !status.message().starts_with(kFirst)) return status;
  return {status.code(), status.message().substr(kFirst.size()), status.where()};
}

/// Runs with more ops in all their plans keep no CQEs: each takes 64 bytes, in CQs rounded up, and
/// nobody has asked to see them. What is lost is the check of each against the plan at the end, and
/// who waits for whom if nothing happens any more.
constexpr size_t kOpsWithCqesMax = size_t{1} << 22;

bool KeepsCqes(const sim::Simulation& it) {
  size_t ops = 0;
  for (const sim::Group& group : it.groups) ops += group.plan->ops().size();
  return ops <= kOpsWithCqesMax;
}

Status RunOffload(const SimulationOptions& options, sim::Simulation* it) {
  std::optional<Ticker> ticker;
  if (!options.is_quiet) ticker.emplace("simulating preposted queues");
  sim::PrepostedOptions run_options = {.costs = it->profile.nic,
                                       .host = it->profile.host,
                                       .wait = options.wait,
                                       .delays = options.delays,
                                       .preemptions = options.preemptions,
                                       .neighbours = options.neighbours,
                                       .seed = it->seed,
                                       .lower = options.lower,
                                       .keep_cqes = KeepsCqes(*it)};
  if (options.has_trail) {
    it->offload_trail = std::make_unique<sim::TimeTrail>();
    run_options.trail = it->offload_trail.get();
  }
  Result<sim::PrepostedResult> run = sim::RunPreposted(it->groups, it->network, run_options);
  if (!run.ok()) return WithoutGroup(*it, run.status());
  it->mode = Name(options.lower.mode);
  it->offload = *std::move(run);
  it->offload_times = TimesOf(*it, *it->offload);
  return {};
}

Status RunCpu(const SimulationOptions& options, sim::Simulation* it) {
  std::optional<Ticker> ticker;
  if (!options.is_quiet) ticker.emplace("simulating hosts");
  sim::CpuDrivenOptions run_options = {.nic = it->profile.nic,
                                       .host = it->profile.host,
                                       .wait = options.wait,
                                       .delays = options.delays,
                                       .preemptions = options.preemptions,
                                       .neighbours = options.neighbours,
                                       .seed = it->seed};
  if (options.copies_first_block)
    run_options.host.first_block_copy_rate = it->profile.host.copy_rate;
  if (options.has_trail) {
    it->cpu_trail = std::make_unique<sim::TimeTrail>();
    run_options.trail = it->cpu_trail.get();
  }
  Result<sim::CpuDrivenResult> run = sim::RunCpuDriven(it->groups, it->network, run_options);
  if (!run.ok()) return WithoutGroup(*it, run.status());
  it->cpu = *std::move(run);
  it->cpu_times = TimesOf(*it, *it->cpu);
  return {};
}

/// What no plan could be run on, in the words of those who would.
Status CheckCluster(const SimulationOptions& options, const sim::Simulation& it) {
  const auto hosts = static_cast<uint32_t>(it.network.nodes.size());
  const sim::NicCosts& nic = it.profile.nic;
  PREPOST_RETURN_IF_ERROR(CheckNetwork(it.network, hosts));
  PREPOST_RETURN_IF_ERROR(sim::CheckCosts(nic));
  PREPOST_RETURN_IF_ERROR(sim::CheckCosts(it.profile.host));
  PREPOST_RETURN_IF_ERROR(sim::CheckNoise({.delays = options.delays,
                                           .preemptions = options.preemptions,
                                           .neighbours = options.neighbours,
                                           .seed = it.seed},
                                          hosts));
  return sim::FluidNetwork::Make(it.network, nic.port_sharing).status();
}

}  // namespace

Status FailureOf(const Status& status, const SimulationOptions& options,
                 const sim::Simulation& simulation, const std::vector<std::string>& given,
                 const std::string& place) {
  const Status of_plan(status.code(), status.ToString(), place);
  if (given.empty() || status.code() != StatusCode::kRejected) return of_plan;
  if (!sim::IsBeyondTime(status) &&
      CheckCluster(options, simulation).message() != status.message()) {
    return of_plan;
  }
  return {StatusCode::kUsage, status.ToString(), fmt::format("{}", fmt::join(given, ", "))};
}

Status RunSimulation(const SimulationOptions& options, sim::Simulation* simulation) {
  simulation->network = sim::WithLongPairs(std::move(simulation->network), simulation->groups,
                                           simulation->profile.is_tcp);
  simulation->bound = BoundOf(*simulation);
  simulation->wait = Name(options.wait);
  if (options.is_offload) PREPOST_RETURN_IF_ERROR(RunOffload(options, simulation));
  if (options.is_cpu) PREPOST_RETURN_IF_ERROR(RunCpu(options, simulation));
  return {};
}

}  // namespace prepost
