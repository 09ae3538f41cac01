// SPDX-License-Identifier: Apache-2.0
#include "tools/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "prepost/ir/bounds.h"
#include "prepost/ir/count.h"
#include "prepost/ir/rate_text.h"
#include "prepost/ir/utf8.h"
#include "prepost/version.h"
#include "tools/causes_print.h"

namespace prepost::tools {
namespace {

using emulated::Picoseconds;
using emulated::VirtualHosts;
using emulated::VirtualOffload;
using Json = nlohmann::ordered_json;
using Links = std::vector<VirtualOffload::Link>;

constexpr size_t kLinksMax = 5;  ///< shown in text

double Seconds(Picoseconds time) {
  return static_cast<double>(time) / static_cast<double>(emulated::kPicosecondsPerSecond);
}
std::string Time(Picoseconds time) { return WriteLatency(Seconds(time)); }

/// How one executor fared, for both.
struct Fared {
  Picoseconds completion = 0;
  Picoseconds first = 0;  ///< of the nodes but the root
  Picoseconds last = 0;
  std::vector<Picoseconds> nodes;
};

template <typename Nodes>
Fared FareOf(const Nodes& nodes, NodeId root, Picoseconds completion) {
  Fared fared = {.completion = completion, .first = emulated::kNever};
  for (const auto& node : nodes) fared.nodes.push_back(node.completion);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i == root.index()) continue;
    fared.first = std::min(fared.first, nodes[i].completion);
    fared.last = std::max(fared.last, nodes[i].completion);
  }
  if (nodes.size() == 1) fared.first = 0;
  return fared;
}
Fared FareOf(const Simulation& it, const VirtualOffload& run) {
  return FareOf(run.nodes, it.plan.header().root, run.completion);
}
Fared FareOf(const Simulation& it, const VirtualHosts& run) {
  return FareOf(run.groups[0].nodes, it.plan.header().root, run.groups[0].completion);
}

/// Those that were busy longest first.
Links Busiest(Links links) {
  std::ranges::stable_sort(links, std::greater(),
                           [](const VirtualOffload::Link& link) { return link.use.busy; });
  return links;
}

void Row(std::ostream& out, const std::string& label, const std::string& offload,
         const std::string& cpu) {
  out << fmt::format("{:<22}{:>14}{:>14}\n", label, offload, cpu);
}

/// A row of what `text` makes of each executor that ran.
template <typename Text>
void EachRow(const Simulation& it, std::ostream& out, const std::string& label, Text text) {
  Row(out, label, it.offload ? text(FareOf(it, *it.offload)) : "",
      it.cpu ? text(FareOf(it, *it.cpu)) : "");
}

emulated::HostWork WorkOf(const VirtualHosts& run) {
  emulated::HostWork sum;
  for (const VirtualHosts::Node& node : run.groups[0].nodes) {
    sum.looks += node.work.looks;
    sum.completions += node.work.completions;
    sum.posts += node.work.posts;
    sum.doorbells += node.work.doorbells;
    sum.wakeups += node.work.wakeups;
    sum.busy += node.work.busy;
  }
  return sum;
}

/// Of the host that takes longest.
double ArmingSeconds(const Simulation& it) {
  double longest = 0;
  for (const VirtualOffload::Node& node : it.offload->nodes)
    longest = std::max(longest, PrepostedWorkOf(it, node).arming_seconds);
  return longest;
}

