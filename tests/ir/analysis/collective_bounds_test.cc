// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/collective_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/networks.h"

namespace prepost {
namespace {

PlanHeader HeaderOf(CollectiveKind kind, uint32_t nodes, uint64_t bytes, uint32_t helpers = 0) {
  PlanHeader header;
  header.nodes = nodes + helpers;
  header.collective = {.kind = kind, .root = NodeId(1), .helpers = helpers};
  header.payload.bytes = bytes;
  return header;
}

// By hand: two of five members, with the root and without.
TEST(CollectiveBoundsTest, WhatMustLeaveASet) {
  struct Case {
    CollectiveKind kind;
    uint64_t with_root, without, in_all;
  };
  const Case cases[] = {
      {CollectiveKind::kMulticast, 1, 0, 4},  {CollectiveKind::kReduce, 0, 1, 4},
      {CollectiveKind::kAllreduce, 1, 1, 8},  {CollectiveKind::kReduceScatter, 3, 3, 20},
      {CollectiveKind::kAllgather, 2, 2, 20}, {CollectiveKind::kGather, 0, 2, 4},
      {CollectiveKind::kScatter, 3, 0, 4},    {CollectiveKind::kAlltoall, 6, 6, 20},
      {CollectiveKind::kBarrier, 0, 0, 0},
  };
  for (const Case& it : cases) {
    const PlanHeader header = HeaderOf(it.kind, 5, 100);
    SCOPED_TRACE(Name(it.kind));
    EXPECT_EQ(CopiesOut(header, {2, true}), it.with_root);
    EXPECT_EQ(CopiesOut(header, {2, false}), it.without);
    EXPECT_EQ(CopiesIn(header, {3, false}), it.with_root);
    EXPECT_EQ(CopiesInAll(header), it.in_all);
    for (const bool has_root : {false, true}) {
      EXPECT_EQ(CopiesOut(header, {0, has_root}), 0u);
      EXPECT_EQ(CopiesOut(header, {5, has_root}), 0u);
    }
  }
}

// Racks of two and three: what crosses, beside what ports carry.
TEST(CollectiveBoundsTest, TheSlowestCutDecides) {
  Network network = test::OneRack(5, 10);
  network.racks = {{"a", 4, 8}, {"b", 100, 100}};
  network.core_latency = 3;
  for (uint32_t i = 0; i < 5; ++i) network.nodes[i].rack = i < 2 ? 0 : 1;
  const auto longest = [&](CollectiveKind kind) {
    return BoundSeconds(network, HeaderOf(kind, 5, 100)).front();
  };
  EXPECT_EQ(longest(CollectiveKind::kAlltoall).cut, "out of rack a");
  EXPECT_DOUBLE_EQ(longest(CollectiveKind::kAlltoall).seconds, 150);  // 6 x 100 / 4
  EXPECT_EQ(longest(CollectiveKind::kAllgather).cut, "out of rack a");
  EXPECT_DOUBLE_EQ(longest(CollectiveKind::kAllgather).seconds, 50);
  EXPECT_EQ(longest(CollectiveKind::kGather).cut, "port into node 1");
  EXPECT_DOUBLE_EQ(longest(CollectiveKind::kGather).seconds, 40);
  EXPECT_EQ(longest(CollectiveKind::kAllreduce).cut, "out of rack a");
  EXPECT_DOUBLE_EQ(BoundNetwork(network, HeaderOf(CollectiveKind::kAllreduce, 5, 100)).seconds, 28);
  EXPECT_DOUBLE_EQ(BoundNetwork(network, HeaderOf(CollectiveKind::kBarrier, 5, 0)).seconds, 3);
  EXPECT_EQ(
      BoundNetwork(network.First(1).value(), HeaderOf(CollectiveKind::kAllreduce, 1, 100)).seconds,
      0);
}

// By hand: parts of sizes of their own, racks of nodes 0 and 1, and of 2.
TEST(CollectiveBoundsTest, PartsOfSizesOfTheirOwn) {
  struct Case {
    CollectiveKind kind;
    std::vector<uint64_t> sizes;
    double out, in, in_all;  // of the first rack
  };
  const Case cases[] = {
      {CollectiveKind::kReduceScatter, {10, 20, 40}, 40, 30, 140},
      {CollectiveKind::kAllgather, {10, 20, 40}, 30, 40, 140},
      {CollectiveKind::kGather, {10, 20, 40}, 0, 40, 50},
      {CollectiveKind::kScatter, {10, 20, 40}, 40, 0, 50},
      {CollectiveKind::kAlltoall, {900, 3, 5, 1, 900, 0, 7, 2, 900}, 5, 9, 18},
  };
  for (const Case& it : cases) {
    SCOPED_TRACE(Name(it.kind));
    PlanHeader header = HeaderOf(it.kind, 3, 0);  // its root is node 1
    header.payload = MakePayload(it.sizes, 1000).value();
    const std::vector<Passing> racks = PassingOf(header, {0, 0, 1}, 2);
    EXPECT_EQ(racks[0].bytes_out, it.out);
    EXPECT_EQ(racks[0].bytes_in, it.in);
    EXPECT_EQ(racks[1].bytes_out, it.in);
    EXPECT_EQ(racks[1].bytes_in, it.out);
    EXPECT_EQ(BytesInAll(header), it.in_all);
    Network network = test::OneRack(3, 1000);
    network.racks = {{"a", 1, 1}, {"b", 1000, 1000}};
    network.nodes[2].rack = 1;
    EXPECT_DOUBLE_EQ(BoundSeconds(network, header).front().seconds, std::max(it.out, it.in));
  }
}

// What has no sizes of its own is as if it had: each node alone.
TEST(CollectiveBoundsTest, EqualPartsAreCountedAlike) {
  for (const CollectiveKind kind :
       {CollectiveKind::kReduceScatter, CollectiveKind::kAllgather, CollectiveKind::kGather,
        CollectiveKind::kScatter, CollectiveKind::kAlltoall}) {
    SCOPED_TRACE(Name(kind));
    PlanHeader even = HeaderOf(kind, 4, 0);
    even.payload = MakePayload(100, 100, PartsOf(kind, 4)).value();
    PlanHeader uneven = even;
    uneven.payload.part_bytes.assign(even.payload.parts, 100);
    for (uint32_t node = 0; node < 4; ++node) {
      EXPECT_EQ(PassingOfNodes(even)[node].bytes_out, PassingOfNodes(uneven)[node].bytes_out);
      EXPECT_EQ(PassingOfNodes(even)[node].bytes_in, PassingOfNodes(uneven)[node].bytes_in);
    }
    EXPECT_EQ(BytesInAll(even), BytesInAll(uneven));
  }
}

// Helpers carry, and neither send nor receive anything of their own.
TEST(CollectiveBoundsTest, HelpersHavePorts) {
  const auto seconds = [](uint32_t helpers) {
    return BoundNetwork(test::OneRack(4 + helpers, 10),
                        HeaderOf(CollectiveKind::kAllreduce, 4, 100, helpers))
        .seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(0), 15);  // 2 x 3 / 4 x 100 / 10
  EXPECT_DOUBLE_EQ(seconds(1), 12);
  EXPECT_DOUBLE_EQ(seconds(4), 10);  // a member's own port
}

// Nothing has to come to a rack of helpers.
TEST(CollectiveBoundsTest, WhereNothingPassesNothingTakesTime) {
  Network network = test::OneRack(3, 10);
  network.racks = {{"a", 10, 10}, {"b", 10, 10}};
  network.nodes[2].rack = 1;
  network.core_latency = 7;
  EXPECT_LT(BoundNetwork(network, HeaderOf(CollectiveKind::kGather, 2, 10, 1)).seconds, 2);
  EXPECT_LT(BoundNetwork(network, HeaderOf(CollectiveKind::kBarrier, 2, 0, 1)).seconds, 2);
  EXPECT_DOUBLE_EQ(BoundNetwork(network, HeaderOf(CollectiveKind::kBarrier, 3, 0)).seconds, 7);
}

}  // namespace
}  // namespace prepost
