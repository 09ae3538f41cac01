// SPDX-License-Identifier: Apache-2.0
//
// prepost simulate: how long a plan takes on a modelled cluster, preposted and CPU-driven.
#include "planning/simulation/simulate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "planning/files/named_file.h"
#include "planning/simulation/simulation_report.h"
#include "planning/text/messages.h"
#include "planning/text/plan_text.h"
#include "runtime/base/interrupt.h"
#include "sim/causes/time_by_cause.h"
#include "tools/commands/commands.h"
#include "tools/commands/simulate_seeds.h"
#include "tools/commands/simulate_sweep.h"
#include "tools/flags/simulate_flags.h"
#include "tools/report/sweep_report.h"

namespace prepost::tools {
namespace {

Status WriteSimulatedTrace(SimulateFlags& flags, const Simulated& it) {
  const Result<InterruptSignals> signals = InterruptSignals::Hold();
  if (!signals.ok()) return signals.status();
  TraceOutput& trace = flags.trace;
  PREPOST_RETURN_IF_ERROR(trace.Prepare(
      &it.plan->plan, {flags.profile, flags.input.path.empty() ? "-" : flags.input.path}));
  const bool is_offload = it.simulation->offload_trail != nullptr;
  sim::FillTrace(is_offload ? *it.simulation->offload_trail : *it.simulation->cpu_trail,
                 trace.table());
  return trace.Write(
      &it.plan->plan,
      {.executor = is_offload ? "offload" : "cpu",
       .detail = fmt::format("{}, with the profile {}{}", kModelled, it.profile->name,
                             DeviationsText(it.simulation->deviations, kDeviationsShownMax)),
       .hosts = HostsOf(*it.simulation, is_offload)},
      {});
}

/// The only row of what is no sweep.
Status WriteOnlyRow(const SimulateFlags& flags, const sim::Simulation& it) {
  const Sweep sweep = {.command = it.command,
                       .profiles = {{it.profile.name, it.profile_path}},
                       .deviations = it.deviations,
                       .axes = {},
                       .rows = {{{}, it.command, {}, prepost::ToJson(it, flags.per_node)}}};
  return WriteFile(flags.sweep.csv, [&](std::ostream& out) { WriteCsv(sweep, out); });
}

/// Notes that interference changes nothing where preposted queues alone leave hosts no work.
void NoteIdleHosts(const SimulateFlags& flags, const sim::Simulation& it) {
  const std::vector<std::string> given = flags.noise.OfHosts();
  if (flags.executor != "offload" || given.empty()) return;
  const auto has_rearms = [](const sim::PrepostedResult::Group& group) {
    return std::ranges::any_of(group.nodes, [](const auto& node) { return node.rearms != 0; });
  };
  if (std::ranges::any_of(it.offload->groups, has_rearms)) return;
  PrintNote(
      fmt::format("{} change{} nothing: all queues fit their rings, so hosts have nothing to do "
                  "on the way",
                  fmt::join(given, ", "), given.size() == 1 ? "s" : ""));
}

/// A seed where nothing is drawn.
void NoteIdleSeed(const SimulateFlags& flags, const Simulated& it) {
  if (flags.given.ValuesOf("--seed").empty() || SeedDeviationOf(flags, *it.profile)) return;
  if (DrawsLosses(*it.simulation)) return;
  PrintNote(
      "--seed changes nothing: nothing is drawn without preemptions, hosts= or share= of a flag, "
      "--slow random=, or a lossy path over TCP");
}

/// Which of what is read are stdin, at most one.
Status CheckStdin(const SimulateFlags& flags) {
  auto count = static_cast<ptrdiff_t>(flags.input.path == "-");
  for (const char* const flag : {"--profile", "--topology", "--workload"}) {
    const auto values = flags.given.ValuesOf(flag);
    count += std::ranges::count(values, "-");
  }
  if (count < 2) return {};
  return {StatusCode::kUsage,
          "only one of PLAN, --profile, --topology and --workload can be stdin"};
}

Status Run(SimulateFlags& flags) {
  PREPOST_RETURN_IF_ERROR(CheckStdin(flags));
  PREPOST_RETURN_IF_ERROR(CheckSweepFlags(flags.sweep));
  const bool is_sweep = !flags.sweep.axes.empty() || flags.sweep.seeds.has_value();
  if (flags.trace.is_wanted()) {
    if (!flags.sweep.axes.empty())
      return {StatusCode::kUsage, "--trace is for one run, not for --sweep"};
    PREPOST_RETURN_IF_ERROR(CheckSeeds(flags, {}));
    if (flags.executor == "both")
      return {StatusCode::kUsage, "--trace is of one executor: add --executor cpu or offload"};
    if (flags.has_groups()) return {StatusCode::kUsage, "--trace is for one plan alone"};
  }
  SimulateContext context = {.is_quiet = is_sweep, .has_trail = flags.trace.is_wanted()};
  if (is_sweep) return SimulateSweep(flags, &context);
  if (flags.profile.empty()) return {StatusCode::kUsage, "--profile is required (see --help)"};
  Result<ProfileText> profile = LoadProfileText(flags.profile);
  if (!profile.ok()) return profile.status();
  context.profiles[flags.profile] = *std::move(profile);
  const Result<Simulated> it = Simulate(flags, &context);
  if (!it.ok()) return it.status();
  NoteIdleHosts(flags, *it->simulation);
  NoteIdleSeed(flags, *it);
  if (flags.trace.is_wanted()) PREPOST_RETURN_IF_ERROR(WriteSimulatedTrace(flags, *it));
  if (!flags.sweep.csv.empty()) PREPOST_RETURN_IF_ERROR(WriteOnlyRow(flags, *it->simulation));
  if (flags.sweep.csv == "-") return {};
  if (flags.sweep.is_json) {
    PrintJson(prepost::ToJson(*it->simulation, /*has_lists=*/true), std::cout);
  } else {
    prepost::Print(*it->simulation, flags.per_node, std::cout);
  }
  return {};
}

}  // namespace

void AddSimulate(CLI::App& app, Action* action) {
  auto flags = std::make_shared<SimulateFlags>();
  CLI::App* command =
      app.add_subcommand("simulate", "Predict how long a plan takes on a modelled cluster");
  command->footer(
      "Runs the plan under a virtual clock, preposted and CPU-driven: the emulated NICs execute "
      "the "
      "very WQEs, and the hosts\n"
      "the very executor, that a real run has; a model says what each step takes "
      "(docs/simulate.md).\n"
      "Its numbers come from the profile, which says where it has them from. "
      "All that is printed\n"
      "is modelled. The same command prints the same; docs/simulate.md tells what it means.\n\n"
      "Examples:\n"
      "  prepost simulate plan.json --profile fractus\n"
      "  prepost simulate plan.json --profile fractus --delay node=3,at=200us,for=100us\n"
      "  prepost simulate plan.json --profile apt --executor cpu --wait interrupt --per-node\n"
      "  prepost simulate --nodes 32 --message-bytes 16MiB --algorithm chain --profile sierra "
      "--set host.interrupt=5us --json\n"
      "  prepost simulate plan.json --profile fractus --slow '0->1=0.5' "
      "--slow random=0.05,factor=0.5 --preempt rate=2000,for=100us\n"
      "  prepost simulate --nodes 8 --message-bytes 8MiB --profile apt --groups 8\n"
      "  prepost simulate --workload examples/workloads/overlapping.json --profile fractus --json\n"
      "  prepost simulate plan.json --profile fractus --executor offload --causes "
      "--trace modelled.json\n"
      "  prepost simulate rolled.json --message-bytes 1MiB --profile fractus\n"
      "  prepost simulate --nodes 4 --message-bytes 16MiB --profile fractus "
      "--sweep block-bytes=16KiB:16MiB:x4 --plot blocks.svg\n"
      "  prepost simulate --message-bytes 8MiB --algorithm chain --profile fractus "
      "--sweep nodes=2:32:x2 --sweep wait=polling,interrupt --csv -\n"
      "  prepost simulate plan.json --profile fractus --executor cpu "
      "--preempt hosts=2,rate=2000,for=100us --seeds 20\n"
      "  prepost simulate --nodes 16 --message-bytes 16MiB --profile fractus "
      "--slow hosts=2,factor=0.5 --seeds 20 --sweep block-bytes=64KiB:1MiB:x2 --plot seeds.svg");
  flags->AddTo(*command);
  command->callback([flags, command, action] {
    flags->given = CommandLine::Of(*command);
    *action = [flags] { return Run(*flags); };
  });
}

}  // namespace prepost::tools
