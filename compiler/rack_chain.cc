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
// Cost: O(log n) per question, O(racks) once. Source: RDMC (Behrens et al., DSN 2018), section 4.3,
// "hybrid algorithms"; a chain among leaders was its authors' first form of it.
#include <algorithm>

#include "prepost/compiler/rack_layout.h"
#include "prepost/compiler/schedule.h"

namespace prepost {
namespace {

/// When which step is played. Racks, rounds and p as in the essay above.
class RackChainTimes {
 public:
  RackChainTimes(const RackLayout& layout, uint32_t blocks)
      : blocks_(blocks), last_rack_(layout.count() - 1) {
    for (uint32_t rack = 0; rack < last_rack_; ++rack) {
      if (layout.size(rack) > 1) stride_ = 2;
    }
  }

  /// The block that `rack` passes on in `round`.
  std::optional<uint32_t> PassedOn(uint32_t rack, uint32_t round) const {
    if (rack == last_rack_ || round < rack || (round - rack) % stride_ != 0) return std::nullopt;
    const uint32_t block = (round - rack) / stride_;
    return block < blocks_ ? std::optional(block) : std::nullopt;
  }
  /// The step of its own pipeline that `rack` plays in `round`.
  std::optional<uint32_t> StepIn(uint32_t rack, uint32_t round) const {
    if (round < Begin(rack)) return std::nullopt;
    const uint32_t since = round - Begin(rack);
    const uint32_t last_block = stride_ * (blocks_ - 1);
    if (since > last_block) return blocks_ - 1 + (since - last_block);
    return since % stride_ == 0 ? std::optional(since / stride_) : std::nullopt;
  }
  /// When `rack` has played all its `steps` and passed everything on.
  uint32_t End(uint32_t rack, uint32_t steps) const {
    const uint32_t passed = rack == last_rack_ ? 0 : rack + stride_ * (blocks_ - 1) + 1;
    if (steps == 0) return passed;
    return std::max(passed, Begin(rack) + stride_ * (blocks_ - 1) + (steps - blocks_ + 1));
  }

 private:
  uint32_t Begin(uint32_t rack) const { return rack == last_rack_ ? rack : rack + 1; }

  uint32_t blocks_;
  uint32_t last_rack_;
  uint32_t stride_ = 1;  // p
};

class RackChainNode final : public NodeSchedule {
 public:
  RackChainNode(Extent extent, uint32_t node)
      : layout_(extent),
        times_(layout_, extent.blocks),
        rack_(layout_.RackOf(node)),
        is_leader_(node == layout_.leader(rack_)),
        in_rack_(BinomialPipelineSchedule(),
                 {.nodes = layout_.size(rack_), .blocks = extent.blocks},
                 node - layout_.leader(rack_)) {}

  RoundRange ActiveRounds() const override {
    const uint32_t begin = rack_ == 0 ? 0 : rack_ - 1;
    // A rack that passes nothing on and has no second node ends with what the one before sends it.
    const uint32_t before = rack_ == 0 ? 0 : times_.End(rack_ - 1, 0);
    return {begin, std::max(before, times_.End(rack_, in_rack_.steps()))};
  }
  std::optional<Transfer> Outgoing(uint32_t round) const override {
    if (is_leader_) {
      if (const std::optional<uint32_t> block = times_.PassedOn(rack_, round))
        return Transfer{.peer = layout_.leader(rack_ + 1), .block = *block};
    }
    const std::optional<uint32_t> step = times_.StepIn(rack_, round);
    return step ? ToNode(in_rack_.Outgoing(*step)) : std::nullopt;
  }
  std::optional<Transfer> Incoming(uint32_t round) const override {
    if (is_leader_) {
      if (rack_ == 0) return std::nullopt;
      const std::optional<uint32_t> block = times_.PassedOn(rack_ - 1, round);
      if (!block) return std::nullopt;
      return Transfer{.peer = layout_.leader(rack_ - 1), .block = *block};
    }
    const std::optional<uint32_t> step = times_.StepIn(rack_, round);
    return step ? ToNode(in_rack_.Incoming(*step)) : std::nullopt;
  }

 private:
  std::optional<Transfer> ToNode(std::optional<Transfer> transfer) const {
    if (transfer) transfer->peer += layout_.leader(rack_);
    return transfer;
  }

  RackLayout layout_;
  RackChainTimes times_;
  uint32_t rack_;
  bool is_leader_;
  SubSchedule in_rack_;
};

class RackChain final : public Schedule {
 public:
  std::string_view name() const override { return "rack_chain"; }
  std::string_view summary() const override {
    return "leaders of racks pass blocks on and into a binomial pipeline each; "
           "2k-3+R+ceil(log2 n) rounds";
  }
  bool NeedsWholeRacks() const override { return true; }
  uint32_t Rounds(Extent extent) const override {
    const RackLayout layout(extent);
    const RackChainTimes times(layout, extent.blocks);
    uint32_t rounds = 0;
    for (uint32_t rack = 0; rack < layout.count(); ++rack) {
      const uint32_t steps =
          BinomialPipelineSchedule().Rounds({.nodes = layout.size(rack), .blocks = extent.blocks});
      rounds = std::max(rounds, times.End(rack, steps));
    }
    return rounds;
  }
  std::unique_ptr<NodeSchedule> ForNode(Extent extent, uint32_t node) const override {
    return std::make_unique<RackChainNode>(extent, node);
  }
};

}  // namespace

const Schedule& RackChainSchedule() {
  static const RackChain schedule;
  return schedule;
}

}  // namespace prepost
