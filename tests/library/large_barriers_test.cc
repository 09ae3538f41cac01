// SPDX-License-Identifier: Apache-2.0
//
// Barriers of groups that are larger than the leader's own part of the GateTree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "runtime/group/gate_tree.h"
#include "tests/support/sessions.h"

namespace prepost::large_barriers_test {
namespace {

using test::GroupLog;
using test::Members;
using test::Sessions;
using ::testing::HasSubstr;

constexpr uint32_t kMembers = GateTree::kFanOut + 12;
constexpr uint32_t kRoot = 5;
/// One of the leader's children in the tree, with children, and one of these.
constexpr uint32_t kInner = kRoot + 1;
constexpr uint32_t kLeaf = kRoot + GateTree::kFanOut + 1;

class LargeBarriersTest : public testing::TestWithParam<bool> {
 protected:
  LargeBarriersTest() {
    sessions_.Create(1, members_, kRoot, {.algorithm = "chain", .seal = GetParam()});
  }
  static SessionOptions Options() {
    SessionOptions options;
    options.failure_max = std::chrono::seconds(6);
    return options;
  }

  const std::vector<uint32_t> members_ = Members(kMembers);
  Sessions sessions_{kMembers, Options()};
};
INSTANTIATE_TEST_SUITE_P(Sealed, LargeBarriersTest, testing::Bool(),
                         [](const auto& it) { return it.param ? "sealed" : "plain"; });

// Catches members below others that are not waited for, or not released, and arrivals that are
// counted for the next barrier.
TEST_P(LargeBarriersTest, NoMemberPassesBeforeTheLastHasCome) {
  int passed = 0;
  for (const uint32_t late : {kLeaf, kInner, kRoot}) {
    for (const uint32_t member : members_) {
      if (member != late) sessions_.Barrier(1, member);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    for (const uint32_t member : members_) {
      ASSERT_EQ(sessions_.LogOf(member, 1).passed, passed) << member << " before " << late;
    }
    sessions_.Barrier(1, late);
    ++passed;
    ASSERT_TRUE(sessions_.Wait(1, members_, [&](const GroupLog& log) {
      return log.passed == passed;
    })) << late;
  }
}

// Arrivals go along the tree, and that a member is done does not. Catches barriers that all have
// come to and that are forgotten when the group is closed.
TEST_P(LargeBarriersTest, BarriersThatAllHaveCalledPassBeforeTheGroupIsClosed) {
  ASSERT_TRUE(sessions_.Wait(1, members_, [](const GroupLog& log) { return log.opened == 1; }));
  for (uint64_t group = 1; group <= 4; ++group) {
    if (group > 1)
      sessions_.Create(group, members_, kRoot, {.algorithm = "chain", .seal = GetParam()});
    for (const uint32_t member : members_) {
      sessions_.Barrier(group, member);
      sessions_.Barrier(group, member);
      if (member != kLeaf) sessions_.Barrier(group, member);
      EXPECT_TRUE(sessions_[member].DestroyGroup(group).ok());
    }
    ASSERT_TRUE(
        sessions_.Wait(group, members_, [](const GroupLog& log) { return log.closed == 1; }));
    for (const uint32_t member : members_) {
      EXPECT_EQ(sessions_.LogOf(member, group).passed, 2) << member << " in " << group;
    }
  }
}

// Catches members below one that is gone that wait for it for ever, and a cause that names another.
TEST_P(LargeBarriersTest, AnInnerMemberThatDiesIsNamedByAll) {
  for (const uint32_t member : members_) sessions_.Barrier(1, member);
  ASSERT_TRUE(sessions_.Wait(1, members_, [](const GroupLog& log) { return log.passed == 1; }));
  for (const uint32_t member : members_) {
    if (member != kInner) sessions_.Barrier(1, member);
  }
  sessions_.Kill(kInner);
  std::vector<uint32_t> others = members_;
  std::erase(others, kInner);
  ASSERT_TRUE(sessions_.Wait(1, others, [](const GroupLog& log) { return !log.failures.empty(); }));
  for (const uint32_t member : others) {
    EXPECT_THAT(sessions_.LogOf(member, 1).failures.front(),
                HasSubstr("member " + std::to_string(kInner) + " "));
    EXPECT_EQ(sessions_.LogOf(member, 1).passed, 1);
  }
}

}  // namespace
}  // namespace prepost::large_barriers_test