void PrintHosts(const Simulation& it, std::ostream& out) {
  const PrepostedWork preposted = it.offload ? PrepostedWorkOf(it) : PrepostedWork();
  const emulated::HostWork work = it.cpu ? WorkOf(*it.cpu) : emulated::HostWork();
  const auto both = [&](const std::string& label, const std::string& offload,
                        const std::string& cpu) {
    Row(out, label, it.offload ? offload : "", it.cpu ? cpu : "");
  };
  both("hosts: posts before", std::to_string(preposted.posts_before), "-");
  both("  doorbells", std::to_string(preposted.doorbells), std::to_string(work.doorbells));
  both("  posts on the way", std::to_string(preposted.posts), std::to_string(work.posts));
  both("  rings written again", std::to_string(preposted.rearms), "-");
  both("  completions seen", std::to_string(preposted.completions),
       std::to_string(work.completions));
  both("  wake-ups", std::to_string(preposted.wakeups), std::to_string(work.wakeups));
  both("  busy, all together", WriteLatency(preposted.busy_seconds), Time(work.busy));
  both("  arming, before", it.offload ? WriteLatency(ArmingSeconds(it)) : "", "-");
  both("  seeing the end, after", WriteLatency(it.detection_seconds), "-");
}

void PrintLinks(const Simulation& it, const char* executor, const Links& links, Picoseconds end,
                std::ostream& out) {
  const Links busiest = Busiest(links);
  out << fmt::format("\nbusiest links, {}\n", executor);
  for (size_t i = 0; i < std::min(kLinksMax, busiest.size()); ++i) {
    const auto& [resource, use] = busiest[i];
    out << fmt::format("  {:<34}{:>14}, {:.1f} % of the time\n",
                       Printable(it.network.Describe(resource)), Time(use.busy),
                       end == 0 ? 0.0 : 100 * Seconds(use.busy) / Seconds(end));
  }
}

void PrintNodes(const Simulation& it, std::ostream& out) {
  out << fmt::format("\n{:<22}{:>14}{:>14}\n", "complete at", it.offload ? "preposted" : "",
                     it.cpu ? "CPU-driven" : "");
  for (uint32_t node = 0; node < it.plan.header().nodes; ++node) {
    EachRow(it, out, fmt::format("  node {}", node),
            [&](const Fared& fared) { return Time(fared.nodes[node]); });
  }
  if (it.offload) {
    out << fmt::format("\n{:<22}{:>14}{:>14}{:>14}{:>14}{:>14}\n", "hosts, preposted",
                       "posts before", "posts", "doorbells", "rings again", "arming");
    for (uint32_t node = 0; node < it.offload->nodes.size(); ++node) {
      const PrepostedWork host = PrepostedWorkOf(it, it.offload->nodes[node]);
      out << fmt::format("{:<22}{:>14}{:>14}{:>14}{:>14}{:>14}\n", fmt::format("  node {}", node),
                         host.posts_before, host.posts, host.doorbells, host.rearms,
                         WriteLatency(host.arming_seconds));
    }
  }
  if (!it.cpu) return;
  out << fmt::format("\n{:<22}{:>14}{:>14}{:>14}{:>14}{:>14}{:>14}\n", "hosts, CPU-driven", "looks",
                     "completions", "posts", "doorbells", "wake-ups", "busy");
  for (uint32_t node = 0; node < it.plan.header().nodes; ++node) {
    const emulated::HostWork& work = it.cpu->groups[0].nodes[node].work;
    out << fmt::format("{:<22}{:>14}{:>14}{:>14}{:>14}{:>14}{:>14}\n",
                       fmt::format("  node {}", node), work.looks, work.completions, work.posts,
                       work.doorbells, work.wakeups, Time(work.busy));
  }
}

Json FaredJson(const Simulation& it, const Fared& fared, const Links& links, bool has_lists) {
  Json json = {{"completion_seconds", Seconds(fared.completion)},
               {"first_node_seconds", Seconds(fared.first)},
               {"skew_seconds", Seconds(fared.last - std::min(fared.first, fared.last))}};
  json["of_bound"] = it.bound() > 0 ? Json(Seconds(fared.completion) / it.bound()) : Json();
  if (!has_lists) return json;
  for (const Picoseconds node : fared.nodes) json["node_seconds"].push_back(Seconds(node));
  Json& used = json["links"] = Json::array();
  for (const VirtualOffload::Link& link : links) {
    Json& entry = used.emplace_back(Json{{"kind", Name(link.resource.kind)},
                                         {"index", link.resource.index},
                                         {"bytes", link.use.bytes},
                                         {"busy_seconds", Seconds(link.use.busy)}});
    if (link.resource.kind != ResourceKind::kPair) continue;
    entry["from"] = it.network.pairs[link.resource.index].from.value;
    entry["to"] = it.network.pairs[link.resource.index].to.value;
  }
  return json;
}

