// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/simulation_input.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "compiler/roll.h"
#include "tools/commands/compile_for_device.h"
#include "tools/flags/file_kind.h"
#include "tools/flags/plan_file.h"
#include "tools/flags/played_plan.h"
#include "tools/flags/topology_file.h"
#include "tools/report/ticker.h"

namespace prepost::tools {
namespace {

/// The hosts of a profile's network as a topology.
Topology TopologyOf(const sim::NetworkProfile& profile, uint32_t nodes) {
  const Network network = sim::NetworkOf(profile, nodes);
  Topology topology = {.name = "",
                       .racks = {},
                       .hosts = {},
                       .core_rate = network.core_rate,
                       .rack_latency = network.rack_latency,
                       .core_latency = network.core_latency};
  // The uplinks of the only rack are not used; but rates are summed.
  const bool is_all = profile.rack_hosts == 0;
  for (const auto& rack : network.racks) {
    topology.racks.push_back({rack.name, is_all ? profile.host_rate * nodes : rack.up_rate,
                              is_all ? profile.host_rate * nodes : rack.down_rate});
  }
  for (uint32_t i = 0; i < nodes; ++i) {
    const auto& node = network.nodes[i];
    topology.hosts.push_back({fmt::to_string(i), node.rack, node.out_rate, node.in_rate});
  }
  return topology;
}

}  // namespace

Result<Network> SimulatedPlan::NetworkIn(const sim::NetworkProfile& profile) const {
  const uint32_t nodes = plan.header().nodes;
  if (!topology) return sim::NetworkOf(profile, nodes);
  return NetworkOfFile(*topology, topology_path, nodes);
}

void SimulationInput::AddTo(CLI::App& command) {
  command.add_option("PLAN", path, "Plan, rolled plan or spec file, - for stdin");
  spec.AddTo(command, /*has_links=*/false);
  size.AddTo(command, /*takes_any=*/false);
}

Result<SimulatedPlan> SimulationInput::Load(const sim::NetworkProfile& network,
                                            const nic::LowerOptions* lower, bool is_quiet) const {
  if (path.empty() && !spec.any()) {
    return Status(StatusCode::kUsage,
                  "simulate needs a PLAN, a SPEC or flags such as --nodes (see --help)");
  }
  const Result<FileKind> kind = path.empty() ? Result(FileKind::kSpec) : KindOf(path);
  if (!kind.ok()) return kind.status();
  if (*kind == FileKind::kSpec) {
    const Result<std::optional<uint64_t>> bytes = size.Bytes();
    if (!bytes.ok()) return bytes.status();
    return CompileFor(network, spec, path, *bytes, lower, is_quiet);
  }
  if (const std::string flag = spec.FirstGiven(/*has_topology=*/false); !flag.empty()) {
    return Status(StatusCode::kUsage,
                  fmt::format("{}: it is for a SPEC, and this is a plan", flag));
  }
  Result<VerifiedPlan> plan = *kind == FileKind::kRolledPlan ? Unrolled() : LoadPlan(path);
  if (!plan.ok()) return plan.status();
  if (*kind != FileKind::kRolledPlan) {
    const Result<std::optional<uint64_t>> bytes = size.Bytes();
    if (!bytes.ok()) return bytes.status();
    if (bytes->has_value()) {
      return Status(StatusCode::kUsage, fmt::format("{}: it is for a SPEC or a rolled plan: a "
                                                    "plan's is in its file",
                                                    size.flag()));
    }
  }
  SimulatedPlan loaded = {.plan = *std::move(plan)};
  if (!spec.topology()) return loaded;
  Result<Topology> topology = LoadTopology(*spec.topology());
  if (!topology.ok()) return topology.status();
  loaded.topology = *std::move(topology);
  loaded.topology_path = *spec.topology();
  return loaded;
}

Result<SimulatedPlan> CompileFor(const sim::NetworkProfile& network, const SpecFlags& spec,
                                 const std::string& path, std::optional<uint64_t> bytes,
                                 const nic::LowerOptions* lower, bool is_quiet) {
  Result<Spec> read = spec.Read(path, bytes);
  if (!read.ok()) return read.status();
  std::optional<Topology> topology = read->topology;
  // What is chosen, and what racks are, goes by the network that the plan will run on.
  if (!topology && read->nodes >= 1 && read->nodes <= kNodesMax)
    read->topology = TopologyOf(network, read->nodes);
  const Result<Spec> settled = spec.Settle(*std::move(read), path, is_quiet);
  if (!settled.ok()) return settled.status();
  std::optional<Ticker> ticker;
  if (!is_quiet) ticker.emplace("compiling");
  Result<VerifiedPlan> plan = CompileForDevice(*settled, lower, is_quiet);
  if (!plan.ok()) return plan.status();
  return SimulatedPlan{.plan = *std::move(plan),
                       .topology = std::move(topology),
                       .topology_path = spec.topology().value_or(path)};
}

std::string OrderText(const std::string& order) {
  constexpr size_t kOrderMax = 60;  // of what may be a million nodes
  return "--order " + (order.size() <= kOrderMax ? order : order.substr(0, kOrderMax) + "...");
}

Result<VerifiedPlan> UnrollFor(const RolledPlan& rolled, const std::string& path, uint64_t bytes,
                               const std::string& flag) {
  PREPOST_RETURN_IF_ERROR(CheckSize(rolled, bytes, flag));
  Result<VerifiedPlan> plan = Unroll(rolled, bytes);
  if (!plan.ok()) return Rejected(plan.status().ToString(), path);
  return plan;
}

Result<VerifiedPlan> SimulationInput::Unrolled() const {
  const Result<RolledPlan> rolled = ReadRolledPlanFile(path);
  if (!rolled.ok()) return rolled.status();
  const Result<std::optional<uint64_t>> bytes = size.Bytes();
  if (!bytes.ok()) return bytes.status();
  if (!bytes->has_value()) {
    return Status(StatusCode::kUsage,
                  "--message-bytes: a rolled plan is for every size, say which (see --help)");
  }
  return UnrollFor(*rolled, path, **bytes, size.flag());
}

}  // namespace prepost::tools
