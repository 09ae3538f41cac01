// SPDX-License-Identifier: Apache-2.0
//
// A schedule knows vertices: 0 is the root, and neighbours belong together. Which node stands where
// decides how often a block crosses from rack to rack, for schedules that know of racks and for
// those that do not. The rules, each breaking the ties of the one before:
//
// * Racks: the root's first; then by what they send to the core, most first; then by the topology.
//   A rack's nodes are neighbours. Where links are between racks: the way from the root's over all
//   others whose narrowest step is widest, then that of least latency; of up to kOrderedMax racks
//   the best of all, else each step to the best of those that are left.
// * In a rack: the root first; then by what a node can pass on, the less of what it can send and
//   receive, most first; then by what it can send; then by number.
//
// Fast before slow, because where a schedule's vertices differ much in what they send, the first
// ones send more: the leader of a rack every block twice, inner vertices of trees are low ones, and
// the last of a chain sends nothing. In pipelines and circulants all send about the same. One that
// receives slowly keeps all those waiting that it sends to, as if it sent slowly.
//
// Without a topology node r stands at vertex (r - root) mod n.
#include "compiler/schedules/node_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace prepost {
namespace {

std::vector<NodeId> Rotation(uint32_t nodes, NodeId root) {
  std::vector<NodeId> node_at(nodes);
  for (uint32_t vertex = 0; vertex < nodes; ++vertex)
    node_at[vertex] = NodeId(static_cast<uint32_t>((uint64_t{vertex} + root.value) % nodes));
  return node_at;
}

/// So many racks are put in order by trying all ways, 2^n n^2 parts of them, twice.
constexpr uint32_t kOrderedMax = 12;

/// How good a way is: the rate of its narrowest step, then the latency of all.
struct WayCost {
  double narrowest = std::numeric_limits<double>::infinity();
  double latency = 0;

  bool IsBetterThan(const WayCost& other) const {
    return std::pair(-narrowest, latency) < std::pair(-other.narrowest, other.latency);
  }
};

class RackWays {
 public:
  explicit RackWays(const Network& network) : network_(network) {}

  WayCost Then(const WayCost& cost, uint32_t from, uint32_t to) const {
    WayCost more = cost;
    for (const uint32_t link : network_.LinksBetween(from, to))
      more.narrowest = std::min(more.narrowest, network_.links[link].capacity());
    more.latency += network_.LatencyBetween(from, to);
    return more;
  }

  /// All of `racks`, which begin with the root's.
  std::vector<uint32_t> Order(std::vector<uint32_t> racks) const {
    return racks.size() <= kOrderedMax ? Best(racks) : Greedy(std::move(racks));
  }

 private:
  /// First how wide the narrowest step of a way can be, then the way of least latency over such
  /// steps.
  std::vector<uint32_t> Best(const std::vector<uint32_t>& racks) const {
    WayCost best = Search(racks, 0, nullptr);
    std::vector<uint32_t> order;
    Search(racks, best.narrowest, &order);
    return order;
  }

  /// The best way that ends at each rack, by the set of those that it has been to (Held and Karp
  /// 1962), over steps of at least `width`: without one by its narrowest step, else by latency.
  WayCost Search(const std::vector<uint32_t>& racks, double width,
                 std::vector<uint32_t>* order) const {
    struct End {
      WayCost cost;
      uint32_t before = 0;
      bool is_there = false;
    };
    const auto count = static_cast<uint32_t>(racks.size());
    const uint32_t all = (1u << count) - 1;
    std::vector<End> ends(size_t{count} << count);
    const auto at = [&](uint32_t set, uint32_t last) -> End& {
      return ends[size_t{set} * count + last];
    };
    const auto is_better = [&](const WayCost& a, const End& b) {
      if (!b.is_there) return true;
      return width == 0 ? a.narrowest > b.cost.narrowest : a.latency < b.cost.latency;
    };
    at(1, 0) = {.cost = {}, .before = 0, .is_there = true};
    for (uint32_t set = 1; set <= all; set += 2) {
      for (uint32_t last = 0; last < count; ++last) {
        if (!at(set, last).is_there) continue;
        for (uint32_t next = 1; next < count; ++next) {
          if ((set >> next & 1) != 0) continue;
          const WayCost cost = Then(at(set, last).cost, racks[last], racks[next]);
          if (cost.narrowest < width) continue;
          End& end = at(set | 1u << next, next);
          if (is_better(cost, end)) end = {cost, last, true};
        }
      }
    }
    End found;
    uint32_t last = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (!at(all, i).is_there || !is_better(at(all, i).cost, found)) continue;
      found = at(all, i);
      last = i;
    }
    if (order == nullptr) return found.cost;
    for (uint32_t set = all; order->size() < count;) {
      order->push_back(racks[last]);
      const uint32_t before = at(set, last).before;
      set &= ~(1u << last);
      last = before;
    }
    std::ranges::reverse(*order);
    return found.cost;
  }

  std::vector<uint32_t> Greedy(std::vector<uint32_t> racks) const {
    for (size_t i = 1; i + 1 < racks.size(); ++i) {
      const auto is_better = [&](uint32_t a, uint32_t b) {
        return Then({}, racks[i - 1], a).IsBetterThan(Then({}, racks[i - 1], b));
      };
      const auto best =
          std::min_element(racks.begin() + static_cast<ptrdiff_t>(i), racks.end(), is_better);
      std::iter_swap(racks.begin() + static_cast<ptrdiff_t>(i), best);
    }
    return racks;
  }

