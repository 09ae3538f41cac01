// SPDX-License-Identifier: Apache-2.0
//
// prepost compare: the same plan on the same device, CPU-driven and preposted.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/local/comparison.h"
#include "backends/registry.h"
#include "ir/base/count.h"
#include "planning/files/named_file.h"
#include "planning/files/plan_file.h"
#include "planning/flags/lowering_flags.h"
#include "planning/flags/play_flags.h"
#include "planning/flags/profile_settings.h"
#include "planning/flags/simulation_input.h"
#include "planning/flags/spec_flags.h"
#include "planning/flags/values.h"
#include "planning/simulation/simulation_run.h"
#include "planning/text/messages.h"
#include "planning/text/plan_text.h"
#include "runtime/base/interrupt.h"
#include "tools/commands/commands.h"
#include "tools/commands/compare_device.h"
#include "tools/report/comparison_report.h"

namespace prepost::tools {
namespace {

constexpr uint32_t kRepeatMax = 10'000;
constexpr uint32_t kStressMax = 1'024;
constexpr uint32_t kRepeat = 20;
constexpr uint64_t kSeed = 1;
constexpr double kCompareTimeoutSeconds = 30;

struct CompareFlags {
  std::string path;
  std::vector<std::string> bytes;
  SpecFlags spec;
  WaitFlags wait;
  LoweringFlags lowering;
  std::string device = "emulated";
  std::string clock = "real";
  std::string profile;  ///< of the virtual clock
  std::vector<std::string> settings;
  std::optional<uint32_t> repeat;
  std::optional<uint32_t> stress;
  std::optional<uint64_t> seed;
  std::optional<double> timeout_s;
  bool json = false;
};

/// The sizes of all --bytes: "64KiB,1MiB" is two. Split here: CLI11 passes over empty items.
Result<std::vector<uint64_t>> ParseSizes(const std::vector<std::string>& lists) {
  std::vector<uint64_t> sizes;
  for (const std::string& list : lists) {
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      if (end == begin) {
        return Status(StatusCode::kUsage,
                      fmt::format("--bytes: size {} is empty", sizes.size() + 1));
      }
      const Result<uint64_t> bytes = ParseMessageBytes("--bytes", list.substr(begin, end - begin));
      if (!bytes.ok()) return bytes.status();
      sizes.push_back(*bytes);
      begin = end + 1;
    }
  }
  return sizes;
}

/// Unrolls the plan of `path` for each size.
Result<std::vector<SimulatedPlan>> UnrolledPlans(const std::string& path,
                                                 const std::vector<uint64_t>& sizes) {
  if (sizes.empty()) {
    return Status(StatusCode::kUsage,
                  "--bytes: a rolled plan is for every size, say which (see --help)");
  }
  const Result<RolledPlan> rolled = ReadRolledPlanFile(path);
  if (!rolled.ok()) return rolled.status();
  std::vector<SimulatedPlan> plans;
  for (const uint64_t bytes : sizes) {
    Result<VerifiedPlan> plan = UnrollFor(*rolled, path, bytes, "--bytes");
    if (!plan.ok()) return plan.status();
    plans.push_back({.plan = *std::move(plan)});
  }
  return plans;
}

/// The plan of the file, or one plan per --bytes of the spec or rolled plan.
/// `profile`: of the virtual clock, whose network plans are compiled for; else null.
Result<std::vector<SimulatedPlan>> GetPlans(const CompareFlags& flags, const sim::Profile* profile,
                                            const nic::LowerOptions& lower) {
  const Result<FileKind> kind = flags.path.empty() ? Result(FileKind::kSpec) : KindOf(flags.path);
  if (!kind.ok()) return kind.status();
  const bool is_rolled = *kind == FileKind::kRolledPlan;
  std::vector<SimulatedPlan> plans;
  if (const std::string flag = flags.spec.FirstGiven(); *kind != FileKind::kSpec && !flag.empty()) {
    return Status(StatusCode::kUsage,
                  fmt::format("{}: it is for a SPEC, and this is a plan", flag));
  }
  if (*kind != FileKind::kSpec && !is_rolled) {
    if (!flags.bytes.empty()) {
      return Status(StatusCode::kUsage,
                    "--bytes: it is for a SPEC or a rolled plan: a plan's is in its file");
    }
    Result<VerifiedPlan> plan = LoadPrepostedPlan(flags.path);
    if (!plan.ok()) return plan.status();
    plans.push_back({.plan = *std::move(plan)});
    return plans;
  }
  const Result<std::vector<uint64_t>> given = ParseSizes(flags.bytes);
  if (!given.ok()) return given.status();
  if (is_rolled) return UnrolledPlans(flags.path, *given);
  if (flags.path == "-" && given->size() > 1) {
    return Status(StatusCode::kUsage,
                  "several --bytes read the SPEC several times: name a file, not stdin");
  }
  const AutoTarget target = {.profile = profile, .lower = lower};
  std::vector<std::optional<uint64_t>> sizes(given->begin(), given->end());
  if (sizes.empty()) sizes.emplace_back();  // the spec's
  for (const std::optional<uint64_t>& bytes : sizes) {
    if (profile != nullptr) {
      Result<SimulatedPlan> plan =
          CompileFor(target, flags.spec, flags.path, bytes, /*is_quiet=*/false);
      if (!plan.ok()) return plan.status();
      plans.push_back(*std::move(plan));
      continue;
    }
    const Ticker ticker("compiling");
    Result<Spec> spec = flags.spec.Read(flags.path, bytes);
    if (spec.ok()) spec = flags.spec.Settle(*std::move(spec), flags.path, target);
    if (!spec.ok()) return spec.status();
    Result<VerifiedPlan> plan = CompileForDevice(*spec, &lower);
    if (!plan.ok()) return plan.status();
    plans.push_back({.plan = *std::move(plan),
                     .topology = spec->topology,
                     .topology_path = flags.spec.topology().value_or(flags.path)});
  }
  return plans;
}

Status CheckFlags(const CompareFlags& flags) {
  PREPOST_RETURN_IF_ERROR(flags.wait.Check());
  PREPOST_RETURN_IF_ERROR(flags.lowering.Check());
  const bool is_of_library = IsLibraryDevice(flags.device);
  if (is_of_library && !KindOfDevice(flags.device).may_offload) {
    return {
        StatusCode::kUsage,
        fmt::format("cannot compare over device {}, which starts nothing by itself", flags.device)};
  }
  if (!is_of_library) {
    const Status known = CheckWord("--device", flags.device, {"emulated"});
    if (!known.ok())
      return {known.code(), known.message() + ", or a provider of libfabric: fabric:sockets"};
  } else if (flags.lowering.given() != nullptr) {
    return {StatusCode::kUsage, fmt::format("{} is for NICs, not for --device {}",
                                            flags.lowering.given(), flags.device)};
  }
  PREPOST_RETURN_IF_ERROR(CheckWord("--clock", flags.clock, {"real", "virtual"}));
  const bool is_virtual = flags.clock == "virtual";
  if (is_virtual && is_of_library)
    return {StatusCode::kUsage, "--device " + flags.device + ": --clock virtual models NICs"};
  const char* real = flags.repeat      ? "--repeat"
                     : flags.stress    ? "--stress"
                     : flags.timeout_s ? "--timeout"
                                       : nullptr;
  if (is_virtual && flags.wait.has_idle()) {
    return {StatusCode::kUsage,
            "--idle-ms is for --clock real: of the virtual clock, --set host.hybrid_polling=50ms"};
  }
  if (is_virtual && real != nullptr)
    return {StatusCode::kUsage, fmt::format("{} is for --clock real", real)};
  if (is_virtual && flags.profile.empty())
    return {StatusCode::kUsage, "--clock virtual needs a --profile: " + ShippedProfiles()};
  if (!is_virtual && (!flags.profile.empty() || !flags.settings.empty())) {
    return {StatusCode::kUsage, fmt::format("{} is for --clock virtual",
                                            flags.profile.empty() ? "--set" : "--profile")};
  }
  if (flags.path.empty() && !flags.spec.any()) {
    return {StatusCode::kUsage,
            "compare needs a PLAN, a SPEC or flags such as --nodes (see --help)"};
  }
  if (flags.path.empty() && flags.bytes.empty()) {
    return {StatusCode::kUsage, "--bytes: the size of the message is missing"};
  }
  return {};
}

/// The profile of the virtual clock.
Result<sim::Profile> ProfileOf(const CompareFlags& flags) {
  const Result<ProfileText> text = LoadProfileText(flags.profile);
  if (!text.ok()) return text.status();
  Result<sim::Profile> profile = ProfileWith(*text, SettingsOf(flags.settings));
  if (profile.ok() && profile->is_tcp) {
    return Rejected("its cluster sends over TCP, where no NIC can be preposted", flags.profile);
  }
  if (profile.ok() && flags.seed && profile->host.preemptions_per_second == 0) {
    return Status(StatusCode::kUsage,
                  "--seed is of the message's bytes, which the virtual clock has none of, and of "
                  "preemptions: the profile has no host.preemption");
  }
  return profile;
}

/// On the virtual clock a topology is the network in place of the profile's.
Status CheckNetwork(const CompareFlags& flags, const std::vector<SimulatedPlan>& plans) {
  const std::optional<std::string>& topology = flags.spec.topology();
  const bool has_topology = std::ranges::any_of(
      plans, [](const SimulatedPlan& plan) { return plan.topology.has_value(); });
  if (!has_topology) return {};
  return CheckNoneOfNetwork(SettingsOf(flags.settings),
                            topology ? "--topology " + *topology : NameOfInput(flags.path));
}

/// Both ways under the virtual clock, as simulate runs them.
Result<ComparisonReport> CompareInModel(const CompareFlags& flags, const sim::Profile& profile,
                                        const std::vector<SimulatedPlan>& plans,
                                        const nic::LowerOptions& lower) {
  PREPOST_RETURN_IF_ERROR(CheckNetwork(flags, plans));
  const uint64_t seed = flags.seed.value_or(kSeed);
  std::vector<std::string> settings, deviations;
  for (const ProfileSetting& it : SettingsOf(flags.settings)) settings.push_back(it.given);
  deviations = settings;
  if (flags.spec.topology()) deviations.push_back("--topology " + *flags.spec.topology());
  if (flags.spec.order()) deviations.push_back(OrderText(*flags.spec.order()));
  if (profile.host.preemptions_per_second != 0) deviations.push_back(fmt::format("seed {}", seed));
  ComparisonReport report = ReportOfModel(profile, flags.profile, deviations);
  for (const SimulatedPlan& plan : plans) {
    Result<Network> network = plan.NetworkIn(profile);
    if (!network.ok()) return network.status();
    sim::Simulation simulation = {.groups = {{.plan = &plan.plan}},
                                  .plan = &plan.plan,
                                  .profile = profile,
                                  .profile_path = flags.profile,
                                  .command = "",
                                  .deviations = deviations,
                                  .network = *std::move(network),
                                  .seed = seed};
    const SimulationOptions run = {.lower = lower, .wait = flags.wait.policy(kModelledWait).mode};
    if (const Status status = RunSimulation(run, &simulation); !status.ok()) {
      return FailureOf(status, run, simulation, settings,
                       flags.path.empty() ? "the plan" : NameOfInput(flags.path));
    }
    report.plans.push_back(ComparedInModel(simulation, lower));
  }
  return report;
}

/// Both ways on emulated NICs, or over a device, under this machine's clock.
Result<ComparisonReport> CompareByClock(const CompareFlags& flags,
                                        const std::vector<SimulatedPlan>& plans,
                                        const nic::LowerOptions& lower) {
  const Result<InterruptSignals> signals = InterruptSignals::Hold();
  if (!signals.ok()) return signals.status();
  const bool show_progress = ShowsProgress();
  const std::chrono::duration<double> timeout(flags.timeout_s.value_or(kCompareTimeoutSeconds));
  const uint32_t repeat = flags.repeat.value_or(kRepeat);
  ComparisonReport report = ReportOfMachine(flags.device);
  for (const auto& [plan, topology, topology_path] : plans) {
    local::CompareOptions options{
        .repetitions = repeat,
        .stress_threads = flags.stress.value_or(0),
        .wait = flags.wait.policy(),
        .seed = flags.seed.value_or(kSeed),
        .lower = lower,
        .no_progress_max = std::chrono::ceil<std::chrono::milliseconds>(timeout),
        .interrupt_fd = signals->fd()};
    if (show_progress) {
      const uint64_t bytes = plan.header().payload.bytes;
      options.progress = [bytes, repeat](uint32_t repetition) {
        std::cerr << fmt::format("\r\033[K{}, repetition {} of {} ", Count(bytes, "byte"),
                                 repetition + 1, repeat)
                  << std::flush;
      };
    }
    const Result<local::Comparison> comparison =
        IsLibraryDevice(flags.device) ? CompareOverDevice(plan, flags.device, options)
                                      : local::Compare(plan, options);
    if (show_progress) std::cerr << "\r\033[K" << std::flush;
    if (!comparison.ok()) return comparison.status();
    report.plans.push_back(ComparedByClock(plan.header(), options, *comparison, flags.device));
  }
  return report;
}

Status Run(const CompareFlags& flags) {
  PREPOST_RETURN_IF_ERROR(CheckFlags(flags));
  const Result<nic::LowerOptions> lower = flags.lowering.ToOptions();
  if (!lower.ok()) return lower.status();
  std::optional<sim::Profile> profile;
  if (flags.clock == "virtual") {
    Result<sim::Profile> loaded = ProfileOf(flags);
    if (!loaded.ok()) return loaded.status();
    profile = *std::move(loaded);
  }
  const Result<std::vector<SimulatedPlan>> plans =
      GetPlans(flags, profile ? &*profile : nullptr, *lower);
  if (!plans.ok()) return plans.status();
  const Result<ComparisonReport> report = profile ? CompareInModel(flags, *profile, *plans, *lower)
                                                  : CompareByClock(flags, *plans, *lower);
  if (!report.ok()) return report.status();
  if (flags.json) {
    PrintJson(ToJson(*report), std::cout);
  } else {
    Print(*report, std::cout);
  }
  return {};
}

}  // namespace

