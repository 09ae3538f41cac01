// SPDX-License-Identifier: Apache-2.0
#include "planning/simulation/simulation_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <utility>

#include "ir/base/count.h"
#include "ir/base/utf8.h"
#include "ir/json/rate_text.h"
#include "ir/version.h"
#include "planning/simulation/causes_report.h"
#include "planning/simulation/statistics.h"
#include "planning/text/plan_text.h"
#include "planning/text/table.h"
#include "runtime/executor/block_places.h"

namespace prepost {
namespace {

using sim::Picoseconds;
using sim::RunTimes;
using sim::ToSeconds;
using Json = nlohmann::ordered_json;
using Links = std::vector<sim::UsedLink>;

/// What --json is. 1.1: `drawn_hosts`. 1.0: hosts' polls are `polls`; before there was a version
/// they were `looks`.
constexpr const char* kSimulationFormat = "prepost.simulation";
constexpr const char* kSimulationVersion = "1.1";

constexpr size_t kLinksMax = 5;         ///< shown in text
constexpr size_t kGroupsShownMax = 20;  ///< shown in text unless all are asked for
constexpr std::array kPercents = {1, 10, 25, 50, 75, 90, 99};

/// What one host does, or all together; some of it only preposted, or only CPU-driven.
struct HostFigures {
  std::optional<uint64_t> polls;
  uint64_t posts_before = 0;
  uint64_t posts = 0;
  uint64_t doorbells = 0;
  uint64_t doorbells_later = 0;  ///< preposted: of these, for rings that are re-armed
  std::optional<uint64_t> rearms;
  uint64_t completions = 0;
  uint64_t wakeups = 0;
  std::optional<double> rearming_seconds;
  double busy_seconds = 0;
  std::optional<double> arming_seconds;  ///< of all: the longest host's
};

HostFigures FiguresOf(const sim::PrepostedWork& work, double arming_seconds) {
  return {.polls = {},
          .posts_before = work.posts_before,
          .posts = work.posts,
          .doorbells = work.doorbells,
          .doorbells_later = work.doorbells_later,
          .rearms = work.rearms,
          .completions = work.completions,
          .wakeups = work.wakeups,
          .rearming_seconds = work.rearming_seconds,
          .busy_seconds = work.busy_seconds,
          .arming_seconds = arming_seconds};
}

HostFigures FiguresOf(const sim::HostWork& work, uint64_t posts_before) {
  return {.polls = {},
          .posts_before = posts_before,
          .posts = work.posts,
          .doorbells = work.doorbells,
          .rearms = {},
          .completions = work.completions,
          .wakeups = work.wakeups,
          .rearming_seconds = {},
          .busy_seconds = ToSeconds(work.busy),
          .arming_seconds = {}};
}

/// An executor that ran.
struct ModelledRun {
  bool is_offload;
  const char* name;  ///< for people
  std::string how;
  const RunTimes& times;
  const Links& links;
  HostFigures hosts;  ///< all together

  HostFigures HostOf(const sim::Simulation& it, size_t group, NodeId node) const {
    if (is_offload) {
      const sim::PrepostedWork work = WorkOf(it, it.offload->groups[group].nodes[node.index()]);
      return FiguresOf(work, work.arming_seconds);
    }
    const sim::HostWork& work = it.cpu->groups[group].nodes[node.index()].work;
    HostFigures host = FiguresOf(work, PostsBefore(it, *it.cpu, group, node));
    host.polls = work.polls;
    return host;
  }
};

std::vector<ModelledRun> ExecutorsOf(const sim::Simulation& it) {
  std::vector<ModelledRun> executors;
  if (it.offload) {
    executors.push_back(
        {.is_offload = true,
         .name = "preposted",
         .how = fmt::format("{}, {}", it.mode, it.wait),
         .times = it.offload_times,
         .links = it.offload->links,
         .hosts = FiguresOf(WorkOf(it, *it.offload), ArmingSeconds(it, *it.offload))});
  }
  if (it.cpu) {
    executors.push_back({.is_offload = false,
                         .name = "CPU-driven",
                         .how = it.wait,
                         .times = it.cpu_times,
                         .links = it.cpu->links,
                         .hosts = FiguresOf(WorkOf(*it.cpu), PostsBefore(it, *it.cpu))});
    executors.back().hosts.arming_seconds = ArmingSeconds(it, *it.cpu);
  }
  return executors;
}

/// The times that groups take from their starts on, seconds.
struct Latencies {
  std::vector<double> sorted;
  double mean = 0;
  double deviation = 0;  ///< the root of the mean square

