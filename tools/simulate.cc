// SPDX-License-Identifier: Apache-2.0
//
// prepost simulate: how long a plan takes on a modelled cluster, preposted and CPU-driven.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "prepost/backends/emulated/host_costs.h"
#include "prepost/backends/emulated/time_by_cause.h"
#include "prepost/ir/count.h"
#include "prepost/ir/near_name.h"
#include "prepost/ir/rate_text.h"
#include "prepost/ir/utf8.h"
#include "prepost/runtime/interrupt.h"
#include "tools/command.h"
#include "tools/given_flags.h"
#include "tools/group_runs.h"
#include "tools/lowering_flags.h"
#include "tools/message.h"
#include "tools/named_file.h"
#include "tools/number_check.h"
#include "tools/plan_cache.h"
#include "tools/profile_settings.h"
#include "tools/simulation.h"
#include "tools/simulation_input.h"
#include "tools/simulation_run.h"
#include "tools/slow_flags.h"
#include "tools/sweep.h"
#include "tools/sweep_output.h"
#include "tools/sweep_run.h"
#include "tools/topology_file.h"
#include "tools/trace_output.h"
#include "tools/wait_flags.h"
#include "tools/workload.h"

namespace prepost::tools {
namespace {

using emulated::HostDelay;

constexpr unsigned kJobsMax = 1024;
constexpr uint64_t kGroupsMax = 65536;

/// What is swept, and where it goes.
struct SweepFlags {
  std::vector<std::string> axes;
  std::string csv;   ///< empty: none
  std::string plot;  ///< the same
  std::string plot_y = "completion";
  unsigned jobs = 0;  ///< 0: as many as cores
  bool is_json = false;
};

struct SimulateFlags {
  SimulationInput input;
  std::string profile;
  std::vector<std::string> settings;
  std::string executor = "both";
  std::string wait = "hybrid";
  std::vector<std::string> delays;
  SlowFlags slow;
  uint64_t seed = 1;
  std::optional<uint32_t> groups;
  std::string workload;  ///< empty: none
  LoweringFlags lowering;
  bool copies_first_block = false;
  bool per_node = false;
  bool causes = false;
  TraceOutput trace;
  SweepFlags sweep;
  GivenFlags given;
};

Status BadDelay(const std::string& text, const std::string& why) {
  return {StatusCode::kUsage,
          fmt::format("--delay: '{}': {}, expected node=3,at=2ms,for=100us", text, why)};
}

/// "node=3,at=2ms,for=100us", in any order, of a host below `nodes`.
Result<HostDelay> ParseDelay(const std::string& text, uint32_t nodes) {
  std::optional<uint32_t> node;
  std::optional<double> at, length;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
    std::optional<double>* const time = key == "at" ? &at : key == "for" ? &length : nullptr;
    if (key == "node" ? node.has_value() : time != nullptr && time->has_value())
      return BadDelay(text, fmt::format("'{}' is there twice", key));
    if (time != nullptr) {
      const Result<double> seconds = ParseLatency(value);
      if (!seconds.ok()) return BadDelay(text, seconds.status().message());
      *time = *seconds;
    } else if (key == "node") {
      const auto [last, error] =
          std::from_chars(value.data(), value.data() + value.size(), node.emplace());
      if (error != std::errc() || last != value.data() + value.size() || *node >= nodes)
        return BadDelay(text, fmt::format("no node '{}', the nodes are 0 to {}", value, nodes - 1));
    } else {
      return BadDelay(text, fmt::format("'{}' is unknown", part));
    }
  }
  if (!node || !at || !length) return BadDelay(text, "a part is missing");
  constexpr double kSecondsMax = 1e6;
  if (*at > kSecondsMax || *length > kSecondsMax) return BadDelay(text, "too long a time");
  const auto picoseconds = [](double seconds) {
    return static_cast<emulated::Picoseconds>(
        seconds * static_cast<double>(emulated::kPicosecondsPerSecond) + 0.5);
  };
  return HostDelay{.host = NodeId(*node), .at = picoseconds(*at), .length = picoseconds(*length)};
}

/// What the rows of a sweep share.
struct SimulateContext {
  ProfileText profile;
  PlanCache plans;
  bool is_quiet = false;
};

Status CheckFlags(const SimulateFlags& flags) {
  PREPOST_RETURN_IF_ERROR(CheckWord("--executor", flags.executor, {"cpu", "offload", "both"}));
  PREPOST_RETURN_IF_ERROR(CheckWord("--wait", flags.wait, Words(kWaitModeNames)));
  PREPOST_RETURN_IF_ERROR(flags.lowering.Check());
  if ((flags.causes || flags.trace.is_wanted()) && (flags.groups || !flags.workload.empty()))
    return {StatusCode::kUsage, "--causes and --trace are for one multicast alone"};
  if (flags.executor == "cpu" && flags.lowering.given() != nullptr) {
    return {StatusCode::kUsage, fmt::format("{} is for preposted queues, --executor cpu has none",
                                            flags.lowering.given())};
  }
  return {};
}

/// The plan of the flags; of several rows that need the same, one.
Result<std::shared_ptr<const SimulatedPlan>> PlanFor(const SimulateFlags& flags,
                                                     const emulated::Profile& profile,
                                                     const nic::LowerOptions* lower,
                                                     SimulateContext* context) {
  GivenFlags given = flags.given;
  for (const char* other : {"--set", "--wait", "--delay", "--slow", "--preempt", "--neighbours",
                            "--groups", "--seed"}) {
    given.Remove(other);
  }
  return context->plans.Get({given.CommandLine(), profile.network}, [&] {
    return flags.input.Load(profile.network, lower, context->is_quiet);
  });
}

/// A simulation and what it refers to.
struct Simulated {
  std::shared_ptr<const SimulatedPlan> plan;
  std::unique_ptr<const emulated::Profile> profile;
  std::unique_ptr<Simulation> simulation;  ///< this
  std::unique_ptr<Workload> workload;      ///< what the next refers to, or null
  std::unique_ptr<GroupRuns> groups;       ///< or this

