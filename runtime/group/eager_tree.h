// SPDX-License-Identifier: Apache-2.0
//
// EagerTree: down which connections a group's short messages go (session/eager_lane.h). Binomial
// trees, as in every MPI library: a member passes a message on to the child with the largest
// subtree first, and all have it after log2(n) hops. Where there are several sites, the first
// members of all sites make one tree, and each site's members one below its first, so that a
// message enters each site once.
#ifndef PREPOST_RUNTIME_GROUP_EAGER_TREE_H_
#define PREPOST_RUNTIME_GROUP_EAGER_TREE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/ids.h"

namespace prepost {

class EagerTree {
 public:
  /// `sites`: of each node, below `nodes`; empty: all are at one.
  EagerTree(uint32_t nodes, NodeId root, std::span<const uint32_t> sites = {});

  /// Of the root none.
  std::optional<NodeId> ParentOf(NodeId node) const { return places_[node.index()].parent; }
  /// In the order in which they are served.
  const std::vector<NodeId>& ChildrenOf(NodeId node) const {
    return places_[node.index()].children;
  }

 private:
  struct Place {
    std::optional<NodeId> parent;
    std::vector<NodeId> children;
  };

  void Connect(std::span<const NodeId> nodes);

  std::vector<Place> places_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_EAGER_TREE_H_
