// SPDX-License-Identifier: Apache-2.0
#include "ir/collective.h"

#include <gtest/gtest.h>

#include <vector>

namespace prepost::collective_test {
namespace {

using enum CollectiveKind;

// Both say who wants what. Catches nodes that one of them forgets, also where there are more blocks
// than parts, and where a node only helps.
TEST(RolesTest, NodesWantingAreThoseThatWant) {
  for (const CollectiveKind kind : {kMulticast, kReduce, kAllreduce, kReduceScatter, kAllgather,
                                    kGather, kScatter, kAlltoall, kBarrier}) {
    for (uint32_t nodes = 1; nodes <= 5; ++nodes) {
      for (uint32_t helpers = 0; helpers < nodes && helpers <= 1; ++helpers) {
        const Collective collective = {
            .kind = kind, .root = NodeId((nodes - helpers) / 2), .helpers = helpers};
        const auto parts = static_cast<uint32_t>(PartsOf(kind, nodes - helpers));
        const Roles roles(collective, nodes, 3 * parts);
        for (uint32_t block = 0; block < 3 * parts; ++block) {
          const PartRow wanting = roles.NodesWanting(roles.PartOf(block));
          for (uint32_t node = 0; node < nodes; ++node) {
            EXPECT_EQ(wanting.Has(node), roles.Wants(NodeId(node), block))
                << Name(kind) << " of " << nodes << ", block " << block << " at " << node;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace prepost::collective_test
