// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "ir/version.h"
#include "tools/report/causes_print.h"
#include "tools/report/plan_text.h"
#include "tools/report/simulation_print.h"

namespace prepost::tools {
namespace {

using emulated::Picoseconds;
using sim::PrepostedAlone;
using Json = nlohmann::ordered_json;

Json LinksJson(const Network& network, const std::vector<sim::UsedLink>& links) {
  Json used = Json::array();
  for (const sim::UsedLink& link : links) {
    Json& entry = used.emplace_back(Json{{"kind", Name(link.resource.kind)},
                                         {"index", link.resource.index},
                                         {"bytes", link.use.bytes},
                                         {"busy_seconds", sim::ToSeconds(link.use.busy)}});
    if (link.resource.kind != ResourceKind::kPair) continue;
    const Network::Pair& pair = network.pairs[link.resource.index];
    entry["from"] = pair.from.value;
    entry["to"] = pair.to.value;
  }
  return used;
}

/// What is told of both executors.
Json TimesJson(const sim::Simulation& it, const sim::RunTimes& times,
               const std::vector<sim::UsedLink>& links, bool has_lists) {
  Json json = {{"completion_seconds", sim::ToSeconds(times.completion)}};
  if (!it.is_of_groups) json["first_node_seconds"] = sim::ToSeconds(times.groups[0].first);
  json["skew_seconds"] = sim::ToSeconds(times.skew());
  json["of_bound"] = it.bound > 0 ? Json(sim::ToSeconds(times.completion) / it.bound) : Json();
  json["known_seconds"] = sim::ToSeconds(times.known);
  if (!it.is_of_groups) json["root_known_seconds"] = sim::ToSeconds(times.groups[0].root_known);
  if (it.is_of_groups) AddGroupTimesJson(it, times, has_lists, &json);
  if (has_lists) json["links"] = LinksJson(it.network, links);
  return json;
}

/// Of one host or of all; `arming` is the longest host's.
void AddWork(const sim::PrepostedWork& work, double arming, Json* json) {
  Json& it = *json;
  it["posts_before"] = work.posts_before;
  it["posts"] = work.posts;
  it["doorbells"] = work.doorbells;
  it["rearms"] = work.rearms;
  it["completions"] = work.completions;
  it["wakeups"] = work.wakeups;
  it["rearming_seconds"] = work.rearming_seconds;
  it["busy_seconds"] = work.busy_seconds;
  it["arming_seconds"] = arming;
}

void AddWork(const sim::HostWork& work, uint64_t posts_before, Json* json) {
  Json& it = *json;
  it["posts_before"] = posts_before;
  it["posts"] = work.posts;
  it["doorbells"] = work.doorbells;
  it["completions"] = work.completions;
  it["wakeups"] = work.wakeups;
  it["busy_seconds"] = sim::ToSeconds(work.busy);
}

/// By node: a group's times, and what `add_host` says of its hosts.
template <typename AddHost>
void AddNodes(const sim::GroupTimes& times, bool is_offload, AddHost add_host, Json* json) {
  const auto add_times = [&](const char* key, const std::vector<Picoseconds>& nodes) {
    Json& list = (*json)[key] = Json::array();
    for (const Picoseconds at : nodes) list.push_back(sim::ToSeconds(at));
  };
  add_times("node_seconds", times.received);
  add_times("node_known_seconds", times.knows);
  if (is_offload) add_times("node_final_seconds", times.ends);
  Json& hosts = (*json)["hosts"] = Json::array();
  for (uint32_t i = 0; i < times.received.size(); ++i)
    add_host(NodeId(i), &hosts.emplace_back(Json::object()));
}

/// Of one plan in `run`, of several groups in its "groups"; `add_host` is told the group, too.
template <typename AddHost>
void AddNodesOfRun(const sim::Simulation& it, const sim::RunTimes& times, bool is_offload,
                   AddHost add_host, Json* run) {
  for (size_t g = 0; g < times.groups.size(); ++g) {
    Json& json = it.is_of_groups ? (*run)["groups"][g] : *run;
    if (it.is_of_groups) {
      Json& hosts = json["node_host"] = Json::array();
      for (uint32_t i = 0; i < times.groups[g].received.size(); ++i)
        hosts.push_back(it.groups[g].HostOf(NodeId(i)).value);
    }
    AddNodes(
        times.groups[g], is_offload, [&](NodeId node, Json* host) { add_host(g, node, host); },
        &json);
  }
}

Json OffloadJson(const sim::Simulation& it, bool has_lists) {
  const sim::RunTimes& times = it.offload_times;
  Json run = TimesJson(it, times, it.offload->links, has_lists);
  run["mode"] = it.mode;
  run["wait"] = it.wait;
  run["final_seconds"] = sim::ToSeconds(times.end);
  AddWork(WorkOf(it, *it.offload), ArmingSeconds(it, *it.offload), &run);
  run["detection_seconds"] = DetectionSeconds(it);
  if (it.offload_trail) AddCausesJson(it, /*is_offload=*/true, has_lists, &run);
  if (!it.is_of_groups) {
    const sim::GroupTimes& group = times.groups[0];
    run["doorbells_seconds"] = sim::ToSeconds(group.doorbells);
    run["offload_seconds"] = sim::ToSeconds(group.offload());
  }
  if (!has_lists) return run;
  const auto add_host = [&](size_t group, NodeId node, Json* host) {
    const sim::PrepostedWork work = WorkOf(it, it.offload->groups[group].nodes[node.index()]);
    AddWork(work, work.arming_seconds, host);
  };
  AddNodesOfRun(it, times, /*is_offload=*/true, add_host, &run);
  return run;
}

Json CpuJson(const sim::Simulation& it, bool has_lists) {
  const sim::RunTimes& times = it.cpu_times;
  Json run = TimesJson(it, times, it.cpu->links, has_lists);
  run["wait"] = it.wait;
  AddWork(WorkOf(*it.cpu), PostsBefore(it, *it.cpu), &run);
  run["arming_seconds"] = ArmingSeconds(it, *it.cpu);
  Picoseconds delayed = 0;
  for (const sim::CpuDrivenResult::Host& host : it.cpu->hosts) delayed += host.delayed;
  run["delayed_seconds"] = sim::ToSeconds(delayed);
  if (it.cpu_trail) AddCausesJson(it, /*is_offload=*/false, has_lists, &run);
  if (!has_lists) return run;
  const auto add_host = [&](size_t group, NodeId node, Json* host) {
    const sim::HostWork& work = it.cpu->groups[group].nodes[node.index()].work;
    (*host)["looks"] = work.polls;
    AddWork(work, PostsBefore(it, *it.cpu, group, node), host);
  };
  AddNodesOfRun(it, times, /*is_offload=*/false, add_host, &run);
  return run;
}

}  // namespace

Json SimulationJson(const sim::Simulation& it, bool has_lists) {
  Json json = {{"modelled", true},
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
  json["slow_paths"] = it.network.pairs.size();
  json["bound_seconds"] = it.bound;
  json["seed"] = it.seed;
  const std::optional<double> barrier = BarrierSeconds(it);
  json["barrier_seconds"] = barrier ? Json(*barrier) : Json();
  if (it.offload) json["offload"] = OffloadJson(it, has_lists);
  if (it.cpu) json["cpu"] = CpuJson(it, has_lists);
  if (it.offload && it.cpu) {
    const sim::Gain gain = GainOf(it);
    json["gain"] = {{"completion", gain.completion > 0 ? Json(gain.completion) : Json()},
                    {"known", gain.known > 0 ? Json(gain.known) : Json()}};
  }
  return json;
}

}  // namespace prepost::tools
