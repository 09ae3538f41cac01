// SPDX-License-Identifier: Apache-2.0
//
// Binomial tree: the number of nodes that have the whole message doubles in each stage of k rounds.
//
// In stage s (rounds s k .. s k + k - 1) every node i < 2^s, all of which hold the message by then,
// sends it block by block to node i + 2^s, if there is one. Best possible for one block (the
// latency of a small message); for many blocks it wastes links, as half of the nodes only ever
// receive.
//
// Rounds: k ceil(log2 n). Node i > 0 receives from i - 2^s, s = floor(log2 i), its top bit.
//
// Worked example, 4 nodes, 2 blocks:
//   round 0: 0>1:0   1: 0>1:1   2: 0>2:0 1>3:0   3: 0>2:1 1>3:1
//
// Source: RDMC (Behrens et al., DSN 2018), section 4.3 "binomial tree".
#include <bit>

#include "prepost/compiler/schedule.h"

namespace prepost {
namespace {

/// floor(log2 node), node > 0.
uint32_t TopBit(uint32_t node) { return static_cast<uint32_t>(std::bit_width(node)) - 1; }
/// ceil(log2 nodes).
uint32_t Stages(uint32_t nodes) { return static_cast<uint32_t>(std::bit_width(nodes - 1)); }

class BinomialTreeNode final : public NodeSchedule {
 public:
  BinomialTreeNode(Extent extent, uint32_t node)
      : extent_(extent), node_(node), receive_stage_(node == 0 ? 0 : TopBit(node)) {}

  RoundRange ActiveRounds() const override {
    return {extent_.blocks * receive_stage_, extent_.blocks * Stages(extent_.nodes)};
  }
  std::optional<Transfer> Outgoing(uint32_t round) const override {
    const uint32_t distance = 1u << (round / extent_.blocks);
    if (node_ >= distance || distance >= extent_.nodes - node_) return std::nullopt;
    return Transfer{.peer = node_ + distance, .block = round % extent_.blocks};
  }
  std::optional<Transfer> Incoming(uint32_t round) const override {
    if (node_ == 0 || round / extent_.blocks != receive_stage_) return std::nullopt;
    return Transfer{.peer = node_ - (1u << receive_stage_), .block = round % extent_.blocks};
  }

 private:
  Extent extent_;
  uint32_t node_;
  uint32_t receive_stage_;
};

class BinomialTree final : public Schedule {
 public:
  std::string_view name() const override { return "binomial_tree"; }
  std::string_view summary() const override {
    return "nodes that have the message double per stage; k*ceil(log2 n) rounds";
  }
  uint32_t Rounds(Extent extent) const override { return extent.blocks * Stages(extent.nodes); }
  std::unique_ptr<NodeSchedule> ForNode(Extent extent, uint32_t node) const override {
    return std::make_unique<BinomialTreeNode>(extent, node);
  }
};

}  // namespace

const Schedule& BinomialTreeSchedule() {
  static const BinomialTree schedule;
  return schedule;
}

}  // namespace prepost
