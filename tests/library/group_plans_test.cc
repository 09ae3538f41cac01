// SPDX-License-Identifier: Apache-2.0
//
// Plans of groups: those that are kept serve other messages of as many blocks.
#include "library/group_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "ir/analysis/site_entries.h"

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

// Members of two sites in turn: catches a plan that crosses between them as often as their order
// does, and an algorithm that does and of which nobody hears.
TEST(GroupPlansTest, BlocksEnterEachSiteOnce) {
  GroupPlanSpec spec = {.nodes = 6,
                        .self = NodeId(2),
                        .root = NodeId(1),
                        .sites = {0, 1, 0, 1, 0, 1},
                        .site_names = {"x", "y"},
                        .is_flat = true};
  const auto plans = MakeGroupPlans(spec);
  ASSERT_TRUE(plans.ok()) << plans.status().ToString();
  EXPECT_THAT((*plans)->Notes(), testing::ElementsAre("each block enters each site once"));
  const auto flat = (*plans)->FlatFor(1 << 20);
  ASSERT_TRUE(flat.ok()) << flat.status().ToString();
  const std::vector<double> entries = SiteEntries(**flat, spec.sites);
  EXPECT_DOUBLE_EQ(entries[0], 1);
  EXPECT_DOUBLE_EQ(entries[1], 0);
  spec.algorithm = "sequential";
  const auto sequential = MakeGroupPlans(spec);
  ASSERT_TRUE(sequential.ok()) << sequential.status().ToString();
  EXPECT_THAT(
      (*sequential)->Notes(),
      testing::ElementsAre("with algorithm sequential each block enters site x 3 times; with "
                           "chain once"));
}

}  // namespace
}  // namespace prepost::group_plans_test
