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
// residue, so D is found by trying the q^2 pairs of an egress and a residue. D = q for powers
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
// In numbers. All is counted from the origin, round k + L - d, L the root's rack's D: there the
// last period of the Q = ceil(log2 R) phases among racks begins. Let s be a round, and b a block,
// less the origin; J = floor((s mod Q d) / d) is the phase among racks. A rack with list R receives
//     b = s - L + (R[J] - J) d,                   min(R[J], 0) for R[J] in the last period, s >= 0,
// and inside of it, with phase j and a node's own list r, the node receives
//     b = s - j + r[j]                            in the root's rack, whose last period, again with
//                                                 min(r[j], 0), begins at s = d - 1 - L,
//     what the leader received in s - j + r[j] - 1    in others; theirs begins at s = Q d.
// Blocks below 0 are none. So for any k a node does the same in each round before the origin as
// lcm(Q d, phases of its rack) rounds earlier, a leader with the phases of the racks it hears from,
// too: the rolled form is one such period, and each round from the origin on. The flat form asks
// the same functions round by round.
//
// Rounds, k blocks, R racks of n nodes: k + D + d (ceil(log2 R) - 1) + ceil(log2 n); up to Q
// super-blocks fewer where racks differ, since some have nothing to do in the end. R = 1: k - 1 +
// ceil(log2 n), the circulant; n = 1: k - 1 + ceil(log2 R), the one of racks. The bound without
// racks is k - 1 + ceil(log2 (R n)): with many blocks racks cost nothing, though every uplink
// carries 1 / n of what the rack receives. With few blocks the D's show.
//
// Worked example, 2 racks of 2 nodes (0 1 and 2 3), 2 blocks (D = 1, d = 2; 4 rounds):
//   round 0: 0>1:0   1: 0>1:1 1>2:0   2: 1>2:1 2>3:0   3: 2>3:1
//
// Cost: O(racks + log^3 n) per node once, then O(1) per question and per slot of a rolled program.
// Source: own; it rests on Traeff's circulant (see circulant.cc), and on each rack being entered
// once per block as in RDMC's hybrid.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "compiler/schedules/circulant_graph.h"
#include "compiler/schedules/rack_layout.h"
#include "compiler/schedules/rolled_schedule.h"

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

int64_t Modulo(int64_t value, int64_t divisor) { return (value % divisor + divisor) % divisor; }

/// What all nodes share: who the racks are, and when they play which phase. At least 2 racks.
/// Rounds are counted from the origin (see the essay), and are negative before it.
class RackRounds {
 public:
  explicit RackRounds(const RolledExtent& extent)
      : layout_(extent), racks_(layout_.count()), root_lag_(Lag(layout_.size(0))) {
    uint32_t checked = 0;  // neighbours often have the same size
    for (uint32_t rack = 1; rack < layout_.count(); ++rack) {
      if (layout_.size(rack) == checked) continue;
      checked = layout_.size(rack);
      blocks_per_super_ = std::max(blocks_per_super_, 1 + Lag(checked));
    }
  }

  const RackLayout& layout() const { return layout_; }
  const CirculantGraph& racks() const { return racks_; }
  uint32_t blocks_per_super() const { return static_cast<uint32_t>(blocks_per_super_); }
  /// The round that is 0 here.
  LinearInBlocks Origin() const {
    return {.per_block = 1, .constant = root_lag_ - blocks_per_super_};
  }
  /// Rounds after which the broadcast among racks repeats.
  int64_t Period() const { return blocks_per_super_ * racks_.phases(); }
  /// The phase among racks in `round`.
  uint32_t PhaseOfRacks(int64_t round) const {
    return static_cast<uint32_t>(Modulo(round, Period()) / blocks_per_super_);
  }
  /// The block that comes over an edge among racks that is `listed` in its phase, less the origin.
  int64_t BlockOfRacks(int64_t round, int32_t listed) const {
    const int64_t last = round >= 0 ? std::min(listed, 0) : listed;
    return round - root_lag_ + (last - PhaseOfRacks(round)) * blocks_per_super_;
  }

