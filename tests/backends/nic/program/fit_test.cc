// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/program/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "compiler/schedules/schedule.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"

namespace prepost::nic::fit_test {
namespace {

constexpr LoweringMode kModes[] = {LoweringMode::kInline, LoweringMode::kManaged};

VerifiedPlan MakePlan(const std::string& algorithm, uint32_t nodes, uint32_t blocks,
                      const std::string& ready) {
  return test::CompileOrDie({.nodes = nodes,
                             .message_bytes = uint64_t{blocks} * 100,
                             .block_bytes = 100,
                             .algorithm = algorithm,
                             .ready = *ParseReady(ready)});
}

DeviceProfile Example(const std::string& name) {
  const std::string path = PREPOST_SOURCE_DIR "/examples/devices/" + name + ".json";
  std::ifstream in(path);
  Result<DeviceProfile> profile = ReadDeviceProfile(in, path);
  EXPECT_TRUE(profile.ok()) << profile.status().ToString();
  return profile.ok() ? *profile : DeviceProfile{};
}

/// The most receives on a channel that carries blocks.
uint32_t ReceivesMax(const VerifiedPlan& plan) {
  uint32_t most = 0;
  for (const Program& program : plan.programs()) {
    std::map<ChannelId, uint32_t> receives;
    for (const Op& op : plan.ops(program)) {
      if (!op.is_send() && !op.is_credit()) most = std::max(most, ++receives[op.channel]);
    }
  }
  return most;
}

// Node 1 of a chain of 40 blocks: inline a WAIT before each send; managed those on the master, with
// a SEND_EN each. Catches uses and re-arms that are of another queue, node or mode.
TEST(FitTest, NumbersOfAChain) {
  const VerifiedPlan plan = MakePlan("chain", 3, 40, "retry");
  const DeviceProfile tiny = {.sq_wqebbs = 16, .rq_wqes = 32, .qps = 300};
  const Fit in = CheckFit(plan, {.mode = LoweringMode::kInline, .profile = tiny});
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.of(Resource::kQps).most, 3u);
  EXPECT_EQ(in.of(Resource::kQps).node, NodeId(1));
  EXPECT_EQ(in.of(Resource::kQps).total, 7u);
  EXPECT_EQ(in.of(Resource::kQps).limit, 300u);
  EXPECT_EQ(in.of(Resource::kCqs).most, 4u);
  EXPECT_EQ(in.of(Resource::kSendQueue).most, 80u);
  EXPECT_EQ(in.of(Resource::kSendQueue).node, NodeId(1));
  EXPECT_EQ(in.of(Resource::kReceiveQueue).most, 40u);
  EXPECT_EQ(in.of(Resource::kReceiveQueue).total, 80u);
  EXPECT_EQ(in.of(Resource::kCompletionQueue).most, 32u);
  EXPECT_EQ(in.of(Resource::kBlock).most, 100u);
  // Node 0's sends, 40 in 16: 3. Node 1's, 80 in 16: 8, and its receives, 40 in 32: 1. Node 2's
  // receives: 1.
  EXPECT_EQ(in.parted, 4u);
  EXPECT_EQ(in.rearms, 13u);
  ASSERT_EQ(in.first_parted.size(), 4u);
  const PartedQueue& longest = in.first_parted[2];
  EXPECT_EQ(longest.what, "send queue of QP 1<>2 blocks");
  EXPECT_EQ(longest.node, NodeId(1));
  EXPECT_EQ(longest.wqes, 80u);
  EXPECT_EQ(longest.ring, 16u);
  EXPECT_EQ(longest.rearms, 8u);

