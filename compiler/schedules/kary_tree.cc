// SPDX-License-Identifier: Apache-2.0
//
// kary_tree=D: blocks go down a complete tree in which each node feeds D others, as MPI libraries
// do ("binary" is D = 2).
//
// The children of v are D v + 1 .. D v + D, as far as they exist. A node sends each block to one
// child after the other, in D rounds, the next block in the next D. So block b reaches child j
// (1..D) of v in round f(v) + D b + j - 1, where f(v) is the round after block 0 came to v, 0 for
// the root. The height is log_D n, but the rate is one block in D rounds.
//
// Rounds: D'(k - 1) + the latest f(v), with D' = min(D, n-1); for D = 1 the chain's k+n-2.
//
// Worked example, D = 2, 4 nodes, 2 blocks (4 rounds):
//   round 0: 0>1:0   1: 0>2:0 1>3:0   2: 0>1:1   3: 0>2:1 1>3:1
//
// Source: Open MPI's coll/tuned algorithms; the comparison with others is what it is here for.
#include <algorithm>

#include "compiler/schedules/rolled_schedule.h"

namespace prepost {
namespace {

class KaryTree final : public RolledSchedule {
 public:
  std::string_view name() const override { return "kary_tree"; }
  std::string_view summary() const override {
    return "blocks go down a tree of D children each (kary_tree=D); about Dk+D*log_D n rounds";
  }
  uint32_t default_fanout() const override { return 2; }
  LinearInBlocks RoundsOf(RolledExtent extent) const override {
    const int64_t children = Children(extent);
    return {.per_block = children,
            .constant = LatestFirstSend(Children(extent), extent.nodes) - children};
  }
  Fan FanOf(RolledExtent extent) const override { return {.out = Children(extent) > 1}; }

  std::vector<Segment> SegmentsOf(RolledExtent extent, uint32_t node) const override {
    const uint32_t children = Children(extent);
    const int64_t first_send = FirstSend(children, node);
    const int64_t first_child = int64_t{children} * node + 1;
    const int64_t child_count = std::clamp<int64_t>(extent.nodes - first_child, 0, children);
    Segment segment{.from = {.constant = std::max<int64_t>(first_send - 1, 0)},
                    .to = {.per_block = children, .constant = first_send - children + child_count},
                    .rounds_per_block = children};
    segment.slots.resize(children);
    const auto slot = [&](int64_t round) -> RolledSlot& {
      return segment.slots[static_cast<size_t>(round % children)];
    };
    for (int64_t j = 0; j < child_count; ++j) {
      slot(first_send + j).send = With(static_cast<uint32_t>(first_child + j), first_send + j);
    }
    if (node != 0) slot(first_send - 1).recv = With((node - 1) / children, first_send - 1);
    return {segment};
  }

 private:
  static uint32_t Children(RolledExtent extent) {
    const uint32_t wanted = extent.fanout == 0 ? 2 : extent.fanout;
    return std::min(wanted, extent.nodes - 1);
  }
  /// f(v).
  static int64_t FirstSend(uint32_t children, uint32_t node) {
    int64_t round = 0;
    for (uint32_t v = node; v != 0; v = (v - 1) / children) round += (v - 1) % children + 1;
    return round;
  }
  /// The latest f(v). Of all lines of descent that end on the lowest level at or before the last
  /// node, the latest leaves the last node's own at some step to a child before it, and goes to the
  /// last child from there on; or it ends a level higher.
  static int64_t LatestFirstSend(uint32_t children, uint32_t nodes) {
    const uint32_t last = nodes - 1;
    int64_t latest = FirstSend(children, last);
    int64_t below = 0;  // steps from `v` down to the lowest level
    for (uint32_t v = last; v != 0; v = (v - 1) / children, ++below) {
      if ((v - 1) % children == 0) continue;
      latest = std::max(latest, FirstSend(children, v) - 1 + below * children);
    }
    return std::max(latest, (below - 1) * children);
  }
  static RolledTransfer With(uint32_t peer, int64_t first_round) {
    return {.peer = NodeId(peer), .offset = {.constant = -first_round}};
  }
};

}  // namespace

const Schedule& KaryTreeSchedule() {
  static const KaryTree schedule;
  return schedule;
}

}  // namespace prepost
