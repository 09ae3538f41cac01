// SPDX-License-Identifier: Apache-2.0
//
// Offloaded runs that must not succeed: what does not fit, what is lost, broken or late. A run that
// hangs, or one that calls stale bytes a success, shows here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "backends/local/offload_run.h"
#include "backends/mlx5/device.h"
#include "backends/mlx5/stand_in/stand_in.h"
#include "runtime/base/event_fd.h"
#include "tests/support/engines.h"
#include "tests/support/plans.h"
#include "tests/support/transfer.h"
#include "tests/support/verbs_spy.h"

namespace prepost::offload_failure_test {
namespace {

using emulated::SchedulerMode;
using local::OffloadOptions;
using local::RunOffload;
using local::RunQueueProgram;
using nic::NodeProgram;
using nic::Opcode;
using nic::QueuePair;
using nic::QueueProgram;
using nic::SendEntry;
using test::Transfer;
using testing::HasSubstr;
using testing::StartsWith;

VerifiedPlan MakePlan(const std::string& algorithm, uint32_t nodes, uint32_t blocks,
                      const std::string& ready) {
  return test::CompileOrDie({.nodes = nodes,
                             .message_bytes = blocks * uint64_t{1000},
                             .block_bytes = 1000,
                             .algorithm = algorithm,
                             .ready = *ParseReady(ready)});
}

/// `program` need not be the plan's.
Status Outcome(const VerifiedPlan& plan, const QueueProgram& program, OffloadOptions options = {}) {
  options.validate = false;
  Transfer transfer(plan.header());
  return RunQueueProgram(plan, program, transfer.message(), transfer.buffers(), options).status();
}

Status Outcome(const VerifiedPlan& plan, const OffloadOptions& options = {}) {
  Transfer transfer(plan.header());
  return RunOffload(plan, transfer.message(), transfer.buffers(), options).status();
}

/// The data QP of `node` towards `peer`.
QueuePair& DataQp(QueueProgram& program, uint32_t node, uint32_t peer, Lane lane) {
  for (QueuePair& qp : program.nodes[node].qps) {
    if (!qp.loopback && qp.peer == NodeId(peer) && qp.lane == lane) return qp;
  }
  ADD_FAILURE() << "no QP " << node << ">" << peer;
  return program.nodes[node].qps[0];
}

TEST(OffloadFailureTest, PlanThatDoesNotFitIsRefusedWithTheNumbers) {
  const Status status =
      Outcome(MakePlan("chain", 3, 20, "barrier"), {.lower = {.profile = {.rq_wqes = 16}}});
  EXPECT_EQ(status.code(), StatusCode::kRejected);
  EXPECT_EQ(status.message(),
            "node 1: receive queue of QP 1<>0 blocks needs 20 WQEs before any send starts (--ready "
            "barrier), the limit is 16; --ready window=1 needs fewer");
}

TEST(OffloadFailureTest, BuffersOfTheWrongSizeAreRefused) {
  const VerifiedPlan plan = MakePlan("chain", 2, 1, "barrier");
  Transfer transfer(plan.header());
  EXPECT_EQ(RunOffload(plan, transfer.message().first(999), transfer.buffers()).status().message(),
            "the message has 999 bytes, the plan is for 1000");
  EXPECT_EQ(RunOffload(plan, transfer.message(), transfer.buffers().first(1)).status().message(),
            "1 node buffers were given, the plan has 2 nodes");
}

TEST(OffloadFailureTest, LostCreditIsReportedAsStuck) {
  const VerifiedPlan plan = MakePlan("chain", 3, 3, "window=1");
  QueueProgram program = *nic::Lower(plan);
  QueuePair& credits = DataQp(program, 2, 1, Lane::kCredits);
  credits.sends.pop_back();  // the last credit of node 2, with its completion
  credits.sends.back().signaled = true;
  for (SchedulerMode mode : {SchedulerMode::kRoundRobin, SchedulerMode::kAdversarial}) {
    const Status status = Outcome(plan, program, {.scheduler = mode});
    EXPECT_EQ(status.code(), StatusCode::kRejected);
    EXPECT_THAT(status.message(), StartsWith("stuck: nothing can happen any more and"));
    EXPECT_THAT(status.message(), HasSubstr("(send 1>2:2) waits for node 1 op"));
    EXPECT_THAT(status.message(),
                HasSubstr("(recv credit 2>1) (receives 2>1 credits have 2 of 3 CQEs; "
                          "node 2's QP 2<>1 credits has nothing left)"));
    EXPECT_THAT(status.message(), HasSubstr("first culprit: node 2's QP 2<>1 credits has nothing "
                                            "left for node 1 op"));
  }
}

/// A chain in which one send queue stands at its first WAIT for ever, and what is behind it.
class StuckTest : public testing::TestWithParam<nic::LoweringMode> {
 protected:
  static void LoseLastCredit(QueueProgram& program) {
    std::vector<SendEntry>& sends = DataQp(program, 2, 1, Lane::kCredits).sends;
    sends.pop_back();
    sends.back().signaled = true;
    for (QueuePair& master : program.nodes[2].qps) {  // managed: enable what there is
      for (SendEntry& entry : master.sends) {
        if (entry.opcode != Opcode::kSendEnable) continue;
        const QueuePair& of = program.nodes[2].qps[entry.qp.index()];
        entry.count = std::min(entry.count, static_cast<uint32_t>(of.sends.size()));
      }
    }
  }
  VerifiedPlan plan_ = MakePlan("chain", 4, 6, "window=1");
  QueueProgram program_ = *nic::Lower(plan_, {.mode = GetParam()});
};

// By the counters alone, as on hardware: nobody sees that the NICs are idle.
TEST_P(StuckTest, DeadlineNamesTheFirstCulpritAndWhatIsBehindIt) {
  LoseLastCredit(program_);
  const Status by_deadline = Outcome(
      plan_, program_, {.no_progress_max = std::chrono::milliseconds(100), .sees_idle = false});
  const Status by_idleness = Outcome(plan_, program_);
  const std::string by_deadline_start = "stuck: no progress for 100 ms and ";
  const std::string by_idleness_start = "stuck: nothing can happen any more and ";
  ASSERT_THAT(by_deadline.message(), StartsWith(by_deadline_start));
  ASSERT_THAT(by_idleness.message(), StartsWith(by_idleness_start));
  EXPECT_EQ(by_deadline.message().substr(by_deadline_start.size()),
            by_idleness.message().substr(by_idleness_start.size()));
  EXPECT_THAT(by_deadline.message(),
              HasSubstr("first culprit: node 2's QP 2<>1 credits has nothing left for node 1 op"));
  // Sends of the last block, and the end of the chain, stand behind it.
  for (const char* behind : {"(send 1>2:5) waits for ", "(send 2>3:5) waits for ",
                             "node 3's final completion waits for "}) {
    EXPECT_THAT(by_deadline.message(), HasSubstr(behind));
  }
  EXPECT_THAT(by_deadline.message(), testing::Not(HasSubstr("behind node")));
}

// The message is on its way to a receive that nobody has posted.
TEST_P(StuckTest, MissingReceiveIsTheCulprit) {
  const VerifiedPlan plan = MakePlan("chain", 4, 6, "retry");
  QueueProgram program = *nic::Lower(plan, {.mode = GetParam()});
  DataQp(program, 3, 2, Lane::kBlocks).receives.pop_back();
  const Status status = Outcome(plan, program);
  EXPECT_THAT(status.message(), HasSubstr("first culprit: node 2's QP 2<>3 blocks has sent WQE "));
  EXPECT_THAT(status.message(), HasSubstr("without an answer: node 3's QP 3<>2 blocks has no "
                                          "receive posted"));
}

// What a credit grants is not posted, so its doorbell is held back: not the NIC is to blame.
TEST_P(StuckTest, HostThatDoesNotRingIsTheCulprit) {
  DataQp(program_, 3, 2, Lane::kBlocks).receives.pop_back();
  const Status status = Outcome(plan_, program_);
  EXPECT_THAT(status.message(), HasSubstr("first culprit: node 3's QP 3"));
  EXPECT_THAT(status.message(), HasSubstr(" has not been rung on by its host\n"));
}

INSTANTIATE_TEST_SUITE_P(Modes, StuckTest,
                         testing::Values(nic::LoweringMode::kInline, nic::LoweringMode::kManaged),
                         [](const auto& mode) { return std::string(nic::Name(mode.param)); });

// A queue that waits for itself: no end to name but the cycle.
TEST(OffloadFailureTest, CycleIsNamed) {
  const VerifiedPlan plan = MakePlan("chain", 4, 6, "window=1");
  QueueProgram program = *nic::Lower(plan);
  QueuePair& qp = DataQp(program, 1, 2, Lane::kBlocks);
  const auto signaled = std::ranges::count_if(qp.sends, &SendEntry::signaled);
  qp.sends.insert(qp.sends.begin(), {.opcode = Opcode::kWait,
                                     .cq = qp.send_cq,
                                     .cqe_index = static_cast<uint32_t>(signaled - 1),
                                     .op = OpId(0)});
  EXPECT_THAT(Outcome(plan, program).message(),
              HasSubstr("first culprit: a cycle through node 1's QP 1<>2 blocks"));
}

TEST(OffloadFailureTest, LostSendShowsInTheImmediates) {
  const VerifiedPlan plan = MakePlan("chain", 3, 2, "barrier");
  QueueProgram program = *nic::Lower(plan);
  std::vector<SendEntry>& sends = DataQp(program, 0, 1, Lane::kBlocks).sends;
  sends.erase(sends.begin());  // block 0 never leaves the root
  const Status status = Outcome(plan, program);
  EXPECT_EQ(status.code(), StatusCode::kRejected);
  // Node 1 takes block 1 for block 0, which its immediates show before anyone asks who waits.
  EXPECT_THAT(status.message(),
              HasSubstr("block 0 of epoch 0 was expected, block 1 of epoch 0 came"));
}

// A WAIT that lowering forgets: some order of the NIC forwards bytes that have not come yet.
TEST(OffloadFailureTest, MissingWaitForwardsStaleBytes) {
  const VerifiedPlan plan = MakePlan("chain", 3, 4, "barrier");
  QueueProgram program = *nic::Lower(plan);
  std::vector<SendEntry>& sends = DataQp(program, 1, 2, Lane::kBlocks).sends;
  std::erase_if(sends, [](const SendEntry& it) { return it.opcode == Opcode::kWait; });
  bool stale = false;
  for (uint64_t seed = 1; seed <= 20 && !stale; ++seed) {
    Transfer transfer(plan.header());
    const auto report = RunQueueProgram(
        plan, program, transfer.message(), transfer.buffers(),
        {.scheduler = SchedulerMode::kAdversarial, .seed = seed, .validate = false});
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    stale = !std::ranges::equal(transfer.buffers()[2], transfer.message());
  }
  EXPECT_TRUE(stale);
}

// Flushed receives satisfy WAITs: the chain would go on with stale bytes to the very end
// (offload_guard_test.cc). The NIC's own event is named, not what follows from it.
TEST(OffloadFailureTest, BrokenQpIsTheCause) {
  const VerifiedPlan plan = MakePlan("chain", 4, 5, "barrier");
  for (SchedulerMode mode :
       {SchedulerMode::kRoundRobin, SchedulerMode::kRandom, SchedulerMode::kAdversarial}) {
    Transfer transfer(plan.header());
    const Status status =
        RunOffload(plan, transfer.message(), transfer.buffers(),
                   {.scheduler = mode,
                    .faults = {{.node = NodeId(2), .peer = NodeId(1), .after_receives = 2}}})
            .status();
    EXPECT_EQ(status.code(), StatusCode::kRejected);
    EXPECT_EQ(status.message(), "node 2: QP 2<>1 blocks: QP fatal error");
  }
}

class OffloadFailureOnTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Engines, OffloadFailureOnTest,
                         testing::ValuesIn(test::EnginesWhere([](const test::Engine& it) {
                           return it.nics.has_value();
                         })),
                         [](const auto& it) { return it.param; });

// Also error CQEs, and queues that are destroyed while others wait, over commands of firmware.
TEST_P(OffloadFailureOnTest, EveryBrokenLinkEndsTheRun) {
  const VerifiedPlan plan = MakePlan("binomial_pipeline", 6, 4, "window=1");
  for (const Channel& channel : plan.channels()) {
    for (uint64_t after = 0; after < 2; ++after) {
      const Status status = Outcome(plan, {.make_device = *test::EngineOf(GetParam()).nics,
                                           .scheduler = SchedulerMode::kAdversarial,
                                           .seed = after + 1,
                                           .faults = {{channel.to, channel.from, after}}});
      // A link that carries fewer messages than that never breaks.
      if (after == 0) {
        EXPECT_EQ(status.code(), StatusCode::kRejected);
      }
    }
  }
}

// A device that cannot be opened, or that has too little, ends the run before it starts.
TEST(OffloadFailureTest, DeviceWithoutTheCapabilityIsRefused) {
  const VerifiedPlan plan = MakePlan("chain", 3, 4, "barrier");
  const auto open = [](mlx5::StandInOptions options) {
    return [options](nic::NicModel& nic) { return mlx5::OpenOnStandIn(nic, options); };
  };
  Status status = Outcome(plan, {.make_device = open({.cross_channel = false})});
  EXPECT_EQ(status.code(), StatusCode::kEnvironment);
  EXPECT_THAT(status.message(), HasSubstr("the device lacks capability cd"));
  status = Outcome(plan, {.make_device = open({.log_max_qp_sz = 2})});
  EXPECT_EQ(status.code(), StatusCode::kRejected);
  EXPECT_EQ(status.message(), "8 entries of a send queue: the device takes 4");
}

// CQs ignore overrun, or a sequence of messages would lose CQEs. Should a device not do so, no CQE
// says it, and all WAITs behind stand still: its event ends the run, not a deadline.
TEST(OffloadFailureTest, LostCqeEndsTheRun) {
  const VerifiedPlan plan = MakePlan("chain", 3, 8, "window=1");
  const QueueProgram program = *nic::Lower(plan);
  std::vector<Transfer> transfers;
  std::vector<local::MessageBuffers> messages;
  for (uint64_t seed = 1; seed <= 8; ++seed) transfers.emplace_back(plan.header(), seed);
  for (const Transfer& it : transfers) messages.push_back({it.message(), it.buffers()});
  test::SpyNotes notes{.change = [](mlx5::Output in) {
    using namespace mlx5::prm;
    if (Get(in, in::kOpcode) == static_cast<uint16_t>(Command::kCreateCq)) {
      Set(in, In(kCqc, cqc::kOi), 0);
    }
  }};
  OffloadOptions options;
  options.make_device = [&notes](nic::NicModel& nic) -> Result<std::unique_ptr<nic::Device>> {
    auto made = mlx5::Mlx5Device::Open(std::make_unique<test::VerbsSpy>(
        std::make_unique<mlx5::StandIn>(nic, mlx5::StandInOptions{}), notes));
    if (!made.ok()) return made.status();
    return std::unique_ptr<nic::Device>(*std::move(made));
  };
  const Status status = RunQueueProgram(plan, program, messages, options).status();
  EXPECT_EQ(status.code(), StatusCode::kRejected);
  EXPECT_THAT(status.message(),
              testing::MatchesRegex("node [0-2]: (sends|receives) .>. .*: CQ error"));
}

TEST(OffloadFailureTest, InterruptedBeforeItStarts) {
  const EventFd interrupt = *EventFd::Make();
  interrupt.Signal();
  const Status status =
      Outcome(MakePlan("binomial_pipeline", 8, 64, "auto"), {.interrupt_fd = interrupt.fd()});
  EXPECT_EQ(status.code(), StatusCode::kInterrupted);
  EXPECT_EQ(status.message(), "interrupted");  // as with the CPU executor
}

}  // namespace
}  // namespace prepost::offload_failure_test
