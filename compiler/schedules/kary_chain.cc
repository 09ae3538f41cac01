// SPDX-License-Identifier: Apache-2.0
//
// kary_chain=C: the root feeds C chains in turn, as MPI libraries do under this name (Open MPI's
// "chain", fan-out 4).
//
// Node v >= 1 stands in chain (v-1) mod C, as its number (v-1) / C. The root sends block b to the
// head of chain j in round C b + j; each node passes a block on to the next of its chain in the
// round after it came. So a node receives one block in C rounds, and every link but the root's is
// idle the rest of the time: with many blocks it takes C times as long as one chain, with few the
// shorter chains win.
//
// Rounds: C' k + max over nodes of ((v-1) mod C' + 1 + (v-1) / C') - C', with C' = min(C, n-1); for
// C = 1 the chain's k+n-2.
//
// Worked example, C = 2, 4 nodes, 2 blocks (5 rounds):
//   round 0: 0>1:0   1: 0>2:0 1>3:0   2: 0>1:1   3: 0>2:1 1>3:1
//
// Source: Open MPI's coll/tuned algorithms; the comparison with others is what it is here for.
#include <algorithm>

#include "compiler/schedules/rolled_schedule.h"

namespace prepost {
namespace {

class KaryChain final : public RolledSchedule {
 public:
  std::string_view name() const override { return "kary_chain"; }
  std::string_view summary() const override {
    return "the root feeds C chains in turn (kary_chain=C); about Ck+n/C rounds";
  }
  uint32_t default_fanout() const override { return 4; }
  LinearInBlocks RoundsOf(RolledExtent extent) const override {
    const int64_t chains = Chains(extent);
    // The last of the chains that are longest ends last.
    const int64_t longest = (extent.nodes - 2) / chains;
    const int64_t last_of_longest = (extent.nodes - 2) % chains;
    int64_t latest = last_of_longest + longest;
    // Or the last chain, which may be one node shorter.
    if (longest > 0) latest = std::max(latest, chains - 1 + longest - 1);
    return {.per_block = chains, .constant = latest + 1 - chains};
  }
  Fan FanOf(RolledExtent extent) const override { return {.out = Chains(extent) > 1}; }

  std::vector<Segment> SegmentsOf(RolledExtent extent, uint32_t node) const override {
    const uint32_t chains = Chains(extent);
    Segment segment{.to = {.per_block = chains}, .rounds_per_block = chains};
    segment.slots.resize(chains);
    if (node == 0) {
      for (uint32_t j = 0; j < chains; ++j) segment.slots[j].send = With(j + 1, j);
      return {segment};
    }
    const uint32_t place = (node - 1) / chains;
    const int64_t first = int64_t{(node - 1) % chains} + place;  // the round of block 0
    const bool is_last = node + chains >= extent.nodes;
    segment.from = {.constant = first};
    segment.to.constant = first + 1 - int64_t{chains} + (is_last ? 0 : 1);
    const auto slot = [&](int64_t round) -> RolledSlot& {
      return segment.slots[static_cast<size_t>(round % chains)];
    };
    slot(first).recv = With(place == 0 ? 0 : node - chains, first);
    if (!is_last) slot(first + 1).send = With(node + chains, first + 1);
    return {segment};
  }

 private:
  static uint32_t Chains(RolledExtent extent) {
    const uint32_t wanted = extent.fanout == 0 ? 4 : extent.fanout;
    return std::min(wanted, extent.nodes - 1);
  }
  static RolledTransfer With(uint32_t peer, int64_t first_round) {
    return {.peer = NodeId(peer), .offset = {.constant = -first_round}};
  }
};

}  // namespace

const Schedule& KaryChainSchedule() {
  static const KaryChain schedule;
  return schedule;
}

}  // namespace prepost