/// Of one host or of all; `arming` is the longest host's.
void AddWork(const PrepostedWork& work, double arming, Json* json) {
  Json& it = *json;
  it["wqes"] = work.posts_before;
  it["posts"] = work.posts;
  it["doorbells"] = work.doorbells;
  it["rearms"] = work.rearms;
  it["completions"] = work.completions;
  it["wakeups"] = work.wakeups;
  it["rearming_seconds"] = work.rearming_seconds;
  it["busy_seconds"] = work.busy_seconds;
  it["arming_seconds"] = arming;
}

}  // namespace

PrepostedWork PrepostedWorkOf(const Simulation& it, const VirtualOffload::Node& node) {
  const emulated::HostProfile& host = it.profile.host;
  PrepostedWork work = {.posts_before = node.wqes,
                        .posts = node.wqes_later,
                        .doorbells = node.rings + node.rings_later,
                        .rearms = node.rearms,
                        .completions = node.completions,
                        .wakeups = node.wakeups,
                        .arming_seconds = static_cast<double>(node.wqes) * host.post_receive,
                        .rearming_seconds = Seconds(node.rearming)};
  work.busy_seconds = work.rearming_seconds + static_cast<double>(node.looks) * host.poll +
                      static_cast<double>(node.completions) * host.completion;
  return work;
}

PrepostedWork PrepostedWorkOf(const Simulation& it) {
  PrepostedWork sum;
  for (const VirtualOffload::Node& node : it.offload->nodes) {
    const PrepostedWork work = PrepostedWorkOf(it, node);
    sum.posts_before += work.posts_before;
    sum.posts += work.posts;
    sum.doorbells += work.doorbells;
    sum.rearms += work.rearms;
    sum.completions += work.completions;
    sum.wakeups += work.wakeups;
    sum.arming_seconds += work.arming_seconds;
    sum.rearming_seconds += work.rearming_seconds;
    sum.busy_seconds += work.busy_seconds;
  }
  return sum;
}

double Simulation::bound() const {
  const std::vector<CutBound> cuts =
      BoundSeconds(network, plan.header().root, plan.header().message.bytes);
  return cuts.empty() ? 0 : cuts.front().seconds;
}

std::string SlowPaths(const Network& network) {
  const size_t count = network.pairs.size();
  return fmt::format("{} from one node to another {} slow; the bound allows for ways around",
                     Count(count, "path"), count == 1 ? "is" : "are");
}

void PrintSimulation(const Simulation& it, bool per_node, std::ostream& out) {
  const PlanHeader& header = it.plan.header();
  out << fmt::format("modelled, with the profile {} ({}): {}\n", Printable(it.profile.name),
                     Printable(it.profile_path), Printable(it.profile.cluster));
  out << fmt::format("{}: {}, root {}; {} in {} of {}; ready {}\n\n", Printable(header.algorithm),
                     Count(header.nodes, "node"), header.root.value,
                     Count(header.message.bytes, "byte"), Count(header.message.blocks, "block"),
                     header.message.block_bytes, ToString(header.ready));
  if (!it.network.pairs.empty()) out << SlowPaths(it.network) << "\n\n";
  Row(out, "", it.offload ? "preposted" : "", it.cpu ? "CPU-driven" : "");
  Row(out, "", it.offload ? it.mode : "", it.cpu ? it.wait : "");
  EachRow(it, out, "all nodes have it after",
          [](const Fared& fared) { return Time(fared.completion); });
  if (it.bound() > 0) {
    EachRow(it, out, fmt::format("  of the bound {}", WriteLatency(it.bound())),
            [&](const Fared& fared) {
              return fmt::format("{:.3f}", Seconds(fared.completion) / it.bound());
            });
  }
  EachRow(it, out, "  bandwidth", [&](const Fared& fared) {
    const double seconds = Seconds(fared.completion);
    return seconds > 0 && header.message.bytes > 0
               ? WriteRate(static_cast<double>(header.message.bytes) / seconds)
               : "-";
  });
  EachRow(it, out, "  the first node", [](const Fared& fared) { return Time(fared.first); });
  EachRow(it, out, "  skew",
          [](const Fared& fared) { return Time(fared.last - std::min(fared.first, fared.last)); });
  PrintHosts(it, out);
  if (it.offload) PrintLinks(it, "preposted", it.offload->links, it.offload->completion, out);
  if (it.cpu) PrintLinks(it, "CPU-driven", it.cpu->links, it.cpu->groups[0].completion, out);
  PrintCauses(it, per_node, out);
  if (per_node) PrintNodes(it, out);
}

