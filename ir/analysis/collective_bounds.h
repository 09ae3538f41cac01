// SPDX-License-Identifier: Apache-2.0
//
// Lower bounds on the seconds that any collective needs: what must pass from some of a network's nodes
// to the others, whatever the schedule.
#ifndef PREPOST_IR_ANALYSIS_COLLECTIVE_BOUNDS_H_
#define PREPOST_IR_ANALYSIS_COLLECTIVE_BOUNDS_H_

#include <cstdint>
#include <vector>

#include "ir/analysis/bounds.h"
#include "ir/analysis/network.h"
#include "ir/plan.h"

namespace prepost {

/// Some of a plan's nodes, and how many of its members are among them.
struct NodeSet {
  uint64_t members = 0;
  bool has_root = false;
};

/// Copies of a part (of the whole where there is one) that must leave the set for other nodes; 0 where
/// all members are on one side. Sums of parts count as one, as who has both can send their sum.
uint64_t CopiesOut(const PlanHeader& header, const NodeSet& set);
/// The same of the nodes that are not in it.
uint64_t CopiesIn(const PlanHeader& header, const NodeSet& set);
/// That all nodes together must send.
uint64_t CopiesInAll(const PlanHeader& header);

/// Of the collective of `header`, of which a multicast is one (bounds.h): what its cuts take, longest
/// first; none of one member. Needs a network of its nodes that CheckNetwork() accepts.
std::vector<CutBound> BoundSeconds(const Network& network, const PlanHeader& header);
/// What no schedule takes less than: the longest of these, its latency counted; 0 of one member.
NetworkBound BoundNetwork(const Network& network, const PlanHeader& header);

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_COLLECTIVE_BOUNDS_H_
