// SPDX-License-Identifier: Apache-2.0
//
// acyclic: no event of the plan waits for itself. order: it stays so when each node's sends start
// in id order, which is what managed queues add; since that only adds edges, one search settles
// both for a valid plan.
//
// Most plans need no search, nor a graph: where every edge leads upwards, nothing goes in a circle.
// Height is the round that both ends of a message declare, twice, and one more for a block, since a
// credit of the same round comes before it. Then
// * posts are lowest: without depths they wait for nothing but posts, each for the one before it on
//   its channel; the barrier is next;
// * a message's start is as high as the message, and its delivery directly above that;
// * what a send waits for (`after`) is delivered below the send's start: checked, entry by entry;
// * a node's sends start in id order, and none is below the one before: checked. So are those of a
//   channel, and so its deliveries; among equal heights the ids rise;
// * a combine is directly above its delivery, and above what it waits for, which may be of its
//   height: checked. Combines of equal height wait for each other at one node only, and by rising
//   ids.
// These are all edges of plan_graph.h. What does not rise may still be right: that is searched.
// Example: a relay's send in round 5 after its receive in round 3 rises; in round 3 it would not.
#include <fmt/format.h>

#include <algorithm>

#include "ir/plan_graph.h"
#include "ir/verify/rules.h"

namespace prepost {
namespace {

/// The cycle as one finding at its first op, with a note per edge.
void ReportCycle(const Plan& plan, const PlanGraph& graph,
                 const std::vector<PlanGraph::Vertex>& cycle, Rule rule, Findings* findings) {
  uint32_t first = MessageTable::kNone;
  for (PlanGraph::Vertex v : cycle) first = std::min(first, graph.OpOf(v));
  findings->AddWithNotes(PlaceOf(plan, first), rule, [&] {
    const char* what =
        rule == Rule::kAcyclic ? "deadlock" : "deadlock if each node's sends start in id order";
    std::vector<std::string> notes;
    for (size_t i = 0; i < cycle.size(); ++i) {
      notes.push_back(fmt::format("{} waits for {}", graph.Describe(cycle[(i + 1) % cycle.size()]),
                                  graph.Describe(cycle[i])));
    }
    return std::pair(
        fmt::format("{}: {} events wait for each other in a circle", what, cycle.size()), notes);
  });
}

uint64_t HeightOf(const Op& op) { return 2 * uint64_t{op.round} + (op.is_credit() ? 0 : 1); }

/// Whether every edge leads upwards, see above; for plans without findings of `rounds`.
bool Rises(const MatchedPlan& matched) {
  if (matched.options.send_depth || matched.options.recv_depth) return false;
  for (const Program& program : matched.plan.programs()) {
    const std::span<const Op> ops = matched.plan.ops(program);
    uint64_t height = 0;  // of the last send
    for (const Op& op : ops) {
      if (!op.may_wait()) continue;
      for (const OpId before : matched.plan.after(op)) {
        const uint64_t of_before = HeightOf(ops[before.index()]);
        if (of_before > HeightOf(op) || (op.is_send() && of_before == HeightOf(op))) return false;
      }
      if (!op.is_send()) continue;
      if (HeightOf(op) < height) return false;
      height = HeightOf(op);
    }
  }
  return true;
}

}  // namespace

void CheckAcyclic(const MatchedPlan& matched, bool has_rounds, Findings* findings) {
  if (has_rounds && Rises(matched)) return;
  PlanGraphOptions options{.send_depth = matched.options.send_depth,
                           .recv_depth = matched.options.recv_depth,
                           .chain_sends = true};
  const PlanGraph chained(matched.plan, matched.messages, matched.credits, options);
  const std::vector<PlanGraph::Vertex> chained_cycle = chained.FindCycle();
  if (chained_cycle.empty()) return;  // nor is there one with fewer edges
  options.chain_sends = false;
  const PlanGraph plain(matched.plan, matched.messages, matched.credits, options);
  const std::vector<PlanGraph::Vertex> cycle = plain.FindCycle();
  if (!cycle.empty()) {
    ReportCycle(matched.plan, plain, cycle, Rule::kAcyclic, findings);
  } else {
    ReportCycle(matched.plan, chained, chained_cycle, Rule::kOrder, findings);
  }
}

}  // namespace prepost
