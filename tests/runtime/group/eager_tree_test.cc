// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/eager_tree.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <vector>

namespace prepost {
namespace {

/// Hops from the root to each node; checks that children and parents agree.
std::vector<uint32_t> Depths(const EagerTree& tree, uint32_t nodes, NodeId root) {
  std::vector<uint32_t> depths(nodes, UINT32_MAX);
  depths[root.index()] = 0;
  std::vector<NodeId> reached = {root};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const NodeId child : tree.ChildrenOf(reached[i])) {
      EXPECT_EQ(tree.ParentOf(child), reached[i]);
      EXPECT_EQ(depths[child.index()], UINT32_MAX) << "reached twice";
      depths[child.index()] = depths[reached[i].index()] + 1;
      reached.push_back(child);
    }
  }
  EXPECT_EQ(reached.size(), nodes);
  EXPECT_FALSE(tree.ParentOf(root));
  return depths;
}

TEST(EagerTreeTest, ReachesEveryNodeInAsFewHopsAsABinomialTree) {
  for (uint32_t nodes = 1; nodes <= 40; ++nodes) {
    for (uint32_t root = 0; root < nodes; ++root) {
      const EagerTree tree(nodes, NodeId(root));
      for (const uint32_t depth : Depths(tree, nodes, NodeId(root)))
        EXPECT_LE(depth, uint32_t(std::bit_width(nodes)));
      EXPECT_LE(tree.ChildrenOf(NodeId(root)).size(), size_t(std::bit_width(nodes)));
    }
  }
}

TEST(EagerTreeTest, TheLargestSubtreeIsServedFirst) {
  const EagerTree tree(8, NodeId(3));
  EXPECT_EQ(tree.ChildrenOf(NodeId(3)), (std::vector{NodeId(7), NodeId(5), NodeId(4)}));
  EXPECT_EQ(tree.ChildrenOf(NodeId(7)), (std::vector{NodeId(1), NodeId(0)}));
}

TEST(EagerTreeTest, EachSiteIsEnteredOnce) {
  const std::vector<uint32_t> sites = {0, 1, 2, 0, 1, 2, 3, 0, 1, 3, 1};
  const auto nodes = static_cast<uint32_t>(sites.size());
  for (uint32_t root = 0; root < nodes; ++root) {
    const EagerTree tree(nodes, NodeId(root), sites);
    Depths(tree, nodes, NodeId(root));
    std::multiset<uint32_t> entered;
    for (uint32_t node = 0; node < nodes; ++node) {
      const std::optional<NodeId> parent = tree.ParentOf(NodeId(node));
      if (parent && sites[parent->index()] != sites[node]) entered.insert(sites[node]);
    }
    EXPECT_EQ(entered.size(), 3u);
    EXPECT_EQ(std::set(entered.begin(), entered.end()).size(), 3u);
    EXPECT_FALSE(entered.contains(sites[root]));
  }
}

}  // namespace
}  // namespace prepost
