// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/plan_hash.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <sstream>
#include <vector>

#include "compiler/compile.h"
#include "ir/json/plan_json.h"

namespace prepost::plan_hash_test {
namespace {

Plan Example() { return Compile({.nodes = 5, .message_bytes = 1000, .block_bytes = 100}).value(); }

/// `plan` with its programs in reverse order.
Plan Reversed(const Plan& plan) {
  PlanBuilder builder(plan.header());
  for (const Channel& channel : plan.channels()) builder.AddChannel(channel);
  for (size_t i = plan.programs().size(); i-- > 0;) {
    const Program& program = plan.programs()[i];
    builder.BeginProgram(program.node);
    for (const Op& op : plan.ops(program)) builder.AddOp(op, plan.after(op));
  }
  return std::move(builder).Build();
}

// Catches a hash of a file's form rather than of what it says.
TEST(PlanHashTest, DoesNotDependOnTheForm) {
  Plan plan = Example();
  const PlanHash hash = HashPlan(plan);
  {
    PlanHeader header = plan.header();
    header.generator = "another program 9.9";
    plan = plan.WithHeader(std::move(header));
  }
  EXPECT_EQ(HashPlan(plan), hash);
  EXPECT_EQ(HashPlan(Reversed(plan)), hash);
  std::stringstream file;
  WritePlan(plan, file);
  const Result<Plan> read = ReadPlan(file, "plan");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(HashPlan(*read), hash);
}

// Every field makes a difference: catches one that is left out.
TEST(PlanHashTest, DependsOnEverythingElse) {
  const Plan plan = Example();
  std::set<PlanHash> hashes = {HashPlan(plan)};
  const std::vector<std::function<void(PlanHeader&)>> header_changes = {
      [](PlanHeader& h) { h.algorithm = "x"; },
      [](PlanHeader& h) { h.collective.root = NodeId(1); },
      [](PlanHeader& h) { h.payload.bytes += 1; },
      [](PlanHeader& h) { h.payload.block_bytes += 1; },
      [](PlanHeader& h) { h.payload.blocks += 1; },
      [](PlanHeader& h) { h.ready.mode = ReadyMode::kRetry; },
      [](PlanHeader& h) { h.ready.window += 1; },
      [](PlanHeader& h) { h.send_window = 77; },
      [](PlanHeader& h) { h.rounds += 1; },
      [](PlanHeader& h) { h.ports += 1; },
      [](PlanHeader& h) { h.nodes += 1; }};
  for (const auto& change : header_changes) {
    PlanHeader header = plan.header();
    change(header);
    hashes.insert(HashPlan(plan.WithHeader(std::move(header))));
  }
  const std::vector<std::function<void(Op&, std::vector<OpId>&)>> op_changes = {
      [](Op& op, auto&) { op.block += 1; },
      [](Op& op, auto&) { op.round += 1; },
      [](Op& op, auto&) { op.grants += 1; },
      [](Op& op, auto&) { op.channel = ChannelId(op.channel.value + 1); },
      [](Op& op, auto&) { op.kind = op.is_send() ? OpKind::kRecv : OpKind::kSend; },
      [](Op&, auto& after) { after.push_back(OpId(12345)); }};
  for (const auto& change : op_changes) {
    PlanBuilder builder(plan.header());
    for (const Channel& channel : plan.channels()) builder.AddChannel(channel);
    for (const Program& program : plan.programs()) {
      builder.BeginProgram(program.node);
      for (Op op : plan.ops(program)) {
        std::vector<OpId> after(plan.after(op).begin(), plan.after(op).end());
        if (&program == &plan.programs().back()) change(op, after);
        builder.AddOp(op, after);
      }
    }
    hashes.insert(HashPlan(std::move(builder).Build()));
  }
  EXPECT_EQ(hashes.size(), 1 + header_changes.size() + op_changes.size());
}

TEST(PlanHashTest, DependsOnChannels) {
  const auto with = [](Channel channel) {
    PlanBuilder builder({.nodes = 3});
    builder.AddChannel(channel);
    for (const uint32_t node : {0u, 1u, 2u}) builder.BeginProgram(NodeId(node));
    return HashPlan(std::move(builder).Build());
  };
  const std::set<PlanHash> hashes = {
      with({NodeId(0), NodeId(1), Lane::kBlocks}), with({NodeId(1), NodeId(0), Lane::kBlocks}),
      with({NodeId(0), NodeId(1), Lane::kCredits}), with({NodeId(0), NodeId(2), Lane::kBlocks})};
  EXPECT_EQ(hashes.size(), 4u);
}

}  // namespace
}  // namespace prepost::plan_hash_test
