// SPDX-License-Identifier: Apache-2.0
#include "planning/simulation/causes_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "ir/base/count.h"
#include "planning/simulation/simulation_report.h"
#include "sim/causes/causes.h"
#include "sim/causes/time_by_cause.h"

namespace prepost {
namespace {

using emulated::Picoseconds;
using sim::CauseTimes;
using sim::NodeTimes;
using sim::PathLink;
using sim::PathRun;
using sim::TimeCause;
using sim::TimeTrail;
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

std::vector<sim::RunCauses> TellAll(const sim::Simulation& it) {
  std::vector<sim::RunCauses> all;
  if (it.offload && it.offload_trail) all.push_back(CausesOf(it, /*is_offload=*/true));
  if (it.cpu && it.cpu_trail) all.push_back(CausesOf(it, /*is_offload=*/false));
  return all;
}

/// "0>4:2", "credit 4>0"; of several groups "group 3 0>4:2", with hosts for nodes; nothing of what
/// is no message.
std::string WhatWent(const TimeTrail& trail, const PathLink& link) {
  if (link.message == sim::kNoMessage) return "";
  const sim::TimedMessage& it = trail.messages()[link.message];
  const std::string group = trail.groups() > 1 ? fmt::format("group {} ", it.group) : "";
  const NodeId from = trail.HostOf(it.group, it.from), to = trail.HostOf(it.group, it.to);
  if (it.block == kNoBlock) return fmt::format("{}credit {}>{}", group, from.value, to.value);
  return fmt::format("{}{}>{}:{}", group, from.value, to.value, it.block);
}

/// What a message is in the plan, as explain takes it: "6/29". Nodes are those of the plan,
/// whatever their hosts.
struct MessageOps {
  std::string send;
  std::string receive;
};

/// Empty of what is no message.
MessageOps OpsOf(const TimeTrail& trail, const PathLink& link) {
  if (link.message == sim::kNoMessage) return {};
  const sim::TimedMessage& it = trail.messages()[link.message];
  return {fmt::format("{}/{}", it.from.value, it.send.value),
          fmt::format("{}/{}", it.to.value, it.receive.value)};
}

std::string PartsText(const PathLink& link) {
  std::string text;
  for (const auto& [cause, time] : link.parts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Name(cause), TimeText(time));
  return text;
}

void PrintPath(const sim::RunCauses& told, std::ostream& out) {
  const auto messages = std::ranges::count_if(
      told.path, [](const PathLink& link) { return link.message != sim::kNoMessage; });
  const std::string whose =
      told.groups.size() > 1
          ? fmt::format(", to group {}, the last to be complete", told.last_group)
          : "";
  out << fmt::format("\ncritical path, {}{}: {}\n", told.name, whose,
                     Count(static_cast<uint64_t>(messages), "message"));
  const std::vector<PathRun> runs = Fold(*told.trail, told.path);
  const bool is_of_groups = told.groups.size() > 1;
  const int width = is_of_groups ? 22 : 12;  // of what messages are called
  size_t op_width = std::string_view("receive").size();
  for (const PathLink& link : told.path) {
    const MessageOps ops = OpsOf(*told.trail, link);
    op_width = std::max({op_width, ops.send.size(), ops.receive.size()});
  }
  const auto print = [&](const std::string& until, const std::string& message,
                         const MessageOps& ops, const std::string& what) {
    out << fmt::format("  {:>12}  {:<{}}  {:<{}}  {:<{}}  {}\n", until, message, width, ops.send,
                       op_width, ops.receive, op_width, what);
  };
  const auto print_link = [&](const PathLink& link, const std::string& what) {
    print(TimeText(link.until), WhatWent(*told.trail, link), OpsOf(*told.trail, link), what);
  };
  const char* const head = is_of_groups ? "message, by hosts" : "message";
  if (messages > 0) print("until", head, {"send", "receive"}, "what it took");
  for (size_t i = 0; i < std::min(runs.size(), kRunsMax); ++i) {
    const PathRun& run = runs[i];
    for (size_t j = 0; j < run.count; ++j) {
      const PathLink& link = told.path[run.first + j];
      print_link(link, PartsText(link));
    }
    if (run.times == 1) continue;
    const PathLink& last = told.path[run.first + run.count * run.times - 1];
    print_link(last, fmt::format("x {}{}", run.times,
                                 run.count == 1 ? "" : fmt::format(" of these {}", run.count)));
  }
  if (runs.size() > kRunsMax) {
    out << fmt::format("  and {} more; --json has all\n", runs.size() - kRunsMax);
  }
}

void PrintTimesHead(const sim::RunCauses& told, std::ostream& out) {
  out << fmt::format("\n{:<28}", fmt::format("time by cause, {}", told.name));
  constexpr std::array kHeads = {"remote set-up", "remote blocks", "set-up",
                                 "blocks",        "waiting",       "copy"};
  static_assert(kHeads.size() == std::size(kParts));
  for (const char* head : kHeads) out << fmt::format("{:>15}", head);
  out << "\n";
}

void PrintTimesRow(const std::string& label, const NodeTimes& times, std::ostream& out) {
  out << fmt::format("{:<28}", label);
  for (const Part& part : kParts) out << fmt::format("{:>15}", TimeText(times.*part.time));
  out << "\n";
}

/// The times of each node of a group, from the group's start.
std::vector<NodeTimes> TimesOfNodes(const sim::RunCauses& told, uint32_t group) {
  std::vector<NodeTimes> times;
  for (uint32_t i = 0; i < told.trail->plan(group).header().nodes; ++i)
    times.push_back(TimesOf(*told.trail, group, NodeId(i), told.groups[group].start));
  return times;
}

void PrintEach(const sim::RunCauses& told, bool is_of_groups, std::ostream& out) {
  PrintTimesHead(told, out);
  for (uint32_t g = 0; g < told.groups.size(); ++g) {
    const std::vector<NodeTimes> nodes = TimesOfNodes(told, g);
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      const std::string group = is_of_groups ? fmt::format("group {}, ", g) : "";
      const NodeId host = told.trail->HostOf(g, NodeId(i));
      PrintTimesRow(fmt::format("  {}node {}", group, host.value), nodes[i], out);
    }
  }
}

Json TimesJson(NodeId node, const NodeTimes& times) {
  Json json = {{"node", node.value}, {"end_seconds", sim::ToSeconds(times.sum())}};
  for (const Part& part : kParts) json[part.key] = sim::ToSeconds(times.*part.time);
  return json;
}

/// The first of the folded links at one place, the ops of each, and what all of them took together.
Json LinkJson(const sim::RunCauses& told, const PathRun& run, size_t position) {
  const PathLink& first = told.path[run.first + position];
  Json json = {{"message", WhatWent(*told.trail, first)},
               {"until_seconds", sim::ToSeconds(first.until)}};
  Json& sends = json["sends"] = Json::array();
  Json receives = Json::array();
  CauseTimes sum = {};
  for (size_t i = 0; i < run.times; ++i) {
    const PathLink& link = told.path[run.first + i * run.count + position];
    for (const auto& [cause, time] : link.parts) sum[static_cast<size_t>(cause)] += time;
    if (link.message == sim::kNoMessage) continue;
    const MessageOps ops = OpsOf(*told.trail, link);
    sends.push_back(ops.send);
    receives.push_back(ops.receive);
  }
  json["receives"] = std::move(receives);
  Json& parts = json["seconds"] = Json::object();
  for (const auto& [cause, time] : first.parts)
    parts[std::string(Name(cause))] = sim::ToSeconds(sum[static_cast<size_t>(cause)]);
  return json;
}

Json CausesJson(const CauseTimes& times) {
  Json json = Json::object();
  for (size_t i = 0; i < times.size(); ++i)
    json[std::string(sim::kTimeCauseNames[i])] = sim::ToSeconds(times[i]);
  return json;
}

/// Over all groups.
void AddSumsJson(const sim::RunCauses& told, Json* run) {
  const sim::GroupCauses sum = SumOf(told);
  Json& nodes = (*run)["all_last_nodes"] = Json::object();
  for (const Part& part : kParts) nodes[part.key] = sim::ToSeconds(sum.times.*part.time);
  (*run)["all_critical_paths_seconds"] = CausesJson(sum.path);
  (*run)["all_after_completion_seconds"] = CausesJson(sum.after);
}

void AddListsJson(const sim::RunCauses& told, bool is_of_groups, Json* run) {
  for (uint32_t g = 0; g < told.groups.size(); ++g) {
    const sim::GroupCauses& group = told.groups[g];
    Json& json = is_of_groups ? (*run)["groups"][g] : *run;
    if (is_of_groups) {
      json["last_node"] = TimesJson(told.trail->HostOf(g, group.last), group.times);
      json["critical_path_seconds"] = CausesJson(group.path);
      json["after_completion_seconds"] = CausesJson(group.after);
    }
    Json& by_node = json["time_by_cause"] = Json::array();
    const std::vector<NodeTimes> nodes = TimesOfNodes(told, g);
    for (uint32_t i = 0; i < nodes.size(); ++i)
      by_node.push_back(TimesJson(told.trail->HostOf(g, NodeId(i)), nodes[i]));
  }
  Json& path = (*run)["critical_path"] = Json::array();
  for (const PathRun& it : Fold(*told.trail, told.path)) {
    Json& folded = path.emplace_back(Json{{"times", it.times}, {"links", Json::array()}});
    for (size_t i = 0; i < it.count; ++i) folded["links"].push_back(LinkJson(told, it, i));
  }
}

}  // namespace