  /// The beginning of the last period of a broadcast in `rack`.
  int64_t LastPeriodIn(uint32_t rack) const {
    return rack == 0 ? blocks_per_super_ - 1 - root_lag_ : Period();
  }
  /// When all nodes of `rack` have everything.
  int64_t EndIn(uint32_t rack) const { return LastPeriodIn(rack) + PhasesIn(rack); }
  uint32_t PhasesIn(uint32_t rack) const { return CirculantGraph(layout_.size(rack)).phases(); }
  /// The phase in `rack`, which has `phases` > 0, in `round`.
  uint32_t PhaseIn(uint32_t rack, uint32_t phases, int64_t round) const {
    return static_cast<uint32_t>(Modulo(round - LastPeriodIn(rack), phases));
  }
  /// The node, counted in `rack`, that sends to other racks in `round`; `graph` is the rack's.
  uint32_t Egress(uint32_t rack, const CirculantGraph& graph, int64_t round) const {
    if (graph.phases() == 0) return 0;
    return EgressIn(graph, PhaseIn(rack, graph.phases(), round));
  }

  /// Rounds after which all comes back for the nodes of `rack`, and for its leader, who hears from
  /// other racks.
  uint64_t PeriodIn(uint32_t rack) const {
    return std::lcm(static_cast<uint64_t>(Period()), std::max(PhasesIn(rack), 1u));
  }
  uint64_t PeriodOfLeader(uint32_t rack) const {
    uint64_t period = PeriodIn(rack);
    if (rack == 0) return period;
    for (uint32_t phase = 0; phase < racks_.phases(); ++phase)
      period = std::lcm(period, std::max(PhasesIn(racks_.Before(rack, phase)), 1u));
    return period;
  }

 private:
  static int64_t Lag(uint32_t size) { return LagOf(CirculantGraph(size)); }

  RackLayout layout_;
  CirculantGraph racks_;
  int64_t root_lag_;
  int64_t blocks_per_super_ = 1;  // d
};

/// What one node does, for any number of blocks. Rounds are counted from the origin.
class RackCirculantPart {
 public:
  RackCirculantPart(const RolledExtent& extent, uint32_t node)
      : rounds_(extent),
        rack_(rounds_.layout().RackOf(node)),
        leader_(rounds_.layout().leader(rack_)),
        own_(node - leader_),
        end_(rounds_.EndIn(rack_)),
        graph_(rounds_.layout().size(rack_)),
        sends_(graph_.Sends(own_)),
        sends_of_rack_(rounds_.racks().Sends(rack_)) {
    if (own_ != 0) receives_ = graph_.Receives(own_);
    if (rack_ != 0) receives_of_rack_ = rounds_.racks().Receives(rack_);
    if (own_ != 0 || rack_ == 0) return;
    for (uint32_t phase = 0; phase < rounds_.racks().phases(); ++phase) {
      const uint32_t sender = rounds_.racks().Before(rack_, phase);
      senders_.push_back({sender, CirculantGraph(rounds_.layout().size(sender))});
    }
  }

  const RackRounds& rounds() const { return rounds_; }
  /// From here on there is a last time for everything; before, all comes back after Period().
  int64_t TailBegin() const { return std::min<int64_t>(0, rounds_.LastPeriodIn(rack_)); }
  int64_t End() const { return std::max(end_, rounds_.Period()); }
  uint64_t Period() const {
    return own_ == 0 ? rounds_.PeriodOfLeader(rack_) : rounds_.PeriodIn(rack_);
  }

  /// What it sends in `round`, if the block's number is not negative.
  std::optional<RolledTransfer> SendIn(int64_t round) const {
    if (graph_.phases() > 0 && round < end_) {
      const uint32_t phase = rounds_.PhaseIn(rack_, graph_.phases(), round);
      const uint32_t to = graph_.After(own_, phase);
      if (to != 0) return With(leader_ + to, InRack(round, phase, sends_[phase]), round);
    }
    if (round >= rounds_.Period() || rounds_.Egress(rack_, graph_, round) != own_)
      return std::nullopt;
    const uint32_t phase = rounds_.PhaseOfRacks(round);
    const uint32_t to = rounds_.racks().After(rack_, phase);
    if (to == 0) return std::nullopt;
    return With(rounds_.layout().leader(to), rounds_.BlockOfRacks(round, sends_of_rack_[phase]),
                round);
  }

