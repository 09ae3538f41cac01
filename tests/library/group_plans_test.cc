// SPDX-License-Identifier: Apache-2.0
//
// Plans of groups: those that are kept serve other messages of as many blocks.
#include "library/group_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/compile.h"

namespace prepost::group_plans_test {
namespace {

// Catches a plan that was kept with the size of an earlier message, and one that is taken for
// another number of blocks.
TEST(GroupPlansTest, PlansThatAreKeptAreThoseOfTheirMessage) {
  constexpr uint64_t kBlock = 1000;
  const auto plans = MakeGroupPlans({.nodes = 5,
                                     .self = NodeId(2),
                                     .root = NodeId(0),
                                     .algorithm = "scatter_allgather",
                                     .block_bytes = kBlock,
                                     .is_flat = true});
  ASSERT_TRUE(plans.ok()) << plans.status().ToString();
  for (const uint64_t bytes : {6000u, 5001u, 5999u, 6001u, 0u, 1u, 6000u}) {
    Spec spec;
    spec.nodes = 5;
    spec.algorithm = "scatter_allgather";
    spec.block_bytes = kBlock;
    spec.message_bytes = bytes;
    spec.ready = {.automatic = false, .ready = {.mode = ReadyMode::kBarrier}};
    spec.send_window = {.automatic = false, .window = {}};
    const Result<VerifiedPlan> compiled = Compile(spec);
    ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
    const auto flat = (*plans)->FlatFor(bytes);
    ASSERT_TRUE(flat.ok()) << flat.status().ToString();
    EXPECT_TRUE(**flat == *compiled) << bytes;
    const Result<Playable> play = (*plans)->For(bytes, 0);
    ASSERT_TRUE(play.ok()) << play.status().ToString();
    EXPECT_EQ(play->header().payload.bytes, bytes);
  }
}

}  // namespace
}  // namespace prepost::group_plans_test