void PrintCauses(const sim::Simulation& simulation, bool is_long, std::ostream& out) {
  const std::vector<sim::RunCauses> all = TellAll(simulation);
  if (all.empty() || simulation.groups.empty()) return;
  std::vector<sim::GroupCauses> sums;
  for (const sim::RunCauses& run : all) sums.push_back(SumOf(run));
  const bool is_of_groups = simulation.is_of_groups;
  const auto row = [&](std::string_view label, auto text) {
    out << fmt::format("{:<28}", label);
    if (!simulation.offload_trail) out << fmt::format("{:>14}", "");
    for (const sim::GroupCauses& sum : sums) out << fmt::format("{:>14}", text(sum));
    out << "\n";
  };
  const auto causes = [&](std::string_view label, CauseTimes sim::GroupCauses::*times) {
    row(label, [&](const sim::GroupCauses& it) { return TimeText(sim::SumOf(it.*times)); });
    for (size_t i = 0; i < sim::kTimeCauseNames.size(); ++i) {
      if (std::ranges::all_of(sums,
                              [&](const sim::GroupCauses& it) { return (it.*times)[i] == 0; }))
        continue;
      row(fmt::format("  {}", sim::kTimeCauseNames[i]),
          [&](const sim::GroupCauses& it) { return TimeText((it.*times)[i]); });
    }
  };
  out << fmt::format("\n{:<28}{:>14}{:>14}\n", "time by cause",
                     simulation.offload_trail ? "preposted" : "",
                     simulation.cpu_trail ? "CPU-driven" : "");
  if (is_of_groups) {
    row("last nodes of all groups",
        [](const sim::GroupCauses& it) { return TimeText(it.times.sum()); });
  } else {
    row("last node",
        [](const sim::GroupCauses& it) { return fmt::format("node {}", it.last.value); });
  }
  for (const Part& part : kParts)
    row(part.label, [&](const sim::GroupCauses& it) { return TimeText(it.times.*part.time); });
  causes(is_of_groups ? "critical paths of all" : "critical path", &sim::GroupCauses::path);
  causes("then, until all hosts know", &sim::GroupCauses::after);
  for (const sim::RunCauses& told : all) PrintPath(told, out);
  if (!is_long) return;
  for (const sim::RunCauses& told : all) PrintEach(told, is_of_groups, out);
}

void AddCausesJson(const sim::Simulation& simulation, bool is_offload, bool has_lists,
                   nlohmann::ordered_json* run) {
  const sim::RunCauses told = CausesOf(simulation, is_offload);
  if (told.groups.empty()) return;
  const sim::GroupCauses& last = told.groups[told.last_group];
  if (simulation.is_of_groups) (*run)["last_group"] = told.last_group;
  (*run)["last_node"] = TimesJson(told.trail->HostOf(told.last_group, last.last), last.times);
  (*run)["critical_path_seconds"] = CausesJson(told.causes);
  (*run)["after_completion_seconds"] = CausesJson(told.after);
  if (simulation.is_of_groups) AddSumsJson(told, run);
  if (has_lists) AddListsJson(told, simulation.is_of_groups, run);
}

}  // namespace prepost
