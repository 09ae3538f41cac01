// SPDX-License-Identifier: Apache-2.0
//
// OrderNodes: which node plays which vertex of a schedule, and where racks begin among vertices.
// Compile() plays schedules in this order; people see it with `prepost compile --show-order`.
#ifndef PREPOST_COMPILER_SCHEDULES_NODE_ORDER_H_
#define PREPOST_COMPILER_SCHEDULES_NODE_ORDER_H_

#include <cstdint>
#include <vector>

#include "compiler/schedules/schedule.h"
#include "compiler/spec.h"
#include "ir/ids.h"

namespace prepost {

struct NodeOrder {
  std::vector<NodeId> node_at;       ///< by vertex; every node once, the root at vertex 0
  std::vector<uint32_t> rack_begin;  ///< as Extent::racks; empty: one rack
};

/// The spec's own order, or the one that follows from its topology, or the rotation that puts the
/// root first. `spec` holds CheckSpec() apart from its sizes and algorithm.
/// Cost: O(n log n) with a topology, else O(n).
NodeOrder OrderNodes(const Spec& spec);

/// Whether `spec.order`, if it has one, names every node once, the root first, and leaves racks
/// together where `schedule` asks for that. `spec` holds CheckSpec() in all else. The Status says
/// where: "/order" or "/order/i".
Status CheckOrder(const Spec& spec, const Schedule& schedule);

}  // namespace prepost

#endif  // PREPOST_COMPILER_SCHEDULES_NODE_ORDER_H_
