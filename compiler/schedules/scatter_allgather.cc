// SPDX-License-Identifier: Apache-2.0
//
// Scatter and allgather (van de Geijn): the message is cut into n segments of about k / n blocks.
// First a binomial tree brings to each node its own segment, then all segments go around a ring.
//
// Every link carries about the whole message once in each half, so it takes twice the time of one
// copy, for any n: what MPI libraries do with large messages. A pipeline needs half of that; this
// is here to be compared with.
//
// Segment s has the blocks [floor(s k / n), floor((s+1) k / n)).
//
// Scatter. Node a stands for the interval of nodes [a, b), at first [0, n); in each stage it hands
// the upper half to its first node: m = a + ceil((b - a) / 2) gets the segments [m, b), block
// by block, and stands for [m, b) from then on. Stage j is as long as its largest half may be:
// ceil(floor(ceil(n / 2^j) / 2) k / n) rounds.
//
// Allgather. In step t = 0 .. n-2, of ceil(k / n) rounds, node v sends the segment v - t (mod n) to
// node v + 1. Nothing is sent to the root, nor to a node what it has from the scatter: node m had
// all of [m, b), to pass on, and those need not come again.
//
// Rounds: about 2 k (n-1) / n, plus what rounding adds: for k much less than n it is n + k or so.
//
// Worked example, 4 nodes, 4 blocks (segment s is block s; scatter 0>2: 2 3, then 0>1: 1 and 2>3:
// 3):
//   round 0: 0>2:2   1: 0>2:3   2: 0>1:1 2>3:3   3: 0>1:0 1>2:1 2>3:2   4: 0>1:3 1>2:0 2>3:1
//         5: 0>1:2 2>3:0
//
// Cost: O(log n) per question. Source: Barnett, Shuler, Gupta, Payne, van de Geijn, Watts,
// "Building a high-performance collective communication library", SC 1994.
#include <algorithm>

#include "compiler/schedules/schedule.h"

namespace prepost {
namespace {

/// Blocks [first, first + count).
struct Blocks {
  uint32_t first = 0;
  uint32_t count = 0;
};

class ScatterAllgatherNode final : public NodeSchedule {
 public:
  ScatterAllgatherNode(Extent extent, uint32_t node) : extent_(extent), node_(node) {
    Descend(node, [this](const Handover& it) {
      if (it.from == node_) sends_.push_back(it);
      if (it.to == node_) received_ = it;
    });
    if (node + 1 < extent.nodes) next_end_ = EndOf(node + 1);
    const uint64_t rounds = (uint64_t{extent.blocks} + extent.nodes - 1) / extent.nodes;
    step_rounds_ = static_cast<uint32_t>(rounds);
    Descend(extent.nodes, [this](const Handover& it) { ring_begin_ = it.end; });
  }

  RoundRange ActiveRounds() const override {
    return {0, ring_begin_ + (extent_.nodes - 1) * step_rounds_};
  }
  std::optional<Transfer> Outgoing(uint32_t round) const override {
    if (round >= ring_begin_) {
      return node_ + 1 == extent_.nodes
                 ? std::nullopt
                 : AroundTheRing(node_, node_ + 1, next_end_, node_ + 1, round);
    }
    for (const Handover& it : sends_) {
      if (const auto block = BlockOf(it, round)) return Transfer{.peer = it.to, .block = *block};
    }
    return std::nullopt;
  }
  std::optional<Transfer> Incoming(uint32_t round) const override {
    if (node_ == 0) return std::nullopt;
    if (round >= ring_begin_) {
      return AroundTheRing(node_ - 1, node_, received_.segments_end, node_ - 1, round);
    }
    const auto block = BlockOf(received_, round);
    return block ? std::optional(Transfer{.peer = received_.from, .block = *block}) : std::nullopt;
  }

  /// The round behind the last transfer of the whole schedule.
  static uint32_t Rounds(Extent extent) {
    if (extent.nodes == 1) return 0;
    uint32_t rounds = 0;
    std::vector<ScatterAllgatherNode> nodes;
    for (uint32_t node = 0; node < extent.nodes; ++node) nodes.emplace_back(extent, node);
    const RoundRange range = nodes[0].ActiveRounds();
    for (rounds = range.end; rounds != 0; --rounds) {
      const bool has_any = std::ranges::any_of(nodes, [&](const ScatterAllgatherNode& it) {
        return it.Outgoing(rounds - 1).has_value();
      });
      if (has_any) break;
    }
    return rounds;
  }

