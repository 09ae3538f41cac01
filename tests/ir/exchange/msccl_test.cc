// SPDX-License-Identifier: Apache-2.0
//
// tests/schema/exchange_test.py plays what is written here.
#include "ir/exchange/msccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/golden.h"
#include "tests/support/plans.h"

namespace prepost::msccl_test {
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
  EXPECT_TRUE(CheckMsccl(test::PlanOf(1024, 1, "chain")).ok());
  EXPECT_THAT(CheckMsccl(test::PlanOf(1025, 1, "chain")).message(),
              HasSubstr("1025 nodes, MSCCL's loader has room for 1024 gpus"));
  EXPECT_THAT(CheckMsccl(test::PlanOf(33, 200, "kary_tree=32")).message(),
              HasSubstr("elements of XML, MSCCL's loader has room for 4096 of a gpu"));
  // Nops count as well: one send waits for its block and for the last one to another child.
  EXPECT_THAT(CheckMsccl(test::PlanOf(8, 256, "binomial_tree")).message(),
              HasSubstr("1>5 at node 1 makes 257 steps"));
}

// Catches files that load and are never used, as nobody's elements are a multiple of the chunks.
TEST(MscclTest, SaysWhatNcclWillNotUse) {
  const auto losses = [](uint64_t bytes) {
    return MscclLosses(test::CompileOrDie({.nodes = 3, .message_bytes = bytes, .block_bytes = 10}));
  };
  EXPECT_EQ(losses(30).find(";"), std::string::npos);
  // Three chunks of 8 bytes each.
  EXPECT_THAT(losses(24), HasSubstr("; its chunks are equal, so the last block is not short"));
  EXPECT_EQ(losses(24).find("NCCL takes"), std::string::npos);
  EXPECT_THAT(losses(25), HasSubstr("; NCCL takes it for no message of 25 bytes, as they are no "
                                    "multiple of its 3 chunks"));
}

}  // namespace
}  // namespace prepost::msccl_test
