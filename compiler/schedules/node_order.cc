// SPDX-License-Identifier: Apache-2.0
//
// A schedule knows vertices: 0 is the root, and neighbours belong together. Which node stands where
// decides how often a block crosses from rack to rack, for schedules that know of racks and for
// those that do not. The rules, each breaking the ties of the one before:
//
// * Racks: the root's first; then by what they send to the core, most first; then by the topology.
//   A rack's nodes are neighbours.
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
#include <numeric>
#include <tuple>

namespace prepost {
namespace {

std::vector<NodeId> Rotation(uint32_t nodes, NodeId root) {
  std::vector<NodeId> node_at(nodes);
  for (uint32_t vertex = 0; vertex < nodes; ++vertex)
    node_at[vertex] = NodeId(static_cast<uint32_t>((uint64_t{vertex} + root.value) % nodes));
  return node_at;
}

/// The order that the rules above give.
std::vector<NodeId> ByTopology(const Network& topology, uint32_t nodes, NodeId root) {
  std::vector<NodeId> node_at(nodes);
  for (uint32_t node = 0; node < nodes; ++node) node_at[node] = NodeId(node);
  const uint32_t root_rack = topology.nodes[root.value].rack;
  const auto place = [&](NodeId node) {
    const Network::Node& host = topology.nodes[node.value];
    return std::tuple(host.rack != root_rack, -topology.racks[host.rack].up_rate, host.rack,
                      node != root, -std::min(host.out_rate, host.in_rate), -host.out_rate, node);
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
