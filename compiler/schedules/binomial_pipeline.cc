// SPDX-License-Identifier: Apache-2.0
//
// Binomial pipeline: all nodes send and receive different blocks at the same time over a hypercube.
//
// With k blocks and n nodes it needs k - 1 + ceil(log2 n) rounds, the least possible when a node
// can send one block and receive one block at a time, and every node's last block comes in the last
// round (or the one before): one block gives the binomial tree, many blocks approach the time of a
// single copy for any number of nodes.
//
// n = 2^l. Write node numbers in binary. In round j, with d = j mod l, vertex v exchanges blocks
// with v xor 2^d. Vertex v != 0 then receives block
//     min(j - l + g(v, d), k - 1)     if j - l + g(v, d) >= 0, else nothing,
// where g(v, d) is 0 if bit d of v is clear, else the distance, 1..l, from bit d cyclically upward
// to the next set bit of v (l if d is its only bit). The root, vertex 0, receives nothing; its own
// sends are those to v = 2^d, block min(j, k - 1): a new block each round, the last one repeated.
//
// Other n. l = floor(log2 n), V = 2^l vertices. Vertex 0 is the root alone. Vertex v in 1..V-1 is
// shared by node v and its twin v + V - 1 if that is < n. The hypercube runs between vertices as
// above; of a shared vertex one node, R(v, j), receives from outside while the other one sends
// outside, and in the same round R passes the other a block that only R has ("inside"). The roles
// swap each time the vertex has received along a dimension that is a 1-bit of v, that is, with the
// parity of flips(v, j) = the number of rounds s < j with bit (s mod l) of v set. One round more
// than for 2^l lets the twins even out.
// * Inside, rounds j < k + l: R passes the other one block j - 1 - l, or nothing if j <= l. It is
//   the oldest block that only one of them has.
// * Last round, j = k + l - 1, k >= 2: besides, the other one passes R block k - 1.
// * k = 1: nothing is passed inside. In the last round, l, R(v, l) of each shared vertex gets block
//   0 from the non-R (or only) node of vertex v xor 1.
//
// Worked example, 4 nodes, 2 blocks (3 rounds):
//   round 0: 0>1:0   1: 0>2:1 1>3:0   2: 0>1:1 2>3:1 3>2:0
// and 5 nodes, 3 blocks (node 4 is the twin of node 1; 5 rounds):
//   0: 0>1:0 | 1: 0>2:1 1>3:0 | 2: 0>4:2 2>3:1 3>2:0 | 3: 0>2:2 1>4:0 3>1:1 4>3:2 | 4: 1>4:1 4>1:2
//
// Cost: O(log n) per question. Source: Ganesan and Seshadri, ICDCS 2005; RDMC (Behrens et al., DSN
// 2018), section 4.3 and appendix A; the closed form gives RDMC's implementation transfer by
// transfer.
#include <bit>

#include "compiler/schedules/rolled_schedule.h"

namespace prepost {
namespace {

/// The hypercube for n nodes, and what they do in it for any number of blocks.
class Hypercube {
 public:
  explicit Hypercube(uint32_t nodes)
      : nodes_(nodes),
        dimensions_(static_cast<uint32_t>(std::bit_width(nodes)) - 1),
        vertices_(1u << dimensions_) {}

  bool has_twins() const { return nodes_ != vertices_; }
  LinearInBlocks rounds() const { return Rounds(has_twins() ? dimensions_ : dimensions_ - 1); }

  std::vector<Segment> SegmentsOf(uint32_t node) const {
    std::vector<Segment> segments = {Exchange(node)};
    if (IsShared(Vertex(node))) {
      segments.push_back(LastInside(node));
    }
    if (has_twins()) {
      if (std::optional<Segment> only = OnlyBlock(node)) segments.push_back(*only);
    }
    return segments;
  }

 private:
  /// k + `more`.
  static LinearInBlocks Rounds(uint32_t more) { return {.per_block = 1, .constant = more}; }
  static RolledTransfer With(uint32_t peer, int64_t offset) {
    return {.peer = NodeId(peer), .offset = {.constant = offset}};
  }

  uint32_t Vertex(uint32_t node) const { return node < vertices_ ? node : node - vertices_ + 1; }
  bool IsShared(uint32_t v) const { return v != 0 && v + vertices_ - 1 < nodes_; }
  uint32_t Partner(uint32_t v, uint32_t node) const { return node == v ? v + vertices_ - 1 : v; }

