// SPDX-License-Identifier: Apache-2.0
//
// The schedules of collectives in closed form: rounds, messages of a member, bytes through a port.
// That their plans are right is shown in tests/mutation/checker_test.cc.
#include "compiler/collectives/collective_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <sstream>

#include "ir/json/plan_json.h"
#include "ir/json/plan_shard.h"
#include "ir/verify/verify_shard.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"

namespace prepost::collective_schedule_test {
namespace {

using enum CollectiveKind;
using ::testing::HasSubstr;

/// The most of any member: messages sent, blocks sent, blocks received, peers sent to.
struct Load {
  uint32_t rounds = 0;
  uint64_t messages = 0, sent = 0, received = 0, peers = 0;
};

Load LoadOf(CollectiveKind kind, const std::string& name, uint32_t members, uint32_t blocks,
            uint32_t root = 0) {
  const CollectiveAlgorithm algorithm = FindCollectiveAlgorithm(kind, name, members).value();
  const std::vector<PlannedTransfer> transfers = algorithm.own->Transfers(
      {.kind = kind, .members = members, .blocks_per_part = blocks, .root = NodeId(root)});
  Load load;
  std::map<uint32_t, uint64_t> messages, sent, received;
  std::map<uint32_t, std::set<uint32_t>> peers;
  for (const PlannedTransfer& it : transfers) {
    load.rounds = std::max(load.rounds, it.round + 1);
    ++messages[it.from];
    sent[it.from] += it.count;
    received[it.to] += it.count;
    peers[it.from].insert(it.to);
  }
  for (const auto& [node, count] : messages) load.messages = std::max(load.messages, count);
  for (const auto& [node, count] : sent) load.sent = std::max(load.sent, count);
  for (const auto& [node, count] : received) load.received = std::max(load.received, count);
  for (const auto& [node, all] : peers) load.peers = std::max<uint64_t>(load.peers, all.size());
  return load;
}

uint32_t Log2Up(uint32_t n) { return static_cast<uint32_t>(std::bit_width(n - 1)); }

// Catches a ring that goes around too far, and shares that are cut unevenly.
TEST(CollectiveScheduleTest, RingsMoveTheLeastBytes) {
  for (uint32_t n = 2; n <= 17; ++n) {
    for (const uint32_t k : {1u, 3u}) {
      const Load scatter = LoadOf(kReduceScatter, "ring", n, k);
      EXPECT_EQ(scatter.rounds, (n - 1) * k);
      EXPECT_EQ(scatter.sent, uint64_t{n - 1} * k);
      EXPECT_EQ(LoadOf(kAllgather, "ring", n, k).sent, uint64_t{n - 1} * k);
    }
    const Load both = LoadOf(kAllreduce, "ring", n, 4 * n);
    EXPECT_EQ(both.rounds, 2 * (n - 1) * 4);
    EXPECT_EQ(both.sent, uint64_t{2} * (n - 1) * 4);
    EXPECT_EQ(both.peers, 1u);
  }
}

// For any n in q steps, and no more bytes than a ring.
TEST(CollectiveScheduleTest, HalvingTakesFewRoundsAndTheLeastBytes) {
  for (uint32_t n = 2; n <= 69; ++n) {
    const Load scatter = LoadOf(kReduceScatter, "halving", n, 1);
    EXPECT_EQ(scatter.rounds, Log2Up(n)) << n;
    EXPECT_EQ(scatter.sent, n - 1) << n;
    EXPECT_EQ(scatter.received, n - 1) << n;
    EXPECT_EQ(LoadOf(kAllgather, "halving", n, 1).rounds, Log2Up(n)) << n;
    const Load both = LoadOf(kAllreduce, "halving", n, n);
    EXPECT_EQ(both.rounds, 2 * Log2Up(n)) << n;
    EXPECT_EQ(both.sent, 2 * uint64_t{n - 1}) << n;
  }
}

TEST(CollectiveScheduleTest, DoublingIsForPowersOfTwo) {
  for (const uint32_t n : {2u, 4u, 8u, 64u}) {
    EXPECT_EQ(LoadOf(kAllreduce, "doubling", n, 5).rounds, Log2Up(n));
    EXPECT_EQ(LoadOf(kAllreduce, "doubling", n, 5).sent, Log2Up(n) * 5);
  }
  EXPECT_THAT(FindCollectiveAlgorithm(kAllreduce, "doubling", 6).status().message(),
              HasSubstr("doubling is not for 6 members"));
}

TEST(CollectiveScheduleTest, TreesAndStraightWaysToTheRoot) {
  for (uint32_t n = 2; n <= 40; ++n) {
    for (const CollectiveKind kind : {kGather, kScatter}) {
      const uint32_t root = n / 3;
      const Load tree = LoadOf(kind, "binomial", n, 2, root);
      EXPECT_EQ(tree.rounds, Log2Up(n)) << n;
      EXPECT_EQ(kind == kGather ? tree.received : tree.sent, 2 * uint64_t{n - 1}) << n;
      const Load direct = LoadOf(kind, "direct", n, 2, root);
      EXPECT_EQ(direct.rounds, 2 * (n - 1)) << n;
      EXPECT_EQ(kind == kGather ? direct.sent : direct.received, 2u) << n;
    }
  }
}

// Bruck's parts move popcount(distance) times: 12 for 8 members, 192 for 64.
TEST(CollectiveScheduleTest, AlltoallPairsOrGoesInPowersOfTwo) {
  for (uint32_t n = 2; n <= 64; ++n) {
    const Load pairs = LoadOf(kAlltoall, "pairwise", n, 1);
    EXPECT_EQ(pairs.rounds, n - 1);
    EXPECT_EQ(pairs.sent, n - 1);
    uint64_t moves = 0;
    for (uint32_t distance = 1; distance < n; ++distance)
      moves += static_cast<uint64_t>(std::popcount(distance));
    const Load bruck = LoadOf(kAlltoall, "bruck", n, 1);
    EXPECT_EQ(bruck.sent, moves) << n;
    EXPECT_EQ(bruck.peers, Log2Up(n)) << n;
  }
  EXPECT_EQ(LoadOf(kAlltoall, "bruck", 8, 1).sent, 12u);
  EXPECT_EQ(LoadOf(kAlltoall, "bruck", 64, 1).sent, 192u);
}

TEST(CollectiveScheduleTest, BarriersTakeOneMessageARound) {
  for (uint32_t n = 2; n <= 199; ++n) {
    const Load load = LoadOf(kBarrier, "dissemination", n, 1);
    EXPECT_EQ(load.rounds, Log2Up(n));
    EXPECT_EQ(load.messages, Log2Up(n));
  }
}

// A multicast backwards takes as long as forwards.
TEST(CollectiveScheduleTest, ReduceTakesTheRoundsOfTheMulticast) {
  for (const std::string& name : ScheduleNames()) {
    for (uint32_t n = 2; n <= 12; ++n) {
      const Spec down{
          .nodes = n, .message_bytes = 64, .block_bytes = 16, .algorithm = name, .topology = {}};
      Spec up = down;
      up.collective = kReduce;
      up.combine = {.op = CombineOp::kSum, .type = ElementType::kFloat64};
      const uint32_t rounds = test::CompileOrDie(down).header().rounds;
      EXPECT_EQ(test::CompileOrDie(up).header().rounds, rounds) << name << " " << n;
      up.collective = kAllreduce;
      EXPECT_EQ(test::CompileOrDie(up).header().rounds, 2 * rounds) << name << " " << n;
    }
  }
}

TEST(CollectiveScheduleTest, UnknownNamesAreErrorsWithTheNearOne) {
  EXPECT_THAT(FindCollectiveAlgorithm(kAlltoall, "pairwize", 4).status().message(),
              HasSubstr("no schedule of alltoall is called 'pairwize'"));
  EXPECT_FALSE(FindCollectiveAlgorithm(kAllgather, "chain", 4).ok());
  EXPECT_TRUE(FindCollectiveAlgorithm(kReduce, "kary_tree=3", 4).ok());
}

Plan ThroughShards(const Plan& plan) {
  PlanIndex index{.header = plan.header()};
  index.channels = static_cast<uint32_t>(plan.channels().size());
  PlanAssembler assembler(index);
  const ChannelsByNode channels(plan);
  for (const Program& program : plan.programs()) {
    std::stringstream text;
    WriteShard(plan, program, channels.At(program.node), text);
    const Result<PlanShard> shard = ReadShard(text, "shard", nullptr);
    EXPECT_TRUE(shard.ok()) << shard.status().ToString();
    const Verdict verdict = VerifyShard(index, *shard);
    EXPECT_TRUE(verdict.ok()) << verdict.ToString();
    assembler.Add(*shard);
  }
  return std::move(assembler).Build().value();
}

// Catches a field that an encoding loses, and a rule that one node alone cannot be held to.
TEST(CollectiveScheduleTest, PlansSurviveEveryEncoding) {
  const std::vector<Spec> specs = test::SpecsOfCollectives({.nodes_max = 6, .blocks_max = 2});
  std::vector<std::string> labels;
  for (const Spec& spec : specs)
    labels.push_back(std::string(Name(spec.collective)) + "=" + spec.algorithm);
  test::Sample sample(labels);
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(spec));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    for (const PlanEncoding encoding : {PlanEncoding::kRows, PlanEncoding::kColumns}) {
      std::stringstream text;
      WritePlan(plan, text, encoding);
      EXPECT_THAT(text.str(), HasSubstr("\"version\": \"1.2\""));
      const Result<Plan> read = ReadPlan(text, "plan", nullptr);
      ASSERT_TRUE(read.ok()) << read.status().ToString();
      ASSERT_EQ(*read, plan);
    }
    ASSERT_EQ(ThroughShards(plan), plan);
  }
}

}  // namespace
}  // namespace prepost::collective_schedule_test
