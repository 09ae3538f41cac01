// SPDX-License-Identifier: Apache-2.0
//
// NetworkLoad: what a plan asks of each resource of a network, in all and round by round, and what
// its rounds cost there.
#ifndef PREPOST_IR_ANALYSIS_NETWORK_LOAD_H_
#define PREPOST_IR_ANALYSIS_NETWORK_LOAD_H_

#include <array>
#include <cstdint>
#include <vector>

#include "ir/analysis/network.h"
#include "ir/base/byte_sum.h"
#include "ir/plan_tables.h"

namespace prepost {

struct ResourceLoad {
  uint64_t blocks = 0;
  ByteSum bytes;
  uint32_t peak_blocks = 0;  ///< in one round
  double seconds = 0;        ///< bytes / rate: how long it is busy at least
};

struct NetworkLoad {
  /// By ResourceKind, by node, rack or link.
  std::array<std::vector<ResourceLoad>, kResourceKinds.size()> loads;
  std::vector<uint32_t> crossings;  ///< by block: transfers from one rack to another
  /// Whether every block enters each rack (but the root's) once. Fewer is not possible.
  bool enters_racks_once = true;
  /// Rounds, where one in which a ToR's link, the core or a link has L blocks and room for c per
  /// round costs ceil(L / c). Room is its rate divided by the root's rate out.
  uint64_t limited_rounds = 0;
  /// Modelled: the rounds one after the other; each takes as long as its busiest resource, and the
  /// longest latency of its transfers. Credits cost nothing.
  double seconds = 0;
  double latency_seconds = 0;  ///< what of `seconds` is latency

  const std::vector<ResourceLoad>& of(ResourceKind kind) const {
    return loads[static_cast<size_t>(kind)];
  }
  const ResourceLoad& of(Resource resource) const { return of(resource.kind)[resource.index]; }
};

/// Needs a network that CheckNetwork() accepts for the plan. Linear in messages, nodes and racks.
NetworkLoad MeasureLoad(const PlanTables& tables, const Network& network);

/// The resource of each kind that is busy longest (the first of equals), those that carry
/// something, busiest first.
std::vector<Resource> Busiest(const NetworkLoad& load);

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_NETWORK_LOAD_H_
