// SPDX-License-Identifier: Apache-2.0
//
// Translation validation: what lowering makes of every small plan is accepted in both modes, and
// one wrong byte of each kind is named by the rule that it breaks.
#include "backends/nic/validate/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <tuple>
#include <utility>

#include "backends/nic/host/armed_node.h"
#include "backends/nic/program/lower.h"
#include "backends/nic/program/node_lowering.h"
#include "backends/nic/validate/object_table.h"
#include "backends/nic/wqe.h"
#include "compiler/schedules/schedule.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"

namespace prepost::nic::validate_test {
namespace {

using testing::HasSubstr;

const DeviceProfile kTinyRings = {.name = "tiny", .sq_wqebbs = 16, .rq_wqes = 16};

TEST(ValidateTest, AcceptsEverySmallPlan) {
  const std::vector<Spec> specs = test::AllSmallSpecs({.nodes_max = 7, .blocks_max = 5});
  test::Sample sample(test::ScheduleLabels(specs));
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    const VerifiedPlan plan = test::CompileOrDie(spec);
    for (const auto mode : {LoweringMode::kInline, LoweringMode::kManaged}) {
      for (const DeviceProfile& profile : {DeviceProfile(), kTinyRings}) {
        const auto program = Lower(plan, {.mode = mode, .profile = profile});
        ASSERT_TRUE(program.ok()) << program.status().ToString();
        const auto report = ValidateProgram(plan, *program);
        ASSERT_TRUE(report.ok()) << report.status().ToString();
        ASSERT_TRUE(report->ok()) << test::Label(spec) << "\n" << report->ToStatus().ToString();
      }
    }
  }
}

TEST(ValidateTest, AcceptsLongQueuesAndSeveralMasters) {
  for (const std::string& schedule : ScheduleNames()) {
    const VerifiedPlan plan = test::CompileOrDie({.nodes = 9,
                                                  .message_bytes = 100 * 1000,
                                                  .block_bytes = 100,
                                                  .algorithm = schedule,
                                                  .ready = *ParseReady("window=2")});
    for (const Masters masters : {Masters::kNode, Masters::kLane, Masters::kQueue}) {
      const auto program =
          Lower(plan, {.mode = LoweringMode::kManaged, .masters = masters, .profile = kTinyRings});
      ASSERT_TRUE(program.ok()) << program.status().ToString();
      const auto report = ValidateProgram(plan, *program);
      ASSERT_TRUE(report->ok()) << schedule << "\n" << report->ToStatus().ToString();
      uint64_t wqes = 0;
      for (const NodeProgram& node : program->nodes) wqes += node.wqes();
      EXPECT_EQ(report->wqes, wqes);
    }
  }
}

/// A pipeline over 4 nodes, of which node 3's queues can be changed before they are validated.
class BrokenBytesTest : public testing::TestWithParam<LoweringMode> {
 protected:
  BrokenBytesTest() {
    for (const NodeProgram& node : program_.nodes) {
      Bindings bindings = ExampleBindings(node);
      objects_.push_back(*MakeQueueObjects(node, bindings));
      for (QpObject& qp : objects_.back().qps) {
        if (qp.peer == node.node) continue;
        qp.peer_qpn =
            kExampleQpn + FindQp(program_.nodes[qp.peer.index()], node.node, qp.lane)->value;
      }
    }
  }

  std::string Verdict() const {
    Validator validator(plan_);
    for (const QueueObjects& node : objects_) validator.Add(node);
    return validator.Finish().ToStatus().ToString();
  }
  QueueObjects& node() { return objects_[3]; }
  /// The first WQE of node 3 with this opcode; of a queue of blocks or the loopback one.
  std::byte* First(Opcode opcode) {
    for (QpObject& qp : node().qps) {
      for (size_t at = 0; at < qp.sq.size(); at += kWqebbBytes) {
        if (qp.sq[at + control::kOpcode] == static_cast<std::byte>(opcode)) return &qp.sq[at];
      }
    }
    ADD_FAILURE() << "no " << Name(opcode);
    return node().qps[0].sq.data();
  }