  double Percentile(int percent) const { return PercentileOf(sorted, percent); }
};

Latencies LatenciesOf(const RunTimes& times) {
  Latencies found;
  for (const sim::GroupTimes& group : times.groups)
    found.sorted.push_back(ToSeconds(group.latency()));
  std::ranges::sort(found.sorted);
  const auto count = static_cast<double>(found.sorted.size());
  for (const double latency : found.sorted) found.mean += latency / count;
  for (const double latency : found.sorted)
    found.deviation += (latency - found.mean) * (latency - found.mean) / count;
  found.deviation = std::sqrt(found.deviation);
  // What adding up has lost, where all are equal.
  constexpr double kRounding = 1e-9;
  if (found.deviation < kRounding * found.mean) found.deviation = 0;
  return found;
}

/// "root 3", of a multicast; of others "allreduce", "reduce, root 3". Roots are hosts.
std::string GroupText(const sim::Group& group) {
  const Collective& it = group.plan->header().collective;
  const std::string root = fmt::format("root {}", group.HostOf(it.root).value);
  if (it.kind == CollectiveKind::kMulticast) return root;
  return HasRoot(it.kind) ? fmt::format("{}, {}", Name(it.kind), root) : Name(it.kind);
}

/// What a bandwidth is of: the message; of another collective the largest input or output of a
/// node, as nccl-tests have it.
double BytesOf(const PlanHeader& header) {
  if (header.collective.kind == CollectiveKind::kMulticast)
    return static_cast<double>(header.payload.bytes);
  uint64_t most = 0;
  for (uint32_t node = 0; node < header.nodes; ++node) {
    const NodeBytes bytes = NodeBytesOf(header, NodeId(node));
    most = std::max({most, bytes.input, bytes.output});
  }
  return static_cast<double>(most);
}

// As text.

/// A table of one column per executor; or of others of the same form.
Table ColumnsTable() { return Table(/*label_min=*/26, /*cell_min=*/12); }

/// Pairs of nodes that --slow names.
size_t SlowPathsOf(const Network& network) {
  return static_cast<size_t>(std::ranges::count(network.pairs, true, &Network::Pair::is_given));
}

Json DrawnHostsJson(const sim::Simulation& it) {
  Json drawn = Json::array();
  for (const sim::DrawnHosts& of_flag : it.drawn_hosts) {
    Json& hosts = drawn.emplace_back(Json{{"flag", of_flag.flag}})["hosts"] = Json::array();
    for (const NodeId host : of_flag.hosts) hosts.push_back(host.value);
  }
  return drawn;
}

void PrintSlowPaths(const sim::Simulation& it, std::ostream& out) {
  const size_t count = SlowPathsOf(it.network);
  if (count == 0) return;
  out << fmt::format("{} from one node to another {} slow; the bound allows for ways around\n\n",
                     Count(count, "path"), count == 1 ? "is" : "are");
}

/// Rows of a table: what `text` makes of each executor that ran, in its column.
class ColumnsOf {
 public:
  ColumnsOf(const sim::Simulation& it, const std::vector<ModelledRun>& executors)
      : has_gap_(!it.offload), executors_(executors) {}

