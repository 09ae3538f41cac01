// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ir/analysis/node_summary.h"
#include "tests/support/plans.h"

namespace prepost::reasons_test {
namespace {

using test::CompileOrDie;
using test::Label;
using ::testing::ElementsAre;

std::vector<WaitKind> KindsOf(const std::vector<Wait>& waits) {
  std::vector<WaitKind> kinds;
  for (const Wait& wait : waits) kinds.push_back(wait.kind);
  return kinds;
}

/// 0 > 1 > 2, two blocks, both windows 1, `after` lists in full.
Plan WindowChain() {
  return CompileOrDie({.nodes = 3,
                       .message_bytes = 20,
                       .block_bytes = 10,
                       .algorithm = "chain",
                       .ready = *ParseReady("window=1"),
                       .send_window = *ParseSendWindow("1")},
                      {"thin"});
}

// Every kind of wait that `after` can mean; catches one taken for another.
TEST(ReasonsTest, WindowChainByHand) {
  const Plan plan = WindowChain();
  const PlanTables tables(plan);
  const Reasons reasons(tables);
  // Node 1: 0 credit to 0; 1 recv :0; 2 credit to 0; 3 credit from 2; 4 recv :1; 5 send :0;
  // 6 credit from 2; 7 send :1.
  const OpReasons send = reasons.Explain({NodeId(1), OpId(7)});
  EXPECT_THAT(KindsOf(send.waits_for), ElementsAre(WaitKind::kData, WaitKind::kSendWindow,
                                                   WaitKind::kChannelOrder, WaitKind::kCredit));
  EXPECT_EQ(send.waits_for[0].op, (OpRef{NodeId(1), OpId(4)}));
  EXPECT_EQ(send.waits_for[1].op, (OpRef{NodeId(1), OpId(5)}));
  EXPECT_EQ(send.waits_for[2].op, (OpRef{NodeId(1), OpId(5)}));
  EXPECT_EQ(send.waits_for[3].op, (OpRef{NodeId(1), OpId(6)}));
  EXPECT_EQ(send.earliest_start, 2u);
  for (const Wait& wait : send.waits_for) EXPECT_EQ(wait.until, 2u);
  EXPECT_THAT(KindsOf(send.waited_by), ElementsAre(WaitKind::kTransfer));
  EXPECT_EQ(send.waited_by[0].op, (OpRef{NodeId(2), OpId(3)}));

  const OpReasons credit = reasons.Explain({NodeId(1), OpId(2)});
  EXPECT_THAT(KindsOf(credit.waits_for),
              ElementsAre(WaitKind::kChannelOrder, WaitKind::kReceiveWindow, WaitKind::kGranted));
  const OpReasons recv = reasons.Explain({NodeId(1), OpId(1)});
  EXPECT_THAT(KindsOf(recv.waits_for), ElementsAre(WaitKind::kTransfer));
  EXPECT_EQ(recv.waits_for[0].op, (OpRef{NodeId(0), OpId(1)}));
  EXPECT_THAT(KindsOf(recv.waited_by), ElementsAre(WaitKind::kData, WaitKind::kReceiveWindow,
                                                   WaitKind::kDeliveryOrder, WaitKind::kGranted));

  // 1>2:1 for its data, 0>1:1 for the window, 0>1:0 for a credit that waits for a posting.
  const std::vector<ChainStep> chain = reasons.ChainOf(send.message);
  ASSERT_EQ(chain.size(), 4u);
  EXPECT_EQ(chain[0].cause, WaitKind::kData);
  EXPECT_EQ(chain[1].cause, WaitKind::kSendWindow);
  EXPECT_EQ(chain[2].cause, WaitKind::kCredit);
  EXPECT_EQ(chain[3].cause, WaitKind::kGranted);
  EXPECT_TRUE(tables.SendOf(chain[3].message).is_credit());
}

TEST(ReasonsTest, TheBarrierAndTheRoot) {
  const Plan plan = test::PlanOf(3, 1, "chain");
  const PlanTables tables(plan);
  const Reasons reasons(tables);
  const OpReasons first = reasons.Explain({NodeId(0), OpId(0)});
  EXPECT_THAT(KindsOf(first.waits_for), ElementsAre(WaitKind::kBarrier));
  EXPECT_FALSE(first.waits_for[0].op);
  const std::vector<ChainStep> chain = reasons.ChainOf(first.message);
  ASSERT_EQ(chain.size(), 1u);
  EXPECT_EQ(chain[0].cause, WaitKind::kBarrier);
}

class ReasonsOfEverySpec : public ::testing::Test {
 protected:
  /// Calls `check` with every op of every small plan.
  template <typename Check>
  void ForEveryOp(Check check) {
    for (const Spec& spec : test::AllSmallSpecs({.nodes_max = 5, .blocks_max = 3})) {
      SCOPED_TRACE(Label(spec));
      const VerifiedPlan plan = CompileOrDie(spec);
      const PlanTables tables(plan);
      const Reasons reasons(tables);
      for (const Program& program : plan.programs()) {
        for (uint32_t i = 0; i < program.op_count; ++i) {
          check(tables, reasons, OpRef{program.node, OpId(i)});
        }
      }
    }
  }
};

// Catches an `after` entry without its reason, an implied one that stands there, and a block or a
// credit that a send needs and nobody mentions.
TEST_F(ReasonsOfEverySpec, AreThoseOfThePlan) {
  ForEveryOp([](const PlanTables& tables, const Reasons& reasons, OpRef ref) {
    const Plan& plan = tables.plan();
    const Op& op = plan.ops()[tables.IndexOf(ref)];
    if (!op.is_send()) return;
    const OpReasons why = reasons.Explain(ref);
    std::vector<OpId> named;
    bool has_data = ref.node == plan.header().collective.root;
    bool has_credit = !plan.header().ready.has_credits();
    for (const Wait& wait : why.waits_for) {
      has_data |= wait.kind == WaitKind::kData;
      has_credit |= wait.kind == WaitKind::kCredit;
      EXPECT_LE(wait.until, why.earliest_start);
      EXPECT_EQ(wait.is_cause, wait.until == why.earliest_start);
      EXPECT_NE(wait.kind, WaitKind::kAfter) << Dump(plan);
      const bool in_after = !wait.is_implied && wait.op && wait.kind != WaitKind::kChannelOrder &&
                            wait.kind != WaitKind::kGranted;
      if (in_after) named.push_back(wait.op->op);
    }
    std::ranges::sort(named);
    EXPECT_TRUE(std::ranges::equal(named, plan.after(op)));
    if (!op.is_credit()) {
      EXPECT_TRUE(has_data);
      EXPECT_TRUE(has_credit);
    }
  });
}

// Catches a wait that is reported for one side only.
TEST_F(ReasonsOfEverySpec, AreToldOfBothSides) {
  ForEveryOp([](const PlanTables&, const Reasons& reasons, OpRef ref) {
    for (const Wait& wait : reasons.Explain(ref).waits_for) {
      if (!wait.op || wait.is_implied) continue;
      const std::vector<Wait> back = reasons.Explain(*wait.op).waited_by;
      EXPECT_TRUE(std::ranges::any_of(
          back, [&](const Wait& other) { return other.kind == wait.kind && other.op == ref; }))
          << ref.node.value << "/" << ref.op.value;
    }
  });
}

// Catches chains that skip a message, or end before the root: a block time per block.
TEST_F(ReasonsOfEverySpec, ChainsHaveABlockPerBlockTime) {
  ForEveryOp([](const PlanTables& tables, const Reasons& reasons, OpRef ref) {
    const uint32_t message = tables.messages().MessageOf(tables.IndexOf(ref));
    const std::vector<ChainStep> chain = reasons.ChainOf(message);
    uint64_t blocks = 0;
    for (const ChainStep& step : chain) {
      if (tables.SendOf(step.message).is_credit()) continue;
      ++blocks;
      EXPECT_EQ(reasons.times().StartOf(step.message) + blocks,
                reasons.times().DeliveryOf(message));
    }
    EXPECT_EQ(blocks, reasons.times().DeliveryOf(message));
    EXPECT_EQ(reasons.times().StartOf(chain.back().message), 0u);
  });
}

// The longest chain of the plan has as many blocks as the plan is deep, and no slack on its way.
TEST(ReasonsTest, TheCriticalChain) {
  for (const char* algorithm : {"chain", "binomial_pipeline", "circulant", "two_tree"}) {
    const Plan plan = test::PlanOf(13, 6, algorithm);
    const PlanTables tables(plan);
    const Reasons reasons(tables);
    uint32_t last = 0;
    for (uint32_t m = 0; m < tables.messages().size(); ++m) {
      if (reasons.times().DeliveryOf(m) > reasons.times().DeliveryOf(last)) last = m;
    }
    uint64_t blocks = 0;
    for (const ChainStep& step : reasons.ChainOf(last)) {
      EXPECT_EQ(reasons.times().SlackOf(step.message), 0u) << algorithm;
      blocks += tables.SendOf(step.message).is_credit() ? 0u : 1u;
    }
    EXPECT_EQ(blocks, DepthOf(tables).blocks) << algorithm;
  }
}

// Catches counts of the wrong direction, and first and last taken for each other.
TEST(NodeSummaryTest, ChainByHand) {
  const Plan plan = test::PlanOf(4, 3, "chain");
  const PlanTables tables(plan);
  const EventTimes times(tables);
  const NodeSummary node = Summarise(tables, times, NodeId(1));
  EXPECT_EQ(node.blocks_in, 3u);
  EXPECT_EQ(node.blocks_out, 3u);
  EXPECT_THAT(node.from, ElementsAre(PeerBlocks{NodeId(0), 3}));
  EXPECT_THAT(node.to, ElementsAre(PeerBlocks{NodeId(2), 3}));
  EXPECT_EQ(node.critical.size(), 6u);
  EXPECT_EQ(tables.SendOf(*node.first_message).block, 0u);
  EXPECT_EQ(tables.SendOf(*node.last_message).block, 2u);
  const NodeSummary root = Summarise(tables, times, NodeId(0));
  EXPECT_FALSE(root.first_message);
  EXPECT_EQ(root.blocks_in, 0u);
}

}  // namespace
}  // namespace prepost::reasons_test