  const Network& network_;
};

/// By rack, its place among those that have some of the first `nodes` nodes.
std::vector<size_t> RackPlaces(const Network& topology, uint32_t nodes, uint32_t root_rack) {
  std::vector<bool> occupied(topology.racks.size());
  for (uint32_t node = 0; node < nodes; ++node) occupied[topology.nodes[node].rack] = true;
  std::vector<uint32_t> racks = {root_rack};
  for (uint32_t rack = 0; rack < occupied.size(); ++rack)
    if (occupied[rack] && rack != root_rack) racks.push_back(rack);
  if (topology.links.empty()) {
    std::stable_sort(racks.begin() + 1, racks.end(), [&](uint32_t a, uint32_t b) {
      return topology.racks[a].up_rate > topology.racks[b].up_rate;
    });
  } else {
    racks = RackWays(topology).Order(std::move(racks));
  }
  std::vector<size_t> places(topology.racks.size());
  for (size_t i = 0; i < racks.size(); ++i) places[racks[i]] = i;
  return places;
}

/// The order that the rules above give.
std::vector<NodeId> ByTopology(const Network& topology, uint32_t nodes, NodeId root) {
  std::vector<NodeId> node_at(nodes);
  for (uint32_t node = 0; node < nodes; ++node) node_at[node] = NodeId(node);
  const std::vector<size_t> rack_places =
      RackPlaces(topology, nodes, topology.nodes[root.value].rack);
  const auto place = [&](NodeId node) {
    const Network::Node& host = topology.nodes[node.value];
    return std::tuple(rack_places[host.rack], node != root, -std::min(host.out_rate, host.in_rate),
                      -host.out_rate, node);
  };
  std::ranges::sort(node_at, std::less(), place);
  return node_at;
}

/// Where each run of nodes of one rack begins.
std::vector<uint32_t> RunsOf(const Network& topology, const std::vector<NodeId>& node_at) {
  std::vector<uint32_t> begin;
  for (uint32_t vertex = 0; vertex < node_at.size(); ++vertex) {
    const auto rack_at = [&](uint32_t v) { return topology.nodes[node_at[v].value].rack; };
    if (vertex == 0 || rack_at(vertex) != rack_at(vertex - 1)) begin.push_back(vertex);
  }
  return begin;
}

/// The second run of a rack that has two, as a place in `runs`; their number if there is none.
size_t SplitRun(const Network& topology, const std::vector<NodeId>& node_at,
                const std::vector<uint32_t>& runs) {
  std::vector<bool> seen(topology.racks.size());
  for (size_t run = 0; run < runs.size(); ++run) {
    const uint32_t rack = topology.nodes[node_at[runs[run]].value].rack;
    if (seen[rack]) return run;
    seen[rack] = true;
  }
  return runs.size();
}

}  // namespace

NodeOrder OrderNodes(const Spec& spec) {
  NodeOrder order;
  if (!spec.order.empty()) {
    order.node_at = spec.order;
  } else if (spec.topology) {
    order.node_at = ByTopology(*spec.topology, spec.nodes, spec.root);
  } else {
    order.node_at = Rotation(spec.nodes, spec.root);
  }
  if (!spec.topology) return order;
  order.rack_begin = RunsOf(*spec.topology, order.node_at);
  // An order that splits a rack is for schedules that know of none.
  if (SplitRun(*spec.topology, order.node_at, order.rack_begin) != order.rack_begin.size())
    order.rack_begin.clear();
  return order;
}

Status CheckOrder(const Spec& spec, const Schedule& schedule) {
  if (spec.order.empty()) return {};
  if (spec.order.size() != spec.nodes) {
    return Rejected(fmt::format("an order names each of the {} nodes once, found {}", spec.nodes,
                                spec.order.size()),
                    "/order");
  }
  const auto at = [](size_t vertex) { return fmt::format("/order/{}", vertex); };
  std::vector<bool> seen(spec.nodes);
  for (size_t vertex = 0; vertex < spec.order.size(); ++vertex) {
    const uint32_t node = spec.order[vertex].value;
    if (node >= spec.nodes) {
      return Rejected(
          fmt::format("node {} is out of range, the nodes are 0 to {}", node, spec.nodes - 1),
          at(vertex));
    }
    if (seen[node])
      return Rejected(fmt::format("node {} stands in the order twice", node), at(vertex));
    seen[node] = true;
  }
  if (spec.order[0] != spec.root) {
    return Rejected(
        fmt::format("the root, {}, comes first, found {}", spec.root.value, spec.order[0].value),
        at(0));
  }
  if (!spec.topology || !schedule.NeedsWholeRacks()) return {};
  const std::vector<uint32_t> runs = RunsOf(*spec.topology, spec.order);
  const size_t split = SplitRun(*spec.topology, spec.order, runs);
  if (split == runs.size()) return {};
  const Network::Node& host = spec.topology->nodes[spec.order[runs[split]].value];
  return Rejected(fmt::format("rack '{}' is split, {} needs its nodes to be neighbours",
                              spec.topology->racks[host.rack].name, schedule.name()),
                  at(runs[split]));
}

}  // namespace prepost
