// SPDX-License-Identifier: Apache-2.0
#include "compiler/choice/collective_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ir/analysis/expressions.h"
#include "tests/support/plans.h"

namespace prepost {
namespace {

Spec Automatic(CollectiveKind kind, uint32_t nodes, uint64_t bytes) {
  Spec spec;
  spec.collective = kind;
  spec.nodes = nodes;
  spec.algorithm = kAutoAlgorithm;
  spec.choose_block_bytes = true;
  spec.message_bytes = bytes;
  if (Combines(kind)) spec.combine = {.op = CombineOp::kSum, .type = ElementType::kFloat32};
  return spec;
}

/// Of what any size makes of a part, the fingerprints.
std::map<uint32_t, std::set<uint64_t>> FingerprintsOverSizes(CollectiveKind kind, uint32_t nodes,
                                                             bool is_deterministic) {
  std::map<uint32_t, std::set<uint64_t>> by_part;
  for (const uint64_t bytes : {4ull, 4096ull, 400'000ull, 8ull << 20}) {
    Spec spec = Automatic(kind, nodes, bytes);
    spec.is_deterministic = is_deterministic;
    const VerifiedPlan plan = test::CompileOrDie(WithDefaults(spec));
    const Roles roles = plan.header().roles();
    const PlanTables tables(plan);
    Expressions expressions(tables);
    for (uint32_t block = 0; block < plan.header().payload.blocks; ++block) {
      const Expressions::OfBlock values = expressions.Of(block);
      for (uint32_t node = 0; node < nodes; ++node) {
        if (!roles.Wants(NodeId(node), block)) continue;
        by_part[roles.PartOf(block)].insert(expressions.FingerprintOf(values.at_end[node]));
      }
    }
  }
  return by_part;
}

// The first is the choice, each schedule is there once, and all are schedules of the collective.
TEST(CollectiveChoiceTest, CandidatesBeginWithTheChoice) {
  for (const CollectiveKind kind :
       {CollectiveKind::kReduce, CollectiveKind::kAllreduce, CollectiveKind::kReduceScatter,
        CollectiveKind::kAllgather, CollectiveKind::kGather, CollectiveKind::kScatter,
        CollectiveKind::kAlltoall, CollectiveKind::kBarrier}) {
    for (const uint32_t members : {1u, 3u, 8u}) {
      for (const uint64_t bytes : {0ull, 1024ull, 8ull << 20}) {
        SCOPED_TRACE(testing::Message() << Name(kind) << " of " << members << ", " << bytes);
        const CollectiveSize size = {.kind = kind, .members = members, .bytes = bytes};
        const std::vector<CollectiveChoice> all = CollectiveCandidates(size);
        const CollectiveChoice choice = ChooseCollective(size);
        ASSERT_FALSE(all.empty());
        EXPECT_EQ(all.front().algorithm, choice.algorithm);
        EXPECT_EQ(all.front().block_bytes, choice.block_bytes);
        EXPECT_EQ(all.front().send_window, choice.send_window);
        const std::vector<std::string> known = test::SchedulesOf(kind, members);
        std::set<std::string> seen;
        for (const CollectiveChoice& it : all) {
          EXPECT_TRUE(seen.insert(it.algorithm).second) << it.algorithm;
          EXPECT_THAT(known, testing::Contains(it.algorithm));
          EXPECT_GE(it.seconds, choice.seconds);
        }
      }
    }
  }
}

// Blocks that are given are modelled, and those that suit a schedule best as before: with the very
// blocks that it chooses, each takes what it was said to, but for shares that are not as large.
// Catches an estimate that forgets the blocks, or one that smaller blocks make better.
TEST(CollectiveChoiceTest, BlocksThatAreGivenAreModelled) {
  for (const CollectiveKind kind :
       {CollectiveKind::kReduce, CollectiveKind::kAllreduce, CollectiveKind::kReduceScatter,
        CollectiveKind::kAllgather, CollectiveKind::kGather, CollectiveKind::kAlltoall}) {
    for (const uint32_t members : {2u, 5u, 8u}) {
      CollectiveSize size = {.kind = kind, .members = members, .bytes = 8ull << 20};
      for (const CollectiveChoice& open : CollectiveCandidates(size)) {
        SCOPED_TRACE(testing::Message() << Name(kind) << " of " << members << open.algorithm);
        const auto with = [&](uint64_t block_bytes) {
          CollectiveSize given = size;
          given.algorithm = open.algorithm;
          given.block_bytes = block_bytes;
          const CollectiveChoice choice = ChooseCollective(given);
          EXPECT_EQ(choice.algorithm, open.algorithm);
          EXPECT_EQ(choice.block_bytes, block_bytes);
          return choice.seconds;
        };
        EXPECT_NEAR(with(open.block_bytes), open.seconds, 0.03 * open.seconds);
        EXPECT_GE(with(512), with(open.block_bytes) * 0.999);
        if (Combines(kind)) {
          EXPECT_GE(with(64ull << 20), with(open.block_bytes) * 0.999);
        }
      }
    }
  }
}

// Catches a schedule, or a size of block, that joins operands otherwise at another size.
TEST(CollectiveChoiceTest, DeterministicSumsDoNotDependOnTheSize) {
  for (const CollectiveKind kind :
       {CollectiveKind::kReduce, CollectiveKind::kAllreduce, CollectiveKind::kReduceScatter}) {
    for (const uint32_t nodes : {2u, 3u, 4u, 7u, 8u}) {
      SCOPED_TRACE(testing::Message() << Name(kind) << " of " << nodes);
      for (const auto& [part, fingerprints] : FingerprintsOverSizes(kind, nodes, true))
        EXPECT_EQ(fingerprints.size(), 1u) << "part " << part;
    }
    SCOPED_TRACE(Name(kind));
    EXPECT_GT(FingerprintsOverSizes(kind, 8, false)[0].size(), 1u)
        << "nothing to be guarded against";
  }
}

TEST(CollectiveChoiceTest, OnlyWhatIsDeterministicMayBeSaidSo) {
  Spec spec = Automatic(CollectiveKind::kAllreduce, 4, 4096);
  spec.is_deterministic = true;
  spec.algorithm = "halving";
  spec.choose_block_bytes = false;
  EXPECT_EQ(CheckSpec(spec).message(), "sums of halving depend on the size, those of chain do not");
  EXPECT_EQ(CheckSpec(spec).where(), "/deterministic");
  spec.algorithm = "chain";
  EXPECT_TRUE(CheckSpec(spec).ok());
  Spec gather = WithDefaults(Automatic(CollectiveKind::kAllgather, 4, 4096));
  gather.is_deterministic = true;
  EXPECT_EQ(CheckSpec(gather).message(), "allgather combines nothing");
  Spec barrier = WithDefaults(Automatic(CollectiveKind::kBarrier, 4, 0));
  EXPECT_EQ(CheckSpec(barrier).message(),
            "a barrier carries nothing, so no sum:float32; leave it out");
  EXPECT_EQ(CheckSpec(barrier).where(), "/combine");
  Spec multicast;
  multicast.nodes = 2;
  multicast.message_bytes = 1;
  multicast.is_deterministic = true;
  EXPECT_EQ(CheckSpec(multicast).message(), "a multicast combines nothing");
}

// A schedule that is said gets blocks for it: a ring of one block would be a chain.
TEST(CollectiveChoiceTest, ASaidScheduleGetsItsBlocks) {
  Spec spec = Automatic(CollectiveKind::kAllreduce, 8, 375'000);
  spec.algorithm = "ring";
  EXPECT_LE(WithDefaults(spec).block_bytes, 375'000u / 8 + 4);
  spec.algorithm = "halving";
  EXPECT_LE(WithDefaults(spec).block_bytes, 375'000u / 8 + 4);
  spec.algorithm = "kary_tree=3";
  EXPECT_LT(WithDefaults(spec).block_bytes, 375'000u);
  EXPECT_TRUE(CheckSpec(WithDefaults(spec)).ok());
}

// What could not be counted is refused, by flag and by file.
TEST(CollectiveChoiceTest, SizesBeyondCountingAreRefused) {
  const auto refuse = [](Spec spec, const std::string& message) {
    const Status status = CheckSpec(WithDefaults(std::move(spec)));
    EXPECT_THAT(status.message(), testing::HasSubstr(message));
    EXPECT_EQ(status.where(), "/message_bytes");
  };
  Spec barrier = Automatic(CollectiveKind::kBarrier, 4, 8);
  refuse(barrier, "a barrier carries nothing, found 8 bytes");
  for (const CollectiveKind kind :
       {CollectiveKind::kAllgather, CollectiveKind::kAllreduce, CollectiveKind::kAlltoall}) {
    Spec huge = Automatic(kind, 8, uint64_t{1} << 61);
    huge.block_bytes = uint64_t{1} << 61;
    huge.choose_block_bytes = false;
    huge.algorithm = kind == CollectiveKind::kAlltoall ? "pairwise" : "ring";
    refuse(huge, "are above the limit of 4611686018427387904");
  }
  // Each part goes one way, straight.
  EXPECT_TRUE(CheckSpec(WithDefaults(Automatic(CollectiveKind::kAlltoall, 1024, 1024))).ok());
}

// Catches what the model asks for and the plan does not get.
TEST(CollectiveChoiceTest, LargePartsOfAnAlltoallGoOneByOne) {
  EXPECT_EQ(WithDefaults(Automatic(CollectiveKind::kAlltoall, 8, 1 << 20)).send_window.window, 1u);
  Spec said = Automatic(CollectiveKind::kAlltoall, 8, 1 << 20);
  said.send_window = {.automatic = false, .window = {}};
  EXPECT_EQ(WithDefaults(said).send_window.window, std::nullopt);
}

}  // namespace
}  // namespace prepost
