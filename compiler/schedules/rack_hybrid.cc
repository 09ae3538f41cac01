// SPDX-License-Identifier: Apache-2.0
//
// Rack hybrid: a binomial pipeline among the leaders of racks, then one inside every rack. Each
// block enters each rack once, however a rack's nodes would be spread over a hypercube of all.
//
// A leader, the first node of its rack, has one port for both levels: as a vertex of the leaders'
// hypercube it sends in nearly every round, and as the root of its rack's it sends in every round.
// Each block costs it two sends, so no arrangement of the two ends in fewer than about 2k rounds.
// Rounds of the two levels in turn would be two rounds per step, and since a leader gets its blocks
// out of order, by up to log2 R steps, the rack would begin that much later at half speed: 2k - 3 +
// 2 ceil(log2 R) + ceil(log2 n) rounds. One level after the other, as here, takes no more:
//
// Rounds: 2k - 2 + ceil(log2 R) + ceil(log2 n), R racks > 1 of at most n > 1 nodes. With one rack,
// or with one node in each, it is the binomial pipeline of k - 1 + ceil(log2) rounds.
// rack_circulant has another node than the leader send to other racks and takes about half as long.
//
// Worked example, 2 racks of 2 nodes (0 1 and 2 3), 2 blocks (4 rounds):
//   round 0: 0>2:0   1: 0>2:1   2: 0>1:0 2>3:0   3: 0>1:1 2>3:1
//
// Rolled, a leader's program is that of the racks' pipeline and then its rack's, k - 1 + ceil(log2
// R) rounds later.
//
// Cost: O(racks + log n) per node. Source: RDMC (Behrens et al., DSN 2018), section 4.3, "hybrid
// algorithms".
#include <algorithm>

#include "compiler/schedules/rack_layout.h"
#include "compiler/schedules/rolled_compose.h"
#include "compiler/schedules/rolled_schedule.h"

namespace prepost {
namespace {

class RackHybrid final : public RolledSchedule {
 public:
  std::string_view name() const override { return "rack_hybrid"; }
  std::string_view summary() const override {
    return "a binomial pipeline among racks' leaders, then one in each rack; "
           "2k-2+ceil(log2 R)+ceil(log2 n) rounds";
  }
  bool NeedsWholeRacks() const override { return true; }
  LinearInBlocks RoundsOf(RolledExtent extent) const override {
    const RackLayout layout(extent);
    return RoundsIn(BinomialPipelineSchedule(), layout.count()) +
           RoundsIn(BinomialPipelineSchedule(), layout.size_max());
  }
  Fan FanOf(RolledExtent extent) const override {
    const RackLayout layout(extent);
    const bool has_pipeline = layout.count() > 2 || layout.size_max() > 2;
    // The root sends on both levels.
    return {.in = has_pipeline, .out = has_pipeline || (layout.count() > 1 && layout.size(0) > 1)};
  }

  std::vector<Segment> SegmentsOf(RolledExtent extent, uint32_t node) const override {
    const RackLayout layout(extent);
    const Schedule& pipeline = BinomialPipelineSchedule();
    const uint32_t rack = layout.RackOf(node);
    const uint32_t leader = layout.leader(rack);
    std::vector<Segment> segments;
    if (node == leader) segments = ProgramIn(pipeline, layout.count(), rack);
    ForEachTransfer(segments, [&](RolledTransfer& transfer) {
      transfer.peer = NodeId(layout.leader(transfer.peer.value));
    });
    std::vector<Segment> in_rack = ProgramIn(pipeline, layout.size(rack), node - leader);
    ForEachTransfer(in_rack, [&](RolledTransfer& transfer) { transfer.peer.value += leader; });
    for (Segment& segment : in_rack)
      segments.push_back(Delayed(std::move(segment), RoundsIn(pipeline, layout.count())));
    return segments;
  }
};

}  // namespace

const Schedule& RackHybridSchedule() {
  static const RackHybrid schedule;
  return schedule;
}

}  // namespace prepost
