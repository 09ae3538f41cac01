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

class BinomialTree final : public Schedule {
 public:
  std::string_view name() const override { return "binomial_tree"; }
  std::string_view summary() const override {
    return "nodes that have the message double per stage; k*ceil(log2 n) rounds";
  }
  uint32_t Rounds(Extent extent) const override {
    return extent.blocks * static_cast<uint32_t>(std::bit_width(extent.nodes - 1));
  }
  RoundRange ActiveRounds(Extent extent, uint32_t node) const override {
    return {node == 0 ? 0 : extent.blocks * ReceiveStage(node), Rounds(extent)};
  }
  std::optional<Transfer> Outgoing(Extent extent, uint32_t node, uint32_t round) const override {
    const uint32_t distance = 1u << (round / extent.blocks);
    if (node >= distance || distance >= extent.nodes - node) return std::nullopt;
    return Transfer{.peer = node + distance, .block = round % extent.blocks};
  }
  std::optional<Transfer> Incoming(Extent extent, uint32_t node, uint32_t round) const override {
    if (node == 0 || round / extent.blocks != ReceiveStage(node)) return std::nullopt;
    return Transfer{.peer = node - (1u << ReceiveStage(node)), .block = round % extent.blocks};
  }

 private:
  /// The stage in which `node` > 0 gets the message: the position of its top bit.
  static uint32_t ReceiveStage(uint32_t node) {
    return static_cast<uint32_t>(std::bit_width(node)) - 1;
  }
};

}  // namespace

const Schedule& BinomialTreeSchedule() {
  static const BinomialTree schedule;
  return schedule;
}

}  // namespace prepost
