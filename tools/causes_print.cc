// SPDX-License-Identifier: Apache-2.0
#include "tools/causes_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "prepost/backends/emulated/time_by_cause.h"
#include "prepost/ir/count.h"
#include "tools/simulation_print.h"

namespace prepost::tools {
namespace {

using emulated::CauseTimes;
using emulated::NodeTimes;
using emulated::PathLink;
using emulated::PathRun;
using emulated::Picoseconds;
using emulated::TimeCause;
using emulated::TimeTrail;
using Json = nlohmann::ordered_json;

constexpr size_t kRunsMax = 40;  ///< of a path, in text

struct Part {
  const char* label;
  const char* key;
  Picoseconds NodeTimes::*time;
};
constexpr Part kParts[] = {
    {"  remote set-up", "remote_setup_seconds", &NodeTimes::remote_setup},
    {"  remote block transfers", "remote_transfers_seconds", &NodeTimes::remote_transfers},
    {"  local set-up", "local_setup_seconds", &NodeTimes::local_setup},
    {"  block transfers", "transfers_seconds", &NodeTimes::transfers},
    {"  waiting", "waiting_seconds", &NodeTimes::waiting},
    {"  copy", "copy_seconds", &NodeTimes::copy}};

/// What is told of one executor.
struct Told {
  const char* name = "";
  const TimeTrail* trail = nullptr;
  NodeId last;  ///< to complete, but for the root
  NodeTimes times;
  std::vector<PathLink> path;  ///< to the last completion of all
  CauseTimes causes = {};
};

/// The last to complete, the root only where it is alone.
NodeId LastNode(const std::vector<Picoseconds>& completions, NodeId root) {
  size_t last = root.index();
  for (size_t i = 0; i < completions.size(); ++i) {
    if (i == root.index()) continue;
    if (last == root.index() || completions[i] > completions[last]) last = i;
  }
  return NodeId(static_cast<uint32_t>(last));
}

Told Tell(const char* name, const Plan& plan, const TimeTrail& trail,
          const std::vector<Picoseconds>& completions) {
  Told told = {.name = name, .trail = &trail, .last = LastNode(completions, plan.header().root)};
  told.times = TimesOf(trail, 0, told.last);
  const auto end = std::ranges::max_element(completions) - completions.begin();
  told.path = CriticalPath(trail, trail.EndOf(0, NodeId(static_cast<uint32_t>(end))));
  told.causes = SumOf(told.path);
  return told;
}

std::vector<Told> TellAll(const Simulation& it) {
  std::vector<Told> all;
  if (it.offload && it.offload_trail) {
    all.push_back(Tell("preposted", *it.plan, *it.offload_trail, it.offload_times.groups[0].ends));
  }
  if (it.cpu && it.cpu_trail) {
    all.push_back(Tell("CPU-driven", *it.plan, *it.cpu_trail, it.cpu_times.groups[0].ends));
  }
  return all;
}

/// "0>4:2", "credit 4>0", or what comes at the end.
std::string MessageText(const TimeTrail& trail, const PathLink& link) {
  if (link.message == emulated::kNoMessage) return "the end";
  const emulated::TimedMessage& it = trail.messages()[link.message];
  if (it.block == kNoBlock) return fmt::format("credit {}>{}", it.from.value, it.to.value);
  return fmt::format("{}>{}:{}", it.from.value, it.to.value, it.block);
}

std::string PartsText(const PathLink& link) {
  std::string text;
  for (const auto& [cause, time] : link.parts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Name(cause), TimeText(time));
  return text;
}

void PrintPath(const Told& told, std::ostream& out) {
  const auto messages = std::ranges::count_if(
      told.path, [](const PathLink& link) { return link.message != emulated::kNoMessage; });
  out << fmt::format("\ncritical path, {}: {}\n", told.name,
                     Count(static_cast<uint64_t>(messages), "message"));
  const std::vector<PathRun> runs = Fold(*told.trail, told.path);
  for (size_t i = 0; i < std::min(runs.size(), kRunsMax); ++i) {
    const PathRun& run = runs[i];
    for (size_t j = 0; j < run.count; ++j) {
      const PathLink& link = told.path[run.first + j];
      out << fmt::format("  {:>12}  {:<12}  {}\n", TimeText(link.until),
                         MessageText(*told.trail, link), PartsText(link));
    }
    if (run.times == 1) continue;
    const PathLink& last = told.path[run.first + run.count * run.times - 1];
    out << fmt::format("  {:>12}  {:<12}  x {}{}\n", TimeText(last.until),
                       MessageText(*told.trail, last), run.times,
                       run.count == 1 ? "" : fmt::format(" of these {}", run.count));
  }
  if (runs.size() > kRunsMax) {
    out << fmt::format("  and {} more; --json has all\n", runs.size() - kRunsMax);
  }
}

void PrintNodeTimes(const Told& told, uint32_t nodes, std::ostream& out) {
  out << fmt::format("\n{:<28}", fmt::format("time by cause, {}", told.name));
  constexpr std::array kHeads = {"remote set-up", "remote blocks", "set-up",
                                 "blocks",        "waiting",       "copy"};
  static_assert(kHeads.size() == std::size(kParts));
  for (const char* head : kHeads) out << fmt::format("{:>15}", head);
  out << "\n";
  for (uint32_t node = 0; node < nodes; ++node) {
    const NodeTimes times = TimesOf(*told.trail, 0, NodeId(node));
    out << fmt::format("{:<28}", fmt::format("  node {}", node));
    for (const Part& part : kParts) out << fmt::format("{:>15}", TimeText(times.*part.time));
    out << "\n";
  }
}

Json TimesJson(NodeId node, const NodeTimes& times) {
  Json json = {{"node", node.value}, {"end_seconds", ToSeconds(times.sum())}};
  for (const Part& part : kParts) json[part.key] = ToSeconds(times.*part.time);
  return json;
}

/// The first of the folded links at one place, and what all of them took together.
Json LinkJson(const Told& told, const PathRun& run, size_t position) {
  const PathLink& first = told.path[run.first + position];
  Json json = {{"message", MessageText(*told.trail, first)},
               {"until_seconds", ToSeconds(first.until)}};
  CauseTimes sum = {};
  for (size_t i = 0; i < run.times; ++i) {
    for (const auto& [cause, time] : told.path[run.first + i * run.count + position].parts)
      sum[static_cast<size_t>(cause)] += time;
  }
  Json& parts = json["seconds"] = Json::object();
  for (const auto& [cause, time] : first.parts)
    parts[std::string(Name(cause))] = ToSeconds(sum[static_cast<size_t>(cause)]);
  return json;
}

}  // namespace

void PrintCauses(const Simulation& simulation, bool per_node, std::ostream& out) {
  const std::vector<Told> all = TellAll(simulation);
  if (all.empty()) return;
  const Told* const offload = simulation.offload_trail ? &all.front() : nullptr;
  const Told* const cpu = simulation.cpu_trail ? &all.back() : nullptr;
  const auto row = [&](std::string_view label, auto text) {
    out << fmt::format("{:<28}{:>14}{:>14}\n", label, offload == nullptr ? "" : text(*offload),
                       cpu == nullptr ? "" : text(*cpu));
  };
  out << fmt::format("\n{:<28}{:>14}{:>14}\n", "time by cause",
                     offload == nullptr ? "" : offload->name, cpu == nullptr ? "" : cpu->name);
  row("last node", [](const Told& it) { return fmt::format("node {}", it.last.value); });
  for (const Part& part : kParts)
    row(part.label, [&](const Told& it) { return TimeText(it.times.*part.time); });
  row("critical path",
      [](const Told& it) { return TimeText(it.path.empty() ? 0 : it.path.back().until); });
  for (size_t i = 0; i < emulated::kTimeCauseNames.size(); ++i) {
    if (std::ranges::all_of(all, [&](const Told& it) { return it.causes[i] == 0; })) continue;
    row(fmt::format("  {}", emulated::kTimeCauseNames[i]),
        [&](const Told& it) { return TimeText(it.causes[i]); });
  }
  for (const Told& told : all) PrintPath(told, out);
  if (!per_node) return;
  for (const Told& told : all) PrintNodeTimes(told, simulation.plan->header().nodes, out);
}

void AddCausesJson(const Plan& plan, const TimeTrail& trail,
                   const std::vector<Picoseconds>& completions, bool has_lists,
                   nlohmann::ordered_json* run) {
  const Told told = Tell("", plan, trail, completions);
  (*run)["last_node"] = TimesJson(told.last, told.times);
  Json& causes = (*run)["critical_path_seconds"] = Json::object();
  for (size_t i = 0; i < told.causes.size(); ++i)
    causes[std::string(emulated::kTimeCauseNames[i])] = ToSeconds(told.causes[i]);
  if (!has_lists) return;
  Json& nodes = (*run)["time_by_cause"] = Json::array();
  for (uint32_t i = 0; i < completions.size(); ++i)
    nodes.push_back(TimesJson(NodeId(i), TimesOf(trail, 0, NodeId(i))));
  Json& path = (*run)["critical_path"] = Json::array();
  for (const PathRun& it : Fold(trail, told.path)) {
    Json& folded = path.emplace_back(Json{{"times", it.times}, {"links", Json::array()}});
    for (size_t i = 0; i < it.count; ++i) folded["links"].push_back(LinkJson(told, it, i));
  }
}

}  // namespace prepost::tools
