// SPDX-License-Identifier: Apache-2.0
//
// prepost simulate: how long a plan takes on a modelled cluster, preposted and CPU-driven.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "prepost/backends/emulated/profile_costs.h"
#include "prepost/backends/emulated/virtual_hosts.h"
#include "prepost/backends/emulated/virtual_offload.h"
#include "prepost/ir/rate_text.h"
#include "tools/command.h"
#include "tools/lowering_flags.h"
#include "tools/message.h"
#include "tools/named_file.h"
#include "tools/number_check.h"
#include "tools/plan_file.h"
#include "tools/profile_file.h"
#include "tools/simulation.h"
#include "tools/ticker.h"
#include "tools/topology_file.h"
#include "tools/wait_flags.h"

namespace prepost::tools {
namespace {

using emulated::HostDelay;

struct SimulateFlags {
  std::string plan;
  std::string profile;
  std::string executor = "both";
  std::string wait = "hybrid";
  std::optional<std::string> topology;
  std::vector<std::string> delays;
  uint64_t seed = 1;
  LoweringFlags lowering;
  bool per_node = false;
  bool json = false;
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

Result<Network> NetworkFor(const SimulateFlags& flags, const emulated::Profile& profile,
                           uint32_t nodes) {
  if (!flags.topology) return emulated::NetworkOf(profile.network, nodes);
  const Result<Topology> topology = LoadTopology(*flags.topology);
  if (!topology.ok()) return topology.status();
  return NetworkOfFile(*topology, *flags.topology, nodes);
}

/// `status` of a run, with the plan's name.
Status AtPlan(const SimulateFlags& flags, const Status& status) {
  return {status.code(), status.ToString(), NameOfInput(flags.plan)};
}

Status RunOffload(const SimulateFlags& flags, Simulation* simulation) {
  const Result<nic::LowerOptions> lower = flags.lowering.ToOptions();
  if (!lower.ok()) return lower.status();
  const Ticker ticker("simulating preposted queues");
  emulated::VirtualOffloadOptions options;
  options.costs = emulated::NicCostsOf(simulation->profile.nic);
  const emulated::HostCosts host = emulated::HostCostsOf(simulation->profile);
  options.rearm = {.send = host.post_send, .receive = host.post_receive};
  options.lower = *lower;
  Result<emulated::VirtualOffload> run =
      emulated::RunVirtualOffload(simulation->plan, simulation->network, options);
  if (!run.ok()) return AtPlan(flags, run.status());
  simulation->mode = Name(lower->mode);
  simulation->offload = *std::move(run);
  return {};
}

Status RunCpu(const SimulateFlags& flags, const std::vector<HostDelay>& delays,
              Simulation* simulation) {
  const Ticker ticker("simulating hosts");
  emulated::VirtualHostsOptions options;
  options.nic = emulated::NicCostsOf(simulation->profile.nic);
  options.host = emulated::HostCostsOf(simulation->profile);
  options.wait = ValueOf(kWaitModeNames, flags.wait, WaitMode::kHybrid);
  options.delays = delays;
  options.seed = flags.seed;
  const emulated::VirtualGroup group = {.plan = &simulation->plan};
  Result<emulated::VirtualHosts> run =
      emulated::RunVirtualHosts({&group, 1}, simulation->network, options);
  if (!run.ok()) return AtPlan(flags, run.status());
  simulation->wait = flags.wait;
  simulation->cpu = *std::move(run);
  return {};
}

Status Run(const SimulateFlags& flags) {
  PREPOST_RETURN_IF_ERROR(CheckWord("--executor", flags.executor, {"cpu", "offload", "both"}));
  PREPOST_RETURN_IF_ERROR(CheckWord("--wait", flags.wait, Words(kWaitModeNames)));
  PREPOST_RETURN_IF_ERROR(flags.lowering.Check());
  const bool is_cpu = flags.executor != "offload", is_offload = flags.executor != "cpu";
  if (!is_cpu && !flags.delays.empty())
    return {StatusCode::kUsage, "--delay is for hosts: preposted queues do not notice them"};
  if (!is_offload && flags.lowering.given() != nullptr) {
    return {StatusCode::kUsage, fmt::format("{} is for preposted queues, --executor cpu has none",
                                            flags.lowering.given())};
  }
  const Result<emulated::Profile> profile = LoadProfile(flags.profile);
  if (!profile.ok()) return profile.status();
  const Result<Plan> plan = LoadPlan(flags.plan);
  if (!plan.ok()) return plan.status();
  const uint32_t nodes = plan->header().nodes;
  std::vector<HostDelay> delays;
  for (const std::string& text : flags.delays) {
    const Result<HostDelay> delay = ParseDelay(text, nodes);
    if (!delay.ok()) return delay.status();
    delays.push_back(*delay);
  }
  Result<Network> network = NetworkFor(flags, *profile, nodes);
  if (!network.ok()) return network.status();
  Simulation simulation = {.plan = *plan,
                           .profile = *profile,
                           .profile_path = flags.profile,
                           .network = *std::move(network),
                           .seed = flags.seed};
  if (is_offload && profile->tcp) {
    if (flags.executor == "offload") {
      return Rejected("its cluster sends over TCP, where no NIC can be preposted", flags.profile);
    }
    PrintNote("this cluster sends over TCP, where no NIC can be preposted: CPU-driven only");
  } else if (is_offload) {
    PREPOST_RETURN_IF_ERROR(RunOffload(flags, &simulation));
  }
  if (is_cpu) PREPOST_RETURN_IF_ERROR(RunCpu(flags, delays, &simulation));
  if (flags.json) {
    std::cout << SimulationJson(simulation)
                     .dump(2, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace)
              << "\n";
  } else {
    PrintSimulation(simulation, flags.per_node, std::cout);
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
      "(docs/virtual-time.md,\n"
      "docs/host-model.md). Its numbers come from the profile, which says where it has them from. "
      "All that is printed\n"
      "is modelled. The same command prints the same.\n\n"
      "Examples:\n"
      "  prepost simulate plan.json --profile examples/profiles/fractus.json\n"
      "  prepost simulate plan.json --profile examples/profiles/fractus.json --delay "
      "node=3,at=200us,for=100us\n"
      "  prepost simulate plan.json --profile examples/profiles/apt.json --executor cpu --wait "
      "interrupt --per-node\n"
      "  prepost compile --nodes 64 --message-bytes 64MiB | prepost simulate - --profile "
      "examples/profiles/sierra.json --json");
  command->add_option("PLAN", flags->plan, "Plan file, - for stdin")->required();
  command->add_option("--profile", flags->profile, "The cluster: examples/profiles/ has some")
      ->type_name("P")
      ->required()
      ->check(NameOf("a file"));
  command->add_option("--executor", flags->executor, "cpu, offload (preposted) or both [both]")
      ->type_name("E");
  command
      ->add_option("--wait", flags->wait,
                   "How CPU-driven hosts wait: polling, hybrid, interrupt [hybrid]")
      ->type_name("MODE");
  command
      ->add_option("--topology", flags->topology,
                   "Topology file, in place of the profile's network")
      ->type_name("T")
      ->check(NameOf("a file"));
  command
      ->add_option("--delay", flags->delays,
                   "A host stands still: node=3,at=2ms,for=100us; may be given again")
      ->type_name("D");
  command->add_option("--seed", flags->seed, "Of the profile's preemptions [1]")->type_name("S");
  flags->lowering.AddTo(*command);
  command->add_flag("--per-node", flags->per_node, "When each node is done");
  command->add_flag("--json", flags->json, "Print it all as JSON");
  command->callback([flags, action] { *action = [flags] { return Run(*flags); }; });
}

}  // namespace prepost::tools