 private:
  /// `from` hands the segments [to, segments_end) over in the rounds [begin, end).
  struct Handover {
    uint32_t from = 0;
    uint32_t to = 0;
    uint32_t segments_end = 0;
    uint32_t begin = 0;
    uint32_t end = 0;
  };

  /// Down the tree of intervals to `node`, or along its longest path (node = n): calls `visit` with
  /// the handover at each.
  template <typename Visit>
  void Descend(uint32_t node, Visit visit) const {
    uint32_t begin = 0, end = extent_.nodes, largest = extent_.nodes, round = 0;
    while (largest > 1) {
      const uint32_t length = Ceil(largest / 2);
      if (end - begin > 1) {
        const uint32_t middle = begin + (end - begin + 1) / 2;
        visit({begin, middle, end, round, round + length});
        const bool is_above = node >= middle && node < extent_.nodes;
        (is_above ? begin : end) = middle;
      }
      round += length;
      largest = (largest + 1) / 2;
    }
  }
  /// The most blocks of so many segments in a row.
  uint32_t Ceil(uint32_t segments) const {
    return static_cast<uint32_t>((uint64_t{segments} * extent_.blocks + extent_.nodes - 1) /
                                 extent_.nodes);
  }
  /// Where the segments end that `node` gets in the scatter.
  uint32_t EndOf(uint32_t node) const {
    uint32_t end = 0;
    Descend(node, [&](const Handover& it) {
      if (it.to == node) end = it.segments_end;
    });
    return end;
  }
  Blocks Segments(uint32_t begin, uint32_t end) const {
    const auto at = [this](uint32_t segment) {
      return static_cast<uint32_t>(uint64_t{segment} * extent_.blocks / extent_.nodes);
    };
    return {at(begin), at(end) - at(begin)};
  }
  std::optional<uint32_t> BlockOf(const Handover& it, uint32_t round) const {
    if (round < it.begin || round >= it.end) return std::nullopt;
    const Blocks blocks = Segments(it.to, it.segments_end);
    const uint32_t at = round - it.begin;
    return at < blocks.count ? std::optional(blocks.first + at) : std::nullopt;
  }
  /// What goes from `from` to `to`, which has the segments [to, end).
  std::optional<Transfer> AroundTheRing(uint32_t from, uint32_t to, uint32_t end, uint32_t peer,
                                        uint32_t round) const {
    const uint32_t step = (round - ring_begin_) / step_rounds_;
    const uint32_t at = (round - ring_begin_) % step_rounds_;
    if (step + 1 >= extent_.nodes) return std::nullopt;
    const uint32_t segment = from >= step ? from - step : from + extent_.nodes - step;
    const Blocks blocks = Segments(segment, segment + 1);
    if ((segment >= to && segment < end) || at >= blocks.count) return std::nullopt;
    return Transfer{.peer = peer, .block = blocks.first + at};
  }

  Extent extent_;
  uint32_t node_;
  std::vector<Handover> sends_;
  Handover received_;
  uint32_t next_end_ = 0;  // of the segments that the next node gets in the scatter
  uint32_t step_rounds_ = 0;
  uint32_t ring_begin_ = 0;
};

class ScatterAllgather final : public Schedule {
 public:
  std::string_view name() const override { return "scatter_allgather"; }
  std::string_view summary() const override {
    return "a part to each node by a tree, then all parts around a ring; about 2k rounds";
  }
  uint32_t Rounds(Extent extent) const override { return ScatterAllgatherNode::Rounds(extent); }
  std::unique_ptr<NodeSchedule> ForNode(Extent extent, uint32_t node) const override {
    return std::make_unique<ScatterAllgatherNode>(extent, node);
  }
};

}  // namespace

const Schedule& ScatterAllgatherSchedule() {
  static const ScatterAllgather schedule;
  return schedule;
}

}  // namespace prepost
