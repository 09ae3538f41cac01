// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "ir/json/rate_text.h"
#include "tools/report/simulation_print.h"

namespace prepost::tools {
namespace {

using sim::Group;
using Json = nlohmann::ordered_json;

constexpr size_t kGroupsShownMax = 20;  ///< shown in text unless all are asked for
constexpr std::array kPercents = {1, 10, 25, 50, 75, 90, 99};

/// Of what groups take from their starts on, seconds.
struct Latencies {
  std::vector<double> sorted;
  double mean = 0;
  double deviation = 0;  ///< the root of the mean square

  /// The smallest that at least `percent` % do not exceed.
  double Percentile(int percent) const {
    if (sorted.empty()) return 0;
    const size_t rank = (sorted.size() * static_cast<size_t>(percent) + 99) / 100;
    return sorted[std::max<size_t>(rank, 1) - 1];
  }
};

Latencies LatenciesOf(const sim::RunTimes& times) {
  Latencies found;
  for (const sim::GroupTimes& group : times.groups)
    found.sorted.push_back(sim::ToSeconds(group.latency()));
  std::ranges::sort(found.sorted);
  const auto count = static_cast<double>(found.sorted.size());
  for (const double latency : found.sorted) found.mean += latency / count;
  for (const double latency : found.sorted)
    found.deviation += (latency - found.mean) * (latency - found.mean) / count;
  found.deviation = std::sqrt(found.deviation);
  return found;
}

/// All messages' bytes per second; 0 where no time passes.
double BandwidthOf(const sim::Simulation& it, const sim::RunTimes& times) {
  double bytes = 0;
  for (const Group& group : it.groups)
    bytes += static_cast<double>(group.plan->header().message.bytes);
  return times.completion > 0 ? bytes / sim::ToSeconds(times.completion) : 0;
}

}  // namespace

void AddGroupTimes(const sim::Simulation& it, Table* table) {
  std::vector<sim::RunTimes> runs;
  if (it.offload) runs.push_back(it.offload_times);
  if (it.cpu) runs.push_back(it.cpu_times);
  std::vector<Latencies> latencies;
  for (const sim::RunTimes& times : runs) latencies.push_back(LatenciesOf(times));
  const auto row = [&](const std::string& label, auto text) {
    std::vector<std::string> cells;
    if (!it.offload) cells.emplace_back();
    for (size_t i = 0; i < runs.size(); ++i) cells.push_back(text(i));
    table->Add(label, std::move(cells));
  };
  row("aggregate bandwidth", [&](size_t i) {
    const double bandwidth = BandwidthOf(it, runs[i]);
    return bandwidth > 0 ? WriteRate(bandwidth) : std::string("-");
  });
  row("start to completion: mean", [&](size_t i) { return WriteLatency(latencies[i].mean); });
  row("  deviation", [&](size_t i) { return WriteLatency(latencies[i].deviation); });
  for (const int percent : kPercents) {
    row(fmt::format("  p{}", percent),
        [&](size_t i) { return WriteLatency(latencies[i].Percentile(percent)); });
  }
  row("largest skew of a group", [&](size_t i) { return TimeText(runs[i].skew()); });
}

void PrintGroups(const sim::Simulation& it, bool is_long, std::ostream& out) {
  if (!is_long && it.groups.size() > kGroupsShownMax) return;
  out << "\n";
  Table table = SimulationTable();
  table.Add("start to completion", {it.offload ? "preposted" : "", it.cpu ? "CPU-driven" : ""});
  for (size_t g = 0; g < it.groups.size(); ++g) {
    const NodeId root = it.groups[g].HostOf(it.groups[g].plan->header().root);
    table.Add(fmt::format("  group {}, root {}", g, root.value),
              {it.offload ? TimeText(it.offload_times.groups[g].latency()) : "",
               it.cpu ? TimeText(it.cpu_times.groups[g].latency()) : ""});
  }
  table.Print(out);
}

void AddGroupTimesJson(const sim::Simulation& it, const sim::RunTimes& times, bool has_lists,
                       nlohmann::ordered_json* run) {
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
    const Group& group = it.groups[g];
    const sim::GroupTimes& found = times.groups[g];
    groups.push_back({{"root", group.HostOf(group.plan->header().root).value},
                      {"message_bytes", group.plan->header().message.bytes},
                      {"start_seconds", sim::ToSeconds(found.start)},
                      {"completion_seconds", sim::ToSeconds(found.completion)},
                      {"known_seconds", sim::ToSeconds(found.known)},
                      {"end_seconds", sim::ToSeconds(found.end)},
                      {"latency_seconds", sim::ToSeconds(found.latency())},
                      {"skew_seconds", sim::ToSeconds(found.skew())},
                      {"waited_seconds", sim::ToSeconds(found.start - group.start)}});
  }
}

}  // namespace prepost::tools
