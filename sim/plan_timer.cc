// SPDX-License-Identifier: Apache-2.0
#include "sim/plan_timer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sim/network/long_paths.h"
#include "sim/runs/cpu_driven.h"
#include "sim/runs/group.h"
#include "sim/runs/preposted.h"
#include "sim/simulation.h"

namespace prepost::sim {
namespace {

/// Until the last node has it. Of a run of one group.
template <typename Run>
double SecondsOf(const Run& run) {
  Picoseconds last = 0;
  for (const auto& node : run.groups.front().nodes) last = std::max(last, node.received);
  return ToSeconds(last - run.groups.front().start);
}

/// Whether all receives of a plan of so many blocks can be posted at once, if they have to be.
Status CheckReceives(Ready ready, uint32_t blocks, const nic::LowerOptions& lower) {
  if (ready.mode == ReadyMode::kWindow || blocks <= lower.profile.rq_at_once()) return {};
  return Rejected(fmt::format("{} receives at once, device profile {} holds {}", blocks,
                              lower.profile.name, lower.profile.rq_at_once()));
}

Result<double> TimeOfPlan(const VerifiedPlan& plan, uint32_t blocks,
                          const PlanTimerOptions& options) {
  const std::array groups = {Group{.plan = &plan}};
  std::optional<Network> with_pairs;
  if (!options.network.links.empty())
    with_pairs = WithLongPairs(options.network, groups, options.profile.is_tcp);
  const Network& network = with_pairs ? *with_pairs : options.network;
  if (options.is_offload) {
    PREPOST_RETURN_IF_ERROR(CheckReceives(plan.header().ready, blocks, options.lower));
    const Result<PrepostedResult> run = RunPreposted(groups, network,
                                                     {.costs = options.profile.nic,
                                                      .host = options.profile.host,
                                                      .wait = options.wait,
                                                      .lower = options.lower});
    if (!run.ok()) return run.status();
    return SecondsOf(*run);
  }
  const Result<CpuDrivenResult> run = RunCpuDriven(
      groups, network,
      {.nic = options.profile.nic, .host = options.profile.host, .wait = options.wait});
  if (!run.ok()) return run.status();
  return SecondsOf(*run);
}

}  // namespace

CollectiveParameters CollectiveParametersOf(const Profile& profile) {
  const HostCosts& host = profile.host;
  CollectiveParameters parameters;
  parameters.rate = profile.host_rate();
  parameters.block_overhead =
      ToSeconds(host.post_send + host.completion + host.system_call + profile.nic.wqe);
  parameters.hop = parameters.block_overhead + profile.network.rack_latency +
                   ToSeconds(host.post_receive + host.poll + host.completion + host.system_call +
                             profile.nic.doorbell + profile.nic.cqe);
  if (host.combine_rate != 0) parameters.combine_rate = host.combine_rate;
  if (!profile.is_tcp) parameters.turn = 1;
  return parameters;
}

PlanTimer MakePlanTimer(PlanTimerOptions options) {
  return [options = std::move(options)](const VerifiedPlan& plan, uint32_t blocks) {
    return TimeOfPlan(plan, blocks, options);
  };
}

}  // namespace prepost::sim
