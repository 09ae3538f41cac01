// SPDX-License-Identifier: Apache-2.0
//
// Rack circulant: racks broadcast to each other while they broadcast inside, at the full rate of
// every node. Each block enters each rack once, and in no round does a rack send more than one
// block to the others or receive more than one: the uplink of a rack needs the rate of one node.
//
// In the circulant broadcast of the n nodes of a rack nobody sends to the root. So in every round
// one node, the one whose target would be the root, has nothing to send: node n - s[j] in phase j
// (circulant.cc). That node is the rack's egress in that round. (A rack of one node: that one.) It
// does not hold the newest blocks, but every block that the root began to send at least D rounds
// before, D depending on n only: a node's list R says in which phase it gets blocks of which
// residue, so D is found by looking at the q^2 pairs of an egress and a residue. D = q for powers
// of two; else it is more, by 2 at most for n <= 48 and by 4 for n <= 5,000.
//
// Among racks runs another circulant. Racks are its nodes, and its blocks are super-blocks of d
// blocks: a super-round is d rounds, in which a rack sends one super-block, block after block, each
// from the egress of its round to the leader, the first node, of the target rack. A super-block
// came in an earlier super-round, so each of its blocks came at least d rounds before it is sent
// on, and was sent into the rack one round after it came: d = 1 + the largest D of the racks that
// receive is enough. The root's rack needs no such time between super-rounds but a start:
// super-round 0 begins in round D of that rack.
//
// Inside a rack the stream of what comes is broadcast, not that of blocks: item i is what comes in
// the i-th round from the first super-block's on, and may be nothing. The root's rack has all
// blocks as its stream. If d does not divide k the first super-block is short: what it lacks, the
// first `pad` blocks of it, would be the first things to happen, so all rounds are counted from
// behind them.
//
// Rounds, k blocks, R racks of n nodes: k + D + d (ceil(log2 R) - 1) + ceil(log2 n), if k is not
// too small; R = 1: k - 1 + ceil(log2 n), the circulant; n = 1: k - 1 + ceil(log2 R), the one of
// racks. The bound without racks is k - 1 + ceil(log2 (R n)): with many blocks racks cost nothing,
// though every uplink carries 1 / n of what the rack receives. With few blocks the D's show.
//
// Worked example, 2 racks of 2 nodes (0 1 and 2 3), 2 blocks (D = 1, d = 2; 4 rounds):
//   round 0: 0>1:0   1: 0>1:1 1>2:0   2: 1>2:1 2>3:0   3: 2>3:1
//
// Cost: O(racks + log^3 n) per node once, then O(1) per question. Source: own; it rests on Traeff's
// circulant (see circulant.cc), and on each rack being entered once per block as in RDMC's hybrid.
#include <algorithm>
#include <vector>

#include "prepost/compiler/circulant_graph.h"
#include "prepost/compiler/rack_layout.h"
#include "prepost/compiler/schedule.h"

namespace prepost {
namespace {

/// The node that sends nothing in `phase`.
uint32_t EgressIn(const CirculantGraph& graph, uint32_t phase) { return graph.Before(0, phase); }

/// D of a rack.
uint32_t LagOf(const CirculantGraph& graph) {
  const auto q = static_cast<int32_t>(graph.phases());
  int32_t lag = 0;
  for (int32_t phase = 0; phase < q; ++phase) {
    const CirculantGraph::List receives =
        graph.Receives(EgressIn(graph, static_cast<uint32_t>(phase)));
    for (int32_t other = 0; other < q; ++other) {
      // The block that comes next in phase `other`, the first of its residue that is not there yet;
      // both are counted from the period in which `phase` is.
      const int32_t missing = receives[static_cast<size_t>(other)] + (other >= phase ? 0 : q);
      lag = std::max(lag, phase - missing + 1);
    }
  }
  return static_cast<uint32_t>(lag);
}

/// What a rack receives and broadcasts. Rounds are counted with the pad.
struct RackStream {
  CirculantGraph graph;
  uint32_t first_super_round = 0;  ///< in which something comes; the root's rack: 0
  uint32_t items = 0;
  uint32_t begin = 0;  ///< round in which the leader can send item 0