  /// flips(v, round) is odd. Comes back after 2 l rounds.
  bool IsFlipped(uint32_t v, uint32_t round) const {
    const uint32_t low_bits = (1u << round % dimensions_) - 1;
    const int flips =
        static_cast<int>(round / dimensions_ % 2) * std::popcount(v) + std::popcount(v & low_bits);
    return flips % 2 == 1;
  }
  /// R(v, round).
  uint32_t ReceiverOf(uint32_t v, uint32_t round) const {
    return IsShared(v) && IsFlipped(v, round) ? Partner(v, v) : v;
  }
  /// The node of v that sends outside: the one that is not R, or the only one.
  uint32_t SenderOf(uint32_t v, uint32_t round) const {
    return IsShared(v) ? Partner(v, ReceiverOf(v, round)) : v;
  }

  /// g(v, d) - l: in round j vertex v != 0 receives block j + this.
  int64_t Outside(uint32_t v, uint32_t d) const {
    const int64_t l = dimensions_;
    if ((v >> d & 1) == 0) return -l;
    const uint32_t above = v >> d >> 1;
    if (above != 0) return std::countr_zero(above) + 1 - l;
    return std::countr_zero(v) - int64_t{d};
  }
  /// In round j, R(v, j) passes the other one block j + this.
  int64_t Inside() const { return -1 - int64_t{dimensions_}; }

  /// All rounds in which vertices exchange blocks.
  Segment Exchange(uint32_t node) const {
    const uint32_t v = Vertex(node);
    Segment segment{.to = Rounds(dimensions_ - 1), .clamps = true};
    for (uint32_t j = 0; j < Period(); ++j) {
      const uint32_t d = j % dimensions_;
      const uint32_t opposite = v ^ (1u << d);
      RolledSlot& slot = segment.slots.emplace_back();
      if (node == SenderOf(v, j)) {
        if (opposite != 0) slot.send = With(ReceiverOf(opposite, j), Outside(opposite, d));
        if (IsShared(v)) slot.recv = With(Partner(v, node), Inside());
      }
      if (v != 0 && node == ReceiverOf(v, j)) {
        slot.recv = With(SenderOf(opposite, j), Outside(v, d));
        if (IsShared(v)) slot.send = With(Partner(v, node), Inside());
      }
    }
    return segment;
  }
  /// Rounds after which all comes back.
  uint32_t Period() const { return has_twins() ? 2 * dimensions_ : dimensions_; }

  /// The last round, k >= 2, of a node with a twin.
  Segment LastInside(uint32_t node) const {
    const uint32_t v = Vertex(node);
    Segment segment{.from = Rounds(dimensions_ - 1), .to = Rounds(dimensions_), .blocks_min = 2};
    for (uint32_t j = 0; j < Period(); ++j) {
      const bool is_receiver = node == ReceiverOf(v, j);
      const uint32_t partner = Partner(v, node);
      const RolledTransfer from_receiver = With(partner, Inside());
      const RolledTransfer last_block = With(partner, -int64_t{dimensions_});
      segment.slots.push_back({.send = is_receiver ? from_receiver : last_block,
                               .recv = is_receiver ? last_block : from_receiver});
    }
    return segment;
  }

  /// The last round of a single block: it goes to the R of each shared vertex.
  std::optional<Segment> OnlyBlock(uint32_t node) const {
    const uint32_t round = dimensions_;
    const uint32_t v = Vertex(node);
    const uint32_t opposite = v ^ 1;
    RolledSlot slot;
    if (node == SenderOf(v, round) && IsShared(opposite)) {
      slot.send = With(ReceiverOf(opposite, round), -int64_t{round});
    }
    if (IsShared(v) && node == ReceiverOf(v, round)) {
      slot.recv = With(SenderOf(opposite, round), -int64_t{round});
    }
    if (!slot.send && !slot.recv) return std::nullopt;
    return Segment{.from = {.constant = round},
                   .to = {.constant = int64_t{round} + 1},
                   .blocks_max = 1,
                   .slots = {slot}};
  }

  uint32_t nodes_;
  uint32_t dimensions_;  // l
  uint32_t vertices_;    // V = 2^l
};

class BinomialPipeline final : public RolledSchedule {
 public:
  std::string_view name() const override { return "binomial_pipeline"; }
  std::string_view summary() const override {
    return "all nodes send and receive at once over a hypercube; k-1+ceil(log2 n) rounds";
  }
  LinearInBlocks RoundsOf(RolledExtent extent) const override {
    return Hypercube(extent.nodes).rounds();
  }
  Fan FanOf(RolledExtent extent) const override {
    return {.in = extent.nodes > 2, .out = extent.nodes > 2};
  }
  std::vector<Segment> SegmentsOf(RolledExtent extent, uint32_t node) const override {
    return Hypercube(extent.nodes).SegmentsOf(node);
  }
};

}  // namespace

const Schedule& BinomialPipelineSchedule() {
  static const BinomialPipeline schedule;
  return schedule;
}

}  // namespace prepost
