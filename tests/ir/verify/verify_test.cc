// SPDX-License-Identifier: Apache-2.0
//
// Each rule of the verifier on small plans: what passes, what fails, where the finding points
// and what it says. An example is an edit of a plan that is valid; the independent checker must
// agree.
#include "ir/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "ir/base/count.h"
#include "tests/support/checker.h"
#include "tests/support/draft.h"
#include "tests/support/plans.h"

namespace prepost::verify_test {
namespace {

using test::Depths;
using test::Draft;
using ::testing::Contains;
using ::testing::HasSubstr;

/// A chain 0 > 1 > 2 of two blocks; see Dump in the output of a failure for its ops.
VerifiedPlan Chain(const std::string& ready, const std::string& send_window) {
  return test::CompileOrDie({.nodes = 3,
                             .root = NodeId(0),
                             .message_bytes = 20,
                             .block_bytes = 10,
                             .algorithm = "chain",
                             .ready = *ParseReady(ready),
                             .send_window = *ParseSendWindow(send_window)});
}
Plan BarrierChain() { return Chain("barrier", "none"); }
Plan ChannelChain() { return Chain("channel", "none"); }
Plan WindowChain() { return Chain("window=1", "1"); }

/// Reduce over the chain 2 > 1 > 0, and allreduce down again; two blocks of one float64.
VerifiedPlan CombiningChain(CollectiveKind kind, const std::string& ready) {
  return test::CompileOrDie({.collective = kind,
                             .combine = {.op = CombineOp::kSum, .type = ElementType::kFloat64},
                             .nodes = 3,
                             .message_bytes = 16,
                             .block_bytes = 8,
                             .algorithm = "chain",
                             .ready = *ParseReady(ready),
                             .send_window = *ParseSendWindow("none")});
}
Plan BarrierReduce() { return CombiningChain(CollectiveKind::kReduce, "barrier"); }
Plan WindowReduce() { return CombiningChain(CollectiveKind::kReduce, "window=1"); }
Plan BarrierAllreduce() { return CombiningChain(CollectiveKind::kAllreduce, "barrier"); }
/// Each tells the next one, then the one after that: [send, combine, send, combine] at each of 4.
Plan Barrier() {
  return test::CompileOrDie({.collective = CollectiveKind::kBarrier,
                             .combine = {.op = CombineOp::kAnd, .type = ElementType::kUint8},
                             .nodes = 4,
                             .message_bytes = 0,
                             .algorithm = "dissemination"});
}
/// Node 0 has the root's part of 3, and gathers those of 1 and, through 1, of 2.
Plan Gather() {
  return test::CompileOrDie({.collective = CollectiveKind::kGather,
                             .nodes = 4,
                             .message_bytes = 8,
                             .block_bytes = 8,
                             .algorithm = "binomial",
                             .ready = *ParseReady("barrier"),
                             .send_window = *ParseSendWindow("none")});
}

Plan UnevenReduceScatter() {
  return test::CompileOrDie({.collective = CollectiveKind::kReduceScatter,
                             .combine = {.op = CombineOp::kSum, .type = ElementType::kFloat64},
                             .nodes = 3,
                             .message_bytes = 16,
                             .part_bytes = {16, 0, 8},
                             .block_bytes = 8,
                             .algorithm = "ring"});
}
/// The same parts, some of them shorter, one empty.
Plan UnevenGather() {
  return test::CompileOrDie({.collective = CollectiveKind::kGather,
                             .nodes = 4,
                             .message_bytes = 8,
                             .part_bytes = {3, 0, 8, 5},
                             .block_bytes = 8,
                             .algorithm = "binomial"});
}

/// Adds a message to a draft in barrier or retry mode: a channel if need be, a send, a receive.
void AddMessage(Draft& draft, uint32_t from, uint32_t to, uint32_t block, uint32_t round,
                std::vector<uint32_t> after = {}) {
  const Channel channel{.from = NodeId(from), .to = NodeId(to), .lane = Lane::kBlocks};
  if (!draft.Find(channel)) draft.channels.push_back(channel);
  const Op send{.channel = *draft.Find(channel), .block = block, .round = round};
  Op recv = send;
  recv.kind = OpKind::kRecv;
  draft.programs[from].ops.push_back({send, std::move(after)});
  draft.programs[to].ops.push_back({recv, {}});
}

Draft EmptyDraft(uint32_t nodes, uint32_t blocks, uint32_t rounds) {
  PlanHeader header;
  header.nodes = nodes;
  header.payload = {.bytes = blocks, .block_bytes = 1, .blocks = blocks};
  header.ready.mode = ReadyMode::kRetry;
  header.rounds = rounds;
  Draft draft(std::move(header));
  for (uint32_t node = 0; node < nodes; ++node) draft.programs.push_back({NodeId(node), {}});
  return draft;
}

struct Example {
  std::string name;
  Plan (*base)();
  void (*edit)(Draft& draft);
  Rule rule = Rule::kShape;
  std::string where;    ///< empty: the edited plan is valid
  std::string message;  ///< a part of it
  Depths depths = {};

