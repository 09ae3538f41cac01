// SPDX-License-Identifier: Apache-2.0
#include "tools/group_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "prepost/ir/bounds.h"
#include "prepost/ir/count.h"
#include "prepost/ir/rate_text.h"
#include "prepost/ir/utf8.h"
#include "prepost/version.h"
#include "tools/ticker.h"

namespace prepost::tools {
namespace {

using emulated::Picoseconds;
using emulated::VirtualGroup;
using emulated::VirtualOffload;
using Json = nlohmann::ordered_json;
using Links = std::vector<VirtualOffload::Link>;

constexpr size_t kGroupsMax = 20;  ///< shown in text unless all are asked for
constexpr size_t kLinksMax = 5;    ///< the same
constexpr std::array kPercents = {1, 10, 25, 50, 75, 90, 99};

double Seconds(Picoseconds time) {
  return static_cast<double>(time) / static_cast<double>(emulated::kPicosecondsPerSecond);
}

/// How one executor fared, for both.
struct Fared {
  struct Group {
    double start = 0;
    double completion = 0;
    double latency = 0;  ///< from one to the other
    double waited = 0;   ///< for another group, since it was to start
  };
  std::vector<Group> groups;
  double completion = 0;          ///< of the last group
  double mean = 0;                ///< of latencies
  double deviation = 0;           ///< of latencies: the root of the mean square
  double bandwidth = 0;           ///< all messages' bytes / completion
  std::vector<double> latencies;  ///< sorted
  const Links& links;

