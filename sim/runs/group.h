// SPDX-License-Identifier: Apache-2.0
//
// Group: one multicast among the hosts of a modelled network. Several go at once, and share
// links, NICs and cores (preposted.h, cpu_driven.h).
#ifndef PREPOST_SIM_RUNS_GROUP_H_
#define PREPOST_SIM_RUNS_GROUP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "ir/verify/verify.h"
#include "sim/nics/time.h"

namespace prepost::sim {

struct Group {
  const VerifiedPlan* plan = nullptr;  ///< not owned
  std::vector<NodeId> hosts = {};      ///< by node of the plan, distinct; empty: node i is host i
  Picoseconds start = 0;               ///< not before; its hosts have armed before time begins
  /// The position of an earlier group: this one starts when all hosts of that one know that their
  /// part of it is over, which its own hosts know at once; or at `start`, if that is later.
  std::optional<uint32_t> after = {};

  NodeId HostOf(NodeId node) const { return hosts.empty() ? node : hosts[node.index()]; }
};

/// On a network of `hosts` hosts. Errors (kRejected): "group 3: ...".
Status CheckGroups(std::span<const Group> groups, size_t hosts);

/// By group: those that start after it, in their order.
std::vector<std::vector<uint32_t>> GroupsAfter(std::span<const Group> groups);

}  // namespace prepost::sim

#endif  // PREPOST_SIM_RUNS_GROUP_H_
