// SPDX-License-Identifier: Apache-2.0
//
// acyclic: no event of the plan waits for itself. order: it stays so when each node's sends start
// in id order, which is what managed queues add; since that only adds edges, one search settles
// both for a valid plan.
#include <fmt/format.h>

#include <algorithm>

#include "prepost/ir/plan_graph.h"
#include "prepost/ir/rules.h"

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

}  // namespace

void CheckAcyclic(const MatchedPlan& matched, Findings* findings) {
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
