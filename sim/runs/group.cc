// SPDX-License-Identifier: Apache-2.0
#include "sim/runs/group.h"

#include <fmt/format.h>

namespace prepost::sim {
namespace {

Status CheckGroup(const Group& group, size_t position, size_t hosts) {
  const uint32_t nodes = group.plan->header().nodes;
  if (group.start < 0) return Rejected(fmt::format("it starts at {} ps", group.start));
  if (group.after && *group.after >= position) {
    return Rejected(fmt::format("it comes after group {}, expected an earlier one", *group.after));
  }
  if (group.hosts.empty() && nodes <= hosts) return {};
  if (group.hosts.size() != nodes) {
    return Rejected(fmt::format("a plan of {} nodes for {} hosts", nodes,
                                group.hosts.empty() ? hosts : group.hosts.size()));
  }
  std::vector<bool> is_taken(hosts);
  for (const NodeId host : group.hosts) {
    if (host.index() >= hosts) {
      return Rejected(fmt::format("host {}, and there are {}", host.value, hosts));
    }
    if (is_taken[host.index()]) return Rejected(fmt::format("host {} is there twice", host.value));
    is_taken[host.index()] = true;
  }
  return {};
}

}  // namespace

Status CheckGroups(std::span<const Group> groups, size_t hosts) {
  for (size_t i = 0; i < groups.size(); ++i) {
    const Status status = CheckGroup(groups[i], i, hosts);
    if (!status.ok()) return Rejected(fmt::format("group {}: {}", i, status.message()));
  }
  return {};
}

std::vector<std::vector<uint32_t>> GroupsAfter(std::span<const Group> groups) {
  std::vector<std::vector<uint32_t>> after(groups.size());
  for (uint32_t i = 0; i < groups.size(); ++i) {
    if (groups[i].after) after[*groups[i].after].push_back(i);
  }
  return after;
}

}  // namespace prepost::sim