  const VerifiedPlan plan_ = test::CompileOrDie({.nodes = 4,
                                                 .message_bytes = 600,
                                                 .block_bytes = 100,
                                                 .algorithm = "binomial_pipeline",
                                                 .ready = *ParseReady("window=1")});
  const QueueProgram program_ = *Lower(plan_, {.mode = GetParam()});
  std::vector<QueueObjects> objects_;
};

TEST_P(BrokenBytesTest, UnchangedIsAccepted) { EXPECT_EQ(Verdict(), ""); }

TEST_P(BrokenBytesTest, OwnIndexAndQueue) {
  First(Opcode::kSendImm)[control::kWqeIndex + 1] ^= std::byte{1};
  EXPECT_THAT(Verdict(), HasSubstr("wqe: names index"));
}

TEST_P(BrokenBytesTest, OwnQueue) {
  First(Opcode::kSendImm)[control::kQpn] ^= std::byte{1};
  EXPECT_THAT(Verdict(), HasSubstr("wqe: names QP"));
}

TEST_P(BrokenBytesTest, ReservedBits) {
  First(Opcode::kWait)[kSegmentBytes] = std::byte{1};
  EXPECT_THAT(Verdict(), HasSubstr("reserved bytes of the coordination segment"));
}

TEST_P(BrokenBytesTest, ImmediateKeyAndAddress) {
  for (const size_t at :
       {control::kImmediate, control::kImmediate + 3, kSegmentBytes + data::kLkey,
        kSegmentBytes + data::kAddress + 7, kSegmentBytes + data::kByteCount + 3}) {
    First(Opcode::kSendImm)[at] ^= std::byte{2};
    EXPECT_THAT(Verdict(), HasSubstr("op: immediate")) << at;
    First(Opcode::kSendImm)[at] ^= std::byte{2};
  }
}

TEST_P(BrokenBytesTest, WaitForAnotherQueue) {
  std::byte* number = First(Opcode::kWait) + kSegmentBytes + coordination::kNumber;
  StoreBigEndian(number, LoadBigEndian<uint32_t>(number) + 0x1000);
  EXPECT_THAT(Verdict(), HasSubstr("wait: names CQ"));
  StoreBigEndian(number, kExampleCqn);  // the idle one
  EXPECT_THAT(Verdict(), HasSubstr("to which 0 queues complete"));
}

TEST_P(BrokenBytesTest, LostWait) {
  First(Opcode::kWait)[control::kOpcode] = std::byte{0};
  First(Opcode::kNop)[control::kSegments] = std::byte{1};
  EXPECT_THAT(Verdict(), HasSubstr("order: "));
}

TEST_P(BrokenBytesTest, WaitForOneTooEarlyOrTooLate) {
  std::byte* index = First(Opcode::kWait) + kSegmentBytes + coordination::kIndex;
  const uint32_t right = LoadBigEndian<uint32_t>(index);
  StoreBigEndian(index, (right - 1) & kCqIndexMask);
  EXPECT_NE(Verdict(), "");
  StoreBigEndian(index, (right + 1000) & kCqIndexMask);
  EXPECT_THAT(Verdict(), HasSubstr("wait: waits for CQE"));
}

TEST_P(BrokenBytesTest, EndThatFollowsNotAll) {
  std::vector<std::byte>& last = node().qps.back().sq;
  last[last.size() - kWqebbBytes + control::kFlags] = std::byte{0};
  EXPECT_THAT(Verdict(), HasSubstr("final: the last WQE is not a signaled NOP"));
}

// A queue that only another one could let run ends nothing, and where all queues are of that kind
// nothing is known at the end.
TEST_P(BrokenBytesTest, EndOnAQueueThatDoesNotRunByItself) {
  node().qps.back().managed = true;
  EXPECT_THAT(Verdict(), HasSubstr("final: the node has no loopback queue that runs by itself"));
  for (QpObject& qp : node().qps) qp.managed = true;
  EXPECT_THAT(Verdict(), HasSubstr("final: the node has no loopback queue that runs by itself"));
}

TEST_P(BrokenBytesTest, QueuesConnectedAcross) {
  std::swap(node().qps[0].peer_qpn, node().qps[1].peer_qpn);
  EXPECT_THAT(Verdict(), HasSubstr("which is not connected to it"));
}

TEST_P(BrokenBytesTest, ReceiveIntoAnotherBlock) {
  for (QpObject& qp : node().qps) {
    if (qp.lane == Lane::kBlocks && !qp.rq.empty()) qp.rq[data::kAddress + 7] ^= std::byte{64};
  }
  EXPECT_THAT(Verdict(), HasSubstr("op: receive into"));
}

// CQs whose indices wrap within a run, and rings that are only as long as they may be.
TEST_P(BrokenBytesTest, CqsThatIndicesDoNotTellApart) {
  QpObject& last = node().qps.back();
  CqObject* const cq = &node().cqs.back();
  ASSERT_EQ(cq->number, last.send_cqn);
  const uint32_t entries = std::exchange(cq->entries, 1u << 23);
  EXPECT_THAT(Verdict(), HasSubstr("window: its CQ of sends has a ring of 8388608"));
  cq->entries = entries;
  last.sq_wqebbs = 1u << 15;  // of a queue that is shorter
  EXPECT_EQ(Verdict(), "");
}

// When its queue breaks, CQEs are overwritten.
TEST_P(BrokenBytesTest, CqsThatHoldNotAllOfTheirQueue) {
  for (CqObject& cq : node().cqs) {
    const uint32_t entries = std::exchange(cq.entries, cq.entries / 2);
    if (entries > 1) {
      EXPECT_THAT(Verdict(), HasSubstr("CQEs: the others are lost")) << cq.number;
    }
    cq.entries = entries;
  }
}

INSTANTIATE_TEST_SUITE_P(All, BrokenBytesTest,
                         testing::Values(LoweringMode::kInline, LoweringMode::kManaged),
                         [](const auto& param) { return std::string(Name(param.param)); });

/// Queues of several times their rings, whose program can be changed before it is validated.
class ShortRingsTest : public testing::Test {
 protected:
  void Compile(const char* algorithm, uint32_t nodes, uint32_t blocks, const char* ready,
               const LowerOptions& lower) {
    plan_ = test::CompileOrDie({.nodes = nodes,
                                .message_bytes = 100 * blocks,
                                .block_bytes = 100,
                                .algorithm = algorithm,
                                .ready = *ParseReady(ready)});
    program_ = *Lower(*plan_, lower);
    EXPECT_EQ(Verdict(), "");
  }
  std::string Verdict() const {
    const auto report = ValidateProgram(*plan_, program_);
    return report.ok() ? report->ToStatus().ToString() : report.status().ToString();
  }
  /// Changes all sends with this opcode, of all nodes.
  template <typename Change>
  void ForEach(Opcode opcode, Change change) {
    for (NodeProgram& node : program_.nodes) {
      for (QueuePair& qp : node.qps) {
        for (SendEntry& entry : qp.sends) {
          if (entry.opcode == opcode) change(node, entry);
        }
      }
    }
  }

