// SPDX-License-Identifier: Apache-2.0
//
// VirtualGroup: one multicast among the hosts of a modelled network. Several go at once, and share
// links, NICs and cores (virtual_offload.h, virtual_hosts.h).
#ifndef PREPOST_SIM_VIRTUAL_GROUP_H_
#define PREPOST_SIM_VIRTUAL_GROUP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/ids.h"
#include "ir/plan.h"
#include "ir/status.h"
#include "sim/virtual_time.h"

namespace prepost::emulated {

struct VirtualGroup {
  const Plan* plan = nullptr;      ///< verified; not owned
  std::vector<NodeId> hosts = {};  ///< by node of the plan, distinct; empty: node i is host i
  Picoseconds start = 0;           ///< not before; its hosts have armed before time begins
  /// The position of an earlier group: this one starts when all hosts of that one know that their
  /// part of it is over, which its own hosts know at once; or at `start`, if that is later.
  std::optional<uint32_t> after = {};

  NodeId HostOf(NodeId node) const { return hosts.empty() ? node : hosts[node.index()]; }
};

/// On a network of `hosts` hosts. Errors (kRejected): "group 3: ...".
Status CheckGroups(std::span<const VirtualGroup> groups, size_t hosts);

/// By group: those that start after it, in their order.
std::vector<std::vector<uint32_t>> GroupsAfter(std::span<const VirtualGroup> groups);

}  // namespace prepost::emulated

#endif  // PREPOST_SIM_VIRTUAL_GROUP_H_
