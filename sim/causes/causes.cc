// SPDX-License-Identifier: Apache-2.0
#include "sim/causes/causes.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "sim/network/link_traffic.h"

namespace prepost::sim {
namespace {

/// The last target to be through; the root where it is alone.
NodeId LastNode(const std::vector<Picoseconds>& ends, const PlanHeader& header) {
  const Roles roles = header.roles();
  NodeId last = header.collective.root;
  for (size_t i = 0; i < ends.size(); ++i) {
    const NodeId node = NodeId::FromIndex(i);
    if (!roles.IsTarget(node)) continue;
    if (!roles.IsTarget(last) || ends[i] > ends[last.index()]) last = node;
  }
  return last;
}

GroupCauses CausesOfGroup(const TimeTrail& trail, const LinkTraffic* traffic, uint32_t group,
                          const GroupTimes& times) {
  GroupCauses found;
  found.start = times.start;
  found.last = LastNode(times.ends, trail.plan(group).header());
  found.times = TimesOf(trail, group, found.last, times.start);
  found.path = SumOf(CriticalPath(trail, CompletionOf(trail, group), times.start, traffic));
  found.after = SumOf(CriticalPath(trail, KnownOf(trail, group), times.completion, traffic));
  return found;
}

void Add(const CauseTimes& from, CauseTimes* to) {
  for (size_t i = 0; i < from.size(); ++i) (*to)[i] += from[i];
}

}  // namespace

RunCauses CausesOf(const Simulation& it, bool is_offload) {
  const TimeTrail& trail = is_offload ? *it.offload_trail : *it.cpu_trail;
  const RunTimes& times = is_offload ? it.offload_times : it.cpu_times;
  RunCauses run = {.name = is_offload ? "preposted" : "CPU-driven", .trail = &trail};
  std::optional<LinkTraffic> all;
  if (it.groups.size() > 1) all.emplace(trail, it.network);
  const LinkTraffic* const traffic = all ? &*all : nullptr;
  uint32_t last_known = 0;
  for (uint32_t g = 0; g < times.groups.size(); ++g) {
    run.groups.push_back(CausesOfGroup(trail, traffic, g, times.groups[g]));
    if (times.groups[g].completion > times.groups[run.last_group].completion) run.last_group = g;
    if (times.groups[g].known > times.groups[last_known].known) last_known = g;
  }
  if (run.groups.empty()) return run;
  run.path = CriticalPath(trail, CompletionOf(trail, run.last_group), 0, traffic);
  run.causes = SumOf(run.path);
  run.after = SumOf(CriticalPath(trail, KnownOf(trail, last_known), times.completion, traffic));
  return run;
}

GroupCauses SumOf(const RunCauses& run) {
  GroupCauses sum;
  for (const GroupCauses& group : run.groups) {
    sum.last = group.last;
    sum.times.remote_setup += group.times.remote_setup;
    sum.times.remote_transfers += group.times.remote_transfers;
    sum.times.local_setup += group.times.local_setup;
    sum.times.transfers += group.times.transfers;
    sum.times.copy += group.times.copy;
    sum.times.waiting += group.times.waiting;
    Add(group.path, &sum.path);
    Add(group.after, &sum.after);
  }
  return sum;
}

Picoseconds SumOf(const CauseTimes& times) {
  return std::accumulate(times.begin(), times.end(), Picoseconds{0});
}

}  // namespace prepost::sim
