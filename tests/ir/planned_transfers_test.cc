// SPDX-License-Identifier: Apache-2.0
#include "ir/planned_transfers.h"

#include <gtest/gtest.h>

#include <vector>

namespace prepost::planned_transfers_test {
namespace {

// Catches counts that depend on the order of the transfers, that go over rounds, or that add what a
// node sends and what it receives.
TEST(PlannedTransfersTest, PortsAreThoseOfTheBusiestNodeInARound) {
  EXPECT_EQ(PortsOf({}).ports, 1u);
  const std::vector<PlannedTransfer> ring = {{.round = 0, .from = 0, .to = 1},
                                             {.round = 0, .from = 1, .to = 0},
                                             {.round = 1, .from = 0, .to = 1}};
  EXPECT_EQ(PortsOf(ring).ports, 1u);
  EXPECT_FALSE(PortsOf(ring).busiest);
  const std::vector<PlannedTransfer> gather = {{.round = 2, .from = 0, .to = 4},
                                               {.round = 1, .from = 1, .to = 4},
                                               {.round = 2, .from = 1, .to = 4},
                                               {.round = 1, .from = 2, .to = 4},
                                               {.round = 2, .from = 3, .to = 4}};
  EXPECT_EQ(PortsOf(gather).ports, 3u);
  EXPECT_EQ(PortsOf(gather).busiest, 4u);
}

TEST(PlannedTransfersTest, PartsAreAtMostTheBlocksOfAPlan) {
  EXPECT_TRUE(CheckParts(CollectiveKind::kAlltoall, 4096, "node", "x").ok());
  EXPECT_EQ(CheckParts(CollectiveKind::kAlltoall, 4097, "rank", "x").ToString(),
            "x: alltoall between 4097 ranks has 16785409 parts, and a plan has at most 16777216 "
            "blocks");
}

}  // namespace
}  // namespace prepost::planned_transfers_test
