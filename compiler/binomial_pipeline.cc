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
//     b(v, j) = min(j - l + g(v, d), k - 1)     if j - l + g(v, d) >= 0, else nothing,
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
// * Inside, round j < k + l - 1: nothing if flips = 0; block b(v, j-1) if flips(j) = flips(j-1);
//   else, if flips >= 2, block b(v, s) with s the latest round with flips(s) = flips(j) - 2.
// * Last round, j = k + l - 1: R passes its inside block to the twin, and the twin passes R block
//   b(v, s), s being the latest round in which the twin was R. With k = 1 nothing is left to pass
//   inside; instead R(v, j) of each shared vertex gets block 0 from the non-R (or only) node of
//   vertex v xor 1.
//
// Worked example, 4 nodes, 2 blocks (3 rounds):
//   round 0: 0>1:0   1: 0>2:1 1>3:0   2: 0>1:1 2>3:1 3>2:0
// and 5 nodes, 3 blocks (node 4 is the twin of node 1; 5 rounds):
//   0: 0>1:0 | 1: 0>2:1 1>3:0 | 2: 0>4:2 2>3:1 3>2:0 | 3: 0>2:2 1>4:0 3>1:1 4>3:2 | 4: 1>4:1 4>1:2
//
// Cost: O(log n) per question. Source: Ganesan and Seshadri, ICDCS 2005; RDMC (Behrens et al., DSN
// 2018), section 4.3 and appendix A; the closed form follows RDMC's implementation transfer by
// transfer.
#include <algorithm>
#include <bit>

#include "prepost/compiler/schedule.h"

namespace prepost {
namespace {

/// The hypercube for one extent. Vertices and rounds as in the essay above.
class Hypercube {
 public:
  explicit Hypercube(Extent extent)
      : nodes_(extent.nodes),
        last_block_(extent.blocks - 1),
        dimensions_(static_cast<uint32_t>(std::bit_width(extent.nodes)) - 1),
        vertices_(1u << dimensions_) {}

  bool has_twins() const { return nodes_ != vertices_; }
  /// Rounds in which vertices exchange blocks; with twins there is one more round.
  uint32_t outside_rounds() const { return last_block_ + dimensions_; }
  uint32_t rounds() const { return nodes_ == 1 ? 0 : outside_rounds() + (has_twins() ? 1 : 0); }

  uint32_t Vertex(uint32_t node) const { return node < vertices_ ? node : node - vertices_ + 1; }

  std::optional<Transfer> Outgoing(uint32_t node, uint32_t v, uint32_t round) const {
    if (round == outside_rounds()) return LastOutgoing(node, v, round);
    if (node != SenderOf(v, round)) return To(Partner(v, node), Inside(v, round));
    const uint32_t to = v ^ (1u << Dimension(round));
    if (to == 0) return std::nullopt;
    return To(ReceiverOf(to, round), Outside(to, round));
  }

  std::optional<Transfer> Incoming(uint32_t node, uint32_t v, uint32_t round) const {
    if (v == 0) return std::nullopt;
    if (round == outside_rounds()) return LastIncoming(node, v, round);
    if (node != ReceiverOf(v, round)) return To(ReceiverOf(v, round), Inside(v, round));
    return To(SenderOf(v ^ (1u << Dimension(round)), round), Outside(v, round));
  }

 private:
  static std::optional<Transfer> To(uint32_t peer, std::optional<uint32_t> block) {
    if (!block) return std::nullopt;
    return Transfer{.peer = peer, .block = *block};
  }

  bool IsShared(uint32_t v) const { return v != 0 && v + vertices_ - 1 < nodes_; }
  uint32_t Twin(uint32_t v) const { return v + vertices_ - 1; }
  uint32_t Partner(uint32_t v, uint32_t node) const { return node == v ? Twin(v) : v; }
  uint32_t Dimension(uint32_t round) const { return round % dimensions_; }

  /// flips(v, round): how often the roles of a shared vertex have swapped.
  uint32_t Flips(uint32_t v, uint32_t round) const {
    const uint32_t low_bits = (1u << Dimension(round)) - 1;
    return round / dimensions_ * static_cast<uint32_t>(std::popcount(v)) +
           static_cast<uint32_t>(std::popcount(v & low_bits));
  }
  /// R(v, round).
  uint32_t ReceiverOf(uint32_t v, uint32_t round) const {
    return IsShared(v) && Flips(v, round) % 2 == 1 ? Twin(v) : v;
  }
  /// The node of v that sends outside: the one that is not R, or the only one.
  uint32_t SenderOf(uint32_t v, uint32_t round) const {
    return IsShared(v) ? Partner(v, ReceiverOf(v, round)) : v;
  }

