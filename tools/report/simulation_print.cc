// SPDX-License-Identifier: Apache-2.0
#include "tools/report/simulation_print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <ostream>
#include <utility>

#include "ir/count.h"
#include "ir/json/rate_text.h"
#include "ir/utf8.h"
#include "tools/report/causes_print.h"
#include "tools/report/plan_text.h"

namespace prepost::tools {
namespace {

using emulated::Picoseconds;
using sim::PrepostedAlone;
using Links = std::vector<sim::UsedLink>;

constexpr size_t kLinksMax = 5;  ///< shown in text

void PrintHead(const sim::Simulation& it, std::ostream& out) {
  out << fmt::format("modelled, with the profile {} ({}){}: {}\n", Printable(it.profile.name),
                     Printable(it.profile_path), DeviationsText(it.deviations),
                     Printable(it.profile.cluster));
  if (it.plan == nullptr) {
    out << fmt::format("{}: {} on {}\n\n", Printable(it.workload), Count(it.groups.size(), "group"),
                       Count(it.network.nodes.size(), "host"));
  } else if (const PlanHeader& header = it.plan->header(); it.is_of_groups) {
    out << fmt::format("{} at once, with rotated roots, of {}: {}; {}\n\n",
                       Count(it.groups.size(), "group"), Printable(header.algorithm),
                       Count(header.nodes, "node"), MessageText(header));
  } else {
    out << PlanText(header) << "\n\n";
  }
  if (const size_t count = it.network.pairs.size(); count != 0) {
    out << fmt::format("{} from one node to another {} slow; the bound allows for ways around\n\n",
                       Count(count, "path"), count == 1 ? "is" : "are");
  }
}

/// What `text` makes of each executor that ran.
std::vector<std::string> EachOf(const sim::Simulation& it,
                                const std::function<std::string(const sim::RunTimes&)>& text) {
  return {it.offload ? text(it.offload_times) : "", it.cpu ? text(it.cpu_times) : ""};
}

void AddHosts(const sim::Simulation& it, Table* table) {
  const sim::PrepostedWork preposted = it.offload ? WorkOf(it, *it.offload) : sim::PrepostedWork();
  const sim::HostWork work = it.cpu ? WorkOf(*it.cpu) : sim::HostWork();
  const auto both = [&](const std::string& label, const std::string& offload,
                        const std::string& cpu) {
    table->Add(label, {it.offload ? offload : "", it.cpu ? cpu : ""});
  };
  both("hosts: posts before", std::to_string(preposted.posts_before),
       it.cpu ? std::to_string(PostsBefore(it, *it.cpu)) : "");
  both("  doorbells", std::to_string(preposted.doorbells), std::to_string(work.doorbells));
  both("  posts on the way", std::to_string(preposted.posts), std::to_string(work.posts));
  both("  rings written again", std::to_string(preposted.rearms), "-");
  both("  completions seen", std::to_string(preposted.completions),
       std::to_string(work.completions));
  both("  wake-ups", std::to_string(preposted.wakeups), std::to_string(work.wakeups));
  both("  busy, all together", WriteLatency(preposted.busy_seconds), TimeText(work.busy));
  both("beside it: arming, before", it.offload ? WriteLatency(ArmingSeconds(it, *it.offload)) : "",
       it.cpu ? WriteLatency(ArmingSeconds(it, *it.cpu)) : "");
  const std::optional<double> barrier = BarrierSeconds(it);
  const std::string barrier_text = barrier ? WriteLatency(*barrier) : "not known";
  both("  barrier, before", barrier_text, barrier_text);
  both("  re-arming, on the way", WriteLatency(preposted.rearming_seconds), "-");
  both("  seeing the end, after", it.offload ? WriteLatency(DetectionSeconds(it)) : "", "-");
}

void PrintLinks(const sim::Simulation& it, const char* executor, const Links& links,
                Picoseconds end, std::ostream& out) {
  if (links.empty()) return;
  Links busiest = links;
  std::ranges::stable_sort(busiest, std::greater(),
                           [](const sim::UsedLink& link) { return link.use.busy; });
  out << fmt::format("\nbusiest links, {}\n", executor);
  Table table(36, 12);
  for (size_t i = 0; i < std::min(kLinksMax, busiest.size()); ++i) {
    const auto& [resource, use] = busiest[i];
    const double share = end == 0 ? 0.0 : 100 * sim::ToSeconds(use.busy) / sim::ToSeconds(end);
    table.Add("  " + Printable(it.network.Describe(resource)),
              {TimeText(use.busy), fmt::format("{:.1f} % of the time", share)});
  }
  table.Print(out);
}

/// When each node has it, and what its host does; of several groups each one's nodes, by hosts.
void PrintNodes(const sim::Simulation& it, std::ostream& out) {
  const auto each = [&](auto text) {
    for (size_t g = 0; g < it.groups.size(); ++g) {
      for (uint32_t i = 0; i < it.groups[g].plan->header().nodes; ++i) {
        const uint32_t host = it.groups[g].HostOf(NodeId(i)).value;
        text(it.is_of_groups ? fmt::format("  group {}, node {}", g, host)
                             : fmt::format("  node {}", i),
             g, i);
      }
    }
  };
  out << "\n";
  Table times = SimulationTable();
  times.Add("has it at", {it.offload ? "preposted" : "", it.cpu ? "CPU-driven" : ""});
  each([&](const std::string& label, size_t g, uint32_t node) {
    times.Add(label, EachOf(it, [&](const sim::RunTimes& run) {
                return TimeText(run.groups[g].received[node]);
              }));
  });
  times.Print(out);
  if (it.offload) {
    out << "\n";
    Table hosts = SimulationTable();
    hosts.Add("hosts, preposted", {"posts before", "posts", "doorbells", "rings again", "arming"});
    each([&](const std::string& label, size_t g, uint32_t node) {
      const sim::PrepostedWork host = WorkOf(it, it.offload->groups[g].nodes[node]);
      hosts.Add(label, {std::to_string(host.posts_before), std::to_string(host.posts),
                        std::to_string(host.doorbells), std::to_string(host.rearms),
                        WriteLatency(host.arming_seconds)});
    });
    hosts.Print(out);
  }
  if (!it.cpu) return;
  out << "\n";
  Table hosts = SimulationTable();
  hosts.Add("hosts, CPU-driven",
            {"posts before", "looks", "completions", "posts", "doorbells", "wake-ups", "busy"});
  each([&](const std::string& label, size_t g, uint32_t node) {
    const sim::HostWork& work = it.cpu->groups[g].nodes[node].work;
    hosts.Add(label, {std::to_string(PostsBefore(it, *it.cpu, g, NodeId(node))),
                      std::to_string(work.polls), std::to_string(work.completions),
                      std::to_string(work.posts), std::to_string(work.doorbells),
                      std::to_string(work.wakeups), TimeText(work.busy)});
  });
  hosts.Print(out);
}

/// Until hosts know, and what of it they have no part in.
void AddKnown(const sim::Simulation& it, Table* table) {
  table->Add("all hosts know it after",
             EachOf(it, [](const sim::RunTimes& times) { return TimeText(times.known); }));
  if (!it.is_of_groups) {
    table->Add("  the root after", EachOf(it, [](const sim::RunTimes& times) {
                 return TimeText(times.groups[0].root_known);
               }));
  }
  if (it.offload && !it.is_of_groups) {
    std::vector<std::string> cells = {TimeText(it.offload_times.groups[0].offload())};
    if (it.cpu) cells.emplace_back("-");
    table->Add("offload time", cells);
  }
}

/// By how much preposted is faster, of what both have.
void PrintGain(const sim::Simulation& it, std::ostream& out) {
  const sim::Gain gain = GainOf(it);
  if (gain.completion <= 0) return;
  out << fmt::format(
      "\nCPU-driven / preposted: {:.3f} until all nodes have it, {:.3f} until all "
      "hosts know\n",
      gain.completion, gain.known);
}

/// Of one multicast.
void AddTimes(const sim::Simulation& it, Table* table) {
  const auto bytes = static_cast<double>(it.plan->header().message.bytes);
  table->Add("  bandwidth", EachOf(it, [&](const sim::RunTimes& times) {
               const double seconds = sim::ToSeconds(times.completion);
               return seconds > 0 && bytes > 0 ? WriteRate(bytes / seconds) : std::string("-");
             }));
  table->Add("  the first node", EachOf(it, [](const sim::RunTimes& times) {
               return TimeText(times.groups[0].first);
             }));
  table->Add("  skew", EachOf(it, [](const sim::RunTimes& times) {
               return TimeText(times.groups[0].skew());
             }));
}

}  // namespace

std::string TimeText(Picoseconds time) { return WriteLatency(sim::ToSeconds(time)); }

std::string DeviationsText(const std::vector<std::string>& deviations, size_t bytes_max) {
  if (deviations.empty()) return "";
  std::string text = fmt::format(", but {}", fmt::join(deviations, ", "));
  if (text.size() > bytes_max) text = text.substr(0, bytes_max) + "...";
  return Printable(text);
}

Table SimulationTable() { return Table(/*label_min=*/26, /*cell_min=*/12); }

void PrintSimulation(const sim::Simulation& it, bool is_long, std::ostream& out) {
  PrintHead(it, out);
  Table table = SimulationTable();
  table.Add("", {it.offload ? "preposted" : "", it.cpu ? "CPU-driven" : ""});
  table.Add("", {it.offload ? fmt::format("{}, {}", it.mode, it.wait) : "", it.cpu ? it.wait : ""});
  table.Add(it.is_of_groups ? "all groups are complete at" : "all nodes have it after",
            EachOf(it, [](const sim::RunTimes& times) { return TimeText(times.completion); }));
  if (it.bound > 0) {
    table.Add(fmt::format("  of the bound {}", WriteLatency(it.bound)),
              EachOf(it, [&](const sim::RunTimes& times) {
                return fmt::format("{:.3f}", sim::ToSeconds(times.completion) / it.bound);
              }));
  }
  if (it.is_of_groups) {
    AddGroupTimes(it, &table);
  } else {
    AddTimes(it, &table);
  }
  AddKnown(it, &table);
  AddHosts(it, &table);
  table.Print(out);
  PrintGain(it, out);
  if (it.offload) PrintLinks(it, "preposted", it.offload->links, it.offload_times.completion, out);
  if (it.cpu) PrintLinks(it, "CPU-driven", it.cpu->links, it.cpu_times.completion, out);
  if (it.is_of_groups) PrintGroups(it, is_long, out);
  PrintCauses(it, is_long, out);
  if (is_long) PrintNodes(it, out);
}

}  // namespace prepost::tools
