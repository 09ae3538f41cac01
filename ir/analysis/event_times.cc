// SPDX-License-Identifier: Apache-2.0
//
// The only events that take time are starts: a block is delivered one unit after its start, and the
// next block of its channel starts one unit after it too, as a link carries one at a time. The
// graph is acyclic (the plan is valid), so one walk in topological order gives the earliest times,
//
//   earliest(v) = max over u -> v of earliest(u) + cost(u),
//
// and one against it the latest, from the end of the longest path. Two channels of a node share no
// port here: what a plan does not order may happen at once. A plan with both windows at 1 orders
// all of it, and its longest path is its rounds.
//
// Example, chain of 4 nodes, 2 blocks, send window 1, as start..delivery:
//   0>1:0 0..1   0>1:1 1..2   1>2:0 1..2   1>2:1 2..3   2>3:0 2..3   2>3:1 3..4
// Length 4 = k + n - 2; every message is critical.
#include "ir/analysis/event_times.h"

#include <algorithm>

namespace prepost {

using Vertex = PlanGraph::Vertex;

EventTimes::EventTimes(const PlanTables& tables, EventCosts costs)
    : tables_(tables), costs_(costs), earliest_(tables.graph().size(), 0) {
  const PlanGraph& graph = tables.graph();
  const std::vector<Vertex> order = graph.TopologicalOrder();
  PREPOST_CHECK(order.size() == graph.size());
  for (const Vertex v : order) {
    const uint64_t done = earliest_[v] + CostOf(v);
    length_ = std::max(length_, done);
    for (const Vertex to : graph.Successors(v)) earliest_[to] = std::max(earliest_[to], done);
  }
  latest_.assign(graph.size(), length_);
  for (auto v = order.rbegin(); v != order.rend(); ++v) {
    uint64_t due = length_;
    for (const Vertex to : graph.Successors(*v)) due = std::min(due, latest_[to]);
    latest_[*v] = due - CostOf(*v);
  }
}

uint64_t EventTimes::CostOf(Vertex v) const {
  const PlanGraph& graph = tables_.graph();
  if (graph.EventOf(v) != PlanGraph::Event::kStart) return 0;
  return tables_.SendOf(graph.MessageOf(v)).is_credit() ? costs_.credit : costs_.block;
}

Depth DepthOf(const PlanTables& tables) {
  constexpr uint64_t kBlock = uint64_t{1} << 32;  // more than all credits of any plan
  const uint64_t length = EventTimes(tables, {.block = kBlock, .credit = 1}).length();
  return {.blocks = length / kBlock, .credits = length % kBlock};
}

}  // namespace prepost
