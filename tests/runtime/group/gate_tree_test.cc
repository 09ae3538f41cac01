// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/gate_tree.h"

#include <gtest/gtest.h>

#include <set>

namespace prepost::gate_tree_test {
namespace {

// Catches members that no path joins to the leader, two parents of one, and a node with more
// children than it is to hear from.
TEST(GateTreeTest, JoinsAllToTheLeader) {
  for (const uint32_t nodes : {1u, 2u, 16u, 17u, 18u, 40u, 273u, 274u, 1000u}) {
    for (const NodeId leader : {NodeId(0), NodeId(nodes / 2), NodeId(nodes - 1)}) {
      const GateTree tree(nodes, leader);
      std::set<NodeId> seen = {leader};
      for (uint32_t i = 0; i < nodes; ++i) {
        const std::vector<NodeId> children = tree.ChildrenOf(NodeId(i));
        EXPECT_LE(children.size(), GateTree::kFanOut);
        for (const NodeId child : children) {
          EXPECT_EQ(tree.ParentOf(child), NodeId(i));
          EXPECT_TRUE(seen.insert(child).second) << child.value;
        }
      }
      EXPECT_EQ(seen.size(), nodes);
      EXPECT_EQ(tree.ParentOf(leader), std::nullopt);
      if (nodes == GateTree::kFanOut + 1) {
        EXPECT_EQ(tree.ChildrenOf(leader).size(), nodes - 1);
      }
      for (uint32_t i = 0; i < nodes; ++i) {
        uint32_t depth = 0;
        for (NodeId node(i); node != leader; node = *tree.ParentOf(node)) ++depth;
        EXPECT_LE(depth, 3u);
      }
    }
  }
}

}  // namespace
}  // namespace prepost::gate_tree_test
