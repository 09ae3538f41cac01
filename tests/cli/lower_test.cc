// SPDX-License-Identifier: Apache-2.0
//
// `prepost lower` as a user sees it: what it prints, writes and refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost {
namespace {

using test::Command;
using test::TempFolder;
using ::testing::HasSubstr;

class LowerCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Command compile({"compile", "--nodes", "3", "--algorithm", "chain", "--ready", "barrier",
                     "--message-bytes", "190", "--block-bytes", "100", "-o", plan_});
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
  }
  std::string Lower(std::vector<std::string> more, int code = 0) {
    more.insert(more.begin(), {"lower", plan_});
    Command lower(more);
    EXPECT_EQ(lower.Wait(), code);
    return code == 0 ? lower.out() : lower.err();
  }

  TempFolder folder_;
  const std::string plan_ = folder_ / "plan.json";
};

TEST_F(LowerCommandTest, PrintsALinePerNode) {
  EXPECT_EQ(Lower({}),
            "node 0: 2 QPs, 3 CQs, 4 WQEs, 1 WAIT, 0 SEND_ENs, 2 doorbells, 0 re-arms, 448 bytes "
            "of rings\n"
            "node 1: 3 QPs, 4 CQs, 9 WQEs, 4 WAITs, 0 SEND_ENs, 2 doorbells, 0 re-arms, 928 bytes "
            "of rings\n"
            "node 2: 2 QPs, 3 CQs, 4 WQEs, 1 WAIT, 0 SEND_ENs, 1 doorbell, 0 re-arms, 480 bytes "
            "of rings\n");
  EXPECT_THAT(Lower({"--json", "--node", "1"}), HasSubstr("\"waits\": 4"));
}

TEST_F(LowerCommandTest, ListsEveryEntry) {
  EXPECT_THAT(
      Lower({"--list", "--node", "1"}),
      HasSubstr("WAIT CQ 1 until CQE 0                         ; node 1 op 2 (send 1>2:0)"));
}

TEST_F(LowerCommandTest, WritesFiles) {
  const std::string json = folder_ / "queues.json";
  EXPECT_EQ(Lower({"-o", json}), "");
  EXPECT_THAT(test::ReadText(json), HasSubstr("\"format\": \"prepost.queues\""));
  const std::string binary = folder_ / "queues.bin";
  EXPECT_EQ(Lower({"-o", binary}), "");
  EXPECT_TRUE(test::ReadText(binary).starts_with("PPQ2"));
}

TEST_F(LowerCommandTest, RefusesWithTheNumbers) {
  EXPECT_EQ(Lower({"--cq-entries", "1"}, 1),
            "prepost: " + plan_ +
                ": node 1: CQ of receives of QP 1>0 blocks needs 2 entries, the limit is 1\n");
  EXPECT_EQ(Lower({"--node", "3"}, 1),
            "prepost: " + plan_ + ": node 3 does not exist, the plan has 3 nodes\n");
}

}  // namespace
}  // namespace prepost