nlohmann::ordered_json SimulationJson(const Simulation& it, bool has_lists) {
  const PlanHeader& header = it.plan.header();
  Json json = {{"modelled", true},
               {"generator", kGenerator},
               {"command", it.command},
               {"profile", {{"name", it.profile.name}, {"file", it.profile_path}}},
               {"algorithm", header.algorithm},
               {"nodes", header.nodes},
               {"root", header.root.value},
               {"message_bytes", header.message.bytes},
               {"block_bytes", header.message.block_bytes},
               {"blocks", header.message.blocks},
               {"ready", ToString(header.ready)},
               {"send_window", header.send_window ? Json(*header.send_window) : Json()},
               {"slow_paths", it.network.pairs.size()},
               {"bound_seconds", it.bound()},
               {"seed", it.seed}};
  if (it.offload) {
    Json& run = json["offload"] =
        FaredJson(it, FareOf(it, *it.offload), it.offload->links, has_lists);
    run["mode"] = it.mode;
    run["doorbells_seconds"] = Seconds(it.offload->doorbells);
    Json hosts = Json::array();
    std::vector<Picoseconds> completions;
    for (const VirtualOffload::Node& node : it.offload->nodes) {
      completions.push_back(node.completion);
      const PrepostedWork work = PrepostedWorkOf(it, node);
      AddWork(work, work.arming_seconds, &hosts.emplace_back());
    }
    AddWork(PrepostedWorkOf(it), ArmingSeconds(it), &run);
    run["detection_seconds"] = it.detection_seconds;
    if (has_lists) run["hosts"] = std::move(hosts);
    if (it.offload_trail) AddCausesJson(it.plan, *it.offload_trail, completions, has_lists, &run);
  }
  if (it.cpu) {
    Json& run = json["cpu"] = FaredJson(it, FareOf(it, *it.cpu), it.cpu->links, has_lists);
    const emulated::HostWork work = WorkOf(*it.cpu);
    run["wait"] = it.wait;
    run["posts"] = work.posts;
    run["doorbells"] = work.doorbells;
    run["completions"] = work.completions;
    run["wakeups"] = work.wakeups;
    run["busy_seconds"] = Seconds(work.busy);
    Picoseconds delayed = 0;
    for (const VirtualHosts::Host& host : it.cpu->hosts) delayed += host.delayed;
    run["delayed_seconds"] = Seconds(delayed);
    std::vector<Picoseconds> completions;
    Json hosts = Json::array();
    for (const VirtualHosts::Node& node : it.cpu->groups[0].nodes) {
      completions.push_back(node.completion);
      hosts.push_back({{"looks", node.work.looks},
                       {"completions", node.work.completions},
                       {"posts", node.work.posts},
                       {"doorbells", node.work.doorbells},
                       {"wakeups", node.work.wakeups},
                       {"busy_seconds", Seconds(node.work.busy)}});
    }
    if (has_lists) run["hosts"] = std::move(hosts);
    if (it.cpu_trail) AddCausesJson(it.plan, *it.cpu_trail, completions, has_lists, &run);
  }
  return json;
}

}  // namespace prepost::tools
