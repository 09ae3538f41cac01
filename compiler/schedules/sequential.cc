// SPDX-License-Identifier: Apache-2.0
//
// Sequential send: the root sends the whole message to node 1, then the whole message to node 2,
// and so on.
//
// The simplest schedule and the slowest for many nodes: the root's link carries the message n - 1
// times. It is what a program does that copies a file to its peers one after another, and so the
// baseline of every comparison.
//
// Rounds: k (n - 1). Destination-major: node i receives block b in round (i - 1) k + b.
//
// Worked example, 4 nodes, 2 blocks ("a>b:m" = node a sends block m to node b):
//   round 0: 0>1:0   1: 0>1:1   2: 0>2:0   3: 0>2:1   4: 0>3:0   5: 0>3:1
//
// Source: RDMC (Behrens et al., DSN 2018), section 4.3 "sequential send".
#include "compiler/schedules/rolled_schedule.h"

namespace prepost {
namespace {

class Sequential final : public RolledSchedule {
 public:
  std::string_view name() const override { return "sequential"; }
  std::string_view summary() const override {
    return "the root sends everything to one node after the other; k(n-1) rounds";
  }
  LinearInBlocks RoundsOf(RolledExtent extent) const override {
    return {.per_block = int64_t{extent.nodes} - 1};
  }
  Fan FanOf(RolledExtent extent) const override { return {.out = extent.nodes > 2}; }

  std::vector<Segment> SegmentsOf(RolledExtent extent, uint32_t node) const override {
    if (node != 0) return {Turn(node, {.send = {}, .recv = With(0, node)})};
    std::vector<Segment> segments;
    segments.reserve(extent.nodes - 1);
    for (uint32_t to = 1; to < extent.nodes; ++to) {
      segments.push_back(Turn(to, {.send = With(to, to), .recv = {}}));
    }
    return segments;
  }

 private:
  /// The rounds in which node `to` is sent the message.
  static Segment Turn(uint32_t to, RolledSlot slot) {
    return {.from = {.per_block = int64_t{to} - 1},
            .to = {.per_block = to},
            .slots = {std::move(slot)}};
  }
  static RolledTransfer With(uint32_t peer, uint32_t to) {
    return {.peer = NodeId(peer), .offset = {.per_block = 1 - int64_t{to}}};
  }
};

}  // namespace

const Schedule& SequentialSchedule() {
  static const Sequential schedule;
  return schedule;
}

}  // namespace prepost
