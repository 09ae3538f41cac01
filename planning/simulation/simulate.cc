// SPDX-License-Identifier: Apache-2.0
#include "planning/simulation/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "ir/base/count.h"
#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/flags/play_flags.h"
#include "planning/flags/slow_flag.h"
#include "planning/flags/values.h"
#include "planning/simulation/simulation_run.h"
#include "planning/text/messages.h"
#include "runtime/executor/executor_choice.h"

namespace prepost {
namespace {

/// The plan of the flags; of several rows that need the same, one.
Result<std::shared_ptr<const SimulatedPlan>> PlanFor(const SimulationFlags& flags,
                                                     const sim::Profile& profile,
                                                     const nic::LowerOptions* lower,
                                                     SimulateContext* context) {
  if (context->plan != nullptr) return context->plan;
  CommandLine given = flags.given;
  for (const char* other : {"--delay", "--slow", "--preempt", "--neighbours", "--groups", "--seed"})
    given.Remove(other);
  // By these auto chooses, which a spec file may ask for.
  if (flags.input.path.empty() && !flags.input.spec.asks_auto()) {
    for (const char* other : {"--set", "--wait"}) given.Remove(other);
  }
  AutoTarget target = {.is_offload = lower != nullptr,
                       .profile = &profile,
                       .wait = ValueOf(kWaitModeNames, flags.wait, kModelledWait)};
  if (lower != nullptr) target.lower = *lower;
  return context->plans.Get({given.Text(), profile.network, profile.rack_hosts},
                            [&] { return flags.input.Load(target, context->is_quiet); });
}

/// What flags say of links and hosts.
Status ApplyNoise(const SimulationFlags& flags, Network* network, SimulationOptions* options) {
  const auto hosts = static_cast<uint32_t>(network->nodes.size());
  Result<std::vector<sim::HostDelay>> delays = flags.noise.Delays(hosts);
  if (!delays.ok()) return delays.status();
  options->delays = *std::move(delays);
  Result<std::vector<sim::HostPreemptions>> preemptions =
      flags.noise.Preemptions(hosts, flags.seed);
  if (!preemptions.ok()) return preemptions.status();
  options->preemptions = *std::move(preemptions);
  Result<std::vector<sim::HostNeighbours>> neighbours = flags.noise.Neighbours(hosts, flags.seed);
  if (!neighbours.ok()) return neighbours.status();
  options->neighbours = *std::move(neighbours);
  return SlowNetwork(flags.noise.slow, flags.seed, network);
}

/// "hosts 1, 4 and 7"; of many the first ones.
std::string HostsText(const std::vector<NodeId>& hosts, size_t of) {
  constexpr size_t kHostsShownMax = 8;
  if (hosts.empty()) return fmt::format("none of {}", Count(of, "host"));
  std::string text = hosts.size() == 1 ? "host" : "hosts";
  const size_t shown = std::min(hosts.size(), kHostsShownMax);
  for (size_t i = 0; i < shown; ++i) {
    const bool is_last = i + 1 == hosts.size();
    text += fmt::format("{}{}", i == 0 ? " " : is_last ? " and " : ", ", hosts[i].value);
  }
  if (shown < hosts.size()) text += fmt::format(" and {} more", hosts.size() - shown);
  return text;
}

/// Says in the deviations which hosts were drawn.
Status SayDrawnHosts(const SimulationFlags& flags, sim::Simulation* it) {
  const size_t hosts = it->network.nodes.size();
  Result<std::vector<sim::DrawnHosts>> drawn =
      flags.noise.Drawn(static_cast<uint32_t>(hosts), flags.seed);
  if (!drawn.ok()) return drawn.status();
  it->drawn_hosts = *std::move(drawn);
  for (const sim::DrawnHosts& of_flag : it->drawn_hosts) {
    const auto deviation = std::ranges::find(it->deviations, of_flag.flag);
    if (deviation != it->deviations.end())
      *deviation += fmt::format(" ({})", HostsText(of_flag.hosts, hosts));
  }
  return {};
}

Result<Network> NetworkOfWorkload(const SimulationFlags& flags, const sim::Profile& profile,
                                  uint32_t hosts) {
  const std::optional<std::string>& path = flags.input.spec.topology();
  if (!path) return profile.NetworkOf(hosts);
  const Result<Network> topology = LoadTopology(*path);
  if (!topology.ok()) return topology.status();
  return NetworkOfFile(*topology, *path, hosts);
}

/// What is sent in place of a plan.
Status FillWorkload(const SimulationFlags& flags, const SimulationOptions& options, Simulated* it) {
  if (!flags.input.path.empty()) {
    return {StatusCode::kUsage, "--workload says what is sent: no PLAN or SPEC beside it"};
  }
  std::string beside = flags.input.spec.FirstGiven(/*has_topology=*/false);
  if (beside.empty() && flags.groups) beside = "--groups";
  if (beside.empty() && flags.input.size.is_given()) beside = flags.input.size.flag();
  if (!beside.empty()) {
    return {StatusCode::kUsage, fmt::format("{}: --workload says what is sent", beside)};
  }
  Result<Workload> workload =
      LoadWorkload(flags.workload, options.is_offload ? &options.lower : nullptr, options.is_quiet);
  if (!workload.ok()) return workload.status();
  it->workload = std::make_unique<Workload>(*std::move(workload));
  Result<Network> network = NetworkOfWorkload(flags, *it->profile, it->workload->hosts);
  if (!network.ok()) return network.status();
  it->simulation->groups = it->workload->groups;
  it->simulation->workload = it->workload->name;
  it->simulation->network = *std::move(network);
  return {};
}

/// How people know what is sent.
std::string NameOfSent(const SimulationFlags& flags) {
  if (!flags.workload.empty()) return NameOfInput(flags.workload);
  return flags.input.path.empty() ? "the plan" : NameOfInput(flags.input.path);
}

/// A plan, once or several times at once.
Status FillPlan(const SimulationFlags& flags, const SimulationOptions& options,
                SimulateContext* context, Simulated* it) {
  Result<std::shared_ptr<const SimulatedPlan>> plan =
      PlanFor(flags, *it->profile, options.is_offload ? &options.lower : nullptr, context);
  if (!plan.ok()) return plan.status();
  it->plan = *std::move(plan);
  if (it->plan->topology)
    PREPOST_RETURN_IF_ERROR(CheckNoneOfNetwork(SettingsOf(flags.settings), NameOfSent(flags)));
  Result<Network> network = it->plan->NetworkIn(*it->profile);
  if (!network.ok()) return network.status();
  it->simulation->plan = &it->plan->plan;
  it->simulation->network = *std::move(network);
  if (!flags.groups) {
    it->simulation->groups = {{.plan = &it->plan->plan}};
    return {};
  }
  const uint64_t transfers = it->plan->plan.ops().size() / 2;
  if (transfers > sim::kGroupTransfersMax / *flags.groups) {
    return Rejected(fmt::format("{} groups of {} transfers, the limit is {} together",
                                *flags.groups, transfers, sim::kGroupTransfersMax),
                    NameOfSent(flags));
  }
  it->simulation->groups = sim::RotatedGroups(it->plan->plan, *flags.groups);
  return {};
}

/// Says what of `it` NICs cannot carry, or hosts cannot be said to combine, and leaves preposted
/// queues out where they can be.
Status CheckCollectives(const SimulationFlags& flags, SimulationOptions* options,
                        const sim::Simulation& it) {
  const auto is_other = [](const sim::Group& group) {
    return group.plan->header().collective.kind != CollectiveKind::kMulticast;
  };
  const auto other = std::ranges::find_if(it.groups, is_other);
  if (other == it.groups.end()) return {};
  const auto combines = [](const sim::Group& group) {
    return group.plan->header().payload.bytes != 0 &&
           std::ranges::any_of(group.plan->ops(), &Op::is_combine);
  };
  if (it.profile.host.combine_rate == 0 && std::ranges::any_of(it.groups, combines)) {
    return Rejected(
        "the profile does not say how fast a host combines: add host.combine_rate, or "
        "--set host.combine_rate=4GB/s",
        flags.profile);
  }
  if (!options->is_offload) return {};
  const std::optional<std::string> why = WhyNotPreposted(*other->plan);
  PREPOST_CHECK(why.has_value());
  if (!options->is_cpu) return Rejected(*why + "; use --executor cpu", NameOfSent(flags));
  if (!options->is_quiet) PrintNote("CPU-driven only: " + *why);
  options->is_offload = false;
  return {};
}

/// `is_row`: of a sweep, which goes on.
Status RunFailure(const Status& status, const SimulationFlags& flags,
                  const SimulationOptions& options, const sim::Simulation& it, bool is_row) {
  std::vector<std::string> given;
  for (const char* flag : {"--set", "--slow", "--delay", "--preempt", "--neighbours"}) {
    for (const std::string& value : flags.given.ValuesOf(flag))
      given.push_back(fmt::format("{} {}", flag, value));
  }
  const Status failure = FailureOf(status, options, it, given, NameOfSent(flags));
  return is_row ? Status(status.code(), failure.message(), failure.where()) : failure;
}

std::vector<std::string> DeviationsOf(const SimulationFlags& flags, const sim::Profile& profile) {
  std::vector<std::string> deviations = FixedDeviationsOf(flags.given);
  if (const std::optional<std::string> seed = SeedDeviationOf(flags, profile))
    deviations.push_back(*seed);
  return deviations;
}

}  // namespace

Result<sim::Profile> ProfileFor(const SimulationFlags& flags, const ProfileText& text,
                                const std::vector<std::string>& swept) {
  std::vector<ProfileSetting> settings = SettingsOf(flags.settings, swept);
  const Result<std::vector<ProfileSetting>> preempt = flags.noise.Settings();
  if (!preempt.ok()) return preempt.status();
  settings.insert(settings.end(), preempt->begin(), preempt->end());
  if (const std::optional<std::string>& topology = flags.input.spec.topology())
    PREPOST_RETURN_IF_ERROR(CheckNoneOfNetwork(settings, "--topology " + *topology));
  return ProfileWith(text, settings);
}

std::vector<std::string> FixedDeviationsOf(const CommandLine& given) {
  std::vector<std::string> deviations;
  for (const char* flag : {"--set", "--topology", "--groups", "--delay", "--slow", "--preempt",
                           "--neighbours", "--wait", "--mode", "--masters", "--device-profile"}) {
    for (const std::string& value : given.ValuesOf(flag))
      deviations.push_back(fmt::format("{} {}", flag, value));
  }
  for (const std::string& order : given.ValuesOf("--order")) deviations.push_back(OrderText(order));
  if (given.Has("--copy-first-block")) deviations.emplace_back("--copy-first-block");
  return deviations;
}

namespace {

std::string SeedText(const SimulationFlags& flags) { return fmt::format("seed {}", flags.seed); }

}  // namespace

std::optional<std::string> SeedDeviationOf(const SimulationFlags& flags,
                                           const sim::Profile& profile) {
  if (!flags.noise.IsDrawn() && profile.host.preemptions_per_second == 0) return std::nullopt;
  return SeedText(flags);
}

bool DrawsLosses(const sim::Simulation& it) {
  const auto loses = [](const Network::Link& link) { return link.loss > 0; };
  return it.profile.is_tcp && std::ranges::any_of(it.network.links, loses);
}

Result<Simulated> Simulate(const SimulationFlags& flags, SimulateContext* context) {
  PREPOST_RETURN_IF_ERROR(flags.Check());
  Result<sim::Profile> profile = ProfileFor(flags, context->profiles.at(flags.profile));
  if (!profile.ok()) return profile.status();
  const Result<nic::LowerOptions> lower = flags.lowering.ToOptions();
  if (!lower.ok()) return lower.status();
  SimulationOptions options = {.is_offload = flags.executor != "cpu",
                               .is_cpu = flags.executor != "offload",
                               .lower = *lower,
                               .wait = ValueOf(kWaitModeNames, flags.wait, kModelledWait),
                               .copies_first_block = flags.copies_first_block,
                               .has_trail = flags.causes || context->has_trail,
                               .is_quiet = context->is_quiet};
  if (options.is_offload && profile->is_tcp) {
    if (!options.is_cpu) {
      return Rejected("its cluster sends over TCP, where no NIC can be preposted", flags.profile);
    }
    if (!context->is_quiet)
      PrintNote("this cluster sends over TCP, where no NIC can be preposted: CPU-driven only");
    options.is_offload = false;
  }
  Simulated it;
  it.profile = std::make_unique<const sim::Profile>(*std::move(profile));
  it.simulation.reset(new sim::Simulation{.groups = {},
                                          .is_of_groups = flags.has_groups(),
                                          .profile = *it.profile,
                                          .profile_path = flags.profile,
                                          .command = flags.given.Text(),
                                          .deviations = DeviationsOf(flags, *it.profile),
                                          .network = {},
                                          .seed = flags.seed,
                                          .has_causes = flags.causes});
  PREPOST_RETURN_IF_ERROR(flags.workload.empty() ? FillPlan(flags, options, context, &it)
                                                 : FillWorkload(flags, options, &it));
  PREPOST_RETURN_IF_ERROR(ApplyNoise(flags, &it.simulation->network, &options));
  PREPOST_RETURN_IF_ERROR(SayDrawnHosts(flags, it.simulation.get()));
  if (DrawsLosses(*it.simulation) && !SeedDeviationOf(flags, *it.profile))
    it.simulation->deviations.push_back(SeedText(flags));
  PREPOST_RETURN_IF_ERROR(CheckCollectives(flags, &options, *it.simulation));
  const Status status = RunSimulation(options, it.simulation.get());
  if (!status.ok()) return RunFailure(status, flags, options, *it.simulation, context->is_quiet);
  return it;
}

}  // namespace prepost
