// SPDX-License-Identifier: Apache-2.0
//
// tests/schema/exchange_test.py plays what is written here.
#include "prepost/ir/msccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/golden.h"
#include "tests/support/plans.h"

namespace prepost {
namespace {

using ::testing::HasSubstr;

TEST(MscclTest, Golden) {
  std::ostringstream out;
  const Plan plan = test::PlanOf(4, 3);
  ASSERT_TRUE(CheckMsccl(plan).ok());
  WriteMsccl(plan, out);
  test::ExpectGolden("exchange/pipeline-4.xml", out.str());
}

// Catches files that the loader turns down, which NCCL then passes over in silence.
TEST(MscclTest, LimitsAreNamed) {
  EXPECT_TRUE(CheckMsccl(test::PlanOf(2, 256, "chain")).ok());
  EXPECT_THAT(CheckMsccl(test::PlanOf(2, 257, "chain")).message(), HasSubstr("257 blocks"));
  EXPECT_TRUE(CheckMsccl(test::PlanOf(33, 1, "sequential")).ok());
  EXPECT_THAT(CheckMsccl(test::PlanOf(34, 1, "sequential")).message(),
              HasSubstr("node 0 sends to 33 peers, an MSCCL gpu at most 32"));
  EXPECT_THAT(CheckMsccl(test::PlanOf(3, 0)).message(), HasSubstr("empty message"));
  // Nops count as well: one send waits for its block and for the last one to another child.
  EXPECT_THAT(CheckMsccl(test::PlanOf(8, 256, "binomial_tree")).message(),
              HasSubstr("1>5 at node 1 makes 257 steps"));
}

}  // namespace
}  // namespace prepost