  nlohmann::ordered_json ToJson(bool has_lists) const {
    return groups ? GroupRunsJson(*groups, has_lists) : SimulationJson(*simulation, has_lists);
  }
  /// Of preposted queues: hosts have written rings again.
  bool HasRearms() const {
    const auto has = [](const auto& run) {
      return std::ranges::any_of(run.nodes, [](const auto& node) { return node.rearms != 0; });
    };
    if (simulation) return simulation->offload && has(*simulation->offload);
    return groups->offload && std::ranges::any_of(groups->offload->groups, has);
  }
  void Print(bool is_long, std::ostream& out) const {
    return groups ? PrintGroupRuns(*groups, is_long, out)
                  : PrintSimulation(*simulation, is_long, out);
  }
};

/// The profile with what flags say.
Result<emulated::Profile> ProfileFor(const SimulateFlags& flags, const ProfileText& text) {
  std::vector<std::string> settings = flags.settings;
  const Result<std::vector<std::string>> preempt = flags.slow.Settings();
  if (!preempt.ok()) return preempt.status();
  settings.insert(settings.end(), preempt->begin(), preempt->end());
  return ProfileWith(text, settings);
}

/// A flag that is given and concerns hosts alone.
const char* HostNoiseFlag(const SimulateFlags& flags) {
  return !flags.delays.empty()            ? "--delay"
         : !flags.slow.preempt.empty()    ? "--preempt"
         : !flags.slow.neighbours.empty() ? "--neighbours"
                                          : nullptr;
}

/// Of preposted queues alone: whether anything is left to hosts that could be kept from it.
void NoteIdleHosts(const SimulateFlags& flags, const Simulated& it) {
  const char* const flag = HostNoiseFlag(flags);
  if (flags.executor != "offload" || flag == nullptr || it.HasRearms()) return;
  PrintNote(
      fmt::format("{} changes nothing: all queues fit their rings, so hosts have nothing to do "
                  "on the way",
                  flag));
}

/// What flags say of links and hosts.
Status ApplyNoise(const SimulateFlags& flags, Network* network, SimulationOptions* options) {
  const auto hosts = static_cast<uint32_t>(network->nodes.size());
  for (const std::string& text : flags.delays) {
    const Result<HostDelay> delay = ParseDelay(text, hosts);
    if (!delay.ok()) return delay.status();
    options->delays.push_back(*delay);
  }
  Result<std::vector<emulated::HostNeighbours>> neighbours = flags.slow.Neighbours(hosts);
  if (!neighbours.ok()) return neighbours.status();
  options->neighbours = *std::move(neighbours);
  return flags.slow.ApplyTo(flags.seed, network);
}

Result<Network> NetworkOfWorkload(const SimulateFlags& flags, const emulated::Profile& profile,
                                  uint32_t hosts) {
  const std::optional<std::string>& path = flags.input.spec.topology();
  if (!path) return emulated::NetworkOf(profile.network, hosts);
  const Result<Topology> topology = LoadTopology(*path);
  if (!topology.ok()) return topology.status();
  return NetworkOfFile(*topology, *path, hosts);
}

Status SimulateWorkload(const SimulateFlags& flags, SimulationOptions options, Simulated* it) {
  if (!flags.input.path.empty() || flags.input.spec.any_but_topology() || flags.groups ||
      flags.input.size.is_given()) {
    return {StatusCode::kUsage,
            "--workload says what is sent: no PLAN, SPEC, flags such as --nodes, "
            "or --groups beside it"};
  }
  Result<Workload> workload =
      LoadWorkload(flags.workload, options.is_offload ? &options.lower : nullptr, options.is_quiet);
  if (!workload.ok()) return workload.status();
  it->workload = std::make_unique<Workload>(*std::move(workload));
  Result<Network> network = NetworkOfWorkload(flags, *it->profile, it->workload->hosts);
  if (!network.ok()) return network.status();
  PREPOST_RETURN_IF_ERROR(ApplyNoise(flags, &*network, &options));
  it->groups.reset(new GroupRuns{.groups = it->workload->groups,
                                 .workload = it->workload->name,
                                 .profile = *it->profile,
                                 .profile_path = flags.profile,
                                 .command = flags.given.CommandLine(),
                                 .network = *std::move(network),
                                 .seed = flags.seed});
  const Status status = RunGroups(options, it->groups.get());
  if (status.ok()) return {};
  return {status.code(), status.ToString(), NameOfInput(flags.workload)};
}

/// A plan several times at once.
Status SimulateGroups(const SimulateFlags& flags, const SimulationOptions& options, Network network,
                      Simulated* it) {
  const uint64_t transfers = it->plan->plan.ops().size() / 2;
  if (transfers > kGroupTransfersMax / *flags.groups) {
    return Rejected(fmt::format("{} groups of {} transfers, the limit is {} together",
                                *flags.groups, transfers, kGroupTransfersMax));
  }
  it->groups.reset(new GroupRuns{.groups = RotatedGroups(it->plan->plan, *flags.groups),
                                 .plan = &it->plan->plan,
                                 .profile = *it->profile,
                                 .profile_path = flags.profile,
                                 .command = flags.given.CommandLine(),
                                 .network = std::move(network),
                                 .seed = flags.seed});
  return RunGroups(options, it->groups.get());
}

Result<Simulated> Simulate(const SimulateFlags& flags, SimulateContext* context) {
  PREPOST_RETURN_IF_ERROR(CheckFlags(flags));
  Result<emulated::Profile> profile = ProfileFor(flags, context->profile);
  if (!profile.ok()) return profile.status();
  const Result<nic::LowerOptions> lower = flags.lowering.ToOptions();
  if (!lower.ok()) return lower.status();
  SimulationOptions options = {.is_offload = flags.executor != "cpu",
                               .is_cpu = flags.executor != "offload",
                               .lower = *lower,
                               .wait = ValueOf(kWaitModeNames, flags.wait, WaitMode::kHybrid),
                               .copies_first_block = flags.copies_first_block,
                               .has_trail = flags.causes || flags.trace.is_wanted(),
                               .is_quiet = context->is_quiet};
  if (options.is_offload && profile->tcp) {
    if (!options.is_cpu) {
      return Rejected("its cluster sends over TCP, where no NIC can be preposted", flags.profile);
    }
    if (!context->is_quiet)
      PrintNote("this cluster sends over TCP, where no NIC can be preposted: CPU-driven only");
    options.is_offload = false;
  }
  Simulated it;
  it.profile = std::make_unique<const emulated::Profile>(*std::move(profile));
  if (!flags.workload.empty()) {
    PREPOST_RETURN_IF_ERROR(SimulateWorkload(flags, options, &it));
    return it;
  }
  Result<std::shared_ptr<const SimulatedPlan>> plan =
      PlanFor(flags, *it.profile, options.is_offload ? &*lower : nullptr, context);
  if (!plan.ok()) return plan.status();
  it.plan = *std::move(plan);
  Result<Network> network = it.plan->NetworkIn(it.profile->network);
  if (!network.ok()) return network.status();
  PREPOST_RETURN_IF_ERROR(ApplyNoise(flags, &*network, &options));
  const std::string name = flags.input.path.empty() ? "the plan" : NameOfInput(flags.input.path);
  const auto at_plan = [&](const Status& status) {
    return Status(status.code(), status.ToString(), name);
  };
  if (flags.groups) {
    const Status status = SimulateGroups(flags, options, *std::move(network), &it);
    if (!status.ok()) return at_plan(status);
    return it;
  }
  it.simulation.reset(new Simulation{.plan = it.plan->plan,
                                     .profile = *it.profile,
                                     .profile_path = flags.profile,
                                     .command = flags.given.CommandLine(),
                                     .network = *std::move(network),
                                     .seed = flags.seed});
  const Status status = RunSimulation(options, it.simulation.get());
  if (!status.ok()) return at_plan(status);
  return it;
}

Status WriteJson(const nlohmann::ordered_json& json) {
  std::cout << json.dump(2, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace)
            << "\n";
  return {};
}

void AddFlags(CLI::App& command, SimulateFlags* flags);

/// Of a row: what the command line would be if it stood there alone.
Result<std::shared_ptr<SimulateFlags>> Reparsed(const GivenFlags& given) {
  auto flags = std::make_shared<SimulateFlags>();
  CLI::App app;
  AddFlags(app, flags.get());
  try {
    app.parse(given.ForParsing());
  } catch (const CLI::ParseError& error) {
    return Status(StatusCode::kUsage, error.what());
  }
  flags->given = given;
  return flags;
}

/// A key is a flag that changes what is simulated, or of the profile.
Status CheckKeys(const std::vector<SweepAxis>& axes) {
  SimulateFlags flags;
  CLI::App app;
  AddFlags(app, &flags);
  std::vector<std::string> keys;
  for (const std::string& name : FlagsWithValues(app)) keys.push_back(name.substr(2));
  for (const char* other :
       {"sweep", "csv", "plot", "plot-y", "jobs", "profile", "set", "message", "trace"}) {
    std::erase(keys, other);
  }
  for (const SweepAxis& axis : axes) {
    if (axis.is_setting() || std::ranges::find(keys, axis.key) != keys.end()) continue;
    return {StatusCode::kUsage,
            fmt::format("--sweep: unknown key '{}'{}; keys are flags such as nodes, and values of "
                        "the profile such as host.completion",
                        Printable(axis.key), DidYouMean(axis.key, keys))};
  }
  return {};
}

/// What is given, with the values of `point`.
GivenFlags FlagsOfRow(const GivenFlags& given, const std::vector<SweepAxis>& axes,
                      const SweepPoint& point) {
  GivenFlags row = given;
  for (const char* of_all : {"--sweep", "--csv", "--plot", "--plot-y", "--jobs", "--json"})
    row.Remove(of_all);
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::string& value = axes[i].values[point[i]].text;
    if (axes[i].is_setting()) {
      row.Add("--set", axes[i].key + "=" + value);
      continue;
    }
    if (axes[i].key == "message-bytes") row.Remove("--message");
    row.Set("--" + axes[i].key, value);
  }
  return row;
}

