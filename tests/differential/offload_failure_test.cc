// SPDX-License-Identifier: Apache-2.0
//
// Offloaded runs that must not succeed: what does not fit, what is lost, broken or late. A run that
// hangs, or one that calls stale bytes a success, shows here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "prepost/backends/emulated/offload_run.h"
#include "prepost/runtime/event_fd.h"
#include "tests/support/plans.h"
#include "tests/support/transfer.h"

namespace prepost {
namespace {

using emulated::OffloadOptions;
using emulated::RunOffload;
using emulated::RunQueueProgram;
using emulated::SchedulerMode;
using nic::NodeProgram;
using nic::Opcode;
using nic::QueuePair;
using nic::QueueProgram;
using nic::SendEntry;
using test::Transfer;
using testing::HasSubstr;
using testing::StartsWith;

Plan MakePlan(const std::string& algorithm, uint32_t nodes, uint32_t blocks,
              const std::string& ready) {
  return test::CompileOrDie({.nodes = nodes,
                             .message_bytes = blocks * uint64_t{1000},
                             .block_bytes = 1000,
                             .algorithm = algorithm,
                             .ready = *ParseReady(ready)});
}

Status Outcome(const Plan& plan, const QueueProgram& program, const OffloadOptions& options = {}) {
  Transfer transfer(plan.header());
  return RunQueueProgram(plan, program, transfer.message(), transfer.buffers(), options).status();
}

Status Outcome(const Plan& plan, const OffloadOptions& options = {}) {
  Transfer transfer(plan.header());
  return RunOffload(plan, transfer.message(), transfer.buffers(), options).status();
}

/// The data QP of `node` towards `peer`.
QueuePair& DataQp(QueueProgram& program, uint32_t node, uint32_t peer, uint32_t lane) {
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
            "node 1: receive queue of QP 1>0 blocks needs 20 WQEs before any send starts (--ready "
            "barrier), the limit is 16; --ready window=1 needs fewer");
}

TEST(OffloadFailureTest, BuffersOfTheWrongSizeAreRefused) {
  const Plan plan = MakePlan("chain", 2, 1, "barrier");
  Transfer transfer(plan.header());
  EXPECT_EQ(RunOffload(plan, transfer.message().first(999), transfer.buffers()).status().message(),
            "the message has 999 bytes, the plan is for 1000");
  EXPECT_EQ(RunOffload(plan, transfer.message(), transfer.buffers().first(1)).status().message(),
            "1 node buffers were given, the plan has 2 nodes");
}

TEST(OffloadFailureTest, LostCreditIsReportedAsStuck) {
  const Plan plan = MakePlan("chain", 3, 3, "window=1");
  QueueProgram program = *nic::Lower(plan);
  QueuePair& credits = DataQp(program, 2, 1, kCreditLane);
  credits.sends.pop_back();  // the last credit of node 2, with its completion
  credits.sends.back().signaled = true;
  for (SchedulerMode mode : {SchedulerMode::kRoundRobin, SchedulerMode::kAdversarial}) {
    const Status status = Outcome(plan, program, {.scheduler = mode});
    EXPECT_EQ(status.code(), StatusCode::kRejected);
    EXPECT_THAT(status.message(), StartsWith("stuck: nothing can happen any more and"));
    EXPECT_THAT(status.message(), HasSubstr("(send 1>2:2) waits for node 1 op"));
    EXPECT_THAT(status.message(),
                HasSubstr("(recv credit 2>1) (2 of 3 CQEs of the receives of QP 1>2 credits "
                          "are there; node 2's send queue to node 1 "));
  }
}

TEST(OffloadFailureTest, LostSendShowsInTheImmediates) {
  const Plan plan = MakePlan("chain", 3, 2, "barrier");
  QueueProgram program = *nic::Lower(plan);
  std::vector<SendEntry>& sends = DataQp(program, 0, 1, kBlockLane).sends;
  sends.erase(sends.begin());  // block 0 never leaves the root
  const Status status = Outcome(plan, program);
  EXPECT_EQ(status.code(), StatusCode::kRejected);
  // Node 1 takes block 1 for block 0, which its immediates show before anyone asks who waits.
  EXPECT_THAT(status.message(),
              HasSubstr("block 0 of epoch 0 was expected, block 1 of epoch 0 came"));
}

// A WAIT that lowering forgets: some order of the NIC forwards bytes that have not come yet.
TEST(OffloadFailureTest, MissingWaitForwardsStaleBytes) {
  const Plan plan = MakePlan("chain", 3, 4, "barrier");
  QueueProgram program = *nic::Lower(plan);
  std::vector<SendEntry>& sends = DataQp(program, 1, 2, kBlockLane).sends;
  std::erase_if(sends, [](const SendEntry& it) { return it.opcode == Opcode::kWait; });
  bool stale = false;
  for (uint64_t seed = 1; seed <= 20 && !stale; ++seed) {
    Transfer transfer(plan.header());
    const auto report = RunQueueProgram(plan, program, transfer.message(), transfer.buffers(),
                                        {.scheduler = SchedulerMode::kAdversarial, .seed = seed});
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    stale = !std::ranges::equal(transfer.buffers()[2], transfer.message());
  }
  EXPECT_TRUE(stale);
}

// Flushed receives satisfy WAITs: the chain would go on with stale bytes to the very end
// (offload_guard_test.cc). The NIC's own event is named, not what follows from it.
TEST(OffloadFailureTest, BrokenQpIsTheCause) {
  const Plan plan = MakePlan("chain", 4, 5, "barrier");
  for (SchedulerMode mode :
       {SchedulerMode::kRoundRobin, SchedulerMode::kRandom, SchedulerMode::kAdversarial}) {
    Transfer transfer(plan.header());
    const Status status =
        RunOffload(plan, transfer.message(), transfer.buffers(),
                   {.scheduler = mode,
                    .faults = {{.node = NodeId(2), .peer = NodeId(1), .after_receives = 2}}})
            .status();
    EXPECT_EQ(status.code(), StatusCode::kRejected);
    EXPECT_EQ(status.message(), "node 2: QP 2>1 blocks: QP fatal error");
  }
}

TEST(OffloadFailureTest, EveryBrokenLinkEndsTheRunWithAnError) {
  const Plan plan = MakePlan("binomial_pipeline", 6, 4, "window=1");
  for (const Channel& channel : plan.channels()) {
    for (uint64_t after = 0; after < 2; ++after) {
      const Status status = Outcome(plan, {.scheduler = SchedulerMode::kAdversarial,
                                           .seed = after + 1,
                                           .faults = {{channel.to, channel.from, after}}});
      // A link that carries fewer messages than that never breaks.
      if (after == 0) {
        EXPECT_EQ(status.code(), StatusCode::kRejected);
      }
    }
  }
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
}  // namespace prepost
