// SPDX-License-Identifier: Apache-2.0
//
// Two trees: even blocks go down one binary tree and odd blocks down another one, in which the
// leaves of the first are inner nodes and the other way around, so that every node sends and
// receives in (nearly) every round. In a single binary tree leaves never send, and inner nodes send
// everything twice.
//
// Nodes 1..p, p even, p = n - 1 or n - 2. Tree A is the binary search tree of these numbers: node
// v, whose lowest set bit is h, has its parent at v + 2^h, or at v - 2^h if bit h + 1 of v is set
// or v + 2^h is above p. Odd nodes are its leaves. Tree B is A with p + 1 - v in place of v: even
// nodes are its leaves. If n - 1 is odd, the last node, p + 1, is a leaf of both: below p in A,
// which has no right child there, and below 1 in B. Node 0, the root, sends to the roots of both.
//
// When? Every node has at most two edges in, one of each tree, and at most two edges out. So the
// edges can be coloured with 0 and 1 such that no node has two edges in, or two edges out, of one
// colour: draw each node twice, as sender and as receiver; every cycle of that graph has even
// length. An edge of colour c is used in the rounds of parity c, every second round. The first
// block of a tree goes over an edge in the first round of its colour after it has come, which is
// one or two rounds later; block i of the tree follows 2 i rounds behind.
//
// Rounds: about k + 2 log2 n, exactly what the colours give. More than the binomial pipeline has,
// but each node has two senders and at most two receivers (and the root two), whatever n is: four
// queue pairs instead of log n.
//
// Worked example, 4 nodes, 2 blocks (A: 0>2, 2>1, 2>3; B: 0>1, 1>2, 1>3):
//   round 0: 0>2:0   1: 0>1:1 2>3:0   2: 1>3:1 2>1:0   3: 1>2:1
//
// Rolled, a node has two slots, one per colour, each with the edge in and the edge out of that
// colour: in round t block t + (the tree's parity) - (the edge's first round).
//
// Cost: O(n) once per number of nodes, for a node alone too, since colours go around cycles through
// all nodes; then O(1) per node. Source: Sanders, Speck, Traeff, "Two-tree algorithms for full
// bandwidth broadcast, reduction and scan", Parallel Computing 35 (2009).
#include <algorithm>
#include <array>
#include <bit>
#include <mutex>

#include "compiler/schedules/rolled_schedule.h"

namespace prepost {
namespace {

constexpr uint32_t kNoNode = 0xffffffff;

/// Both trees of one number of nodes, with colours and first rounds.
class TwoTrees {
 public:
  struct Edge {
    uint32_t from = kNoNode;
    uint32_t first_round = 0;
    uint8_t colour = kUncoloured;
  };

  explicit TwoTrees(uint32_t nodes) : nodes_(nodes), paired_((nodes - 1) & ~1u), out_(nodes) {
    for (uint32_t tree = 0; tree < 2; ++tree) {
      in_[tree].resize(nodes);
      for (uint32_t v = 1; v < nodes; ++v) {
        in_[tree][v].from = ParentOf(tree, v);
        AddChild(in_[tree][v].from, {tree, v});
      }
    }
    if (nodes == 1) return;
    Colour();
    for (uint32_t tree = 0; tree < 2; ++tree) FindRounds(tree);
  }

  uint32_t nodes() const { return nodes_; }
  /// The edge into `node` in `tree`.
  const Edge& In(uint32_t tree, uint32_t node) const { return in_[tree][node]; }
  /// The edges out of `node`, as (tree, node that they go to); kNoNode: there is none.
  struct Child {
    uint32_t tree = 0;
    uint32_t node = kNoNode;
  };
  const std::array<Child, 2>& Out(uint32_t node) const { return out_[node]; }
  /// Which blocks go down `tree`: those of this parity.
  uint32_t ParityOf(uint32_t tree) const { return in_[tree][RootOf(tree)].colour; }
  /// The last first round of any edge of `tree`.
  uint32_t Depth(uint32_t tree) const { return depth_[tree]; }

 private:
  static constexpr uint8_t kUncoloured = 2;

  uint32_t RootOf(uint32_t tree) const {
    if (paired_ == 0) return 1;
    return Mirror(tree, std::bit_floor(paired_));
  }
  uint32_t Mirror(uint32_t tree, uint32_t v) const { return tree == 0 ? v : paired_ + 1 - v; }

  uint32_t ParentOf(uint32_t tree, uint32_t v) const {
    if (v > paired_) return paired_ == 0 ? 0 : Mirror(tree, paired_);
    const uint32_t i = Mirror(tree, v);
    if (i == std::bit_floor(paired_)) return 0;
    const uint32_t step = 1u << std::countr_zero(i);
    const bool is_right = (i & 2 * step) != 0 || i + step > paired_;
    return Mirror(tree, is_right ? i - step : i + step);
  }

  void AddChild(uint32_t from, Child child) {
    Child& place = out_[from][0].node == kNoNode ? out_[from][0] : out_[from][1];
    place = child;
  }