/// Parsed, and with values of the profile that it takes; the first of each is tried, so that what
/// is wrong in all rows is told once.
Result<std::vector<SweepAxis>> ParseAxes(const SimulateFlags& flags, const ProfileText& profile) {
  std::vector<SweepAxis> axes;
  for (const std::string& text : flags.sweep.axes) {
    Result<SweepAxis> axis = ParseSweep(text);
    if (!axis.ok()) return axis.status();
    if (axis->is_setting() && axis->unit == SweepUnit::kNone)
      axis->unit = UnitOf(ValueInProfile(profile, axis->key));
    axes.push_back(*std::move(axis));
  }
  PREPOST_RETURN_IF_ERROR(CheckKeys(axes));
  return axes;
}

Status CheckSweepFlags(const SweepFlags& flags) {
  PREPOST_RETURN_IF_ERROR(CheckWord("--plot-y", flags.plot_y, Words(kPlotYNames)));
  if (flags.axes.empty()) {
    const char* alone = !flags.csv.empty()    ? "--csv"
                        : !flags.plot.empty() ? "--plot"
                        : flags.jobs != 0     ? "--jobs"
                                              : nullptr;
    if (alone == nullptr) return {};
    return {StatusCode::kUsage, fmt::format("{} is for --sweep", alone)};
  }
  if (!flags.plot.empty() && SuffixOf(flags.plot) != "svg")
    return {StatusCode::kUsage, "--plot: expected a file that ends with .svg"};
  if (flags.csv == "-" && flags.is_json)
    return {StatusCode::kUsage, "--csv - and --json would both write to stdout"};
  for (const std::string& file : {flags.csv, flags.plot}) {
    if (!file.empty()) PREPOST_RETURN_IF_ERROR(CheckWritable(file));
  }
  return {};
}

