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
// Cost: O(log n) per question. Source: RDMC (Behrens et al., DSN 2018), section 4.3, "hybrid
// algorithms".
#include <algorithm>

#include "prepost/compiler/rack_layout.h"
#include "prepost/compiler/schedule.h"

namespace prepost {
namespace {

class RackHybridNode final : public NodeSchedule {
 public:
  RackHybridNode(Extent extent, uint32_t node)
      : layout_(extent),
        rack_(layout_.RackOf(node)),
        is_leader_(node == layout_.leader(rack_)),
        among_racks_(BinomialPipelineSchedule(),
                     {.nodes = layout_.count(), .blocks = extent.blocks}, rack_),
        in_rack_(BinomialPipelineSchedule(),
                 {.nodes = layout_.size(rack_), .blocks = extent.blocks},
                 node - layout_.leader(rack_)) {}

  RoundRange ActiveRounds() const override {
    return {is_leader_ ? 0 : among_racks_.steps(), among_racks_.steps() + in_rack_.steps()};
  }
  std::optional<Transfer> Outgoing(uint32_t round) const override {
    if (round < among_racks_.steps())
      return is_leader_ ? ToLeader(among_racks_.Outgoing(round)) : std::nullopt;
    return ToNode(in_rack_.Outgoing(round - among_racks_.steps()));
  }
  std::optional<Transfer> Incoming(uint32_t round) const override {
    if (round < among_racks_.steps())
      return is_leader_ ? ToLeader(among_racks_.Incoming(round)) : std::nullopt;
    return ToNode(in_rack_.Incoming(round - among_racks_.steps()));
  }

 private:
  std::optional<Transfer> ToLeader(std::optional<Transfer> transfer) const {
    if (transfer) transfer->peer = layout_.leader(transfer->peer);
    return transfer;
  }
  std::optional<Transfer> ToNode(std::optional<Transfer> transfer) const {
    if (transfer) transfer->peer += layout_.leader(rack_);
    return transfer;
  }

  RackLayout layout_;
  uint32_t rack_;
  bool is_leader_;
  SubSchedule among_racks_;
  SubSchedule in_rack_;
};

class RackHybrid final : public Schedule {
 public:
  std::string_view name() const override { return "rack_hybrid"; }
  std::string_view summary() const override {
    return "a binomial pipeline among racks' leaders, then one in each rack; "
           "2k-2+ceil(log2 R)+ceil(log2 n) rounds";
  }
  bool NeedsWholeRacks() const override { return true; }
  uint32_t Rounds(Extent extent) const override {
    const RackLayout layout(extent);
    uint32_t size_max = 0;
    for (uint32_t rack = 0; rack < layout.count(); ++rack)
      size_max = std::max(size_max, layout.size(rack));
    const Schedule& pipeline = BinomialPipelineSchedule();
    return pipeline.Rounds({.nodes = layout.count(), .blocks = extent.blocks}) +
           pipeline.Rounds({.nodes = size_max, .blocks = extent.blocks});
  }
  std::unique_ptr<NodeSchedule> ForNode(Extent extent, uint32_t node) const override {
    return std::make_unique<RackHybridNode>(extent, node);
  }
};

}  // namespace

const Schedule& RackHybridSchedule() {
  static const RackHybrid schedule;
  return schedule;
}

}  // namespace prepost
