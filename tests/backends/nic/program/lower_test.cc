// SPDX-License-Identifier: Apache-2.0
//
// Inline lowering: the queues of small plans written out, indices that count signaled WQEs,
// redundant WAITs, and refusals.
#include "backends/nic/program/lower.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "backends/nic/host/armed_node.h"
#include "backends/nic/program/listing.h"
#include "tests/support/plans.h"

namespace prepost::nic::lower_test {
namespace {

VerifiedPlan MakePlan(const std::string& algorithm, uint32_t nodes, uint32_t blocks,
                      const std::string& ready, const std::string& send_window = "none") {
  return test::CompileOrDie({.nodes = nodes,
                             .message_bytes = blocks * 100 - 10,
                             .block_bytes = 100,
                             .algorithm = algorithm,
                             .ready = *ParseReady(ready),
                             .send_window = *ParseSendWindow(send_window)});
}

/// "wait 2:0", "block 1", "credit", "nop", with "!" when signaled.
std::vector<std::string> Sends(const QueuePair& qp) {
  std::vector<std::string> text;
  for (const SendEntry& it : qp.sends) {
    std::string one = it.opcode == Opcode::kWait
                          ? fmt::format("wait {}:{}", it.cq.value, it.cqe_index)
                      : it.opcode == Opcode::kSendImm ? fmt::format("block {}", it.block)
                      : it.opcode == Opcode::kSend    ? "credit"
                                                      : "nop";
    text.push_back(one + (it.signaled ? "!" : ""));
  }
  return text;
}

using Strings = std::vector<std::string>;

// Whoever lowers it. Catches a program that leaves out what the plan combines.
TEST(LowerTest, RefusesWhatNoNicCarriesOut) {
  for (const CollectiveKind kind : {CollectiveKind::kAllreduce, CollectiveKind::kAllgather}) {
    Spec spec = {.collective = kind, .nodes = 4, .message_bytes = 64, .algorithm = "ring"};
    if (Combines(kind)) spec.combine = *ParseCombine("sum:float32");
    const auto program = Lower(test::CompileOrDie(spec));
    ASSERT_FALSE(program.ok()) << Name(kind);
    EXPECT_THAT(program.status().message(), testing::HasSubstr("a plan of"));
  }
}

TEST(LowerTest, MiddleOfAChain) {
  const VerifiedPlan plan = MakePlan("chain", 4, 2, "barrier");
  const auto program = Lower(plan, {.node = NodeId(1)});
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  ASSERT_EQ(program->nodes.size(), 1u);
  const NodeProgram& node = program->nodes[0];
  ASSERT_EQ(node.qps.size(), 3u);
  const uint32_t receives = node.qps[0].recv_cq.value;
  const uint32_t sends = node.qps[1].send_cq.value;
  EXPECT_EQ(node.qps[0].peer, NodeId(0));
  EXPECT_EQ(node.qps[0].receives.size(), 2u);
  EXPECT_EQ(node.qps[0].receives[1], (ReceiveEntry{1, 100, 90, node.qps[0].receives[1].op}));
  EXPECT_EQ(Sends(node.qps[1]), (Strings{fmt::format("wait {}:0", receives), "block 0",
                                         fmt::format("wait {}:1", receives), "block 1!"}));
  EXPECT_TRUE(node.qps[2].loopback);
  EXPECT_EQ(Sends(node.qps[2]),
            (Strings{fmt::format("wait {}:1", receives), fmt::format("wait {}:0", sends), "nop!"}));
  EXPECT_EQ(program->rnr_retry, 0);
  EXPECT_EQ(node.doorbells(), 2u);
}

TEST(LowerTest, RootLeafAndLonelyNodeEndInOneNop) {
  for (uint32_t nodes : {1u, 2u}) {
    const auto program = Lower(MakePlan("chain", nodes, 1, "barrier"));
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    for (const NodeProgram& node : program->nodes) {
      EXPECT_EQ(Sends(node.qps.back()).back(), "nop!");
      EXPECT_EQ(node.cqs[node.final_cq.index()].role, CompletionQueue::Role::kFinal);
      EXPECT_EQ(node.cqs[node.final_cq.index()].completions, 1u);
    }
  }
}

// With send_window=1 sends wait for sends on other queues: their CQE indices count only signaled
// ones.
TEST(LowerTest, SendsThatAreWaitedForAreSignaled) {
  const VerifiedPlan plan = MakePlan("binomial_tree", 4, 3, "barrier", "1");
  const auto program = Lower(plan, {.node = NodeId(0)});
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  const NodeProgram& node = program->nodes[0];
  for (const QueuePair& qp : node.qps) {
    uint32_t signaled = 0;
    for (const SendEntry& entry : qp.sends) signaled += entry.signaled;
    EXPECT_EQ(signaled, node.cqs[qp.send_cq.index()].completions);
    for (const SendEntry& entry : qp.sends) {
      if (entry.opcode != Opcode::kWait) continue;
      EXPECT_LT(entry.cqe_index, node.cqs[entry.cq.index()].completions);
    }
  }
}

TEST(LowerTest, CreditsHaveTheirOwnQueues) {
  const auto program = Lower(MakePlan("chain", 3, 2, "window=1"), {.node = NodeId(1)});
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  const NodeProgram& node = program->nodes[0];
  ASSERT_EQ(node.qps.size(), 5u);
  const auto credits = FindQp(node, NodeId(0), Lane::kCredits);
  ASSERT_TRUE(credits.ok());
  const auto blocks = FindQp(node, NodeId(0), Lane::kBlocks);
  ASSERT_TRUE(blocks.ok());
  const uint32_t received = node.qps[blocks->index()].recv_cq.value;
  EXPECT_EQ(Sends(node.qps[credits->index()]),
            (Strings{"credit", fmt::format("wait {}:0", received), "credit!"}));
  EXPECT_EQ(program->rnr_retry, 7);
}

// A WAIT that the same queue has passed, for the same CQ with an equal or larger index, is not
// repeated.
TEST(LowerTest, PassedWaitsAreDropped) {
  PlanHeader header;
  header.nodes = 2;
  header.collective.root = NodeId(0);
  header.payload = *MakePayload(2, 1);
  header.rounds = 2;
  PlanBuilder builder(header);
  const ChannelId out = builder.AddChannel({NodeId(0), NodeId(1), Lane::kBlocks});
  builder.BeginProgram(NodeId(0));
  const OpId first = builder.AddOp({.channel = out, .block = 0, .round = 0});
  builder.AddOp({.channel = out, .block = 1, .round = 1}, std::vector{first});
  builder.BeginProgram(NodeId(1));
  builder.AddOp({.channel = out, .block = 0, .round = 0, .kind = OpKind::kRecv});
  builder.AddOp({.channel = out, .block = 1, .round = 1, .kind = OpKind::kRecv});
  const auto program = Lower(*Verified(std::move(builder).Build()));
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  const QueuePair& qp = program->nodes[0].qps[0];
  EXPECT_EQ(Sends(qp),
            (Strings{"block 0!", fmt::format("wait {}:0", qp.send_cq.value), "block 1!"}));

  // For all plans: on one queue the indices waited for on one CQ rise.
  for (uint32_t nodes = 2; nodes <= 9; ++nodes) {
    const auto many = Lower(MakePlan("binomial_pipeline", nodes, 6, "window=1", "1"));
    ASSERT_TRUE(many.ok()) << many.status().ToString();
    for (const NodeProgram& node : many->nodes) {
      for (const QueuePair& queue : node.qps) {
        std::map<CqId, uint32_t> passed;
        for (const SendEntry& entry : queue.sends) {
          if (entry.opcode != Opcode::kWait) continue;
          const auto [at, fresh] = passed.try_emplace(entry.cq, entry.cqe_index);
          if (!fresh) {
            EXPECT_GT(entry.cqe_index, at->second);
          }
          at->second = entry.cqe_index;
        }
      }
    }
  }
}

TEST(LowerTest, RefusesWhatDoesNotFitWithTheNumbers) {
  const VerifiedPlan plan = MakePlan("chain", 3, 6, "barrier");
  EXPECT_EQ(Lower(plan, {.profile = {.rq_wqes = 4}}).status().message(),
            "node 1: receive queue of QP 1<>0 blocks needs 6 WQEs before any send starts (--ready "
            "barrier), the limit is 4; --ready window=1 needs fewer");
  EXPECT_EQ(Lower(plan, {.profile = {.cq_entries = 5}}).status().message(),
            "node 0: CQ of sends 0>1 blocks needs 8 entries, the limit is 5");
  EXPECT_EQ(Lower(plan, {.profile = {.message_bytes = 99}}).status().message(),
            "block of 100 bytes does not fit one RC message, the limit is 99");
  EXPECT_EQ(Lower(plan, {.profile = {.qps = 2}}).status().message(),
            "node 1: node needs 3 QPs, the limit is 2");
  EXPECT_EQ(Lower(plan, {.profile = {.cross_channel = false}}).status().message(),
            "device profile default: no capability cd");
  const Status missing = Lower(plan, {.node = NodeId(3)}).status();
  EXPECT_EQ(missing.message(), "no node 3: the plan has nodes 0 to 2");
  EXPECT_EQ(missing.code(), StatusCode::kRejected);
}

TEST(LowerTest, OneNodeAloneIsTheSame) {
  const VerifiedPlan plan = MakePlan("binomial_pipeline", 6, 4, "auto", "auto");
  const auto all = Lower(plan);
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  for (const NodeProgram& node : all->nodes) {
    const auto one = Lower(plan, {.node = node.node});
    ASSERT_TRUE(one.ok()) << one.status().ToString();
    EXPECT_EQ(one->nodes, std::vector{node});
  }
}

TEST(ListingTest, NamesOperandsAndOps) {
  const VerifiedPlan plan = MakePlan("chain", 3, 2, "barrier");
  const auto program = Lower(plan, {.node = NodeId(1)});
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  EXPECT_EQ(List(plan, *program),
            R"(queues: inline, message of 190 bytes in blocks of 100, RNR retries: 0
node 1
  CQ 0: idle, CQEs: 0, ring: 1
  CQ 1: receives 0>1 blocks, CQEs: 2, ring: 2
  CQ 2: sends 1>2 blocks, CQEs: 1, ring: 4
  CQ 3: final, CQEs: 1, ring: 4
  QP 1<>0 blocks: rings: 1 and 2, sends on idle, receives on receives 0>1 blocks
    rq 000000  RECV [0, 100)                                     ; node 1 op 0 (recv 0>1:0)
    rq 000010  RECV [100, 190)                                   ; node 1 op 1 (recv 0>1:1)
  QP 1<>2 blocks: rings: 4 and 0, sends on sends 1>2 blocks, receives on idle
    sq 000000  WAIT receives 0>1 blocks until CQE 0              ; node 1 op 2 (send 1>2:0)
    sq 000040  SEND_IMM imm 00000000 [0, 100)                    ; node 1 op 2 (send 1>2:0)
    sq 000080  WAIT receives 0>1 blocks until CQE 1              ; node 1 op 3 (send 1>2:1)
    sq 0000c0  SEND_IMM imm 00000001 [100, 190) signaled         ; node 1 op 3 (send 1>2:1)
  QP 1 loopback: rings: 4 and 0, sends on final, receives on idle
    sq 000000  WAIT receives 0>1 blocks until CQE 1              ; all is done
    sq 000040  WAIT sends 1>2 blocks until CQE 0                 ; all is done
    sq 000080  NOP signaled                                      ; all is done
)");
  EXPECT_EQ(Summary(program->nodes[0]),
            "node 1: 3 QPs, 4 CQs, 9 WQEs, 4 WAITs, 0 SEND_ENs, 2 doorbells, 0 re-arms, 1312 bytes "
            "of rings");
}

}  // namespace
}  // namespace prepost::nic::lower_test