Status WriteSweep(const SweepFlags& flags, const Sweep& sweep) {
  if (!flags.plot.empty()) {
    const Result<std::string> plot = PlotSweep(sweep, flags.plot_y);
    if (!plot.ok()) return plot.status();
    PREPOST_RETURN_IF_ERROR(WriteFile(flags.plot, [&](std::ostream& out) { out << *plot; }));
  }
  if (!flags.csv.empty()) {
    PREPOST_RETURN_IF_ERROR(
        WriteFile(flags.csv, [&](std::ostream& out) { WriteSweepCsv(sweep, out); }));
  }
  if (flags.is_json) return WriteJson(SweepJson(sweep));
  if (flags.csv != "-") PrintSweep(sweep, std::cout);
  return {};
}

/// What comes once is every row's.
Status KeepInputs(const GivenFlags& row) {
  for (const char* flag : {"", "--workload", "--topology", "--device-profile", "--rules"}) {
    for (const std::string& path : row.ValuesOf(flag)) PREPOST_RETURN_IF_ERROR(KeepInput(path));
  }
  return {};
}

Status RunAll(const SimulateFlags& flags, SimulateContext* context) {
  const Result<std::vector<SweepAxis>> axes = ParseAxes(flags, context->profile);
  if (!axes.ok()) return axes.status();
  const Result<std::vector<SweepPoint>> points = PointsOf(*axes);
  if (!points.ok()) return points.status();
  if (!flags.sweep.plot.empty() && !axes->front().is_numeric()) {
    return {StatusCode::kUsage,
            fmt::format("--plot: {} has words; the first --sweep is the axis, and needs numbers",
                        axes->front().key)};
  }
  std::vector<GivenFlags> given;
  Sweep sweep = {.command = flags.given.CommandLine(),
                 .profile_name = "",
                 .profile_path = flags.profile,
                 .axes = *axes,
                 .rows = {}};
  const Result<emulated::Profile> profile = ProfileWith(context->profile, {});
  if (!profile.ok()) return profile.status();
  sweep.profile_name = profile->name;
  for (const SweepPoint& point : *points) {
    given.push_back(FlagsOfRow(flags.given, *axes, point));
    // What is wrong with a command is told before anything is run.
    const Result<std::shared_ptr<SimulateFlags>> row = Reparsed(given.back());
    if (!row.ok()) return row.status();
    PREPOST_RETURN_IF_ERROR(CheckFlags(**row));
    PREPOST_RETURN_IF_ERROR(ProfileFor(**row, context->profile).status());
    if (!flags.sweep.plot.empty() && flags.sweep.plot_y == "skew" &&
        ((*row)->groups || !(*row)->workload.empty())) {
      return {StatusCode::kUsage,
              "--plot-y skew is of one multicast, not of --groups or --workload"};
    }
    sweep.rows.push_back({point, given.back().CommandLine(), {}, {}});
  }
  for (const GivenFlags& row : given) PREPOST_RETURN_IF_ERROR(KeepInputs(row));
  const auto run = [&](const GivenFlags& row) -> Result<nlohmann::ordered_json> {
    const Result<std::shared_ptr<SimulateFlags>> parsed = Reparsed(row);
    if (!parsed.ok()) return parsed.status();
    const Result<Simulated> it = Simulate(**parsed, context);
    if (!it.ok()) return it.status();
    return it->ToJson(flags.per_node);
  };
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  PREPOST_RETURN_IF_ERROR(
      RunSweep(given, run, flags.sweep.jobs != 0 ? flags.sweep.jobs : cores, &sweep.rows));
  if (std::ranges::none_of(sweep.rows, [](const SweepRow& row) { return row.status.ok(); })) {
    return Rejected(fmt::format("none of the {} can be simulated; the first: {}",
                                Count(sweep.rows.size(), "combination"),
                                sweep.rows.front().status.ToString()));
  }
  return WriteSweep(flags.sweep, sweep);
}

