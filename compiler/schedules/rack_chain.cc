// SPDX-License-Identifier: Apache-2.0
//
// Rack chain: the leaders of racks pass every block on from rack to rack, and each starts a
// binomial pipeline inside its rack as blocks come. Each block enters each rack once, in order, and
// only neighbours among racks ever talk: the least that cores and top-of-rack switches can be asked
// for.
//
// A leader sends each block twice, to the next leader and into its rack, and has one port. It does
// both in turn. With rack j counted from the root's, 0, and p = 2 rounds per block, its leader
//   sends block b to the next leader in round   p b + j,
//   so that rack j has it from there on as      p b + j - 1,
//   and plays step t of its rack's pipeline in  p t + j + 1   while t < k,
// and one step per round after that, when no block is left to pass on. The last rack passes nothing
// on and plays step t in round p t + j. Where no rack but the last has a second node there is
// nothing to take turns with: p = 1, a plain chain that ends in a pipeline. An uplink is in use in
// every p-th round only: one that carries half of what a node sends costs nothing.
//
// Rounds: 2k - 3 + R + ceil(log2 n), R >= 2 racks of n >= 2 nodes, just as many as would be needed
// for one level after the other. One rack: k - 1 + ceil(log2 n); one node per rack: k + R - 2.
//
// Worked example, 2 racks of 2 nodes (0 1 and 2 3), 2 blocks (4 rounds):
//   round 0: 0>2:0   1: 0>1:0 2>3:0   2: 0>2:1   3: 0>1:1 2>3:1
//
// Rolled, that is two segments for what the pipeline does before and after round k of its own: the
// first with p rounds for each of its slots, the leader's two transfers among them.
//
// Cost: O(racks + log n) per node. Source: RDMC (Behrens et al., DSN 2018), section 4.3,
// "hybrid algorithms"; a chain among leaders was its authors' first form of it.
#include <algorithm>

#include "compiler/schedules/rack_layout.h"
#include "compiler/schedules/rolled_compose.h"
#include "compiler/schedules/rolled_schedule.h"

namespace prepost {
namespace {

/// When a rack plays what. Racks, rounds and p as in the essay above.
class RackChainTimes {
 public:
  RackChainTimes(const RackLayout& layout, uint32_t rack)
      : rack_(rack), is_last_(rack + 1 == layout.count()) {
    for (uint32_t other = 0; other + 1 < layout.count(); ++other) {
      if (layout.size(other) > 1) stride_ = 2;
    }
  }

  uint32_t stride() const { return stride_; }  ///< p
  bool is_last() const { return is_last_; }
  /// The round of step 0 of the rack's own pipeline.
  uint32_t begin() const { return is_last_ ? rack_ : rack_ + 1; }
  /// The round after the one in which `first`, p rounds per block, has its last block.
  LinearInBlocks EndFrom(uint32_t first) const {
    return {.per_block = stride_, .constant = int64_t{first} + 1 - stride_};
  }
  /// By how many rounds step t >= k - 1 comes after round t.
  LinearInBlocks Delay() const {
    return {.per_block = int64_t{stride_} - 1, .constant = int64_t{begin()} + 1 - stride_};
  }

 private:
  uint32_t rack_;
  bool is_last_;
  uint32_t stride_ = 1;
};

class RackChain final : public RolledSchedule {
 public:
  std::string_view name() const override { return "rack_chain"; }
  std::string_view summary() const override {
    return "leaders of racks pass blocks on and into a binomial pipeline each; "
           "2k-3+R+ceil(log2 n) rounds";
  }
  bool NeedsWholeRacks() const override { return true; }
  LinearInBlocks RoundsOf(RolledExtent extent) const override {
    const RackLayout layout(extent);
    const uint32_t last = layout.count() - 1;
    // All ends are p k + a constant. Racks without a second node end with the last block passed on.
    LinearInBlocks rounds;
    if (last > 0) rounds = RackChainTimes(layout, last).EndFrom(last - 1);
    for (uint32_t rack = 0; rack <= last; ++rack) {
      if (layout.size(rack) == 1) continue;
      const LinearInBlocks end = RoundsIn(BinomialPipelineSchedule(), layout.size(rack)) +
                                 RackChainTimes(layout, rack).Delay();
      if (end.constant > rounds.constant || rounds.per_block == 0) rounds = end;
    }
    return rounds;
  }
  Fan FanOf(RolledExtent extent) const override {
    const RackLayout layout(extent);
    const bool has_pipeline = layout.size_max() > 2;
    const bool has_both = RackChainTimes(layout, 0).stride() == 2;
    return {.in = has_pipeline, .out = has_pipeline || has_both};
  }

  std::vector<Segment> SegmentsOf(RolledExtent extent, uint32_t node) const override {
    const RackLayout layout(extent);
    const uint32_t rack = layout.RackOf(node);
    const uint32_t leader = layout.leader(rack);
    const RackChainTimes times(layout, rack);
    std::vector<Segment> in_rack =
        ProgramIn(BinomialPipelineSchedule(), layout.size(rack), node - leader);
    ForEachTransfer(in_rack, [&](RolledTransfer& transfer) { transfer.peer.value += leader; });
    std::vector<Segment> segments = {InTurn(in_rack, times)};
    if (node == leader) AddChain(layout, rack, times, segments[0]);
    // The steps t >= k, one per round.
    for (Segment& segment : in_rack) {
      if (&segment == &in_rack[0]) segment.from = {.per_block = 1};
      if (segment.from != segment.to)
        segments.push_back(Delayed(std::move(segment), times.Delay()));
    }
    return segments;
  }

 private:
  /// The steps t < k, one in p rounds: all of them are in the first segment, which begins in round
  /// 0, and carry no block above the last. Of a rack of one node nothing.
  static Segment InTurn(const std::vector<Segment>& in_rack, const RackChainTimes& times) {
    Segment steps{.slots = {RolledSlot()}};
    if (!in_rack.empty()) steps = in_rack[0];
    steps.to = {.per_block = 1};
    Segment segment = Stretched(steps, times.stride(), times.begin());
    segment.to = times.EndFrom(times.begin());
    segment.clamps = false;
    return segment;
  }
  /// What the leader of `rack` receives from the one before and sends to the next, added to its
  /// part of the steps inside.
  static void AddChain(const RackLayout& layout, uint32_t rack, const RackChainTimes& times,
                       Segment& segment) {
    const uint32_t stride = times.stride();
    const auto add = [&](uint32_t first, std::optional<RolledTransfer> RolledSlot::*end,
                         uint32_t peer) {
      // Block b in round p b + first; `phase` is -begin.
      const size_t place = (size_t{first} + stride - times.begin() % stride) % stride;
      for (size_t i = place; i < segment.slots.size(); i += stride)
        segment.slots[i].*end = {.peer = NodeId(peer), .offset = {.constant = -int64_t{first}}};
      segment.from.constant = std::min<int64_t>(segment.from.constant, first);
    };
    if (rack > 0) add(rack - 1, &RolledSlot::recv, layout.leader(rack - 1));
    if (!times.is_last()) add(rack, &RolledSlot::send, layout.leader(rack + 1));
  }
};

}  // namespace

const Schedule& RackChainSchedule() {
  static const RackChain schedule;
  return schedule;
}

}  // namespace prepost
