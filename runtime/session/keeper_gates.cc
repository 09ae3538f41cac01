// SPDX-License-Identifier: Apache-2.0
//
// Gates: each member reports along the GateTree (group/gate_tree.h) how far it and all below it
// have come, and the leader, for which the last report decides, sends back down how far all have.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/session/keeper_group.h"

namespace prepost {

void Keeper::AddGates(Group& group, std::vector<GateSocket> gates) {
  for (GateSocket& gate : gates) {
    Peer& peer = group.gates.emplace_back();
    peer.node = gate.peer;
    peer.control.emplace(std::move(gate.control));
  }
}

/// Where one is lost nobody goes on; it may be a consequence of something else.
void Keeper::ServeGates(Group& group) {
  const Clock::time_point now = Clock::now();
  const bool is_sign_due = now >= group.next_sign;
  if (is_sign_due) group.next_sign = now + tick_;
  for (Peer& peer : group.gates) {
    if (is_sign_due) peer.control->QueueLatest(control::Query());
    peer.control->Flush();
    Hear(group, peer);
    if (group.is_over) return;
    if (peer.control->is_authentic() && !peer.control->nonsense().empty())
      return End(group, Nonsense(group, peer.node, peer.control->nonsense()));
    if (!peer.control->is_authentic()) return End(group, NotAuthenticFrom(group, peer.node));
    const bool is_begun = group.introductions_due && now >= *group.introductions_due;
    if (!peer.control->closed() && !(is_begun && is_silent(peer))) continue;
    Suspect(group,
            {.cause = Rejected(fmt::format("{} lost its connection to {}",
                                           Who(group, group.kept.self), Who(group, peer.node))),
             .where = peer.node,
             .by = group.kept.self});
  }
}

/// Over a connection of the GateTree with another member than the leader.
void Keeper::HearGate(Group& group, Peer& peer, const ControlMessage& message) {
  if (std::holds_alternative<control::Query>(message)) return;  // a sign of life
  const auto* arrived = std::get_if<control::Arrived>(&message);
  const bool is_child = std::ranges::count(group.children, peer.node) > 0;
  if (arrived != nullptr && is_child) return HearArrived(group, peer, *arrived);
  if (const auto* passed = std::get_if<control::Passed>(&message))
    return HearPassed(group, peer, *passed);
  End(group, Nonsense(group, peer.node, message));
}

void Keeper::HearArrived(Group& group, Peer& peer, const control::Arrived& arrived) {
  uint64_t& number = peer.arrived[arrived.gate];
  number = std::max(number, arrived.number);
  CountArrivals(group);
}

/// Only a parent says it, of what this node has reported to it.
void Keeper::HearPassed(Group& group, const Peer& peer, const control::Passed& passed) {
  const bool is_parent = group.tree.ParentOf(group.kept.self) == peer.node;
  if (is_parent && passed.number <= group.reported[passed.gate]) return Pass(group, passed);
  End(group, Nonsense(group, peer.node, passed));
}

/// At the other end of an edge of the tree.
Keeper::Peer& Keeper::NeighbourOf(Group& group, NodeId node) {
  if (group.is_leader()) return group.peers[node.index()];
  if (node == group.kept.leader) return group.peers.front();
  const auto gate = std::ranges::find(group.gates, node, &Peer::node);
  PREPOST_CHECK(gate != group.gates.end());  // nobody arrives before the group has formed
  return *gate;
}

/// Of this node and all below it in the tree: reported up, or, at the leader, passed.
void Keeper::CountArrivals(Group& group) {
  for (size_t i = 0; i < kGates; ++i) {
    const auto gate = static_cast<Gate>(i);
    uint64_t arrived = group.arrived[gate];
    for (const NodeId child : group.children)
      arrived = std::min(arrived, NeighbourOf(group, child).arrived[gate]);
    if (arrived <= group.reported[gate]) continue;
    group.reported[gate] = arrived;
    if (group.is_leader()) {
      Pass(group, {.gate = gate, .number = arrived, .start_ns = MonotonicNs()});
      continue;
    }
    Peer& parent = NeighbourOf(group, *group.tree.ParentOf(group.kept.self));
    if (parent.control)
      parent.control->QueueLatest(control::Arrived{.gate = gate, .number = arrived});
  }
}

/// All have come there: those below hear it.
void Keeper::Pass(Group& group, const control::Passed& passed) {
  if (passed.number <= group.passed[passed.gate]) return;
  for (const NodeId child : group.children) {
    Peer& peer = NeighbourOf(group, child);
    if (peer.control) peer.control->QueueLatest(passed);
  }
  ReportPassed(group, passed);
}

void Keeper::ReportPassed(Group& group, const control::Passed& passed) {
  uint64_t& number = group.passed[passed.gate];
  while (number < passed.number) {
    Report({.kind = KeeperEvent::Kind::kPassed,
            .group = group.kept.serial,
            .number = number++,
            .gate = passed.gate,
            .start_ns = passed.start_ns});
  }
}

}  // namespace prepost
