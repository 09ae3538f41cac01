// SPDX-License-Identifier: Apache-2.0
#include "ir/rolled/rolled_play.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/rolled_plans.h"

namespace prepost::rolled_play_test {
namespace {

using test::kRolledBlockBytes;
using test::Random;
using test::RolledNames;
using test::RolledSpec;
using test::RollOrDie;

/// `after` of a flat op, without what is `look_ahead` ops back or more.
std::vector<OpId> Near(std::span<const OpId> after, size_t op, size_t look_ahead) {
  std::vector<OpId> near;
  for (const OpId before : after) {
    if (op - before.index() < look_ahead) near.push_back(before);
  }
  return near;
}

void ExpectSameOps(const RolledPlay& play, const VerifiedPlan& flat, const Program& program,
                   size_t look_ahead) {
  const std::unique_ptr<OpStream> stream = play.OpsOf(program.node, look_ahead);
  size_t id = 0;
  for (const Op& op : flat.ops(program)) {
    ASSERT_TRUE(stream->Next()) << Describe(flat, program, OpId::FromIndex(id));
    const Op& found = stream->op();
    ASSERT_EQ(std::tuple(found.kind, found.channel, found.block, found.round, found.grants),
              std::tuple(op.kind, op.channel, op.block, op.round, op.grants))
        << Describe(flat, program, OpId::FromIndex(id)) << Dump(flat);
    ASSERT_THAT(stream->after(), testing::ElementsAreArray(Near(flat.after(op), id, look_ahead)))
        << Describe(flat, program, OpId::FromIndex(id)) << " of\n"
        << Dump(flat);
    ++id;
  }
  EXPECT_FALSE(stream->Next());
}

std::vector<ChannelOps> SortedChannelOps(const VerifiedPlan& flat, const Program& program) {
  std::vector<ChannelOps> all = ChannelOpsOf(flat, program);
  std::ranges::sort(all, {}, &ChannelOps::channel);
  return all;
}

/// With a look-ahead of 2^0 to beyond all ops.
void ExpectStreamsAreUnrolled(const Spec& spec, Random& random) {
  SCOPED_TRACE(spec.algorithm + " n=" + std::to_string(spec.nodes) +
               " bytes=" + std::to_string(*spec.message_bytes));
  const RolledPlan rolled = RollOrDie(spec);
  const Result<RolledPlay> play = RolledPlay::Make(rolled, *spec.message_bytes);
  ASSERT_TRUE(play.ok()) << play.status().ToString();
  const Result<VerifiedPlan> flat = Unroll(rolled, *spec.message_bytes, {.skip_passes = {"thin"}});
  ASSERT_TRUE(flat.ok()) << flat.status().ToString();
  PlanHeader header = flat->header();
  EXPECT_LE(header.rounds, play->outline().header().rounds);
  header.rounds = play->outline().header().rounds;
  EXPECT_EQ(play->outline().header(), header);
  ASSERT_TRUE(std::ranges::equal(play->outline().channels(), flat->channels()));
  for (const Program& program : flat->programs()) {
    ExpectSameOps(*play, *flat, program, std::bit_ceil(size_t{program.op_count} + 1));
    ExpectSameOps(*play, *flat, program, size_t{1} << random.Between(0, 8));
    ASSERT_EQ(play->ChannelOpsOf(program.node), SortedChannelOps(*flat, program));
    if (testing::Test::HasFatalFailure()) return;
  }
}

Spec WithModes(Spec spec, Random& random) {
  const std::string window = std::to_string(random.Between(1, 5));
  spec.ready = *ParseReady(random.Pick(
      std::vector<std::string>{"auto", "channel", "barrier", "retry", "window=" + window}));
  spec.send_window =
      *ParseSendWindow(random.Pick(std::vector<std::string>{"auto", "none", window}));
  return spec;
}

// A credit, a window or a block's receive that the stream names differently from the passes.
TEST(RolledPlayTest, StreamsAreWhatUnrollGives) {
  Random random(test::TestSeed());
  SCOPED_TRACE(test::TestSeed());
  for (const std::string& name : RolledNames()) {
    for (uint32_t n = 1; n <= 13; ++n) {
      for (uint32_t k = 1; k <= 12; ++k) {
        ExpectStreamsAreUnrolled(WithModes(RolledSpec(name, n, k), random), random);
        if (HasFatalFailure()) return;
      }
    }
    for (int i = 0; i < 8; ++i) {
      const Spec spec = RolledSpec(name, random.Between(14, 40), random.Between(1, 40));
      ExpectStreamsAreUnrolled(WithModes(spec, random), random);
      if (HasFatalFailure()) return;
    }
  }
}

// Every ready mode by itself, however the die falls.
TEST(RolledPlayTest, StreamsOfEveryReadyModeAreWhatUnrollGives) {
  Random random(test::TestSeed());
  SCOPED_TRACE(test::TestSeed());
  for (const std::string& name : RolledNames()) {
    for (const char* mode : {"channel", "barrier", "retry", "window=1", "window=3"}) {
      for (const char* send_window : {"none", "1", "2"}) {
        Spec spec = RolledSpec(name, 9, 11);
        spec.ready = *ParseReady(mode);
        spec.send_window = *ParseSendWindow(send_window);
        ExpectStreamsAreUnrolled(spec, random);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// A node's own file: the same ops, by channels that only it knows.
TEST(RolledPlayTest, OneNodesFileHasTheSameOps) {
  for (const std::string& name : RolledNames()) {
    const Spec spec = RolledSpec(name, 11, 9);
    const RolledPlan rolled = RollOrDie(spec);
    const RolledPlay whole = *RolledPlay::Make(rolled, *spec.message_bytes);
    for (uint32_t node = 0; node < spec.nodes; ++node) {
      const RolledPlan own = *Roll(spec, NodeId(node));
      const RolledPlay alone = *RolledPlay::Make(own, *spec.message_bytes);
      EXPECT_TRUE(alone.Has(NodeId(node)));
      EXPECT_EQ(alone.Has(NodeId((node + 1) % spec.nodes)), false);
      const auto a = alone.OpsOf(NodeId(node)), b = whole.OpsOf(NodeId(node));
      while (b->Next()) {
        ASSERT_TRUE(a->Next());
        ASSERT_EQ(alone.outline().channels()[a->op().channel.index()],
                  whole.outline().channels()[b->op().channel.index()]);
        ASSERT_EQ(std::tuple(a->op().kind, a->op().block, a->op().grants),
                  std::tuple(b->op().kind, b->op().block, b->op().grants));
        ASSERT_TRUE(std::ranges::equal(a->after(), b->after()));
      }
      EXPECT_FALSE(a->Next());
    }
  }
}

// Catches a count by rounds instead of by segments: this one has 2^24 blocks.
TEST(RolledPlayTest, TheLargestMessageTakesNoTimeToPrepare) {
  const RolledPlan rolled = RollOrDie(RolledSpec("binomial_pipeline", 16, 1));
  const Result<RolledPlay> play = RolledPlay::Make(rolled, kRolledBlockBytes << 24);
  ASSERT_TRUE(play.ok()) << play.status().ToString();
  uint64_t received = 0;
  for (const ChannelOps& channel : play->ChannelOpsOf(NodeId(0))) {
    const bool is_credit =
        play->outline().channels()[channel.channel.index()].lane == Lane::kCredits;
    if (!channel.outgoing && !is_credit) received += channel.ops;
  }
  EXPECT_EQ(received, uint64_t{1} << 24);
}

// Catches a stream that goes round by round through a gap of 4 billion.
TEST(RolledPlayTest, GapsTakeNoTime) {
  const RolledPlan alone = test::WithGap(4'000'000'000);
  const Result<RolledPlay> play = RolledPlay::Make(alone, 3 * kRolledBlockBytes);
  ASSERT_TRUE(play.ok()) << play.status().ToString();
  const std::unique_ptr<OpStream> stream = play->OpsOf(NodeId(5));
  for (uint32_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(stream->Next());
    EXPECT_EQ(stream->op().round, i < 3 ? 4 + i : 4'000'000'007 + i - 3);
  }
  EXPECT_FALSE(stream->Next());
}

TEST(RolledPlayTest, RefusesWhatCannotBePlayed) {
  RolledPlan rolled = RollOrDie(RolledSpec("chain", 3, 4));
  EXPECT_EQ(RolledPlay::Make(rolled, UINT64_MAX).status().code(), StatusCode::kRejected);
  Segment& segment = rolled.programs[1].segments[0];
  segment.clamps = true;
  segment.to.constant += 7;
  EXPECT_EQ(RolledPlay::Make(rolled, 35).status().message(),
            "node 1 sends to node 2 11 blocks of 4");
  segment.to.constant -= 7;
  rolled.programs[1].segments.push_back(segment);
  EXPECT_EQ(RolledPlay::Make(rolled, 35).status().message(), "node 1 has segments that overlap");
}

}  // namespace
}  // namespace prepost::rolled_play_test
