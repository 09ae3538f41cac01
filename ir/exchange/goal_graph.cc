// SPDX-License-Identifier: Apache-2.0
#include "ir/exchange/goal_graph.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace prepost {

std::vector<uint32_t> GoalOrderOf(const GoalGraph& graph) {
  std::vector<uint32_t> waits(graph.size());
  for (uint32_t target : graph.to) ++waits[target];
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t v = 0; v < graph.size(); ++v) {
    if (waits[v] == 0) ready.push(v);
  }
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    const uint32_t v = ready.top();
    ready.pop();
    order.push_back(v);
    for (uint32_t target : graph.Successors(v)) {
      if (--waits[target] == 0) ready.push(target);
    }
  }
  return order;
}

// Tarjan's algorithm (SIAM J. Comput. 1(2), 1972), without recursion.
std::vector<uint32_t> GoalCyclesOf(const GoalGraph& graph) {
  constexpr uint32_t kNone = 0xffffffff;
  std::vector<uint32_t> cycle(graph.size(), kNone), found(graph.size(), kNone), low(graph.size());
  std::vector<uint32_t> open;                     // found, and of no cycle yet
  std::vector<std::pair<uint32_t, size_t>> path;  // vertex, successors gone through
  uint32_t count = 0, cycles = 0;
  const auto enter = [&](uint32_t vertex) {
    found[vertex] = low[vertex] = count++;
    open.push_back(vertex);
    path.emplace_back(vertex, 0);
  };
  for (uint32_t root = 0; root < graph.size(); ++root) {
    if (found[root] == kNone) enter(root);
    while (!path.empty()) {
      const uint32_t vertex = path.back().first;
      const std::span<const uint32_t> successors = graph.Successors(vertex);
      if (path.back().second < successors.size()) {
        const uint32_t next = successors[path.back().second++];
        if (found[next] == kNone) {
          enter(next);
        } else if (cycle[next] == kNone) {
          low[vertex] = std::min(low[vertex], found[next]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) low[path.back().first] = std::min(low[path.back().first], low[vertex]);
      if (low[vertex] != found[vertex]) continue;
      uint32_t member = kNone;
      do {
        member = open.back();
        open.pop_back();
        cycle[member] = cycles;
      } while (member != vertex);
      ++cycles;
    }
  }
  return cycle;
}

}  // namespace prepost
