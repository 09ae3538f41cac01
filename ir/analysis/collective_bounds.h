// SPDX-License-Identifier: Apache-2.0
//
// Lower bounds on the seconds that any collective needs: what must pass from some of a network's
// nodes to the others, whatever the schedule.
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

/// Copies of a part (of the whole where there is one) that must leave the set for other nodes; 0
/// where all members are on one side. Sums of parts count as one, as who has both can send their
/// sum.
uint64_t CopiesOut(const PlanHeader& header, const NodeSet& set);
/// The same of the nodes that are not in it.
uint64_t CopiesIn(const PlanHeader& header, const NodeSet& set);
/// That all nodes together must send.
uint64_t CopiesInAll(const PlanHeader& header);

/// What must pass between some of a plan's nodes and the others: parts, and their bytes.
struct Passing {
  uint64_t copies_out = 0, copies_in = 0;
  double bytes_out = 0, bytes_in = 0;
};

/// Of each of `groups` sets of nodes: node i is in set group_of[i]. Parts may have sizes of their
/// own; copies of those count what CopiesOut() does, empty ones too. Of another collective than a
/// multicast linear in nodes and parts.
std::vector<Passing> PassingOf(const PlanHeader& header, const std::vector<uint32_t>& group_of,
                               uint32_t groups);
/// Of each node alone.
std::vector<Passing> PassingOfNodes(const PlanHeader& header);
/// Bytes that all nodes together must send.
double BytesInAll(const PlanHeader& header);

/// Of the collective of `header`, of which a multicast is one (bounds.h): what its cuts take,
/// longest first; none of one member. Needs a network of its nodes that CheckNetwork() accepts.
std::vector<CutBound> BoundSeconds(const Network& network, const PlanHeader& header);
/// What no schedule takes less than: the longest of these, its latency counted; 0 of one member.
NetworkBound BoundNetwork(const Network& network, const PlanHeader& header);

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_COLLECTIVE_BOUNDS_H_