Status WriteSimulatedTrace(SimulateFlags& flags, const Simulated& it) {
  const Result<InterruptSignals> signals = InterruptSignals::Hold();
  if (!signals.ok()) return signals.status();
  TraceOutput& trace = flags.trace;
  PREPOST_RETURN_IF_ERROR(trace.Prepare(
      it.plan->plan, {flags.profile, flags.input.path.empty() ? "-" : flags.input.path}));
  const bool is_offload = it.simulation->offload_trail != nullptr;
  emulated::FillTrace(is_offload ? *it.simulation->offload_trail : *it.simulation->cpu_trail,
                      trace.table());
  return trace.Write(
      it.plan->plan,
      {.executor = is_offload ? "offload" : "cpu",
       .detail = fmt::format("{}, with the profile {}", kModelled, it.profile->name)},
      {});
}

Status Run(SimulateFlags& flags) {
  PREPOST_RETURN_IF_ERROR(CheckSweepFlags(flags.sweep));
  if (flags.trace.is_wanted()) {
    if (!flags.sweep.axes.empty())
      return {StatusCode::kUsage, "--trace is for one run, not for --sweep"};
    if (flags.executor == "both")
      return {StatusCode::kUsage, "--trace is of one executor: add --executor cpu or offload"};
  }
  Result<ProfileText> profile = LoadProfileText(flags.profile);
  if (!profile.ok()) return profile.status();
  SimulateContext context = {
      .profile = *std::move(profile), .plans = {}, .is_quiet = !flags.sweep.axes.empty()};
  if (!flags.sweep.axes.empty()) return RunAll(flags, &context);
  const Result<Simulated> it = Simulate(flags, &context);
  if (!it.ok()) return it.status();
  NoteIdleHosts(flags, *it);
  if (flags.trace.is_wanted()) PREPOST_RETURN_IF_ERROR(WriteSimulatedTrace(flags, *it));
  if (flags.sweep.is_json) return WriteJson(it->ToJson(/*has_lists=*/true));
  it->Print(flags.per_node, std::cout);
  return {};
}

