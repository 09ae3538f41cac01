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

class SequentialNode final : public NodeSchedule {
 public:
  SequentialNode(Extent extent, uint32_t node) : extent_(extent), node_(node) {}

  RoundRange ActiveRounds() const override {
    if (node_ == 0) return {0, extent_.blocks * (extent_.nodes - 1)};
    return {extent_.blocks * (node_ - 1), extent_.blocks * node_};
  }
  std::optional<Transfer> Outgoing(uint32_t round) const override {
    if (node_ != 0) return std::nullopt;
    return Transfer{.peer = 1 + round / extent_.blocks, .block = round % extent_.blocks};
  }
  std::optional<Transfer> Incoming(uint32_t round) const override {
    if (node_ == 0 || round / extent_.blocks + 1 != node_) return std::nullopt;
    return Transfer{.peer = 0, .block = round % extent_.blocks};
  }

 private:
  Extent extent_;
  uint32_t node_;
};

class Sequential final : public Schedule {
 public:
  std::string_view name() const override { return "sequential"; }
  std::string_view summary() const override {
    return "the root sends everything to one node after the other; k(n-1) rounds";
  }
  uint32_t Rounds(Extent extent) const override { return extent.blocks * (extent.nodes - 1); }
  std::unique_ptr<NodeSchedule> ForNode(Extent extent, uint32_t node) const override {
    return std::make_unique<SequentialNode>(extent, node);
  }
};

}  // namespace

const Schedule& SequentialSchedule() {
  static const Sequential schedule;
  return schedule;
}

}  // namespace prepost