  /// The smallest latency that at least `percent` % do not exceed.
  double Percentile(int percent) const {
    if (latencies.empty()) return 0;
    const size_t rank = (latencies.size() * static_cast<size_t>(percent) + 99) / 100;
    return latencies[std::max<size_t>(rank, 1) - 1];
  }
};

template <typename Run>
Fared FareOf(const GroupRuns& it, const Run& run) {
  Fared fared = {.links = run.links};
  double bytes = 0;
  for (size_t i = 0; i < run.groups.size(); ++i) {
    const auto& group = run.groups[i];
    fared.groups.push_back({.start = Seconds(group.start),
                            .completion = Seconds(group.completion),
                            .latency = Seconds(group.completion - group.start),
                            .waited = Seconds(group.start - it.groups[i].start)});
    fared.latencies.push_back(fared.groups.back().latency);
    fared.completion = std::max(fared.completion, fared.groups.back().completion);
    bytes += static_cast<double>(it.groups[i].plan->header().message.bytes);
  }
  if (fared.groups.empty()) return fared;
  const auto count = static_cast<double>(fared.groups.size());
  std::ranges::sort(fared.latencies);
  for (const double latency : fared.latencies) fared.mean += latency / count;
  for (const double latency : fared.latencies) {
    fared.deviation += (latency - fared.mean) * (latency - fared.mean) / count;
  }
  fared.deviation = std::sqrt(fared.deviation);
  if (fared.completion > 0) fared.bandwidth = bytes / fared.completion;
  return fared;
}

/// The part of the network that a group's nodes see, by node of the plan.
Network NetworkOfGroup(const Network& network, const VirtualGroup& group) {
  Network part = {.nodes = {},
                  .racks = network.racks,
                  .core_rate = network.core_rate,
                  .rack_latency = network.rack_latency,
                  .core_latency = network.core_latency};
  const uint32_t nodes = group.plan->header().nodes;
  std::map<NodeId, NodeId> node_of;  // by host
  for (uint32_t i = 0; i < nodes; ++i) {
    const NodeId host = group.HostOf(NodeId(i));
    part.nodes.push_back(network.nodes[host.index()]);
    node_of[host] = NodeId(i);
  }
  const auto add = [&](NodeId from, NodeId to, double rate) {
    part.pairs.push_back({node_of[from], node_of[to], rate});
  };
  if (network.pairs.size() > size_t{nodes} * nodes) {
    for (const auto& from : node_of) {
      for (const auto& to : node_of) {
        const std::optional<uint32_t> pair = network.PairOf(from.first, to.first);
        if (pair) add(from.first, to.first, network.pairs[*pair].rate);
      }
    }
  } else {
    for (const Network::Pair& pair : network.pairs) {
      const bool is_part = node_of.contains(pair.from) && node_of.contains(pair.to);
      if (is_part) add(pair.from, pair.to, pair.rate);
    }
  }
  std::ranges::sort(part.pairs, {}, [](const auto& pair) { return std::pair(pair.from, pair.to); });
  return part;
}

std::string Time(double seconds) { return WriteLatency(seconds); }

void Row(std::ostream& out, const std::string& label, const std::string& offload,
         const std::string& cpu) {
  out << fmt::format("{:<26}{:>14}{:>14}\n", label, offload, cpu);
}

/// What there is of each executor.
struct Both {
  std::optional<Fared> offload, cpu;
};

using Text = std::function<std::string(const Fared&)>;
void EachRow(const Both& both, std::ostream& out, const std::string& label, const Text& text) {
  Row(out, label, both.offload ? text(*both.offload) : "", both.cpu ? text(*both.cpu) : "");
}

void PrintGroups(const GroupRuns& it, const Both& both, std::ostream& out) {
  out << fmt::format("\n{:<26}{:>14}{:>14}\n", "start to completion",
                     both.offload ? "preposted" : "", both.cpu ? "CPU-driven" : "");
  for (size_t g = 0; g < it.groups.size(); ++g) {
    const PlanHeader& header = it.groups[g].plan->header();
    EachRow(both, out,
            fmt::format("  group {}, root {}", g, it.groups[g].HostOf(header.root).value),
            [&](const Fared& fared) { return Time(fared.groups[g].latency); });
  }
}

void PrintLinks(const GroupRuns& it, const char* executor, const Fared& fared, std::ostream& out) {
  Links busiest = fared.links;
  std::ranges::stable_sort(busiest, std::greater(),
                           [](const VirtualOffload::Link& link) { return link.use.busy; });
  out << fmt::format("\nbusiest links, {}\n", executor);
  for (size_t i = 0; i < std::min(kLinksMax, busiest.size()); ++i) {
    const auto& [resource, use] = busiest[i];
    const double share = fared.completion > 0 ? 100 * Seconds(use.busy) / fared.completion : 0.0;
    out << fmt::format("  {:<34}{:>14}, {:.1f} % of the time\n",
                       Printable(it.network.Describe(resource)), Time(Seconds(use.busy)), share);
  }
}

Both FaredBoth(const GroupRuns& it) {
  Both both;
  if (it.offload) both.offload.emplace(FareOf(it, *it.offload));
  if (it.cpu) both.cpu.emplace(FareOf(it, *it.cpu));
  return both;
}

Json FaredJson(const GroupRuns& it, const Fared& fared, double bound, bool has_lists) {
  Json json = {{"completion_seconds", fared.completion},
               {"of_bound", bound > 0 ? Json(fared.completion / bound) : Json()},
               {"aggregate_bytes_per_second", fared.bandwidth},
               {"latency_mean_seconds", fared.mean},
               {"latency_deviation_seconds", fared.deviation}};
  for (const int percent : kPercents) {
    json[fmt::format("latency_p{}_seconds", percent)] = fared.Percentile(percent);
  }
  if (!has_lists) return json;
  Json& groups = json["groups"] = Json::array();
  for (size_t g = 0; g < fared.groups.size(); ++g) {
    const VirtualGroup& group = it.groups[g];
    groups.push_back({{"root", group.HostOf(group.plan->header().root).value},
                      {"message_bytes", group.plan->header().message.bytes},
                      {"start_seconds", fared.groups[g].start},
                      {"completion_seconds", fared.groups[g].completion},
                      {"latency_seconds", fared.groups[g].latency},
                      {"waited_seconds", fared.groups[g].waited}});
  }
  Json& used = json["links"] = Json::array();
  for (const VirtualOffload::Link& link : fared.links) {
    Json& entry = used.emplace_back(Json{{"kind", Name(link.resource.kind)},
                                         {"index", link.resource.index},
                                         {"bytes", link.use.bytes},
                                         {"busy_seconds", Seconds(link.use.busy)}});
    if (link.resource.kind != ResourceKind::kPair) continue;
    const Network::Pair& pair = it.network.pairs[link.resource.index];
    entry["from"] = pair.from.value;
    entry["to"] = pair.to.value;
  }
  return json;
}

Status RunOffload(const SimulationOptions& options, GroupRuns* runs) {
  std::optional<Ticker> ticker;
  if (!options.is_quiet) ticker.emplace("simulating preposted queues");
  const emulated::VirtualOffloadOptions run_options =
      OffloadOptionsOf(options, runs->profile, runs->seed);
  Result<emulated::VirtualOffloads> run =
      emulated::RunVirtualOffloads(runs->groups, runs->network, run_options);
  if (!run.ok()) return run.status();
  runs->mode = Name(options.lower.mode);
  runs->offload = *std::move(run);
  return {};
}

Status RunCpu(const SimulationOptions& options, GroupRuns* runs) {
  std::optional<Ticker> ticker;
  if (!options.is_quiet) ticker.emplace("simulating hosts");
  const emulated::VirtualHostsOptions run_options =
      HostsOptionsOf(options, runs->profile, runs->seed);
  Result<emulated::VirtualHosts> run =
      emulated::RunVirtualHosts(runs->groups, runs->network, run_options);
  if (!run.ok()) return run.status();
  runs->wait = Name(options.wait);
  runs->cpu = *std::move(run);
  return {};
}

}  // namespace

std::vector<VirtualGroup> RotatedGroups(const Plan& plan, uint32_t count) {
  const uint32_t nodes = plan.header().nodes;
  std::vector<VirtualGroup> groups;
  for (uint32_t g = 0; g < count; ++g) {
    VirtualGroup& group = groups.emplace_back(VirtualGroup{.plan = &plan});
    for (uint32_t i = 0; i < nodes; ++i) group.hosts.push_back(NodeId((i + g) % nodes));
  }
  return groups;
}

Status RunGroups(const SimulationOptions& options, GroupRuns* runs) {
  if (options.is_offload) PREPOST_RETURN_IF_ERROR(RunOffload(options, runs));
  if (options.is_cpu) PREPOST_RETURN_IF_ERROR(RunCpu(options, runs));
  return {};
}

// Whatever starts when, all of it happens between 0 and the end.
double BoundOf(const GroupRuns& it) {
  const size_t hosts = it.network.nodes.size();
  std::vector<double> out(hosts), in(hosts);  // bytes of messages that begin and end there
  double bound = 0, all = 0, out_rate = 0;
  for (const VirtualGroup& group : it.groups) {
    const PlanHeader& header = group.plan->header();
    const auto bytes = static_cast<double>(header.message.bytes);
    if (header.nodes > 1) out[group.HostOf(header.root).index()] += bytes;
    for (uint32_t i = 0; i < header.nodes; ++i) {
      if (i != header.root.value) in[group.HostOf(NodeId(i)).index()] += bytes;
    }
    all += bytes * (header.nodes - 1);
    const std::vector<CutBound> cuts =
        BoundSeconds(NetworkOfGroup(it.network, group), header.root, header.message.bytes);
    if (!cuts.empty()) bound = std::max(bound, Seconds(group.start) + cuts.front().seconds);
  }
  for (size_t i = 0; i < hosts; ++i) {
    bound = std::max(
        {bound, out[i] / it.network.nodes[i].out_rate, in[i] / it.network.nodes[i].in_rate});
    out_rate += it.network.nodes[i].out_rate;
  }
  return hosts == 0 ? bound : std::max(bound, all / out_rate);
}

void PrintGroupRuns(const GroupRuns& it, bool per_group, std::ostream& out) {
  out << fmt::format("modelled, with the profile {} ({}): {}\n", Printable(it.profile.name),
                     Printable(it.profile_path), Printable(it.profile.cluster));
  if (it.plan != nullptr) {
    const PlanHeader& header = it.plan->header();
    out << fmt::format("{} at once, with rotated roots, of {}: {}; {} in {} of {}; ready {}\n\n",
                       Count(it.groups.size(), "group"), Printable(header.algorithm),
                       Count(header.nodes, "node"), Count(header.message.bytes, "byte"),
                       Count(header.message.blocks, "block"), header.message.block_bytes,
                       ToString(header.ready));
  } else {
    out << fmt::format("{}: {} on {}\n\n", Printable(it.workload), Count(it.groups.size(), "group"),
                       Count(it.network.nodes.size(), "host"));
  }
  if (!it.network.pairs.empty()) out << SlowPaths(it.network) << "\n\n";
  const Both both = FaredBoth(it);
  const double bound = BoundOf(it);
  Row(out, "", it.offload ? "preposted" : "", it.cpu ? "CPU-driven" : "");
  Row(out, "", it.offload ? it.mode : "", it.cpu ? it.wait : "");
  EachRow(both, out, "all groups are complete at",
          [](const Fared& fared) { return Time(fared.completion); });
  if (bound > 0) {
    EachRow(both, out, fmt::format("  of the bound {}", Time(bound)),
            [&](const Fared& fared) { return fmt::format("{:.3f}", fared.completion / bound); });
  }
  EachRow(both, out, "aggregate bandwidth", [](const Fared& fared) {
    return fared.bandwidth > 0 ? WriteRate(fared.bandwidth) : std::string("-");
  });
  EachRow(both, out, "start to completion: mean",
          [](const Fared& fared) { return Time(fared.mean); });
  EachRow(both, out, "  deviation", [](const Fared& fared) { return Time(fared.deviation); });
  for (const int percent : kPercents) {
    EachRow(both, out, fmt::format("  p{}", percent),
            [&](const Fared& fared) { return Time(fared.Percentile(percent)); });
  }
  if (both.offload) PrintLinks(it, "preposted", *both.offload, out);
  if (both.cpu) PrintLinks(it, "CPU-driven", *both.cpu, out);
  if (per_group || it.groups.size() <= kGroupsMax) PrintGroups(it, both, out);
}

Json GroupRunsJson(const GroupRuns& it, bool has_lists) {
  Json json = {{"modelled", true},
               {"generator", kGenerator},
               {"command", it.command},
               {"profile", {{"name", it.profile.name}, {"file", it.profile_path}}}};
  if (it.plan != nullptr) {
    const PlanHeader& header = it.plan->header();
    json["algorithm"] = header.algorithm;
    json["nodes"] = header.nodes;
    json["message_bytes"] = header.message.bytes;
    json["block_bytes"] = header.message.block_bytes;
    json["blocks"] = header.message.blocks;
  } else {
    json["workload"] = it.workload;
  }
  const double bound = BoundOf(it);
  json["hosts"] = it.network.nodes.size();
  json["groups"] = it.groups.size();
  json["slow_paths"] = it.network.pairs.size();
  json["bound_seconds"] = bound;
  json["seed"] = it.seed;
  const Both both = FaredBoth(it);
  if (both.offload) {
    json["offload"] = FaredJson(it, *both.offload, bound, has_lists);
    json["offload"]["mode"] = it.mode;
  }
  if (both.cpu) {
    json["cpu"] = FaredJson(it, *both.cpu, bound, has_lists);
    json["cpu"]["wait"] = it.wait;
  }
  return json;
}

}  // namespace prepost::tools