void AddFlags(CLI::App& command, SimulateFlags* flags) {
  command.add_option("--profile", flags->profile, "The cluster: examples/profiles/ has some")
      ->type_name("P")
      ->required()
      ->check(NameOf("a file"));
  command
      .add_option(
          "--set", flags->settings,
          "A value of the profile in place of the file's: host.completion=1us; may be given "
          "again")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--executor", flags->executor, "cpu, offload (preposted) or both [both]")
      ->type_name("E");
  command
      .add_option("--wait", flags->wait,
                  "How CPU-driven hosts wait: polling, hybrid, interrupt [hybrid]")
      ->type_name("MODE");
  command
      .add_option("--delay", flags->delays,
                  "A host stands still: node=3,at=2ms,for=100us; may be given again")
      ->type_name("D")
      ->allow_extra_args(false);
  flags->slow.AddTo(command);
  command.add_option("--seed", flags->seed, "Of preemptions and of --slow random [1]")
      ->type_name("S");
  command
      .add_option("--groups", flags->groups,
                  "The plan so many times at once, with rotated roots: node i of group g is host i "
                  "+ g")
      ->type_name("K")
      ->check(WholeNumber(1, kGroupsMax));
  command
      .add_option("--workload", flags->workload,
                  "In place of a PLAN: many multicasts among some hosts (docs/workloads.md)")
      ->type_name("FILE")
      ->check(NameOf("a file"));
  flags->lowering.AddTo(command);
  command.add_flag(
      "--copy-first-block", flags->copies_first_block,
      "CPU-driven hosts copy a message's first block into place in the end, as RDMC's");
  command.add_flag("--causes", flags->causes, "What the time goes to, and the critical path");
  flags->trace.AddTo(command);
  command.add_flag("--per-node", flags->per_node, "When each node is done, or each group");
  command.add_flag("--json", flags->sweep.is_json, "Print it all as JSON");
  command
      .add_option("--sweep", flags->sweep.axes,
                  "All values of a flag or of the profile: block-bytes=64KiB:4MiB:x2, "
                  "nodes=2:10:+2, wait=polling,interrupt, host.completion=0us:2us:+500ns; given "
                  "again, all combinations")
      ->type_name("KEY=VALUES")
      ->allow_extra_args(false)
      ->group("Sweeps");
  command.add_option("--csv", flags->sweep.csv, "Write a line per row and executor, - for stdout")
      ->type_name("FILE")
      ->check(NameOf("a file"))
      ->group("Sweeps");
  command.add_option("--plot", flags->sweep.plot, "Draw it over the first --sweep")
      ->type_name("FILE.svg")
      ->check(NameOf("a file"))
      ->group("Sweeps");
  command
      .add_option("--plot-y", flags->sweep.plot_y,
                  fmt::format("What is drawn: {} [completion]", fmt::join(kPlotYNames, ", ")))
      ->type_name("Y")
      ->group("Sweeps");
  command.add_option("--jobs", flags->sweep.jobs, "Rows at a time [one per core]")
      ->type_name("N")
      ->check(WholeNumber(1, kJobsMax))
      ->group("Sweeps");
  flags->input.AddTo(command);
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
      "(docs/virtual-time.md,\n"
      "docs/host-model.md). Its numbers come from the profile, which says where it has them from. "
      "All that is printed\n"
      "is modelled. The same command prints the same; docs/simulate.md tells what it means.\n\n"
      "Examples:\n"
      "  prepost simulate plan.json --profile examples/profiles/fractus.json\n"
      "  prepost simulate plan.json --profile examples/profiles/fractus.json --delay "
      "node=3,at=200us,for=100us\n"
      "  prepost simulate plan.json --profile examples/profiles/apt.json --executor cpu --wait "
      "interrupt --per-node\n"
      "  prepost simulate --nodes 64 --message-bytes 64MiB --profile examples/profiles/sierra.json "
      "--set host.interrupt=5us --json\n"
      "  prepost simulate plan.json --profile examples/profiles/fractus.json --slow '0->1=0.5' "
      "--slow random=0.05,factor=0.5 --preempt rate=100,for=100us\n"
      "  prepost simulate --nodes 8 --message-bytes 8MiB --profile examples/profiles/apt.json "
      "--groups 8\n"
      "  prepost simulate --workload examples/workloads/overlapping.json --profile "
      "examples/profiles/fractus.json --json\n"
      "  prepost simulate plan.json --profile examples/profiles/fractus.json --executor offload "
      "--causes --trace modelled.json\n"
      "  prepost simulate rolled.json --message-bytes 1MiB --profile "
      "examples/profiles/fractus.json\n"
      "  prepost simulate --nodes 4 --message-bytes 16MiB --profile examples/profiles/fractus.json "
      "--sweep block-bytes=16KiB:16MiB:x4 --plot blocks.svg\n"
      "  prepost simulate --message-bytes 8MiB --profile examples/profiles/fractus.json --sweep "
      "nodes=2:64:x2 --sweep wait=polling,interrupt --csv -");
  AddFlags(*command, flags.get());
  command->callback([flags, command, action] {
    flags->given = GivenFlags::Of(*command);
    *action = [flags] { return Run(*flags); };
  });
}

}  // namespace prepost::tools
