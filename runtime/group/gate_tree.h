// SPDX-License-Identifier: Apache-2.0
//
// GateTree: along which connections a group's members report that they have come to a point which
// all are to reach before any goes on, and hear that all have (session/keeper.h). A tree of kFanOut
// children each below the leader: no member hears from more than that many, so that the time grows
// with the logarithm of the group's size. In a group of up to kFanOut + 1 members all are the
// leader's children.
#ifndef PREPOST_RUNTIME_GROUP_GATE_TREE_H_
#define PREPOST_RUNTIME_GROUP_GATE_TREE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/ids.h"

namespace prepost {

class GateTree {
 public:
  static constexpr uint32_t kFanOut = 16;

  /// `leader` is one of the `nodes`. `fan_out`: of a group whose members do not reach each other as
  /// many as there are.
  GateTree(uint32_t nodes, NodeId leader, uint32_t fan_out = kFanOut)
      : nodes_(nodes), leader_(leader), fan_out_(fan_out) {}

  /// Of the leader none.
  std::optional<NodeId> ParentOf(NodeId node) const {
    const uint32_t place = PlaceOf(node);
    if (place == 0) return std::nullopt;
    return At((place - 1) / fan_out_);
  }
  /// In the order of their places; of most nodes none.
  std::vector<NodeId> ChildrenOf(NodeId node) const {
    std::vector<NodeId> children;
    const uint64_t first = uint64_t{PlaceOf(node)} * fan_out_ + 1;
    for (uint64_t place = first; place < std::min<uint64_t>(first + fan_out_, nodes_); ++place)
      children.push_back(At(static_cast<uint32_t>(place)));
    return children;
  }

 private:
  /// The leader's is 0.
  uint32_t PlaceOf(NodeId node) const { return (node.value + nodes_ - leader_.value) % nodes_; }
  NodeId At(uint32_t place) const { return NodeId((place + leader_.value) % nodes_); }

  uint32_t nodes_;
  NodeId leader_;
  uint32_t fan_out_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_GATE_TREE_H_