void AddCompare(CLI::App& app, Action* action) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* command =
      app.add_subcommand("compare", "Compare a plan CPU-driven and preposted, on the same device");
  command->footer(
      "Carries a message of random bytes to all nodes of the plan, R times each way in turn, on "
      "emulated NICs:\n"
      "CPU-driven, where every node's host reacts to completions and posts what comes next, and "
      "preposted, where it\n"
      "rings its doorbells and waits for one completion. Hosts are threads of one kind, one per "
      "node (at most 256),\n"
      "that wait by --wait; all start at once, and every copy is checked. A first pair is not "
      "counted.\n\n"
      "Over a provider of libfabric that starts deferred work by itself every node is a process of "
      "its own, and what is\n"
      "preposted is that work.\n\n"
      "Prints what hosts did (work requests, doorbells, wake-ups, completions), the lowest and "
      "highest of all\n"
      "repetitions where they differ; re-arms where queues are longer than the device's rings; "
      "then times; then what times\n"
      "on an emulated NIC are worth. docs/running.md tells how each figure is taken.\n\n"
      "Examples:\n"
      "  prepost compare plan.json --repeat 5\n"
      "  prepost compare examples/specs/pipeline-8.json --bytes 64KiB,1MiB --repeat 5\n"
      "  prepost compare plan.json --mode managed --device-profile tiny "
      "--repeat 3\n"
      "  prepost compare --nodes 8 --bytes 1MiB --block-bytes 64KiB --repeat 3 --stress 4 --json\n"
      "  prepost compare plan.json --device fabric:sockets --repeat 3\n"
      "  prepost compare plan.json --clock virtual --profile fractus\n"
      "  prepost compare rolled.json --bytes 64KiB,1MiB --clock virtual --profile fractus");
  command->add_option("PLAN", flags->path, "Plan, rolled plan or spec file, - for stdin");
  command
      ->add_option("--bytes", flags->bytes,
                   "Sizes of the message, of a spec or rolled plan: 64KiB,1MiB")
      ->type_name("B,...")
      ->allow_extra_args(false);
  command
      ->add_option("--clock", flags->clock,
                   "real, or virtual: what a model says of a cluster [real]")
      ->type_name("CLOCK");
  command->add_option("--profile", flags->profile, "With --clock virtual: the cluster")
      ->type_name("P")
      ->check(NameOf("a file"));
  command
      ->add_option("--set", flags->settings,
                   "With --clock virtual: a value of the profile, host.completion=1us")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--repeat", flags->repeat, "Transfers each way that count [20]")
      ->type_name("R")
      ->check(WholeNumber(1, kRepeatMax));
  command->add_option("--stress", flags->stress, "Busy threads beside the hosts, both ways [0]")
      ->type_name("N")
      ->check(WholeNumber(0, kStressMax));
  flags->wait.AddTo(*command, "How hosts wait for completions, both ways",
                    "interrupt; with --clock virtual hybrid");
  command
      ->add_option("--device", flags->device,
                   "What both ways run on: emulated, or a provider of libfabric, "
                   "fabric:sockets [emulated]")
      ->type_name("NAME")
      ->check(NameOf("a device"));
  flags->lowering.AddTo(*command);
  command
      ->add_option("--seed", flags->seed,
                   "Seed of the message's bytes; with --clock virtual, of preemptions [1]")
      ->type_name("S")
      ->check(WholeNumber(0, UINT64_MAX));
  command
      ->add_option("--timeout", flags->timeout_s,
                   "Give up when nothing moves for this many seconds [30]")
      ->type_name("SECONDS")
      ->check(Seconds());
  command->add_flag("--json", flags->json, "Print all samples as JSON");
  flags->spec.AddTo(*command);
  flags->spec.RefuseCollectives(
      *command,
      ": what is compared is CPU-driven and preposted, and NICs carry multicasts alone; run and "
      "simulate take it, driven by CPUs");
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
