// SPDX-License-Identifier: Apache-2.0
//
// Chain: every node passes each block on to the next node as soon as it has it (a bucket brigade,
// "pipeline" in MPI).
//
// Each link carries each block once, so for many blocks the time approaches that of one copy; the
// price is the n - 2 rounds in which the last nodes have nothing yet, and that one slow node slows
// all behind it. Good for few nodes and large messages.
//
// Rounds: k + n - 2. Node i > 0 receives block b in round i - 1 + b and sends it one round later.
//
// Worked example, 4 nodes, 2 blocks:
//   round 0: 0>1:0   1: 0>1:1 1>2:0   2: 1>2:1 2>3:0   3: 2>3:1
//
// Source: RDMC (Behrens et al., DSN 2018), section 4.3 "chain send".
#include "compiler/schedules/rolled_schedule.h"

namespace prepost {
namespace {

class Chain final : public RolledSchedule {
 public:
  std::string_view name() const override { return "chain"; }
  std::string_view summary() const override {
    return "each node passes every block on to the next; k+n-2 rounds";
  }
  LinearInBlocks RoundsOf(RolledExtent extent) const override {
    return {.per_block = 1, .constant = int64_t{extent.nodes} - 2};
  }
  Fan FanOf(RolledExtent) const override { return {}; }

  std::vector<Segment> SegmentsOf(RolledExtent extent, uint32_t node) const override {
    const int64_t v = node;
    const bool is_root = node == 0;
    const bool is_last = node + 1 == extent.nodes;
    RolledSlot slot;
    if (!is_root) slot.recv = {.peer = NodeId(node - 1), .offset = {.constant = 1 - v}};
    if (!is_last) slot.send = {.peer = NodeId(node + 1), .offset = {.constant = -v}};
    return {{.from = {.constant = is_root ? 0 : v - 1},
             .to = {.per_block = 1, .constant = is_last ? v - 1 : v},
             .slots = {slot}}};
  }
};

}  // namespace

const Schedule& ChainSchedule() {
  static const Chain schedule;
  return schedule;
}

}  // namespace prepost