  /// What it receives, likewise.
  std::optional<RolledTransfer> RecvIn(int64_t round) const {
    if (own_ != 0) {
      if (round >= end_) return std::nullopt;
      const uint32_t phase = rounds_.PhaseIn(rack_, graph_.phases(), round);
      return With(leader_ + graph_.Before(own_, phase), InRack(round, phase, receives_[phase]),
                  round);
    }
    if (rack_ == 0 || round >= rounds_.Period()) return std::nullopt;
    const uint32_t phase = rounds_.PhaseOfRacks(round);
    const auto& [sender, graph] = senders_[phase];
    return With(rounds_.layout().leader(sender) + rounds_.Egress(sender, graph, round),
                rounds_.BlockOfRacks(round, receives_of_rack_[phase]), round);
  }

 private:
  struct Sender {
    uint32_t rack;
    CirculantGraph graph;
  };

  static RolledTransfer With(uint32_t peer, int64_t block, int64_t round) {
    return {.peer = NodeId(peer), .offset = {.constant = block - round}};
  }
  /// The block that goes over an edge inside in `round`, of its `phase`, less the origin. In the
  /// root's rack all blocks are there; else it is what the leader received in an earlier round.
  int64_t InRack(int64_t round, uint32_t phase, int32_t listed) const {
    const int32_t last = round >= rounds_.LastPeriodIn(rack_) ? std::min(listed, 0) : listed;
    const int64_t item = round - phase + last;
    if (rack_ == 0) return item;
    const int64_t came = item - 1;
    return rounds_.BlockOfRacks(came, receives_of_rack_[rounds_.PhaseOfRacks(came)]);
  }

  RackRounds rounds_;
  uint32_t rack_;
  uint32_t leader_;
  uint32_t own_;  // its number in the rack
  int64_t end_;   // of the rack's rounds
  CirculantGraph graph_;
  CirculantGraph::List sends_;
  CirculantGraph::List receives_{};
  CirculantGraph::List sends_of_rack_;
  CirculantGraph::List receives_of_rack_{};
  std::vector<Sender> senders_;  // by phase; of a leader: the racks that it hears from
};

class RackCirculantNode final : public NodeSchedule {
 public:
  RackCirculantNode(const Extent& extent, uint32_t node)
      : part_(RolledExtent(extent), node), origin_(part_.rounds().Origin().At(extent.blocks)) {}

  RoundRange ActiveRounds() const override {
    return {0, static_cast<uint32_t>(origin_ + part_.End())};
  }
  std::optional<Transfer> Outgoing(uint32_t round) const override {
    return ToTransfer(part_.SendIn(round - origin_), round);
  }
  std::optional<Transfer> Incoming(uint32_t round) const override {
    return ToTransfer(part_.RecvIn(round - origin_), round);
  }

 private:
  static std::optional<Transfer> ToTransfer(const std::optional<RolledTransfer>& transfer,
                                            uint32_t round) {
    if (!transfer || round + transfer->offset.constant < 0) return std::nullopt;
    return Transfer{.peer = transfer->peer.value,
                    .block = static_cast<uint32_t>(round + transfer->offset.constant)};
  }

  RackCirculantPart part_;
  int64_t origin_;
};

class RackCirculant final : public RolledSchedule {
 public:
  std::string_view name() const override { return "rack_circulant"; }
  std::string_view summary() const override {
    return "a circulant among racks, from whatever node is idle in each rack's own; "
           "about k+ceil(log2 n)(1+ceil(log2 R)) rounds";
  }
  bool NeedsWholeRacks() const override { return true; }

