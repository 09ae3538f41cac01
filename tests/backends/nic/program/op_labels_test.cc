// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/program/op_labels.h"

#include <gtest/gtest.h>

#include "backends/nic/program/lower.h"
#include "tests/support/plans.h"

namespace prepost::nic::op_labels_test {
namespace {

// Entries counted into the wrong queue, WAITs and SEND_ENs given to a neighbour's op.
TEST(OpLabelsTest, AreThoseOfLowering) {
  const DeviceProfile tiny = {.name = "tiny", .sq_wqebbs = 16, .rq_wqes = 16};
  const LowerOptions ways[] = {
      {},
      {.profile = tiny},
      {.mode = LoweringMode::kManaged},
      {.mode = LoweringMode::kManaged, .masters = Masters::kLane, .profile = tiny},
      {.mode = LoweringMode::kManaged, .masters = Masters::kQueue}};
  size_t programs = 0;
  for (const Spec& spec : test::AllSmallSpecs({.nodes_max = 6, .blocks_max = 4})) {
    const VerifiedPlan plan = test::CompileOrDie(spec);
    for (const LowerOptions& way : ways) {
      const auto lowered = Lower(plan, way);
      if (!lowered.ok()) continue;  // does not fit tiny rings
      QueueProgram again = *lowered;
      for (NodeProgram& node : again.nodes) {
        for (QueuePair& qp : node.qps) {
          for (SendEntry& entry : qp.sends) entry.op = OpId(12345);
          for (ReceiveEntry& entry : qp.receives) entry.op = kNoOp;
        }
      }
      LabelOps(plan, &again);
      ASSERT_EQ(again, *lowered) << test::Label(spec);
      ++programs;
    }
  }
  EXPECT_GT(programs, 5000u);
}

}  // namespace
}  // namespace prepost::nic::op_labels_test
