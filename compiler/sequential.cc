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
#include "prepost/compiler/schedule.h"

namespace prepost {
namespace {

class Sequential final : public Schedule {
 public:
  std::string_view name() const override { return "sequential"; }
  std::string_view summary() const override {
    return "the root sends everything to one node after the other; k(n-1) rounds";
  }
  uint32_t Rounds(Extent extent) const override { return extent.blocks * (extent.nodes - 1); }
  RoundRange ActiveRounds(Extent extent, uint32_t node) const override {
    if (node == 0) return {0, Rounds(extent)};
    return {extent.blocks * (node - 1), extent.blocks * node};
  }
  std::optional<Transfer> Outgoing(Extent extent, uint32_t node, uint32_t round) const override {
    if (node != 0) return std::nullopt;
    return Transfer{.peer = 1 + round / extent.blocks, .block = round % extent.blocks};
  }
  std::optional<Transfer> Incoming(Extent extent, uint32_t node, uint32_t round) const override {
    if (node == 0 || round / extent.blocks + 1 != node) return std::nullopt;
    return Transfer{.peer = 0, .block = round % extent.blocks};
  }
};

}  // namespace

const Schedule& SequentialSchedule() {
  static const Sequential schedule;
  return schedule;
}

}  // namespace prepost
