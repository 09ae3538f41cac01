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
#include <algorithm>

#include "prepost/compiler/schedule.h"

namespace prepost {
namespace {

class ChainNode final : public NodeSchedule {
 public:
  ChainNode(Extent extent, uint32_t node) : extent_(extent), node_(node) {}

  RoundRange ActiveRounds() const override {
    if (extent_.nodes == 1) return {};
    const uint32_t received = node_ == 0 ? 0 : node_ - 1 + extent_.blocks;
    const uint32_t sent = is_last() ? 0 : node_ + extent_.blocks;
    return {node_ == 0 ? 0 : node_ - 1, std::max(received, sent)};
  }
  std::optional<Transfer> Outgoing(uint32_t round) const override {
    if (is_last() || round < node_ || round - node_ >= extent_.blocks) return std::nullopt;
    return Transfer{.peer = node_ + 1, .block = round - node_};
  }
  std::optional<Transfer> Incoming(uint32_t round) const override {
    if (node_ == 0 || round + 1 < node_ || round + 1 - node_ >= extent_.blocks) return std::nullopt;
    return Transfer{.peer = node_ - 1, .block = round + 1 - node_};
  }

 private:
  bool is_last() const { return node_ + 1 == extent_.nodes; }

  Extent extent_;
  uint32_t node_;
};

class Chain final : public Schedule {
 public:
  std::string_view name() const override { return "chain"; }
  std::string_view summary() const override {
    return "each node passes every block on to the next; k+n-2 rounds";
  }
  uint32_t Rounds(Extent extent) const override {
    return extent.nodes == 1 ? 0 : extent.blocks + extent.nodes - 2;
  }
  std::unique_ptr<NodeSchedule> ForNode(Extent extent, uint32_t node) const override {
    return std::make_unique<ChainNode>(extent, node);
  }
};

}  // namespace

const Schedule& ChainSchedule() {
  static const Chain schedule;
  return schedule;
}

}  // namespace prepost