  friend void PrintTo(const Example& example, std::ostream* out) { *out << example.name; }
};

class VerifyExampleTest : public testing::TestWithParam<Example> {};

TEST_P(VerifyExampleTest, FindsWhatIsWrong) {
  const Example& example = GetParam();
  const VerifyOptions options{.send_depth = example.depths.send, .recv_depth = example.depths.recv};
  Draft draft(example.base());
  ASSERT_TRUE(Verify(draft.Build()).ok()) << Verify(draft.Build()).ToString();
  example.edit(draft);
  const Plan plan = draft.Build();
  const Verdict verdict = Verify(plan, options);
  SCOPED_TRACE(verdict.ToString() + Dump(plan));
  EXPECT_EQ(verdict.ok(), test::IndependentCheck(plan, example.depths).empty());
  if (example.where.empty()) {
    EXPECT_TRUE(verdict.ok());
    return;
  }
  EXPECT_THAT(
      verdict.diagnostics,
      Contains(testing::AllOf(testing::Field(&Diagnostic::rule, example.rule),
                              testing::Field(&Diagnostic::where, example.where),
                              testing::Field(&Diagnostic::message, HasSubstr(example.message)))));
  EXPECT_TRUE(verdict.Has(example.rule));
  EXPECT_EQ(Verified(Plan(plan), options).status().message(),
            Count(verdict.findings, "finding") + ":" + verdict.Continued());
}

// A plan that is refused is as it was, and its findings are reported; depths count.
TEST(VerifyTest, OnlyPlansWithoutFindingsAreVerified) {
  Plan plan = BarrierChain();
  Verdict verdict;
  EXPECT_FALSE(Verified(std::move(plan), {.recv_depth = 1}, &verdict).ok());
  EXPECT_FALSE(verdict.ok());
  EXPECT_EQ(plan, BarrierChain());
  const Result<VerifiedPlan> verified = Verified(std::move(plan), {}, &verdict);
  ASSERT_TRUE(verified.ok());
  EXPECT_TRUE(verdict.ok());
  EXPECT_EQ(*verified, BarrierChain());
}

std::string NameOf(const testing::TestParamInfo<Example>& info) { return info.param.name; }

const Example kShapeExamples[] = {
    {"NoBytesAreOneBlock", BarrierChain,
     [](Draft& d) {
       d = EmptyDraft(1, 1, 0);
       d.header.payload.bytes = 0;
     }},
    {"ProgramsInAnyOrder", BarrierChain, [](Draft& d) { std::swap(d.programs[0], d.programs[2]); }},
    {"NoNodes", BarrierChain, [](Draft& d) { d.header.nodes = 0; }, Rule::kShape, "/nodes",
     "0 nodes, expected 1 to 1048576"},
    {"Root", BarrierChain, [](Draft& d) { d.header.collective.root = NodeId(3); }, Rule::kShape,
     "/root", "root 3 is out of range, the nodes are 0 to 2"},
    {"BlockBytes", BarrierChain, [](Draft& d) { d.header.payload.block_bytes = 0; }, Rule::kShape,
     "/message/block_bytes", "block size is 0 bytes, expected 1 or more"},
    {"Blocks", BarrierChain, [](Draft& d) { d.header.payload.blocks = 3; }, Rule::kShape,
     "/message/blocks", "expected 2 blocks for 20 bytes in blocks of 10, found 3"},
    {"BytesOverflow", BarrierChain, [](Draft& d) { d.header.payload.bytes = ~uint64_t{0}; },
     Rule::kShape, "/message/bytes", "above the limit"},
    {"TooManyBlocks", BarrierChain, [](Draft& d) { d.header.payload.bytes = uint64_t{10} << 25; },
     Rule::kShape, "/message/block_bytes", "makes 33554432 blocks, the limit is 16777216"},
    {"WindowOfBarrier", BarrierChain, [](Draft& d) { d.header.ready.window = 2; }, Rule::kShape,
     "/ready/window", "window 2 with ready mode barrier, expected none"},
    {"WindowMissing", WindowChain, [](Draft& d) { d.header.ready.window = 0; }, Rule::kShape,
     "/ready/window", "window 0 with ready mode window, expected at least 1"},
    {"SendWindow", BarrierChain, [](Draft& d) { d.header.send_window = 0; }, Rule::kShape,
     "/send_window", "send window 0"},
    {"Ports", BarrierChain, [](Draft& d) { d.header.ports = 0; }, Rule::kShape, "/ports",
     "0 ports"},
    {"ProgramMissing", BarrierChain, [](Draft& d) { d.programs.pop_back(); }, Rule::kShape,
     "/programs", "2 programs, expected one for each of 3 nodes"},
    {"ProgramTwice", BarrierChain, [](Draft& d) { d.programs[2].node = NodeId(1); }, Rule::kShape,
     "/programs/2/node", "node 1 has a program already, /programs/1"},
    {"ProgramOfNoNode", BarrierChain, [](Draft& d) { d.programs[2].node = NodeId(3); },
     Rule::kShape, "/programs/2/node", "node 3 is out of range"},
    {"ChannelOfNoNode", BarrierChain, [](Draft& d) { d.channels[1].to = NodeId(9); }, Rule::kShape,
     "/channels/1/to", "node 9 is out of range, the nodes are 0 to 2"},
    {"ChannelToItself", BarrierChain, [](Draft& d) { d.channels[1].to = NodeId(1); }, Rule::kShape,
     "/channels/1", "channel from node 1 to itself"},
    {"ChannelTwice", BarrierChain, [](Draft& d) { d.channels.push_back(d.channels[0]); },
     Rule::kShape, "/channels/2", "0>1 lane 0 is the same as /channels/0"},
    {"OpOfNoChannel", BarrierChain,
     [](Draft& d) { d.programs[0].ops[1].op.channel = ChannelId(2); }, Rule::kShape,
     "/programs/0/ops/1/channel", "channel 2 is out of range, there are 2"},
    {"OpAtWrongEnd", BarrierChain, [](Draft& d) { d.programs[0].ops[1].op.channel = ChannelId(1); },
     Rule::kShape, "/programs/0/ops/1/channel", "send at node 0 on channel 1>2"},
    {"BlockOutOfRange", BarrierChain, [](Draft& d) { d.programs[0].ops[1].op.block = 2; },
     Rule::kShape, "/programs/0/ops/1/block", "block 2 is out of range, the blocks are 0 to 1"},
    {"CreditOnBlockLane", BarrierChain, [](Draft& d) { d.programs[0].ops[1].op.block = kNoBlock; },
     Rule::kShape, "/programs/0/ops/1/block", "credit on lane 0"},
    {"BlockOnCreditLane", BarrierChain, [](Draft& d) { d.channels[0].lane = Lane::kCredits; },
     Rule::kShape, "/programs/1/ops/0/block", "block on lane 1"},
    {"GrantsOfBlock", BarrierChain, [](Draft& d) { d.programs[0].ops[0].op.grants = 1; },
     Rule::kShape, "/programs/0/ops/0/grants", "grants 1, expected none"},
    {"GrantsOfCreditRecv", WindowChain, [](Draft& d) { d.programs[0].ops[0].op.grants = 1; },
     Rule::kShape, "/programs/0/ops/0/grants", "grants 1, expected none"},
    {"GrantsNothing", WindowChain, [](Draft& d) { d.programs[1].ops[0].op.grants = 0; },
     Rule::kShape, "/programs/1/ops/0/grants", "grants 0, expected at least 1"},
    {"RecvWaits", BarrierChain, [](Draft& d) { d.programs[1].ops[1].after = {0}; }, Rule::kShape,
     "/programs/1/ops/1/after", "a recv waits for nothing, found 1 entries"},
    {"AfterItself", BarrierChain,
     [](Draft& d) {
       d.programs[1].ops[2].after = {0, 2};
     },
     Rule::kShape, "/programs/1/ops/2/after/1", "op 2 is not before op 2"},
    {"AfterFalls", BarrierChain,
     [](Draft& d) {
       d.programs[1].ops[2].after = {1, 0};
     },
     Rule::kShape, "/programs/1/ops/2/after/1", "op 0 does not stand above op 1"},
    {"AfterTwice", BarrierChain,
     [](Draft& d) {
       d.programs[1].ops[2].after = {0, 0};
     },
     Rule::kShape, "/programs/1/ops/2/after/1", "op 0 does not stand above op 0"},
};
INSTANTIATE_TEST_SUITE_P(Shape, VerifyExampleTest, testing::ValuesIn(kShapeExamples), NameOf);

const Example kMessageExamples[] = {
    {"MatchWithoutRecv", BarrierChain, [](Draft& d) { d.programs[2].ops.pop_back(); }, Rule::kMatch,
     "/programs/1/ops/3", "send number 1 on 1>2 lane 0 has no recv"},
    {"MatchWithoutSend", BarrierChain, [](Draft& d) { d.programs[1].ops.pop_back(); }, Rule::kMatch,
     "/programs/2/ops/1", "recv number 1 on 1>2 lane 0 has no send"},
    {"MatchOfOtherBlock", BarrierChain, [](Draft& d) { d.programs[2].ops[1].op.block = 0; },
     Rule::kMatch, "/programs/2/ops/1/block",
     "receives block 0, but its send /programs/1/ops/3 sends block 1"},
    {"OnceTwice", BarrierChain,
     [](Draft& d) { d.programs[1].ops[3].op.block = d.programs[2].ops[1].op.block = 0; },
     Rule::kValue, "/programs/2/ops/1/block", "block 0 is received a second time, first by op 0"},
    {"OnceNever", BarrierChain,
     [](Draft& d) {
       d.programs[1].ops.pop_back();
       d.programs[2].ops.pop_back();
     },
     Rule::kValue, "/programs/2", "node 2 receives 1 of 2 blocks, block 1 is missing"},
    {"OnceByRoot", BarrierChain,
     [](Draft& d) {
       AddMessage(d, 2, 0, 0, 3, {0});
       d.header.rounds = 4;
     },
     Rule::kValue, "/programs/0/ops/2", "node 0 receives block 0, which it has"},
};
INSTANTIATE_TEST_SUITE_P(Message, VerifyExampleTest, testing::ValuesIn(kMessageExamples), NameOf);

// Ops of the chain's reduce: node 0 [combine 0, combine 1], node 1 [combine 0, send 0, combine 1,
// send 1], node 2 [send 0, send 1]; allreduce goes on with node 0 [send 0, send 1], node 1 [recv 0,
// send 0, recv 1, send 1], node 2 [recv 0, recv 1].
const Example kCombineExamples[] = {
    {"NoOperation", BarrierReduce, [](Draft& d) { d.header.combine = {}; }, Rule::kShape,
     "/combine", "reduce without an operation and a type"},
    {"OperationOfMulticast", BarrierChain,
     [](Draft& d) {
       d.header.combine = {CombineOp::kSum, ElementType::kInt8};
     },
     Rule::kShape, "/combine", "multicast combines nothing, expected no operation"},
    {"BitsOfFloats", BarrierReduce, [](Draft& d) { d.header.combine.op = CombineOp::kXor; },
     Rule::kShape, "/combine/op", "xor of float64: bits are combined of integers"},
    {"CutElements", BarrierReduce, [](Draft& d) { d.header.payload.bytes = 12; }, Rule::kShape,
     "/message/bytes", "12 bytes are not a whole number of float64 (8 bytes each)"},
    {"Parts", Gather, [](Draft& d) { d.header.payload.parts = 2; }, Rule::kShape, "/message/parts",
     "expected 4 parts for gather between 4 members, found 2"},
    {"SizesOfParts", UnevenGather,
     [](Draft& d) {
       d.header.payload.part_bytes = {8, 0, 8, 7};
     }},
    {"TooFewSizes", UnevenGather, [](Draft& d) { d.header.payload.part_bytes.pop_back(); },
     Rule::kShape, "/message/part_bytes", "3 sizes, expected one for each of 4 parts"},
    {"LargestPart", UnevenGather, [](Draft& d) { d.header.payload.part_bytes[3] = 9; },
     Rule::kShape, "/message/bytes", "8 bytes, expected 9, those of the largest part"},
    {"EqualSizes", Gather,
     [](Draft& d) {
       d.header.payload.part_bytes = {8, 8, 8, 8};
     },
     Rule::kShape, "/message/part_bytes", "all parts have 8 bytes, expected no sizes of their own"},
    {"SizesOfAMulticast", BarrierChain, [](Draft& d) { d.header.payload.part_bytes = {20}; },
     Rule::kShape, "/message/part_bytes", "all parts have 20 bytes"},
    {"CutElementsOfAPart", UnevenReduceScatter,
     [](Draft& d) { d.header.payload.part_bytes[1] = 4; }, Rule::kShape, "/message/part_bytes",
     "4 bytes of part 1 are not a whole number of float64 (8 bytes each)"},
    {"OnlyHelpers", BarrierReduce, [](Draft& d) { d.header.collective.helpers = 3; }, Rule::kShape,
     "/helpers", "3 helpers of 3 nodes, expected at least 1 node that is none"},
    {"CombineInMulticast", BarrierChain,
     [](Draft& d) { d.programs[1].ops[0].op.kind = OpKind::kCombine; }, Rule::kShape,
     "/programs/1/ops/0/op", "combine in a plan of multicast, which combines nothing"},
    {"CombineOfACredit", WindowReduce,
     [](Draft& d) { d.programs[2].ops[0].op.kind = OpKind::kCombine; }, Rule::kShape,
     "/programs/2/ops/0/op", "combine of a credit, which has no values"},
    {"NoBuffer", BarrierReduce, [](Draft& d) { d.programs[1].ops[0].op.scratch = kNoScratch; },
     Rule::kShape, "/programs/1/ops/0/scratch",
     "combine of what node 1 has needs a scratch buffer"},
    {"BufferOutOfRange", BarrierReduce, [](Draft& d) { d.programs[1].ops[0].op.scratch = 2; },
     Rule::kShape, "/programs/1/ops/0/scratch", "1 buffer from 2 on are out of range, there are 2"},
    {"BufferOfSend", BarrierReduce, [](Draft& d) { d.programs[1].ops[1].op.scratch = 0; },
     Rule::kShape, "/programs/1/ops/1/scratch", "scratch buffer 0, expected none on a send"},
    {"NoBlocks", BarrierReduce, [](Draft& d) { d.programs[1].ops[1].op.count = 0; }, Rule::kShape,
     "/programs/1/ops/1/count", "0 blocks, expected 1 to 2"},
    {"TooManyBlocksInOp", BarrierReduce, [](Draft& d) { d.programs[1].ops[3].op.count = 2; },
     Rule::kShape, "/programs/1/ops/3/count", "2 blocks, expected 1"},
    {"MatchOfRanges", Gather, [](Draft& d) { d.programs[2].ops[1].op.count = 1; }, Rule::kMatch,
     "/programs/0/ops/1/block",
     "receives blocks 2 to 3, but its send /programs/2/ops/1 sends block 2"},
    {"GathersNotAll", Gather,
     [](Draft& d) {
       d.programs[2].ops[1].op.count = 1;
       d.programs[0].ops[1].op.count = 1;
     },
     Rule::kValue, "/programs/0", "node 0 receives 2 of 3 blocks, block 3 is missing"},
    {"ContributionMissing", BarrierReduce,
     [](Draft& d) {
       d.programs[1].ops.erase(d.programs[1].ops.begin());
       for (test::DraftOp& op : d.programs[1].ops) op.after = {};
       d.programs[1].ops[2].after = {1};
       d.programs[2].ops.erase(d.programs[2].ops.begin());
     },
     Rule::kValue, "/programs/0",
     "block 0 at node 0 is made of {0-1}, node 2's contribution is missing"},
    {"ContributionTwice", BarrierReduce,
     [](Draft& d) {
       for (const size_t node : {size_t{0}, size_t{1}}) {
         for (test::DraftOp& op : d.programs[node].ops) op.op.block = 0;
       }
       for (test::DraftOp& op : d.programs[2].ops) op.op.block = 0;
     },
     Rule::kValue, "/programs/1/ops/2/block", "node 2's contribution is in both"},
    {"SendsBeforeItCombines", BarrierReduce, [](Draft& d) { d.programs[1].ops[1].after = {}; },
     Rule::kCausal, "/programs/1/ops/1/after", "does not wait for node 1 op 0 (combine 2>1:0)"},
    {"ReplacesWhatWasNotSent", BarrierAllreduce,
     [](Draft& d) {
       // Node 1 sends block 0 twice, and node 0 takes it instead of the second block.
       d.programs[1].ops[3].op.block = 0;
       d.programs[0].ops[1].op.block = 0;
     },
     Rule::kReplace, "/programs/1/ops/4/block",
     "block 0 replaces what node 1 has, which it has sent 2 times before"},
    // Or a later send could leave before the first message has come.
    {"BarrierThatForgets", Barrier, [](Draft& d) { d.programs[0].ops[3].after = {}; },
     Rule::kCombine, "/programs/0/ops/3/after", "does not wait for node 0 op 1 (combine 3>0:0)"},
    {"BufferTwice", BarrierReduce, [](Draft& d) { d.programs[1].ops[2].op.scratch = 0; },
     Rule::kScratch, "/programs/1/ops/2/scratch",
     "buffer 0 serves op 0 already, and ready mode barrier has no credits"},
};
INSTANTIATE_TEST_SUITE_P(Combine, VerifyExampleTest, testing::ValuesIn(kCombineExamples), NameOf);

const Example kCausalExamples[] = {
    {"ByCompletionOrder", BarrierChain, [](Draft& d) { d.programs[1].ops[2].after = {1}; }},
    {"ByStartOrder", BarrierChain,
     [](Draft& d) {
       d.programs[1].ops[2].after = {0, 1};
       d.programs[1].ops[3].after = {};
     }},
    {"Unordered", BarrierChain, [](Draft& d) { d.programs[1].ops[2].after = {}; }, Rule::kCausal,
     "/programs/1/ops/2/after",
     "node 1 op 2 (send 1>2:0) does not wait for node 1 op 0 (recv 0>1:0)"},
    {"WaitsForAnother", BarrierChain, [](Draft& d) { d.programs[1].ops[3].after = {0}; },
     Rule::kCausal, "/programs/1/ops/3/after", "does not wait for node 1 op 1 (recv 0>1:1)"},
    {"NeverReceives", BarrierChain,
     [](Draft& d) { d.programs[0].ops[1].op.block = d.programs[1].ops[1].op.block = 0; },
     Rule::kCausal, "/programs/1/ops/3/block", "node 1 sends block 1, which it never receives"},
};
INSTANTIATE_TEST_SUITE_P(Causal, VerifyExampleTest, testing::ValuesIn(kCausalExamples), NameOf);

/// Nodes 1 and 2 wait for each other's block; the root has no part in it.
void MakeCircle(Draft& draft) {
  draft = EmptyDraft(3, 1, 2);
  AddMessage(draft, 1, 2, 0, 0);
  AddMessage(draft, 2, 1, 0, 1, {0});
  draft.programs[1].Move(1, 0);
  draft.programs[1].ops[1].after = {0};
}

/// The same in one round, of which each rule but acyclic holds: that no round goes back is no
/// proof.
void MakeCircleInOneRound(Draft& draft) {
  draft = EmptyDraft(3, 2, 3);
  AddMessage(draft, 0, 1, 0, 0);
  AddMessage(draft, 0, 2, 1, 1);
  AddMessage(draft, 1, 2, 0, 2, {0});
  AddMessage(draft, 2, 1, 1, 2, {0, 1});
  draft.programs[1].Move(2, 1);
  draft.programs[1].ops[2].after = {0, 1};
}

/// Node 1 sends block 1 to 3 once it came from 2, which sends it once block 0 came from 1. Node 1's
/// send to 3 has the smaller id: a queue that starts its sends in id order never comes to the
/// other.
void MakeDeadlockInOrder(Draft& draft) {
  draft = EmptyDraft(4, 2, 5);
  AddMessage(draft, 0, 1, 0, 0);
  AddMessage(draft, 0, 2, 1, 1);
  AddMessage(draft, 0, 3, 0, 2);
  AddMessage(draft, 1, 2, 0, 2, {0});
  AddMessage(draft, 2, 1, 1, 3, {0, 1});
  AddMessage(draft, 1, 3, 1, 4, {2});
  draft.programs[1].Move(1, 3);
}
void SendInOtherOrder(Draft& draft) {
  MakeDeadlockInOrder(draft);
  draft.programs[1].Move(3, 0);
  draft.programs[1].Move(0, 1);
}

const Example kGraphExamples[] = {
    {"AcyclicCircle", BarrierChain, MakeCircle, Rule::kAcyclic, "/programs/1/ops/0",
     "deadlock: 4 events wait for each other in a circle"},
    {"AcyclicCircleInOneRound", BarrierChain, MakeCircleInOneRound, Rule::kAcyclic,
     "/programs/1/ops/1", "deadlock: 4 events wait for each other in a circle"},
    {"AcyclicBarrierNeedsDepth",
     BarrierChain,
     [](Draft&) {},
     Rule::kAcyclic,
     "/programs/0/ops/0",
     "deadlock: ",
     {.recv = 1}},
    {"AcyclicDepthsSuffice",
     BarrierChain,
     [](Draft&) {},
     Rule::kShape,
     "",
     "",
     {.send = 1, .recv = 2}},
    {"AcyclicWindowWithDepth",
     WindowChain,
     [](Draft&) {},
     Rule::kShape,
     "",
     "",
     {.send = 1, .recv = 1}},
    {"OrderOfSends", BarrierChain, MakeDeadlockInOrder, Rule::kOrder, "/programs/1/ops/1",
     "deadlock if each node's sends start in id order"},
    {"OrderRenumbered", BarrierChain, SendInOtherOrder},
};
INSTANTIATE_TEST_SUITE_P(Graph, VerifyExampleTest, testing::ValuesIn(kGraphExamples), NameOf);

/// The credit of two receives becomes two credits of one each.
void SplitCredit(Draft& draft) {
  draft.programs[2].ops[0].op.grants = 1;
  draft.programs[2].Insert(1, test::DraftOp(draft.programs[2].ops[0]));
  draft.programs[1].Insert(3, test::DraftOp(draft.programs[1].ops[2]));
}

const Example kReadyExamples[] = {
    {"BarrierHasNoCredits", WindowChain, [](Draft& d) { d.header.ready = {}; }, Rule::kReady,
     "/channels/2", "2 credits in ready mode barrier, which has none"},
    {"BarrierAndDepth",
     BarrierChain,
     [](Draft&) {},
     Rule::kReady,
     "/channels/0",
     "2 receives cannot all be posted before the start, the depth is 1",
     {.recv = 1}},
    {"RetryAndDepth",
     BarrierChain,
     [](Draft& d) { d.header.ready.mode = ReadyMode::kRetry; },
     Rule::kShape,
     "",
     "",
     {.recv = 1}},
    {"NoCredits", BarrierChain, [](Draft& d) { d.header.ready.mode = ReadyMode::kChannel; },
     Rule::kReady, "/channels/0", "credits grant 0 receives, there are 2"},
    {"GrantsTooFew", ChannelChain, [](Draft& d) { d.programs[1].ops[0].op.grants = 1; },
     Rule::kReady, "/channels/0", "credits grant 1 receive, there are 2"},
    {"GrantsTooMany", ChannelChain, [](Draft& d) { d.programs[1].ops[0].op.grants = 3; },
     Rule::kReady, "/channels/0", "credits grant 3 receives, there are 2"},
    {"GrantsTwoInWindow", WindowChain, [](Draft& d) { d.programs[1].ops[0].op.grants = 2; },
     Rule::kReady, "/programs/1/ops/0/grants", "grants 2 in ready mode window, expected 1"},
    {"TwoCreditsInChannel", ChannelChain, SplitCredit, Rule::kReady, "/channels/1",
     "2 credits in ready mode channel, expected 1"},
    {"CreditWaitsInChannel", ChannelChain,
     [](Draft& d) {
       d.programs[2].Move(0, 1);
       d.programs[2].ops[1].after = {0};
     },
     Rule::kReady, "/programs/2/ops/1/after",
     "waits for 1 op in ready mode channel, expected none"},
    {"CreditsOfNoChannel", ChannelChain,
     [](Draft& d) {
       d.channels.push_back({.from = NodeId(2), .to = NodeId(0), .lane = Lane::kCredits});
       d.programs[2].ops.push_back({{.channel = ChannelId(4), .grants = 1}, {}});
       d.programs[0].ops.push_back({{.channel = ChannelId(4), .kind = OpKind::kRecv}, {}});
     },
     Rule::kReady, "/channels/4", "1 credit, but no channel 0>2 lane 0 to grant"},
    {"SendWithoutCredit", ChannelChain, [](Draft& d) { d.programs[0].ops[1].after = {}; },
     Rule::kReady, "/programs/0/ops/1/after",
     "node 0 op 1 (send 0>1:0) does not wait for node 0 op 0 (recv credit 1>0)"},
    {"SendAfterEarlierCredit", WindowChain,
     [](Draft& d) {
       d.programs[0].ops[3].after = {0, 1};
     },
     Rule::kReady, "/programs/0/ops/3/after", "does not wait for node 0 op 2 (recv credit 1>0)"},
    {"CreditAheadOfWindow", WindowChain, [](Draft& d) { d.programs[1].ops[2].after = {}; },
     Rule::kReady, "/programs/1/ops/2/after",
     "node 1 op 2 (send credit 1>0) does not wait for node 1 op 1 (recv 0>1:0)"},
    {"WiderWindow", WindowChain,
     [](Draft& d) {
       d.header.ready.window = 2;
       d.programs[1].ops[2].after = {};
     }},
};
INSTANTIATE_TEST_SUITE_P(Ready, VerifyExampleTest, testing::ValuesIn(kReadyExamples), NameOf);

const Example kWindowExamples[] = {
    {"SendsOverlap", WindowChain, [](Draft& d) { d.programs[0].ops[3].after = {2}; }, Rule::kWindow,
     "/programs/0/ops/3/after",
     "node 0 op 3 (send 0>1:1) does not wait for node 0 op 1 (send 0>1:0)"},
    {"TwoSendsMayOverlap", WindowChain,
     [](Draft& d) {
       d.header.send_window = 2;
       d.programs[0].ops[3].after = {2};
     }},
    {"Unlimited", WindowChain,
     [](Draft& d) {
       d.header.send_window.reset();
       d.programs[0].ops[3].after = {2};
     }},
    {"Undeclared", BarrierChain, [](Draft& d) { d.header.send_window = 1; }, Rule::kWindow,
     "/programs/1/ops/3/after", "does not wait for node 1 op 2 (send 1>2:0)"},
};
INSTANTIATE_TEST_SUITE_P(Window, VerifyExampleTest, testing::ValuesIn(kWindowExamples), NameOf);

/// The root sends to two nodes in one round.
void SendTwoInOneRound(Draft& draft) {
  draft = EmptyDraft(3, 1, 1);
  AddMessage(draft, 0, 1, 0, 0);
  AddMessage(draft, 0, 2, 0, 0);
}

void SetRounds(Draft& draft, uint32_t channel, size_t index, uint32_t round) {
  for (const OpKind kind : {OpKind::kSend, OpKind::kRecv}) {
    draft.at(draft.On(ChannelId(channel), kind)[index]).op.round = round;
  }
}

const Example kRoundsExamples[] = {
    {"Header", BarrierChain, [](Draft& d) { d.header.rounds = 4; }, Rule::kRounds, "/rounds",
     "4 rounds, but the last op is in round 2"},
    {"HeaderWithoutOps", BarrierChain,
     [](Draft& d) {
       d = EmptyDraft(1, 1, 1);
       d.header.rounds = 4;
     },
     Rule::kRounds, "/rounds", "4 rounds, but there are no ops"},
    {"Unequal", BarrierChain, [](Draft& d) { d.programs[2].ops[0].op.round = 0; }, Rule::kRounds,
     "/programs/2/ops/0/round", "round 0, but its send /programs/1/ops/2 is in round 1"},
    {"SentWhenReceived", BarrierChain, [](Draft& d) { SetRounds(d, 1, 0, 0); }, Rule::kRounds,
     "/programs/1/ops/2/round", "sends block 0 in round 0, but receives it in round 0"},
    {"FallOnChannel", BarrierChain, [](Draft& d) { SetRounds(d, 1, 0, 3); }, Rule::kRounds,
     "/programs/1/ops/3/round", "round 2 after round 3 on the same channel"},
    {"Ports", BarrierChain, SendTwoInOneRound, Rule::kRounds, "/programs/0/ops/1/round",
     "more than 1 block sends of node 0 in round 0"},
    {"TwoPorts", BarrierChain,
     [](Draft& d) {
       SendTwoInOneRound(d);
       d.header.ports = 2;
     }},
    {"Credit", ChannelChain, [](Draft& d) { SetRounds(d, 3, 0, 2); }, Rule::kRounds,
     "/programs/2/ops/0/round", "credit in round 2, but the receive /programs/2/ops/1 that it"},
    {"Stretched", BarrierChain,
     [](Draft& d) {
       SetRounds(d, 1, 1, 7);
       d.header.rounds = 8;
     }},
};
INSTANTIATE_TEST_SUITE_P(Rounds, VerifyExampleTest, testing::ValuesIn(kRoundsExamples), NameOf);

TEST(VerifyTest, KeepsTheFirstFindingsInTheOrderOfTheFileAndCountsAll) {
  Draft draft(BarrierChain());
  for (test::DraftProgram& program : draft.programs) {
    for (test::DraftOp& op : program.ops) op.op.block = 9;
  }
  const Verdict verdict = Verify(draft.Build(), {.diagnostics_max = 3});
  EXPECT_EQ(verdict.findings, 8u);
  ASSERT_EQ(verdict.diagnostics.size(), 3u);
  EXPECT_EQ(verdict.diagnostics[0].where, "/programs/0/ops/0/block");
  EXPECT_EQ(verdict.diagnostics[1].where, "/programs/0/ops/1/block");
  EXPECT_EQ(verdict.diagnostics[2].where, "/programs/1/ops/0/block");
  EXPECT_THAT(verdict.ToString(), HasSubstr("and 5 more"));
}

TEST(VerifyTest, ACycleIsToldInOps) {
  Draft draft(BarrierChain());
  MakeCircle(draft);
  const Verdict verdict = Verify(draft.Build());
  // Nor can rounds rise all the way around a circle: `rounds` has a finding too, further down.
  ASSERT_EQ(verdict.diagnostics.size(), 2u) << verdict.ToString();
  EXPECT_THAT(
      verdict.diagnostics[0].notes,
      testing::ElementsAre(
          "delivery of node 2 op 0 (recv 1>2:0) waits for start of node 1 op 1 (send 1>2:0)",
          "start of node 2 op 1 (send 2>1:0) waits for delivery of node 2 op 0 (recv 1>2:0)",
          "delivery of node 1 op 0 (recv 2>1:0) waits for start of node 2 op 1 (send 2>1:0)",
          "start of node 1 op 1 (send 1>2:0) waits for delivery of node 1 op 0 (recv 2>1:0)"));
}

TEST(VerifyTest, AcceptsANodeAloneAndAnUnusedChannel) {
  Draft one = EmptyDraft(1, 1, 0);
  EXPECT_TRUE(Verify(one.Build()).ok());
  Draft unused(BarrierChain());
  unused.channels.push_back({.from = NodeId(2), .to = NodeId(0), .lane = Lane::kCredits});
  EXPECT_TRUE(Verify(unused.Build()).ok());
}

}  // namespace
}  // namespace prepost::verify_test
