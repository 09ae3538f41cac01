// SPDX-License-Identifier: Apache-2.0
//
// What arming takes of a device is what lowering has said.
#include "backends/local/armed_group.h"

#include <gtest/gtest.h>

#include <array>

#include "backends/nic/program/lower.h"
#include "compiler/schedules/schedule.h"
#include "tests/support/plans.h"
#include "tests/support/transfer.h"

namespace prepost::local::armed_group_test {
namespace {

/// Bytes of the rings that the node's device has made.
uint64_t AllocatedBytes(const nic::ArmedNode& node) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < node.program().qps.size(); ++i) {
    const nic::Qp& qp = node.qp(nic::QpId::FromIndex(i));
    bytes += qp.sq.size() + qp.rq.size();
  }
  for (size_t i = 0; i < node.program().cqs.size(); ++i) {
    bytes += node.cq(nic::CqId::FromIndex(i)).ring.size();
  }
  return bytes;
}

// A ring that is made larger or smaller than what `prepost lower` prints.
TEST(ArmedGroupTest, TakesTheRingBytesThatLoweringSays) {
  for (const std::string& schedule : ScheduleNames()) {
    const VerifiedPlan plan = test::CompileOrDie({.nodes = 6,
                                                  .message_bytes = 50 * 10,
                                                  .block_bytes = 10,
                                                  .algorithm = schedule,
                                                  .ready = *ParseReady("window=1")});
    const test::Transfer transfer(plan.header());
    const std::array messages = {MessageBuffers{transfer.message(), transfer.buffers()}};
    for (const auto mode : {nic::LoweringMode::kInline, nic::LoweringMode::kManaged}) {
      for (const uint32_t ring : {32768u, 16u}) {
        const nic::QueueProgram program =
            *nic::Lower(plan, {.mode = mode, .profile = {.sq_wqebbs = ring, .rq_wqes = ring}});
        emulated::Fabric fabric(plan.header().nodes, {});
        const auto group = ArmedGroup::Make(fabric, plan, program, messages, FirstNumbers());
        ASSERT_TRUE(group.ok()) << group.status().ToString();
        for (const nic::ArmedNode& node : group->nodes()) {
          EXPECT_EQ(AllocatedBytes(node), node.program().ring_bytes())
              << schedule << " " << nic::Name(mode) << ", rings of " << ring << ", node "
              << node.program().node.value;
        }
      }
    }
  }
}

// A CQ as long as the master's ring, for the single CQE at a node's end.
TEST(ArmedGroupTest, CqesThatNobodyReadsHaveNoRoom) {
  const VerifiedPlan plan =
      test::CompileOrDie({.nodes = 6, .message_bytes = 50 * 10, .block_bytes = 10});
  const test::Transfer transfer(plan.header());
  const std::array messages = {MessageBuffers{transfer.message(), transfer.buffers()}};
  for (const auto mode : {nic::LoweringMode::kInline, nic::LoweringMode::kManaged}) {
    const nic::QueueProgram program = *nic::Lower(plan, {.mode = mode});
    emulated::Fabric fabric(plan.header().nodes, {});
    const auto group =
        ArmedGroup::Make(fabric, plan, program, messages, FirstNumbers(), /*keeps_cqes=*/false);
    ASSERT_TRUE(group.ok()) << group.status().ToString();
    for (const nic::ArmedNode& node : group->nodes()) {
      for (size_t i = 0; i < node.program().cqs.size(); ++i)
        EXPECT_EQ(node.cq(nic::CqId::FromIndex(i)).ring.size(), nic::kCqeBytes);
    }
  }
}

}  // namespace
}  // namespace prepost::local::armed_group_test