  /// The node, counted in its rack, that sends to other racks in `round` >= begin.
  uint32_t Egress(uint32_t round) const {
    return graph.phases() == 0 ? 0 : EgressIn(graph, graph.Phase(round - begin, items));
  }
  /// When all its nodes have all items.
  uint32_t End() const { return begin + items - 1 + graph.phases(); }
};

/// A slot of the broadcast among racks.
struct Slot {
  uint32_t super_round = 0;
  uint32_t place = 0;  ///< in it, below d
};

/// What all nodes share: who the racks are and when super-rounds are. At least 2 racks.
class RackRounds {
 public:
  explicit RackRounds(Extent extent) : layout_(extent), root_lag_(Lag(layout_.size(0))) {
    uint32_t checked = 0;  // neighbours often have the same size
    for (uint32_t rack = 1; rack < layout_.count(); ++rack) {
      if (layout_.size(rack) == checked) continue;
      checked = layout_.size(rack);
      blocks_per_super_ = std::max(blocks_per_super_, 1 + Lag(checked));
    }
    super_blocks_ = (extent.blocks - 1) / blocks_per_super_ + 1;
    pad_ = super_blocks_ * blocks_per_super_ - extent.blocks;
  }

  const RackLayout& layout() const { return layout_; }
  uint32_t pad() const { return pad_; }
  Extent among_racks() const { return {.nodes = layout_.count(), .blocks = super_blocks_}; }

  uint32_t BeginOf(uint32_t super_round) const {
    return root_lag_ + super_round * blocks_per_super_;
  }
  /// The slot in `round`, in which racks send to each other if their schedule has that super-round.
  std::optional<Slot> SlotIn(uint32_t round) const {
    if (round < BeginOf(0)) return std::nullopt;
    return Slot{.super_round = (round - root_lag_) / blocks_per_super_,
                .place = (round - root_lag_) % blocks_per_super_};
  }
  /// The block at a place of a super-block; none in the pad.
  std::optional<uint32_t> BlockAt(uint32_t super_block, uint32_t place) const {
    const uint32_t padded = super_block * blocks_per_super_ + place;
    return padded < pad_ ? std::nullopt : std::optional(padded - pad_);
  }
  /// The block that is item `item` of a rack's stream; `part` is the rack's among racks.
  std::optional<uint32_t> BlockOf(uint32_t rack, const RackStream& stream, const SubSchedule& part,
                                  uint32_t item) const {
    const uint32_t super_block = item / blocks_per_super_;
    const uint32_t place = item % blocks_per_super_;
    if (rack == 0) return BlockAt(super_block, place);
    const std::optional<Transfer> in = part.Incoming(stream.first_super_round + super_block);
    return in ? BlockAt(in->block, place) : std::nullopt;
  }

  RackStream StreamOf(uint32_t rack, const SubSchedule& part) const {
    RackStream stream{.graph = CirculantGraph(layout_.size(rack))};
    if (rack == 0) {
      stream.items = super_blocks_ * blocks_per_super_;
      return stream;
    }
    uint32_t last = part.steps() - 1;  // within log2 R of it
    while (!part.Incoming(stream.first_super_round)) ++stream.first_super_round;
    while (!part.Incoming(last)) --last;
    stream.items = (last - stream.first_super_round + 1) * blocks_per_super_;
    stream.begin = BeginOf(stream.first_super_round) + 1;
    return stream;
  }
  SubSchedule PartOf(uint32_t rack) const { return {CirculantSchedule(), among_racks(), rack}; }

 private:
  static uint32_t Lag(uint32_t size) { return LagOf(CirculantGraph(size)); }

  RackLayout layout_;
  uint32_t root_lag_;
  uint32_t blocks_per_super_ = 1;  // d
  uint32_t super_blocks_ = 0;
  uint32_t pad_ = 0;
};

class RackCirculantNode final : public NodeSchedule {
 public:
  RackCirculantNode(Extent extent, uint32_t node)
      : rounds_(extent),
        rack_(rounds_.layout().RackOf(node)),
        own_(node - leader()),
        among_racks_(rounds_.PartOf(rack_)),
        stream_(rounds_.StreamOf(rack_, among_racks_)),
        in_rack_(CirculantSchedule(),
                 {.nodes = rounds_.layout().size(rack_), .blocks = stream_.items}, own_) {
    if (own_ != 0 || rack_ == 0) return;
    const CirculantGraph racks(rounds_.layout().count());
    for (uint32_t phase = 0; phase < racks.phases(); ++phase) {
      const uint32_t rack = racks.Before(rack_, phase);
      senders_.push_back({rack, rounds_.StreamOf(rack, rounds_.PartOf(rack))});
    }
  }