  LinearInBlocks RoundsOf(RolledExtent extent) const override {
    if (IsOneRack(extent)) return InOneRack().RoundsOf(extent);
    const RackRounds rounds(extent);
    int64_t end = 0;
    for (uint32_t rack = 0; rack < rounds.layout().count(); ++rack)
      end = std::max(end, rounds.EndIn(rack));
    LinearInBlocks all = rounds.Origin();
    all.constant += end;
    return all;
  }
  /// With as few super-blocks as a rack has phases, not every rack's last round has something.
  uint32_t Rounds(Extent extent) const override {
    const RolledExtent rolled(extent);
    const uint32_t all = RolledSchedule::Rounds(extent);
    if (IsOneRack(rolled)) return all;
    const RackRounds rounds(rolled);
    if ((extent.blocks - 1) / rounds.blocks_per_super() >= rounds.racks().phases()) return all;
    const int64_t origin = rounds.Origin().At(extent.blocks);
    std::vector<uint32_t> racks(rounds.layout().count());
    std::iota(racks.begin(), racks.end(), 0u);
    std::ranges::stable_sort(racks, std::greater(),
                             [&](uint32_t rack) { return rounds.EndIn(rack); });
    uint32_t end = 0;
    for (const uint32_t rack : racks) {
      if (origin + rounds.EndIn(rack) <= end) break;
      end = std::max(end, LastOf(extent, rounds.layout(), rack));
    }
    return end;
  }
  std::unique_ptr<NodeSchedule> ForNode(Extent extent, uint32_t node) const override {
    if (IsOneRack(RolledExtent(extent))) return CirculantSchedule().ForNode(extent, node);
    return std::make_unique<RackCirculantNode>(extent, node);
  }

  Fan FanOf(RolledExtent extent) const override {
    if (IsOneRack(extent)) return InOneRack().FanOf(extent);
    const RackLayout layout(extent);
    const bool has_several = layout.count() > 2 || layout.size_max() > 2;
    return {.in = has_several, .out = has_several};
  }
  /// A leader of racks of two hears from one node as long as there is one super-block.
  uint32_t BlocksForFanIn(RolledExtent extent) const override {
    if (IsOneRack(extent) || RackLayout(extent).size_max() > 2) return 2;
    return RackRounds(extent).blocks_per_super() + 1;
  }
  bool HasShortPeriods() const override { return false; }
  Status CheckExtent(RolledExtent extent) const override {
    if (IsOneRack(extent)) return {};
    const RackRounds rounds(extent);
    for (uint32_t rack = 0; rack < rounds.layout().count(); ++rack) {
      const uint64_t period = rounds.PeriodOfLeader(rack);
      if (period <= kPeriodMax) continue;
      return Rejected(
          fmt::format("racks of so many different sizes repeat themselves only after "
                      "{} rounds, the limit is {}; compile for one message size",
                      period, kPeriodMax));
    }
    return {};
  }
  std::vector<Segment> SegmentsOf(RolledExtent extent, uint32_t node) const override {
    if (IsOneRack(extent)) return InOneRack().SegmentsOf(extent, node);
    const RackCirculantPart part(extent, node);
    const int64_t tail = part.TailBegin();
    const auto period = static_cast<int64_t>(part.Period());
    Segment repeated = RoundsFrom(part, tail - period, tail);
    repeated.from = {};
    return {std::move(repeated), RoundsFrom(part, tail, part.End())};
  }

 private:
  static bool IsOneRack(const RolledExtent& extent) { return RackLayout(extent).count() == 1; }
  static const RolledSchedule& InOneRack() { return *CirculantSchedule().rolled(); }

  /// Rounds [begin, end) from the origin, a slot each.
  static Segment RoundsFrom(const RackCirculantPart& part, int64_t begin, int64_t end) {
    Segment segment{.from = part.rounds().Origin(), .to = part.rounds().Origin()};
    segment.from.constant += begin;
    segment.to.constant += end;
    segment.phase = {.per_block = -1, .constant = -segment.from.constant};
    for (int64_t round = begin; round < end; ++round)
      segment.slots.push_back({.send = part.SendIn(round), .recv = part.RecvIn(round)});
    return segment;
  }

  /// The round after the last in which a node of `rack` receives something; 0: none does.
  static uint32_t LastOf(const Extent& extent, const RackLayout& layout, uint32_t rack) {
    std::vector<RackCirculantNode> nodes;
    for (uint32_t own = 0; own < layout.size(rack); ++own)
      nodes.emplace_back(extent, layout.leader(rack) + own);
    for (uint32_t end = nodes[0].ActiveRounds().end; end > 0; --end) {
      for (const RackCirculantNode& node : nodes) {
        if (node.Incoming(end - 1)) return end;
      }
    }
    return 0;
  }
};

}  // namespace

const Schedule& RackCirculantSchedule() {
  static const RackCirculant schedule;
  return schedule;
}

}  // namespace prepost
