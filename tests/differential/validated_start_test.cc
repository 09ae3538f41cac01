// SPDX-License-Identifier: Apache-2.0
//
// No doorbell before validation: a byte that changes in a ring between arming and the start is
// refused, and no NIC has got anything to do. That members which play alone do the same is in
// node_over_nic_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "backends/local/offload_run.h"
#include "backends/nic/program/lower.h"
#include "tests/support/plans.h"
#include "tests/support/stray_device.h"
#include "tests/support/transfer.h"

namespace prepost::validated_start_test {
namespace {

using nic::LoweringMode;
using test::StrayWrite;
using testing::HasSubstr;

class ValidatedStartTest : public testing::TestWithParam<LoweringMode> {
 protected:
  static constexpr NodeId kNode{2};

  Status Run(StrayWrite& write, uint32_t ring = 32768) {
    return local::RunOffload(
               plan_, transfer_.message(), transfer_.buffers(),
               {.make_device = test::StrayDevices(write),
                .lower = {.mode = GetParam(), .profile = {.sq_wqebbs = ring, .rq_wqes = ring}}})
        .status();
  }

  /// The first QP of the node that sends and receives blocks.
  size_t BlockQp() const {
    const nic::QueueProgram program = *nic::Lower(plan_, {.mode = GetParam()});
    const std::vector<nic::QueuePair>& qps = program.nodes[kNode.index()].qps;
    size_t i = 0;
    while (qps[i].lane != Lane::kBlocks || qps[i].sends.empty() || qps[i].receives.empty()) ++i;
    return i;
  }

  const VerifiedPlan plan_ = test::CompileOrDie({.nodes = 5,
                                                 .message_bytes = 40 * 100,
                                                 .block_bytes = 100,
                                                 .algorithm = "binomial_pipeline",
                                                 .ready = *ParseReady("window=1")});
  const test::Transfer transfer_{plan_.header()};
};

// Validation that is not called, that comes too late, or that reads other bytes than the rings'.
TEST_P(ValidatedStartTest, WhatChangesInARingIsRefusedBeforeAnyDoorbell) {
  struct Damage {
    bool is_receive;
    size_t byte;
    const char* finding;
  };
  for (const Damage& damage : {Damage{true, nic::data::kLkey + 3, "op: receive into"},
                               Damage{true, nic::data::kAddress + 7, "op: receive into"},
                               Damage{false, nic::control::kQpn + 2, "wqe: names QP"},
                               Damage{false, nic::control::kWqeIndex + 1, "wqe: names index"}}) {
    StrayWrite write{
        .node = kNode, .qp = BlockQp(), .is_receive = damage.is_receive, .byte = damage.byte};
    const Status status = Run(write);
    EXPECT_EQ(status.code(), StatusCode::kRejected);
    EXPECT_THAT(status.message(), HasSubstr("node 2: QP "));
    EXPECT_THAT(status.message(), HasSubstr(damage.finding));
    EXPECT_EQ(write.writes, 1u);
    EXPECT_EQ(write.doorbells, 0u);
  }
}

// A later message of a sequence is armed and validated by each node on its own, in rings whose
// counters have gone on. Catches one that starts unseen, or is compared with what it was before.
TEST_P(ValidatedStartTest, SoIsWhatChangesInTheSecondMessageOfASequence) {
  const nic::QueueProgram program = *nic::Lower(plan_, {.mode = GetParam()});
  const nic::QueuePair& qp = program.nodes[kNode.index()].qps[BlockQp()];
  const test::Transfer second(plan_.header(), /*seed=*/1);
  const std::array messages = {local::MessageBuffers{transfer_.message(), transfer_.buffers()},
                               local::MessageBuffers{second.message(), second.buffers()}};
  const size_t receive = qp.receives.size() % qp.rq_wqes * nic::kReceiveStrideBytes;
  const size_t send = qp.sends.size() % qp.sq_wqebbs * nic::kWqebbBytes;
  struct Damage {
    bool is_receive;
    size_t byte;
    const char* finding;
  };
  for (const Damage& damage :
       {Damage{true, receive + nic::data::kLkey + 3, "op: receive into"},
        Damage{false, send + nic::control::kWqeIndex + 1, "wqe: names index"}}) {
    StrayWrite write{.node = kNode,
                     .qp = BlockQp(),
                     .is_receive = damage.is_receive,
                     .byte = damage.byte,
                     .receives_posted = static_cast<uint16_t>(2 * qp.receives.size())};
    const Status status =
        local::RunQueueProgram(plan_, program, messages, {.make_device = test::StrayDevices(write)})
            .status();
    EXPECT_EQ(status.code(), StatusCode::kRejected);
    EXPECT_THAT(status.message(), HasSubstr("node 2: QP "));
    EXPECT_THAT(status.message(), HasSubstr(damage.finding));
    EXPECT_EQ(write.writes, 1u);
  }
}

// The same devices without damage, also with queues of which only the first part is in the rings.
TEST_P(ValidatedStartTest, WhatIsRightRuns) {
  for (const uint32_t ring : {32768u, 16u}) {
    StrayWrite none;
    const Status status = Run(none, ring);
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_GT(none.doorbells, 0u);
    transfer_.ExpectDelivered();
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ValidatedStartTest,
                         testing::Values(LoweringMode::kInline, LoweringMode::kManaged),
                         [](const auto& mode) { return std::string(nic::Name(mode.param)); });

}  // namespace
}  // namespace prepost::validated_start_test