  /// Around the cycles and along the paths of the graph in which every node stands twice.
  void Colour() {
    for (uint32_t tree = 0; tree < 2; ++tree) {
      for (uint32_t v = 1; v < nodes_; ++v) {
        if (in_[tree][v].colour != kUncoloured) continue;
        in_[tree][v].colour = 0;
        ColourFrom({tree, v}, /*by_receiver=*/true);
        ColourFrom({tree, v}, /*by_receiver=*/false);
      }
    }
  }
  /// From the edge into `at`: to the other edge into that node, or out of its sender; then to the
  /// other one at the other end, and so on.
  void ColourFrom(Child at, bool by_receiver) {
    uint8_t colour = in_[at.tree][at.node].colour;
    for (;; by_receiver = !by_receiver) {
      const Child next = by_receiver ? Child{1 - at.tree, at.node} : Sibling(at);
      if (next.node == kNoNode || in_[next.tree][next.node].colour != kUncoloured) return;
      colour = colour == 0 ? 1 : 0;
      in_[next.tree][next.node].colour = colour;
      at = next;
    }
  }
  /// The other edge out of the node that the edge into `at` comes from.
  Child Sibling(Child at) const {
    const std::array<Child, 2>& out = out_[in_[at.tree][at.node].from];
    return out[0].tree == at.tree && out[0].node == at.node ? out[1] : out[0];
  }

  void FindRounds(uint32_t tree) {
    std::vector<uint32_t> todo = {RootOf(tree)};
    for (size_t next = 0; next < todo.size(); ++next) {
      Edge& edge = in_[tree][todo[next]];
      const uint32_t earliest = edge.from == 0 ? 0 : in_[tree][edge.from].first_round + 1;
      edge.first_round = earliest + ((earliest + edge.colour) & 1u);
      depth_[tree] = std::max(depth_[tree], edge.first_round);
      for (const Child& child : out_[todo[next]]) {
        if (child.node != kNoNode && child.tree == tree) todo.push_back(child.node);
      }
    }
  }

  uint32_t nodes_;
  uint32_t paired_;  // p
  std::array<std::vector<Edge>, 2> in_;
  std::vector<std::array<Child, 2>> out_;
  std::array<uint32_t, 2> depth_ = {};
};

class TwoTree final : public RolledSchedule {
 public:
  std::string_view name() const override { return "two_tree"; }
  std::string_view summary() const override {
    return "even and odd blocks go down two binary trees; about k+2*log2 n rounds";
  }
  LinearInBlocks RoundsOf(RolledExtent extent) const override {
    // The last block of either tree: the message's last for one, the one before for the other. The
    // trees mirror each other, so that it is the same for even and odd numbers of blocks.
    const std::shared_ptr<const TwoTrees> trees = TreesOf(extent.nodes);
    int64_t more = 0;
    for (const uint32_t tree : {0u, 1u}) {
      more = std::max(more, int64_t{trees->Depth(tree)} - trees->ParityOf(tree));
    }
    return {.per_block = 1, .constant = more};
  }
  Fan FanOf(RolledExtent extent) const override {
    return {.in = extent.nodes > 2, .out = extent.nodes > 2};
  }
  /// With 3 nodes each tree is a chain.
  uint32_t BlocksForFanOut(RolledExtent extent) const override { return extent.nodes == 3 ? 2 : 1; }

  std::vector<Segment> SegmentsOf(RolledExtent extent, uint32_t node) const override {
    const std::shared_ptr<const TwoTrees> trees = TreesOf(extent.nodes);
    // Round t: what goes over the edges of colour t mod 2.
    Segment segment{.to = RoundsOf(extent), .slots = std::vector<RolledSlot>(2)};
    const auto with = [&](uint32_t peer, uint32_t tree, const TwoTrees::Edge& edge) {
      return RolledTransfer{
          .peer = NodeId(peer),
          .offset = {.constant = int64_t{trees->ParityOf(tree)} - edge.first_round}};
    };
    for (const TwoTrees::Child& child : trees->Out(node)) {
      if (child.node == kNoNode) continue;
      const TwoTrees::Edge& edge = trees->In(child.tree, child.node);
      segment.slots[edge.colour].send = with(child.node, child.tree, edge);
    }
    for (const uint32_t tree : {0u, 1u}) {
      if (node == 0) continue;
      const TwoTrees::Edge& edge = trees->In(tree, node);
      segment.slots[edge.colour].recv = with(edge.from, tree, edge);
    }
    return {segment};
  }

 private:
  /// Kept for the next node of the same plan.
  std::shared_ptr<const TwoTrees> TreesOf(uint32_t nodes) const {
    const std::lock_guard lock(mutex_);
    if (trees_ == nullptr || trees_->nodes() != nodes) {
      trees_ = std::make_shared<const TwoTrees>(nodes);
    }
    return trees_;
  }

  mutable std::mutex mutex_;
  mutable std::shared_ptr<const TwoTrees> trees_;
};

}  // namespace

const Schedule& TwoTreeSchedule() {
  static const TwoTree schedule;
  return schedule;
}

}  // namespace prepost