  void Row(const std::string& label, const std::function<std::string(const ModelledRun&)>& text) {
    std::vector<std::string> cells;
    if (has_gap_) cells.emplace_back();
    for (const ModelledRun& executor : executors_) cells.push_back(text(executor));
    table_.Add(label, std::move(cells));
  }
  void TimeRow(const std::string& label, const std::function<Picoseconds(const RunTimes&)>& time) {
    Row(label, [&](const ModelledRun& executor) { return TimeText(time(executor.times)); });
  }
  void Print(std::ostream& out) const { table_.Print(out); }

 private:
  const bool has_gap_;  ///< for preposted queues that did not run
  const std::vector<ModelledRun>& executors_;
  Table table_ = ColumnsTable();
};

void AddHosts(const sim::Simulation& it, ColumnsOf* table) {
  const auto count = [&](const char* label, uint64_t HostFigures::*figure) {
    table->Row(label, [&](const ModelledRun& run) { return std::to_string(run.hosts.*figure); });
  };
  count("hosts: posts before", &HostFigures::posts_before);
  count("  doorbells", &HostFigures::doorbells);
  count("  posts on the way", &HostFigures::posts);
  table->Row("  rings written again", [](const ModelledRun& run) {
    return run.hosts.rearms ? std::to_string(*run.hosts.rearms) : "-";
  });
  count("  completions seen", &HostFigures::completions);
  count("  wake-ups", &HostFigures::wakeups);
  table->Row("  busy, all together",
             [](const ModelledRun& run) { return WriteLatency(run.hosts.busy_seconds); });
  table->Row("beside it: arming, before",
             [](const ModelledRun& run) { return WriteLatency(*run.hosts.arming_seconds); });
  const std::optional<double> barrier = BarrierSeconds(it);
  table->Row("  barrier, before",
             [&](const ModelledRun&) { return barrier ? WriteLatency(*barrier) : "not known"; });
  table->Row("  re-arming, on the way", [](const ModelledRun& run) {
    return run.is_offload ? WriteLatency(*run.hosts.rearming_seconds) : "-";
  });
  table->Row("  seeing the end, after", [&](const ModelledRun& run) {
    return run.is_offload ? WriteLatency(DetectionSeconds(it)) : "-";
  });
}

/// Adds the times of one multicast.
void AddTimes(const sim::Simulation& it, ColumnsOf* table) {
  table->Row("  bandwidth", [&](const ModelledRun& run) {
    const double bandwidth = BandwidthOf(it, run.times);
    return bandwidth > 0 ? WriteRate(bandwidth) : "-";
  });
  table->TimeRow("  the first node", [](const RunTimes& times) { return times.groups[0].first; });
  table->TimeRow("  skew", [](const RunTimes& times) { return times.groups[0].skew(); });
}

/// Adds the times of several groups, from their starts on.
void AddGroupTimes(const sim::Simulation& it, ColumnsOf* table) {
  table->Row("aggregate bandwidth", [&](const ModelledRun& run) {
    const double bandwidth = BandwidthOf(it, run.times);
    return bandwidth > 0 ? WriteRate(bandwidth) : "-";
  });
  table->Row("start to completion: mean",
             [](const ModelledRun& run) { return WriteLatency(LatenciesOf(run.times).mean); });
  table->Row("  deviation",
             [](const ModelledRun& run) { return WriteLatency(LatenciesOf(run.times).deviation); });
  for (const int percent : kPercents) {
    table->Row(fmt::format("  p{}", percent), [&](const ModelledRun& run) {
      return WriteLatency(LatenciesOf(run.times).Percentile(percent));
    });
  }
  table->TimeRow("largest skew of a group", [](const RunTimes& times) { return times.skew(); });
}

/// Until hosts know, and what of it they have no part in.
void AddKnown(const sim::Simulation& it, ColumnsOf* table) {
  table->TimeRow("all hosts know it after", [](const RunTimes& times) { return times.known; });
  if (it.is_of_groups || !IsMulticast(it)) return;
  table->TimeRow("  the root after",
                 [](const RunTimes& times) { return times.groups[0].root_known; });
  if (!it.offload) return;
  table->Row("offload time", [](const ModelledRun& run) {
    return run.is_offload ? TimeText(run.times.groups[0].offload()) : "-";
  });
}

void PrintLinks(const sim::Simulation& it, const ModelledRun& executor, std::ostream& out) {
  if (executor.links.empty()) return;
  Links busiest = executor.links;
  std::ranges::stable_sort(busiest, std::greater(),
                           [](const sim::UsedLink& link) { return link.use.busy; });
  out << fmt::format("\nbusiest links, {}\n", executor.name);
  const Picoseconds end = executor.times.completion;
  Table table(36, 12);
  for (size_t i = 0; i < std::min(kLinksMax, busiest.size()); ++i) {
    const auto& [resource, use] = busiest[i];
    const double share = end == 0 ? 0.0 : 100 * ToSeconds(use.busy) / ToSeconds(end);
    table.Add("  " + Printable(it.network.Describe(resource)),
              {TimeText(use.busy), fmt::format("{:.1f} % of the time", share)});
  }
  table.Print(out);
}

/// By how much preposted is faster, of what both have.
void PrintGain(const sim::Simulation& it, std::ostream& out) {
  const sim::Gain gain = GainOf(it);
  if (gain.completion <= 0) return;
  const auto line = [&](const std::string& label, const sim::Gain& of) {
    out << fmt::format("{}: {:.3f} until all {}, {:.3f} until all hosts know\n", label,
                       of.completion, IsMulticast(it) ? "nodes have it" : "members are done",
                       of.known);
  };
  line("\nCPU-driven / preposted", gain);
  if (const std::optional<sim::Gain> with = GainWithBarrier(it)) line(BarrierText(it), *with);
}

/// Group by group, where they are few or all are asked for.
void PrintGroups(const sim::Simulation& it, const std::vector<ModelledRun>& executors, bool is_long,
                 std::ostream& out) {
  if (!is_long && it.groups.size() > kGroupsShownMax) return;
  out << "\n";
  ColumnsOf table(it, executors);
  table.Row("start to completion", &ModelledRun::name);
  for (size_t g = 0; g < it.groups.size(); ++g) {
    table.TimeRow(fmt::format("  group {}, {}", g, GroupText(it.groups[g])),
                  [&](const RunTimes& times) { return times.groups[g].latency(); });
  }
  table.Print(out);
}

/// When each node has it, and what its host does; of several groups each one's nodes, by hosts.
void PrintNodes(const sim::Simulation& it, const std::vector<ModelledRun>& executors,
                std::ostream& out) {
  const auto each = [&](auto text) {
    for (size_t g = 0; g < it.groups.size(); ++g) {
      for (uint32_t i = 0; i < it.groups[g].plan->header().nodes; ++i) {
        const uint32_t host = it.groups[g].HostOf(NodeId(i)).value;
        text(it.is_of_groups ? fmt::format("  group {}, node {}", g, host)
                             : fmt::format("  node {}", i),
             g, NodeId(i));
      }
    }
  };
  out << "\n";
  ColumnsOf times(it, executors);
  times.Row(IsMulticast(it) ? "has it at" : "is done at", &ModelledRun::name);
  each([&](const std::string& label, size_t g, NodeId node) {
    times.TimeRow(label, [&](const RunTimes& run) { return run.groups[g].received[node.index()]; });
  });
  times.Print(out);
  for (const ModelledRun& executor : executors) {
    out << "\n";
    Table hosts = ColumnsTable();
    hosts.Add(fmt::format("hosts, {}", executor.name),
              executor.is_offload
                  ? std::vector<std::string>{"posts before", "posts", "doorbells", "rings again",
                                             "arming"}
                  : std::vector<std::string>{"posts before", "polls", "completions", "posts",
                                             "doorbells", "wake-ups", "busy"});
    each([&](const std::string& label, size_t g, NodeId node) {
      const HostFigures host = executor.HostOf(it, g, node);
      std::vector<std::string> cells = {std::to_string(host.posts_before)};
      const auto count = [&](uint64_t number) { cells.push_back(std::to_string(number)); };
      if (host.polls) count(*host.polls), count(host.completions);
      count(host.posts);
      count(host.doorbells);
      count(host.rearms.value_or(host.wakeups));
      cells.push_back(WriteLatency(host.arming_seconds.value_or(host.busy_seconds)));
      hosts.Add(label, std::move(cells));
    });
    hosts.Print(out);
  }
}

// As JSON.

Json LinksJson(const Network& network, const Links& links) {
  Json used = Json::array();
  for (const sim::UsedLink& link : links) {
    Json& entry = used.emplace_back(Json{{"kind", Name(link.resource.kind)},
                                         {"index", link.resource.index},
                                         {"bytes", link.use.bytes},
                                         {"busy_seconds", ToSeconds(link.use.busy)}});
    if (link.resource.kind != ResourceKind::kPair) continue;
    const Network::Pair& pair = network.pairs[link.resource.index];
    entry["from"] = pair.from.value;
    entry["to"] = pair.to.value;
  }
  return used;
}

void AddGroupTimesJson(const sim::Simulation& it, const RunTimes& times, bool has_lists,
                       Json* run) {
  Json& json = *run;
  const Latencies latencies = LatenciesOf(times);
  json["aggregate_bytes_per_second"] = BandwidthOf(it, times);
  json["latency_mean_seconds"] = latencies.mean;
  json["latency_deviation_seconds"] = latencies.deviation;
  for (const int percent : kPercents)
    json[fmt::format("latency_p{}_seconds", percent)] = latencies.Percentile(percent);
  if (!has_lists) return;
  Json& groups = json["groups"] = Json::array();
  for (size_t g = 0; g < times.groups.size(); ++g) {
    const sim::Group& group = it.groups[g];
    const sim::GroupTimes& found = times.groups[g];
    groups.push_back({{"root", group.HostOf(group.plan->header().collective.root).value},
                      {"message_bytes", group.plan->header().payload.bytes},
                      {"start_seconds", ToSeconds(found.start)},
                      {"completion_seconds", ToSeconds(found.completion)},
                      {"known_seconds", ToSeconds(found.known)},
                      {"end_seconds", ToSeconds(found.end)},
                      {"latency_seconds", ToSeconds(found.latency())},
                      {"skew_seconds", ToSeconds(found.skew())},
                      {"waited_seconds", ToSeconds(found.start - group.start)}});
  }
}

Json TimesJson(const sim::Simulation& it, const ModelledRun& executor, bool has_lists) {
  const RunTimes& times = executor.times;
  Json json = {{"completion_seconds", ToSeconds(times.completion)}};
  if (!it.is_of_groups) json["first_node_seconds"] = ToSeconds(times.groups[0].first);
  json["skew_seconds"] = ToSeconds(times.skew());
  json["of_bound"] = it.bound > 0 ? Json(ToSeconds(times.completion) / it.bound) : Json();
  json["known_seconds"] = ToSeconds(times.known);
  if (!it.is_of_groups && IsMulticast(it))
    json["root_known_seconds"] = ToSeconds(times.groups[0].root_known);
  if (it.is_of_groups) AddGroupTimesJson(it, times, has_lists, &json);
  if (has_lists) json["links"] = LinksJson(it.network, executor.links);
  return json;
}

void AddHost(const HostFigures& host, Json* json) {
  Json& it = *json;
  if (host.polls) it["polls"] = *host.polls;
  it["posts_before"] = host.posts_before;
  it["posts"] = host.posts;
  it["doorbells"] = host.doorbells;
  if (host.rearms) it["rearms"] = *host.rearms;
  it["completions"] = host.completions;
  it["wakeups"] = host.wakeups;
  if (host.rearming_seconds) it["rearming_seconds"] = *host.rearming_seconds;
  it["busy_seconds"] = host.busy_seconds;
  if (host.arming_seconds) it["arming_seconds"] = *host.arming_seconds;
}

/// By node, of one plan in `run`, of several groups in its "groups".
void AddNodes(const sim::Simulation& it, const ModelledRun& executor, Json* run) {
  for (size_t g = 0; g < executor.times.groups.size(); ++g) {
    const sim::GroupTimes& times = executor.times.groups[g];
    const auto nodes = static_cast<uint32_t>(times.received.size());
    Json& json = it.is_of_groups ? (*run)["groups"][g] : *run;
    if (it.is_of_groups) {
      Json& hosts = json["node_host"] = Json::array();
      for (uint32_t i = 0; i < nodes; ++i) hosts.push_back(it.groups[g].HostOf(NodeId(i)).value);
    }
    const auto add_times = [&](const char* key, const std::vector<Picoseconds>& all) {
      Json& list = json[key] = Json::array();
      for (const Picoseconds at : all) list.push_back(ToSeconds(at));
    };
    add_times("node_seconds", times.received);
    add_times("node_known_seconds", times.knows);
    if (executor.is_offload) add_times("node_final_seconds", times.ends);
    Json& hosts = json["hosts"] = Json::array();
    for (uint32_t i = 0; i < nodes; ++i)
      AddHost(executor.HostOf(it, g, NodeId(i)), &hosts.emplace_back(Json::object()));
  }
}

Json RunJson(const sim::Simulation& it, const ModelledRun& executor, bool has_lists) {
  const RunTimes& times = executor.times;
  Json run = TimesJson(it, executor, has_lists);
  if (executor.is_offload) run["mode"] = it.mode;
  run["wait"] = it.wait;
  if (executor.is_offload) run["final_seconds"] = ToSeconds(times.end);
  AddHost(executor.hosts, &run);
  if (executor.is_offload) {
    run["detection_seconds"] = DetectionSeconds(it);
  } else {
    Picoseconds delayed = 0;
    for (const auto& host : it.cpu->hosts) delayed += host.delayed;
    run["delayed_seconds"] = ToSeconds(delayed);
  }
  if (it.has_causes) AddCausesJson(it, executor.is_offload, has_lists, &run);
  if (executor.is_offload && !it.is_of_groups) {
    run["doorbells_seconds"] = ToSeconds(times.groups[0].doorbells);
    run["offload_seconds"] = ToSeconds(times.groups[0].offload());
  }
  if (has_lists) AddNodes(it, executor, &run);
  return run;
}

}  // namespace

std::vector<TraceHost> HostsOf(const sim::Simulation& simulation, bool is_offload) {
  for (const ModelledRun& executor : ExecutorsOf(simulation)) {
    if (executor.is_offload != is_offload) continue;
    std::vector<TraceHost> hosts;
    const uint32_t nodes = simulation.plan->header().nodes;
    for (uint32_t node = 0; node < nodes; ++node) {
      const HostFigures host = executor.HostOf(simulation, /*group=*/0, NodeId(node));

      hosts.push_back({.node = NodeId(node),
                       .posts = is_offload ? host.doorbells : host.posts_before + host.posts,
                       .posts_during = is_offload ? host.doorbells_later : host.posts,
                       .wakeups = host.wakeups,
                       .cpu_ns = static_cast<uint64_t>(host.busy_seconds * 1e9)});
    }
    return hosts;
  }
  return {};
}

std::string BarrierText(const sim::Simulation& it) {
  const bool is_of_both = NeedsBarrier(it, /*is_offload=*/false);
  return fmt::format("with the barrier, {} before {}", WriteLatency(*BarrierSeconds(it)),
                     is_of_both ? "both" : "preposted");
}

std::string TimeText(Picoseconds time) { return WriteLatency(ToSeconds(time)); }

std::string DeviationsText(const std::vector<std::string>& deviations, size_t bytes_max) {
  if (deviations.empty()) return "";
  std::string text = fmt::format(", but {}", fmt::join(deviations, ", "));
  if (text.size() > bytes_max) text = text.substr(0, bytes_max) + "...";
  return Printable(text);
}

double BandwidthOf(const sim::Simulation& it, const RunTimes& times) {
  double bytes = 0;
  for (const sim::Group& group : it.groups) bytes += BytesOf(group.plan->header());
  return times.completion > 0 ? bytes / ToSeconds(times.completion) : 0;
}

bool IsMulticast(const sim::Simulation& it) {
  return std::ranges::all_of(it.groups, [](const sim::Group& group) {
    return group.plan->header().collective.kind == CollectiveKind::kMulticast;
  });
}

const char* CompletionText(const sim::Simulation& it) {
  return it.is_of_groups   ? "all groups are complete at"
         : IsMulticast(it) ? "all nodes have it after"
                           : "all members are done after";
}

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
}