  const Fit managed = CheckFit(plan, {.mode = LoweringMode::kManaged, .profile = tiny});
  EXPECT_TRUE(managed.ok());
  EXPECT_EQ(managed.of(Resource::kSendQueue).most, 82u);  // 40 WAITs, 40 SEND_ENs, a WAIT, the NOP
  EXPECT_EQ(managed.of(Resource::kQps).total, 7u);
}

TEST(FitTest, AllFindingsAreCountedAndTheFirstListed) {
  const VerifiedPlan plan = MakePlan("chain", 30, 40, "barrier");
  const Fit fit = CheckFit(plan, {.profile = {.rq_wqes = 16, .message_bytes = 99}});
  EXPECT_EQ(fit.misfits, 30u);  // the block, and the receives of nodes 1 to 29
  ASSERT_EQ(fit.first_misfits.size(), Fit::kListedMax);
  EXPECT_EQ(fit.first_misfits[0].where, "/message/block_bytes");
  EXPECT_EQ(fit.first_misfits[0].needed, 100u);
  EXPECT_EQ(fit.first_misfits[0].limit, 99u);
  EXPECT_EQ(fit.first_misfits[1].where, "/programs/1");
  EXPECT_EQ(fit.first_misfits[1].node, NodeId(1));
  EXPECT_EQ(fit.first_misfits[1].needed, 40u);
  EXPECT_EQ(fit.first_misfits[1].limit, 16u);
}

// The ring that was chosen for a queue because it does not fit, taken for the limit on it.
TEST(FitTest, TheLimitIsWhatWouldFit) {
  for (const char* ready : {"barrier", "channel"}) {
    const Fit most = CheckFit(MakePlan("chain", 2, 32767, ready), {});
    EXPECT_TRUE(most.ok()) << ready;
    const Fit over = CheckFit(MakePlan("chain", 2, 32768, ready), {});
    ASSERT_EQ(over.misfits, 1u) << ready;
    EXPECT_EQ(over.first_misfits[0].limit, 32767u);
    EXPECT_THAT(over.first_misfits[0].message, testing::HasSubstr("32767;"));
    EXPECT_EQ(over.of(Resource::kReceiveQueue).limit, 32767u);
  }
}

TEST(FitTest, ADeviceThatCanLowerNothingIsSaidOnce) {
  const VerifiedPlan plan = MakePlan("chain", 3, 4, "barrier");
  const Fit fit = CheckFit(
      plan,
      {.profile = {
           .name = "old", .wq_ahead = 3, .cross_channel = false, .cq_ignore_overrun = false}});
  EXPECT_FALSE(fit.is_counted);
  std::vector<std::string> texts;
  for (const Misfit& misfit : fit.first_misfits) texts.push_back(misfit.ToString());
  EXPECT_EQ(texts, (std::vector<std::string>{"device profile old: rings of fewer than 4 entries",
                                             "device profile old: no capability cd",
                                             "device profile old: no capability cq_oi"}));
}

// A limit of 24: a ring of 32 for a queue of 20 would be above it.
TEST(FitTest, RingsAreNoLargerThanALimitThatIsNoPowerOfTwo) {
  const VerifiedPlan plan = MakePlan("chain", 2, 20, "retry");
  const auto program = Lower(plan, {.profile = {.sq_wqebbs = 24, .rq_wqes = 20}});
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  EXPECT_EQ(program->nodes[0].qps[0].sq_wqebbs, 16u);
  EXPECT_TRUE(program->nodes[0].qps[0].sends_in_parts());
  EXPECT_EQ(program->nodes[1].qps[0].rq_wqes, 16u);
}

// The verdict of CheckFit() and that of Lower() are one; and what is lowered is within the limits.
TEST(FitTest, LowerRefusesWithTheFirstFinding) {
  test::Random random(test::TestSeed());
  uint32_t fits = 0;
  uint32_t misfits = 0;
  for (int i = 0; i < 400; ++i) {
    const VerifiedPlan plan =
        test::CompileOrDie(test::RandomSpec(random, {.nodes_max = 9, .blocks_max = 30}));
    LowerOptions options{.mode = kModes[random.Below(2)],
                         .masters = static_cast<Masters>(random.Below(3))};
    options.profile.sq_wqebbs = 4 + random.Below(40);
    options.profile.rq_wqes = 4 + random.Below(40);
    options.profile.cq_entries = 4 + random.Below(60);
    options.profile.qps = 4 + random.Below(20);
    const Fit fit = CheckFit(plan, options);
    const auto program = Lower(plan, options);
    ASSERT_EQ(fit.ok(), program.ok()) << program.status().ToString();
    if (!program.ok()) {
      ++misfits;
      EXPECT_EQ(program.status().message(), fit.first_misfits[0].ToString());
      continue;
    }
    ++fits;
    uint64_t rearms = 0;
    for (const NodeProgram& node : program->nodes) {
      rearms += node.rearms();
      EXPECT_LE(node.qps.size(), options.profile.qps);
      for (const QueuePair& qp : node.qps) {
        EXPECT_LE(qp.sq_wqebbs, options.profile.sq_wqebbs);
        EXPECT_LE(qp.rq_wqes, options.profile.rq_wqes);
      }
      for (const CompletionQueue& cq : node.cqs) EXPECT_LE(cq.entries, options.profile.cq_entries);
    }
    EXPECT_EQ(fit.rearms, rearms);
  }
  EXPECT_GT(fits, 20u);
  EXPECT_GT(misfits, 20u);
}

// Of longer messages only ready modes that post all of a queue's receives at once do not fit tiny.
TEST(FitTest, EveryScheduleFitsTheTinyDeviceWhereItsReadyModeAllows) {
  const DeviceProfile tiny = Example("tiny");
  EXPECT_EQ(tiny.rq_wqes, 16u);
  for (const std::string& algorithm : ScheduleNames()) {
    for (const char* ready : {"barrier", "channel", "window=1", "window=5", "retry"}) {
      for (const uint32_t nodes : {1u, 2u, 5u, 8u, 13u, 33u}) {
        for (const uint32_t blocks : {1u, 16u, 40u}) {
          const VerifiedPlan plan = MakePlan(algorithm, nodes, blocks, ready);
          const ReadyMode mode = plan.header().ready.mode;
          const bool at_once = mode == ReadyMode::kBarrier || mode == ReadyMode::kChannel;
          const bool allowed = !at_once || ReceivesMax(plan) <= tiny.rq_wqes;
          for (const LoweringMode lowering : kModes) {
            const Fit fit = CheckFit(plan, {.mode = lowering, .profile = tiny});
            EXPECT_EQ(fit.ok(), allowed) << algorithm << " " << ready << " n=" << nodes
                                         << " k=" << blocks << " " << Name(lowering);
          }
        }
      }
    }
  }
}

// A conservative real device holds what is sent in practice: 16 GiB in blocks of 1 MiB.
TEST(FitTest, LongMessagesFitTheRealDevice) {
  const VerifiedPlan plan = MakePlan("binomial_pipeline", 16, 16384, "window=1");
  for (const LoweringMode mode : kModes) {
    const Fit fit = CheckFit(plan, {.mode = mode, .profile = Example("connectx5")});
    EXPECT_TRUE(fit.ok()) << fit.first_misfits[0].ToString();
    // Only masters are longer than a ring.
    EXPECT_EQ(fit.parted != 0, mode == LoweringMode::kManaged);
  }
}

}  // namespace
}  // namespace prepost::nic::fit_test
