// SPDX-License-Identifier: Apache-2.0
//
// Groups that play a plan from a file.
#include "library/group_plan_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "compiler/roll.h"
#include "ir/json/plan_json.h"
#include "ir/json/rolled_plan_json.h"
#include "runtime/files/plan_folder.h"
#include "tests/support/plans.h"
#include "tests/support/rolled_plans.h"
#include "tests/support/sessions.h"
#include "tests/support/temp_folder.h"

namespace prepost::group_plan_file_test {
namespace {

using test::GroupLog;
using test::Sessions;
using ::testing::HasSubstr;

constexpr uint32_t kNodes = 5;
const std::vector<uint32_t> kMembers = {4, 2, 0, 3, 1};  // the root, node 1, is member 2

Spec SpecOf(const std::string& ready) {
  return {.nodes = kNodes,
          .root = NodeId(1),
          .message_bytes = 4500,
          .block_bytes = 1000,
          .algorithm = "binomial_pipeline",
          .ready = *ParseReady(ready)};
}

class GroupPlanFileTest : public testing::Test {
 protected:
  std::string WriteRolled(const Spec& spec, std::optional<NodeId> only = {}) {
    const std::string path = folder_ / fmt::format("rolled{}.json", files_++);
    std::ofstream out(path);
    WriteRolledPlan(Roll(spec, only).value(), out);
    return path;
  }
  std::string WriteFlat(const Spec& spec) {
    const std::string path = folder_ / fmt::format("flat{}.json", files_++);
    std::ofstream out(path);
    WritePlan(test::CompileOrDie(spec), out, PlanEncoding::kRows);
    return path;
  }