void Print(const sim::Simulation& it, bool is_long, std::ostream& out) {
  const std::vector<ModelledRun> executors = ExecutorsOf(it);
  PrintHead(it, out);
  PrintSlowPaths(it, out);
  ColumnsOf table(it, executors);
  table.Row("", &ModelledRun::name);
  table.Row("", &ModelledRun::how);
  table.TimeRow(CompletionText(it), [](const RunTimes& times) { return times.completion; });
  if (it.bound > 0) {
    const std::string label = fmt::format("  of network bound {}", WriteLatency(it.bound));
    table.Row(label, [&](const ModelledRun& run) {
      return fmt::format("{:.3f}", ToSeconds(run.times.completion) / it.bound);
    });
  }
  (it.is_of_groups ? AddGroupTimes : AddTimes)(it, &table);
  AddKnown(it, &table);
  AddHosts(it, &table);
  table.Print(out);
  PrintGain(it, out);
  for (const ModelledRun& executor : executors) PrintLinks(it, executor, out);
  if (it.is_of_groups) PrintGroups(it, executors, is_long, out);
  if (it.has_causes) PrintCauses(it, is_long, out);
  if (is_long) PrintNodes(it, executors, out);
}

Json ToJson(const sim::Simulation& it, bool has_lists) {
  Json json = {{"format", kSimulationFormat},
               {"version", kSimulationVersion},
               {"modelled", true},
               {"generator", kGenerator},
               {"command", it.command},
               {"profile", {{"name", it.profile.name}, {"file", it.profile_path}}},
               {"deviations", it.deviations}};
  if (it.plan != nullptr) {
    json.update(PlanJson(it.plan->header()));
    if (it.is_of_groups) json.erase("root");
  } else {
    json["workload"] = it.workload;
  }
  if (it.is_of_groups) {
    json["hosts"] = it.network.nodes.size();
    json["groups"] = it.groups.size();
  }
  json["slow_paths"] = SlowPathsOf(it.network);
  if (has_lists) json["drawn_hosts"] = DrawnHostsJson(it);
  json["bound_seconds"] = it.bound;
  json["seed"] = it.seed;
  const std::optional<double> barrier = BarrierSeconds(it);
  json["barrier_seconds"] = barrier ? Json(*barrier) : Json();
  for (const ModelledRun& executor : ExecutorsOf(it))
    json[executor.is_offload ? "offload" : "cpu"] = RunJson(it, executor, has_lists);
  if (it.offload && it.cpu) {
    const sim::Gain gain = GainOf(it);
    json["gain"] = {{"completion", gain.completion > 0 ? Json(gain.completion) : Json()},
                    {"known", gain.known > 0 ? Json(gain.known) : Json()},
                    {"with_barrier", Json()}};
    if (const std::optional<sim::Gain> with = GainWithBarrier(it)) {
      json["gain"]["with_barrier"] = {{"completion", with->completion},
                                      {"known", with->known},
                                      {"cpu_needs_it", NeedsBarrier(it, /*is_offload=*/false)}};
    }
  }
  return json;
}

}  // namespace prepost