  /// g(v, d).
  uint32_t Gap(uint32_t v, uint32_t d) const {
    if ((v >> d & 1) == 0) return 0;
    const uint32_t above = v >> d >> 1;
    if (above != 0) return static_cast<uint32_t>(std::countr_zero(above)) + 1;
    return dimensions_ - d + static_cast<uint32_t>(std::countr_zero(v));
  }
  /// b(v, round): the block that vertex v != 0 receives from outside.
  std::optional<uint32_t> Outside(uint32_t v, uint32_t round) const {
    const uint32_t ahead = round + Gap(v, Dimension(round));
    if (ahead < dimensions_) return std::nullopt;
    return std::min(ahead - dimensions_, last_block_);
  }
  /// The block that R(v, round) passes to the other node of a shared vertex.
  std::optional<uint32_t> Inside(uint32_t v, uint32_t round) const {
    const uint32_t flips = Flips(v, round);
    if (flips == 0) return std::nullopt;
    if (Flips(v, round - 1) == flips) return Outside(v, round - 1);
    if (flips < 2) return std::nullopt;
    uint32_t latest = round - 1;
    while (Flips(v, latest) != flips - 2) --latest;  // at most 2 l steps
    return Outside(v, latest);
  }

  std::optional<Transfer> LastOutgoing(uint32_t node, uint32_t v, uint32_t round) const {
    if (last_block_ == 0) {
      const uint32_t to = v ^ 1;
      if (node != SenderOf(v, round) || !IsShared(to)) return std::nullopt;
      return Transfer{.peer = ReceiverOf(to, round), .block = 0};
    }
    if (!IsShared(v)) return std::nullopt;
    return To(Partner(v, node), LastInside(v, node == ReceiverOf(v, round), round));
  }
  std::optional<Transfer> LastIncoming(uint32_t node, uint32_t v, uint32_t round) const {
    if (!IsShared(v)) return std::nullopt;
    if (last_block_ == 0) {
      if (node != ReceiverOf(v, round)) return std::nullopt;
      return Transfer{.peer = SenderOf(v ^ 1, round), .block = 0};
    }
    return To(Partner(v, node), LastInside(v, node != ReceiverOf(v, round), round));
  }
  /// Last round, k >= 2: what R passes (`from_receiver`), or what the twin passes back.
  std::optional<uint32_t> LastInside(uint32_t v, bool from_receiver, uint32_t round) const {
    if (from_receiver) return Inside(v, round);
    const uint32_t receiver = ReceiverOf(v, round);
    uint32_t latest = round - 1;
    while (ReceiverOf(v, latest) == receiver) {  // at most l steps: v has a set bit
      if (latest == 0) return std::nullopt;
      --latest;
    }
    return Outside(v, latest);
  }

  uint32_t nodes_;
  uint32_t last_block_;
  uint32_t dimensions_;  // l
  uint32_t vertices_;    // V = 2^l
};

class BinomialPipelineNode final : public NodeSchedule {
 public:
  BinomialPipelineNode(Extent extent, uint32_t node)
      : hypercube_(extent), node_(node), vertex_(hypercube_.Vertex(node)) {}

  RoundRange ActiveRounds() const override { return {0, hypercube_.rounds()}; }
  std::optional<Transfer> Outgoing(uint32_t round) const override {
    return hypercube_.Outgoing(node_, vertex_, round);
  }
  std::optional<Transfer> Incoming(uint32_t round) const override {
    return hypercube_.Incoming(node_, vertex_, round);
  }

 private:
  Hypercube hypercube_;
  uint32_t node_;
  uint32_t vertex_;
};

class BinomialPipeline final : public Schedule {
 public:
  std::string_view name() const override { return "binomial_pipeline"; }
  std::string_view summary() const override {
    return "all nodes send and receive at once over a hypercube; k-1+ceil(log2 n) rounds";
  }
  uint32_t Rounds(Extent extent) const override { return Hypercube(extent).rounds(); }
  std::unique_ptr<NodeSchedule> ForNode(Extent extent, uint32_t node) const override {
    return std::make_unique<BinomialPipelineNode>(extent, node);
  }
};

}  // namespace

const Schedule& BinomialPipelineSchedule() {
  static const BinomialPipeline schedule;
  return schedule;
}

}  // namespace prepost