  RoundRange ActiveRounds() const override {
    // Its rack may still send when all its nodes have everything.
    const uint32_t end = std::max(stream_.End(), rounds_.BeginOf(among_racks_.steps()));
    return {0, end - rounds_.pad()};
  }

  std::optional<Transfer> Outgoing(uint32_t round) const override {
    round += rounds_.pad();
    if (round < stream_.begin) return std::nullopt;
    if (const std::optional<Transfer> out = in_rack_.Outgoing(round - stream_.begin))
      return InRack(*out);
    const std::optional<Slot> slot = rounds_.SlotIn(round);
    if (!slot || stream_.Egress(round) != own_) return std::nullopt;
    const std::optional<Transfer> out = among_racks_.Outgoing(slot->super_round);
    if (!out) return std::nullopt;
    return To(rounds_.layout().leader(out->peer), rounds_.BlockAt(out->block, slot->place));
  }

  std::optional<Transfer> Incoming(uint32_t round) const override {
    round += rounds_.pad();
    if (own_ != 0) {
      if (round < stream_.begin) return std::nullopt;
      const std::optional<Transfer> in = in_rack_.Incoming(round - stream_.begin);
      return in ? InRack(*in) : std::nullopt;
    }
    const std::optional<Slot> slot = rounds_.SlotIn(round);
    if (!slot || rack_ == 0) return std::nullopt;
    const std::optional<Transfer> in = among_racks_.Incoming(slot->super_round);
    if (!in) return std::nullopt;
    const auto sender = std::ranges::find(senders_, in->peer, &Sender::rack);
    return To(rounds_.layout().leader(in->peer) + sender->stream.Egress(round),
              rounds_.BlockAt(in->block, slot->place));
  }

 private:
  struct Sender {
    uint32_t rack;
    RackStream stream;
  };

  uint32_t leader() const { return rounds_.layout().leader(rack_); }
  static std::optional<Transfer> To(uint32_t peer, std::optional<uint32_t> block) {
    if (!block) return std::nullopt;
    return Transfer{.peer = peer, .block = *block};
  }
  /// A transfer of an item, as one of a block.
  std::optional<Transfer> InRack(const Transfer& transfer) const {
    return To(leader() + transfer.peer,
              rounds_.BlockOf(rack_, stream_, among_racks_, transfer.block));
  }

  RackRounds rounds_;
  uint32_t rack_;
  uint32_t own_;  // its number in the rack
  SubSchedule among_racks_;
  RackStream stream_;
  SubSchedule in_rack_;
  std::vector<Sender> senders_;  // of a leader: the racks that it hears from
};

class RackCirculant final : public Schedule {
 public:
  std::string_view name() const override { return "rack_circulant"; }
  std::string_view summary() const override {
    return "a circulant among racks, from whatever node is idle in each rack's own; "
           "about k+ceil(log2 n)(1+ceil(log2 R)) rounds";
  }
  bool NeedsWholeRacks() const override { return true; }
  uint32_t Rounds(Extent extent) const override {
    if (RackLayout(extent).count() == 1) return CirculantSchedule().Rounds(extent);
    const RackRounds rounds(extent);
    uint32_t end = 0;
    for (uint32_t rack = 0; rack < rounds.layout().count(); ++rack)
      end = std::max(end, rounds.StreamOf(rack, rounds.PartOf(rack)).End());
    return end - rounds.pad();
  }
  std::unique_ptr<NodeSchedule> ForNode(Extent extent, uint32_t node) const override {
    if (RackLayout(extent).count() == 1) return CirculantSchedule().ForNode(extent, node);
    return std::make_unique<RackCirculantNode>(extent, node);
  }
};

}  // namespace

const Schedule& RackCirculantSchedule() {
  static const RackCirculant schedule;
  return schedule;
}

}  // namespace prepost
