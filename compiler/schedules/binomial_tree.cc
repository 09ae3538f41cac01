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

#include "compiler/schedules/rolled_schedule.h"

namespace prepost {
namespace {

/// floor(log2 node), node > 0.
uint32_t TopBit(uint32_t node) { return static_cast<uint32_t>(std::bit_width(node)) - 1; }
/// ceil(log2 nodes).
uint32_t Stages(uint32_t nodes) { return static_cast<uint32_t>(std::bit_width(nodes - 1)); }

class BinomialTree final : public RolledSchedule {
 public:
  std::string_view name() const override { return "binomial_tree"; }
  std::string_view summary() const override {
    return "nodes that have the message double per stage; k*ceil(log2 n) rounds";
  }
  LinearInBlocks RoundsOf(RolledExtent extent) const override {
    return {.per_block = Stages(extent.nodes)};
  }
  Fan FanOf(RolledExtent extent) const override { return {.out = extent.nodes > 2}; }

  std::vector<Segment> SegmentsOf(RolledExtent extent, uint32_t node) const override {
    std::vector<Segment> segments;
    uint32_t stage = 0;
    if (node != 0) {
      stage = TopBit(node);
      segments.push_back(InStage(stage, {.send = {}, .recv = With(node - (1u << stage), stage)}));
      ++stage;
    }
    for (; stage < Stages(extent.nodes) && (1u << stage) < extent.nodes - node; ++stage) {
      segments.push_back(InStage(stage, {.send = With(node + (1u << stage), stage), .recv = {}}));
    }
    return segments;
  }

 private:
  static Segment InStage(uint32_t stage, RolledSlot slot) {
    return {.from = {.per_block = stage},
            .to = {.per_block = int64_t{stage} + 1},
            .slots = {std::move(slot)}};
  }
  static RolledTransfer With(uint32_t peer, uint32_t stage) {
    return {.peer = NodeId(peer), .offset = {.per_block = -int64_t{stage}}};
  }
};

}  // namespace

const Schedule& BinomialTreeSchedule() {
  static const BinomialTree schedule;
  return schedule;
}

}  // namespace prepost