  std::optional<VerifiedPlan> plan_;
  QueueProgram program_;
};

// Blocks that want more receives for credits than the host can post before they are sent.
TEST_F(ShortRingsTest, HostsThatWaitForWhatTheyHoldBackAreACycle) {
  for (const auto mode : {LoweringMode::kInline, LoweringMode::kManaged}) {
    Compile("binomial_pipeline", 5, 70, "window=12", {.mode = mode, .profile = kTinyRings});
    ForEach(Opcode::kSendImm, [](const NodeProgram& node, SendEntry& entry) {
      const auto all = static_cast<uint32_t>(node.qps[entry.qp.index()].receives.size());
      entry.count = std::min(entry.count + 7, all);
    });
    EXPECT_THAT(Verdict(), HasSubstr("(for which its host cannot ring)"));
  }
}

// One SEND_EN for credits of which the last grants receives that are posted after the first ones
// have come.
TEST_F(ShortRingsTest, SendEnableThatWantsTooMuchAtOnceIsFound) {
  Compile("sequential", 2, 40, "window=17",
          {.mode = LoweringMode::kManaged,
           .profile = {.name = "short", .sq_wqebbs = 64, .rq_wqes = 16}});
  std::vector<SendEntry>& master = program_.nodes[1].qps.back().sends;
  ASSERT_EQ(master[0].opcode, Opcode::kSendEnable);
  ASSERT_EQ(master[1].opcode, Opcode::kSendEnable);
  master[0].count = master[1].count;
  master.erase(master.begin() + 1);
  EXPECT_THAT(Verdict(), HasSubstr("(for which its host cannot ring)"));
}

TEST_F(ShortRingsTest, CreditsBeforeTheirReceivesAreFound) {
  Compile("chain", 3, 70, "window=3", {.profile = kTinyRings});
  ForEach(Opcode::kSend, [](const NodeProgram&, SendEntry& entry) { entry.count = 0; });
  EXPECT_THAT(Verdict(), HasSubstr("receives that are granted by then, 1, are posted"));
}

TEST_F(ShortRingsTest, RingsThatLoseSomethingAreFound) {
  Compile("chain", 3, 70, "window=3", {.profile = kTinyRings});
  const QueueProgram right = program_;
  for (CompletionQueue& cq : program_.nodes[1].cqs) cq.entries = 1;
  EXPECT_THAT(Verdict(), HasSubstr("holds 1 of 16 CQEs"));
  program_ = right;
  for (QueuePair& qp : program_.nodes[1].qps) qp.rq_wqes = std::min(qp.rq_wqes, 1u);
  EXPECT_THAT(Verdict(), HasSubstr("part: the ring of receives cannot be written in halves"));
  program_ = right;
  program_.rnr_retry = 0;
  EXPECT_THAT(Verdict(), HasSubstr("node 0 posts receives in parts"));
}

// A full ring of 2^15 is taken for one whose host is 2^15 behind.
TEST_F(ShortRingsTest, RingsThatIndicesDoNotTellApartAreFound) {
  Compile("chain", 2, 33000, "retry", {});
  const QueueProgram right = program_;
  QueuePair& from = program_.nodes[0].qps[0];
  ASSERT_EQ(from.sq_wqebbs, 1u << 14);
  from.sq_wqebbs *= 2;
  program_.nodes[0].cqs[from.send_cq.index()].entries *= 2;
  EXPECT_THAT(Verdict(), HasSubstr("window: 32768 sends at once in a ring of 32768"));
  program_ = right;
  QueuePair& to = program_.nodes[1].qps[0];
  to.rq_wqes *= 2;
  program_.nodes[1].cqs[to.recv_cq.index()].entries *= 2;
  EXPECT_THAT(Verdict(), HasSubstr("window: 32768 receives at once in a ring of 32768"));
}

// What a listing's head declares for all queues, against the plan's.
TEST_F(ShortRingsTest, AHeadThatIsNotThePlansIsRefused) {
  Compile("chain", 3, 5, "barrier", {.mode = LoweringMode::kManaged});
  const QueueProgram right = program_;
  program_.rnr_retry = 7;
  EXPECT_THAT(Verdict(), HasSubstr("RNR retries are 7, a plan with ready barrier has 0"));
  program_ = right;
  program_.mode = LoweringMode::kInline;
  EXPECT_THAT(Verdict(), HasSubstr("the queues are inline, but QP 0<>1 blocks is managed"));
  program_ = right;
  program_.payload.block_bytes = 99;
  EXPECT_THAT(Verdict(), HasSubstr("of 500 bytes in blocks of 99, the plan is of 500 in blocks"));
}

TEST(ValidateTest, LostSendEnableIsFound) {
  const VerifiedPlan plan = test::CompileOrDie(
      {.nodes = 3, .message_bytes = 300, .block_bytes = 100, .algorithm = "chain"});
  const QueueProgram program = *Lower(plan, {.mode = LoweringMode::kManaged, .node = NodeId(1)});
  QueueObjects node = *MakeQueueObjects(program.nodes[0], ExampleBindings(program.nodes[0]));
  std::vector<std::byte>& master = node.qps.back().sq;
  size_t last = 0;
  for (size_t at = 0; at < master.size(); at += kWqebbBytes) {
    if (master[at + control::kOpcode] == static_cast<std::byte>(Opcode::kSendEnable)) last = at;
  }
  master[last + control::kOpcode] = std::byte{0};
  master[last + control::kSegments] = std::byte{1};
  Validator validator(plan);
  validator.Add(node);
  EXPECT_THAT(validator.Finish().ToStatus().ToString(), HasSubstr("enable: is never enabled"));
}

// Every wait is for something that comes, and every op is after what it must be, but two nodes'
// masters wait for each other.
TEST(ValidateTest, MastersThatWaitForEachOtherAreACycle) {
  PlanHeader header{.nodes = 3, .rounds = 3};
  header.payload = *MakePayload(2, 1);
  PlanBuilder builder(header);
  const ChannelId to_1 = builder.AddChannel({NodeId(0), NodeId(1), Lane::kBlocks});
  const ChannelId to_2 = builder.AddChannel({NodeId(0), NodeId(2), Lane::kBlocks});
  const ChannelId across = builder.AddChannel({NodeId(1), NodeId(2), Lane::kBlocks});
  const ChannelId back = builder.AddChannel({NodeId(2), NodeId(1), Lane::kBlocks});
  builder.BeginProgram(NodeId(0));
  builder.AddOp({.channel = to_1, .block = 0, .round = 0});
  builder.AddOp({.channel = to_2, .block = 1, .round = 1});
  builder.BeginProgram(NodeId(1));
  const OpId first = builder.AddOp({.channel = to_1, .block = 0, .kind = OpKind::kRecv});
  builder.AddOp({.channel = across, .block = 0, .round = 2}, std::vector{first});
  builder.AddOp({.channel = back, .block = 1, .round = 2, .kind = OpKind::kRecv});
  builder.BeginProgram(NodeId(2));
  const OpId second =
      builder.AddOp({.channel = to_2, .block = 1, .round = 1, .kind = OpKind::kRecv});
  builder.AddOp({.channel = back, .block = 1, .round = 2}, std::vector{second});
  builder.AddOp({.channel = across, .block = 0, .round = 2, .kind = OpKind::kRecv});
  const VerifiedPlan plan = *Verified(std::move(builder).Build());
  QueueProgram program = *Lower(plan, {.mode = LoweringMode::kManaged});
  ASSERT_TRUE(ValidateProgram(plan, program)->ok());
  // Each master first waits for what the other one's queue sends.
  for (const uint32_t node : {1u, 2u}) {
    NodeProgram& it = program.nodes[node];
    const QueuePair& qp = it.qps[FindQp(it, NodeId(3 - node), Lane::kBlocks)->index()];
    it.qps.back().sends.insert(it.qps.back().sends.begin(),
                               {.opcode = Opcode::kWait, .cq = qp.recv_cq, .cqe_index = 0});
    it.qps.back().sq_wqebbs *= 2;
  }
  EXPECT_THAT(ValidateProgram(plan, program)->ToStatus().ToString(), HasSubstr("and so on around"));
}

/// Node 0 sends a block to node 1, and node 1 to nodes 2 and 3: to node 2 after `before_first`, to
/// node 3 after `before_second`; of node 1's ops, 0 is the receive and 1 the send to node 2.
Plan ForwardingPlan(const std::vector<OpId>& before_first, const std::vector<OpId>& before_second) {
  PlanHeader header{.nodes = 4, .rounds = 3};
  header.payload = *MakePayload(1, 1);
  PlanBuilder builder(header);
  const ChannelId to_1 = builder.AddChannel({NodeId(0), NodeId(1), Lane::kBlocks});
  const ChannelId to_2 = builder.AddChannel({NodeId(1), NodeId(2), Lane::kBlocks});
  const ChannelId to_3 = builder.AddChannel({NodeId(1), NodeId(3), Lane::kBlocks});
  builder.BeginProgram(NodeId(0));
  builder.AddOp({.channel = to_1, .block = 0, .round = 0});
  builder.BeginProgram(NodeId(1));
  builder.AddOp({.channel = to_1, .block = 0, .round = 0, .kind = OpKind::kRecv});
  builder.AddOp({.channel = to_2, .block = 0, .round = 1}, before_first);
  builder.AddOp({.channel = to_3, .block = 0, .round = 2}, before_second);
  builder.BeginProgram(NodeId(2));
  builder.AddOp({.channel = to_2, .block = 0, .round = 1, .kind = OpKind::kRecv});
  builder.BeginProgram(NodeId(3));
  builder.AddOp({.channel = to_3, .block = 0, .round = 2, .kind = OpKind::kRecv});
  return std::move(builder).Build();
}

/// Lowered without asking whether the plan is valid, and validated against it.
std::string VerdictUnverified(const Plan& plan, const LowerOptions& options) {
  QueueProgram program{.payload = plan.header().payload,
                       .mode = options.mode,
                       .rnr_retry = RnrRetryOf(plan.header())};
  for (const Program& it : plan.programs()) program.nodes.push_back(LowerNode(plan, it, options));
  return ValidateProgram(plan, program)->ToStatus().ToString();
}

class HazardTest : public testing::TestWithParam<std::tuple<LoweringMode, Masters>> {
 protected:
  const LowerOptions options_{.mode = std::get<0>(GetParam()), .masters = std::get<1>(GetParam())};
};

// Bytes that are the plan's, of a plan that forgets an edge: a rule that goes by `after` sees
// nothing.
TEST_P(HazardTest, MissingEdgeOfThePlanIsFound) {
  const std::string why = "may read block 0 before it is received";
  EXPECT_THAT(VerdictUnverified(ForwardingPlan({}, {OpId(0)}), options_), HasSubstr(why));
  EXPECT_THAT(VerdictUnverified(ForwardingPlan({}, {OpId(1)}), options_), HasSubstr(why));
  // One master for all has waited for the receive already.
  const bool is_one_master = GetParam() == std::tuple(LoweringMode::kManaged, Masters::kNode);
  EXPECT_THAT(VerdictUnverified(ForwardingPlan({OpId(0)}, {}), options_),
              HasSubstr(is_one_master ? "" : why));
}

// A rule that asks each queue for its own WAITs only refuses a valid plan.
TEST_P(HazardTest, ReceiveIsKnownThroughAnotherSend) {
  const VerifiedPlan plan = *Verified(ForwardingPlan({OpId(0)}, {OpId(1)}));
  ASSERT_TRUE(Lower(plan, options_).ok());
  EXPECT_EQ(VerdictUnverified(plan, options_), "");
}

INSTANTIATE_TEST_SUITE_P(All, HazardTest,
                         testing::Values(std::tuple(LoweringMode::kInline, Masters::kNode),
                                         std::tuple(LoweringMode::kManaged, Masters::kNode),
                                         std::tuple(LoweringMode::kManaged, Masters::kQueue)));

}  // namespace
}  // namespace prepost::nic::validate_test