  /// `plan_of` the node of each member.
  template <typename PathOf>
  void Create(Sessions& sessions, PathOf path_of, const char* device = "") {
    for (uint32_t node = 0; node < kNodes; ++node) {
      const uint32_t member = kMembers[node];
      const Status status = sessions[member].CreateGroup(
          7, kMembers, 2, {.plan = path_of(NodeId(node)), .device = device},
          sessions.Callbacks(member, 7));
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
  }
  void ExpectDelivery(Sessions& sessions, const std::vector<uint64_t>& sizes) {
    std::vector<std::vector<std::byte>> messages;
    for (const uint64_t bytes : sizes) {
      messages.emplace_back(bytes);
      for (uint64_t i = 0; i < bytes; ++i)
        messages.back()[i] = static_cast<std::byte>(i * 7 + messages.size());
    }
    for (const std::vector<std::byte>& message : messages)
      ASSERT_TRUE(sessions[2].Send(7, message.data(), message.size()).ok());
    ASSERT_TRUE(sessions.Wait(
        7, kMembers, [&](const GroupLog& log) { return log.completed.size() == messages.size(); }));
    for (const uint32_t member : kMembers)
      EXPECT_EQ(sessions.LogOf(member, 7).messages, messages) << member;
  }

  test::TempFolder folder_;
  int files_ = 0;
};

// Any size, with and without credits and send windows, from a whole file and from one for each
// node. Catches nodes that are taken for members, and a hash that depends on which programs a file
// has.
TEST_F(GroupPlanFileTest, RolledPlansCarryAnySize) {
  for (const char* ready : {"barrier", "window=2"}) {
    SCOPED_TRACE(ready);
    const std::string whole = WriteRolled(SpecOf(ready));
    Sessions sessions(kNodes);
    Create(sessions, [&](NodeId node) {
      return node.value % 2 == 0 ? whole : WriteRolled(SpecOf(ready), node);
    });
    ExpectDelivery(sessions, {0, 1, 999, 1000, 1001, 40000, 7});
  }
}

TEST_F(GroupPlanFileTest, PlansGoOverDevicesAsTheyAre) {
  Sessions sessions(kNodes);
  const std::string path = WriteRolled(SpecOf("window=2"));
  Create(
      sessions, [&](NodeId) { return path; }, "emulated");
  ExpectDelivery(sessions, {0, 1, 1000, 40000, 7});
  const Status part = sessions[0].CreateGroup(
      8, kMembers, 2, {.plan = WriteRolled(SpecOf("barrier"), NodeId(2)), .device = "emulated"},
      {});
  EXPECT_THAT(part.ToString(), HasSubstr("a device needs a plan with the programs of all nodes"));
}

// Catches a plan that is stretched to a message of another size, and a group that fails for the one
// call that was wrong.
TEST_F(GroupPlanFileTest, FlatPlansCarryTheirSizeOnly) {
  const std::string path = WriteFlat(SpecOf("window=1"));
  const std::string shards = folder_ / "shards";
  ASSERT_TRUE(WritePlanFolder(test::CompileOrDie(SpecOf("window=1")), shards, -1).ok());
  Sessions sessions(kNodes);
  Create(sessions, [&](NodeId node) { return node.value == 3 ? shards : path; });
  const Status refused = sessions[2].Send(7, path.data(), 5).status();
  EXPECT_EQ(refused.code(), StatusCode::kUsage);
  EXPECT_THAT(refused.ToString(), HasSubstr("is a plan for messages of 4500 bytes"));
  EXPECT_THAT(refused.ToString(), HasSubstr("this one has 5"));
  ExpectDelivery(sessions, {4500, 4500, 4500});
}

// Catches members that play different plans, of which each is valid by itself.
TEST_F(GroupPlanFileTest, MembersMustHaveTheSamePlan) {
  Sessions sessions(kNodes);
  Spec other = SpecOf("barrier");
  other.block_bytes = 1001;
  const std::string path = WriteRolled(SpecOf("barrier")), wrong = WriteRolled(other);
  Create(sessions, [&](NodeId node) { return node.value == 4 ? wrong : path; });
  ASSERT_TRUE(
      sessions.Wait(7, kMembers, [](const GroupLog& log) { return log.failures.size() == 1; }));
  EXPECT_THAT(sessions.LogOf(1, 7).failures.front(), HasSubstr("other options or another plan"));
}

TEST_F(GroupPlanFileTest, RefusesFilesThatDoNotFit) {
  Sessions sessions(kNodes);
  const auto refusal = [&](const GroupOptions& options, uint32_t root = 2) {
    const Status status = sessions[0].CreateGroup(7, kMembers, root, options, {});
    EXPECT_EQ(status.code(), StatusCode::kUsage);
    EXPECT_THAT(status.ToString(), HasSubstr("cannot create group 7: " + options.plan));
    return status.ToString();
  };
  const auto of = [](const std::string& path) { return GroupOptions{.plan = path}; };
  EXPECT_THAT(refusal(of(folder_ / "absent")), HasSubstr("cannot read: No such file"));
  Spec small = SpecOf("barrier");
  small.nodes = 4;
  for (const std::string& path : {WriteRolled(small), WriteFlat(small)})
    EXPECT_THAT(refusal(of(path)), HasSubstr("it is a plan for 4 nodes, and the group has 5"));
  for (const std::string& path : {WriteRolled(SpecOf("barrier")), WriteFlat(SpecOf("barrier"))}) {
    EXPECT_THAT(refusal(of(path), 3), HasSubstr("its root is node 1, and the group's root is the "
                                                "member at place 3"));
  }
  EXPECT_THAT(refusal(of(WriteRolled(SpecOf("barrier"), NodeId(0)))),
              HasSubstr("it has no program for node 2"));
  const std::string text = folder_ / "text";
  std::ofstream(text) << "{\"format\": \"prepost.spec\"}";
  EXPECT_THAT(refusal(of(text)), HasSubstr("prepost.plan"));
  // Valid as a form, and not as a plan: a transfer is gone.
  RolledPlan damaged = Roll(SpecOf("barrier")).value();
  for (RolledSlot& slot : damaged.programs[3].segments[0].slots) slot.recv.reset();
  const std::string wrong = folder_ / "wrong";
  {
    std::ofstream out(wrong);
    WriteRolledPlan(damaged, out);
  }
  EXPECT_THAT(refusal(of(wrong)), HasSubstr("the plan fails verification"));
  const Status twice = sessions[0].CreateGroup(
      7, kMembers, 2, {.algorithm = "chain", .plan = WriteFlat(SpecOf("barrier"))}, {});
  EXPECT_THAT(twice.ToString(), HasSubstr("a plan file has an algorithm and a block size"));
}

}  // namespace
}  // namespace prepost::group_plan_file_test
