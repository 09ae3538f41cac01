// SPDX-License-Identifier: Apache-2.0
//
// GoalGraph: what comes before what in a GOAL text. Internal to ir/.
#ifndef PREPOST_IR_EXCHANGE_GOAL_GRAPH_H_
#define PREPOST_IR_EXCHANGE_GOAL_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace prepost {

/// Successors of vertices, as CSR; edges are added once, all of them.
struct GoalGraph {
  GoalGraph(uint32_t size, const std::vector<std::pair<uint32_t, uint32_t>>& edges)
      : begin(size + 1) {
    for (const auto& edge : edges) ++begin[edge.first + 1];
    for (uint32_t v = 0; v < size; ++v) begin[v + 1] += begin[v];
    to.resize(edges.size());
    std::vector<size_t> next(begin.begin(), begin.end() - 1);
    for (const auto& [from, target] : edges) to[next[from]++] = target;
  }
  std::span<const uint32_t> Successors(uint32_t v) const {
    return std::span(to).subspan(begin[v], begin[v + 1] - begin[v]);
  }
  uint32_t size() const { return static_cast<uint32_t>(begin.size() - 1); }

  std::vector<size_t> begin;
  std::vector<uint32_t> to;
};

/// A topological order, the smallest vertex first where there is a choice; what is on a cycle or
/// behind one is missing.
std::vector<uint32_t> GoalOrderOf(const GoalGraph& graph);

/// Vertices that lie on a cycle together have one number; numbers are below the graph's size.
std::vector<uint32_t> GoalCyclesOf(const GoalGraph& graph);

}  // namespace prepost

#endif  // PREPOST_IR_EXCHANGE_GOAL_GRAPH_H_
