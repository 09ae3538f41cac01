// SPDX-License-Identifier: Apache-2.0
//
// Deferred work: lowered, validated, damaged, and executed by a model of counters that knows
// nothing of how it was lowered, in random orders.
#include "backends/triggered/deferred_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <vector>

#include "ir/messages.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/sample.h"

namespace prepost::triggered {
namespace {

using test::Random;
using ::testing::HasSubstr;

std::vector<DeferredProgram> LowerAll(const VerifiedPlan& plan) {
  std::vector<DeferredProgram> programs;
  for (const Program& program : plan.programs()) {
    auto lowered = LowerDeferred(plan, program.node, {.counters_max = 1000});
    EXPECT_TRUE(lowered.ok()) << lowered.status().ToString();
    if (lowered.ok()) programs.push_back(*std::move(lowered));
  }
  return programs;
}

/// All nodes, whose providers release work and deliver messages in a random order; messages of one
/// channel in theirs. What is wrong, or "".
class Execution {
 public:
  Execution(const VerifiedPlan& plan, const std::vector<DeferredProgram>& programs, uint64_t seed)
      : plan_(plan), programs_(programs), random_(seed), values_(programs.size()) {
    for (size_t i = 0; i < programs.size(); ++i) {
      values_[i].resize(programs[i].counters);
      completed_.emplace_back(plan.ops(plan.programs()[i]).size());
      for (uint32_t work = 0; work < programs[i].works.size(); ++work)
        waiting_.push_back({i, work});
    }
  }

  std::string Run() {
    std::vector<size_t> unstarted(programs_.size());
    for (size_t i = 0; i < unstarted.size(); ++i) unstarted[i] = i;
    for (;;) {
      if (!wrong_.empty()) return wrong_;
      // One step: a node starts, work is released, or a message arrives.
      std::vector<size_t> ready;
      std::map<std::pair<size_t, uint32_t>, size_t> first;  // by node and counter, in queue order
      for (size_t i = 0; i < waiting_.size(); ++i) {
        const auto [node, index] = waiting_[i];
        const DeferredWork& work = programs_[node].works[index];
        if (values_[node][work.trigger.counter] < work.trigger.threshold) continue;
        if (first.try_emplace({node, work.trigger.counter}, i).second) ready.push_back(i);
      }
      std::vector<ChannelId> flying;
      for (const auto& [channel, messages] : sent_) {
        if (!messages.empty()) flying.push_back(channel);
      }
      const size_t choices = unstarted.size() + ready.size() + flying.size() + pulses_.size();
      if (choices == 0) break;
      size_t choice = random_.Below(choices);
      if (choice < unstarted.size()) {
        Add(unstarted[choice], programs_[unstarted[choice]].start(), 1);
        unstarted.erase(unstarted.begin() + static_cast<ptrdiff_t>(choice));
      } else if (choice -= unstarted.size(); choice < ready.size()) {
        Release(ready[choice]);
      } else if (choice -= ready.size(); choice < flying.size()) {
        Deliver(flying[choice]);
      } else {
        const auto at = pulses_.begin() + static_cast<ptrdiff_t>(choice - flying.size());
        Add(at->first, at->second, 1);
        pulses_.erase(at);
      }
    }
    for (size_t i = 0; i < programs_.size(); ++i) {
      if (values_[i][programs_[i].done()] != 1) return "node " + std::to_string(i) + " is not done";
    }
    return "";
  }

 private:
  void Add(size_t node, uint32_t counter, uint64_t value) { values_[node][counter] += value; }

  void Release(size_t at) {
    const auto [node, index] = waiting_[at];
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(at));
    const DeferredProgram& program = programs_[node];
    const DeferredWork& work = program.works[index];
    if (work.kind == DeferredWork::Kind::kAdd) return Add(node, work.counter, work.value);
    if (work.kind == DeferredWork::Kind::kPulse) {
      pulses_.emplace_back(node, work.counter);
      return;
    }
    const Op& op = plan_.ops(plan_.programs()[node])[work.op.index()];
    for (const OpId before : plan_.after(op)) {
      if (!completed_[node][before.index()])
        wrong_ = Describe(plan_, plan_.programs()[node], work.op) + " starts too early";
    }
    const std::vector<OpId>& ops = program.ends[work.end].ops;
    const size_t position = started_[op.channel]++;
    if (position >= ops.size() || ops[position] != work.op)
      wrong_ = Describe(plan_, plan_.programs()[node], work.op) + " starts out of order";
    sent_[op.channel].push_back({node, work.end, work.op});
  }

  /// The first message of the channel, into its receive; both ends' counters rise.
  void Deliver(ChannelId channel) {
    const Sent sent = sent_[channel].front();
    sent_[channel].pop_front();
    Complete(sent.node, sent.end, sent.op);
    const size_t peer = programs_[sent.node].ends[sent.end].peer.index();
    for (uint32_t end = 0; end < programs_[peer].ends.size(); ++end) {
      if (programs_[peer].ends[end].channel == channel)
        Complete(peer, end, programs_[peer].ends[end].ops[values_[peer][end]]);
    }
  }
  void Complete(size_t node, uint32_t end, OpId op) {
    completed_[node][op.index()] = true;
    Add(node, end, 1);
  }

  struct Sent {
    size_t node;
    uint32_t end;
    OpId op;
  };
  const VerifiedPlan& plan_;
  const std::vector<DeferredProgram>& programs_;
  Random random_;
  std::vector<std::vector<uint64_t>> values_;         // by node, counter
  std::vector<std::vector<bool>> completed_;          // by node, op
  std::vector<std::pair<size_t, uint32_t>> waiting_;  // node, work
  std::vector<std::pair<size_t, uint32_t>> pulses_;   // node, counter
  std::map<ChannelId, size_t> started_;
  std::map<ChannelId, std::deque<Sent>> sent_;
  std::string wrong_;
};

// Catches conditions that are lost or joined wrongly, joins that count what belongs to a later
// send, sends of a channel that overtake each other, and a validator that refuses what is right.
TEST(DeferredProgramTest, EverySmallPlanIsRightInEveryOrderThatWasTried) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(testing::Message() << "PREPOST_TEST_SEED=" << seed);
  const std::vector<Spec> specs = test::AllSmallSpecs({.nodes_max = 7, .blocks_max = 5});
  test::Sample sample(test::ScheduleLabels(specs));
  uint64_t number = 0;
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(spec));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const std::vector<DeferredProgram> programs = LowerAll(plan);
    for (const DeferredProgram& program : programs) {
      const Status valid = ValidateDeferred(plan, program);
      ASSERT_TRUE(valid.ok()) << valid.ToString() << "\n" << ListDeferred(plan, program);
    }
    ASSERT_EQ(Execution(plan, programs, seed + number++).Run(), "");
  }
}

/// Something about one unit of work, or its place, becomes another.
bool Damage(DeferredProgram& program, Random& random) {
  if (program.works.empty()) return false;
  const size_t at = random.Below(program.works.size());
  DeferredWork& work = program.works[at];
  switch (random.Below(7)) {
    case 0:
      program.works.erase(program.works.begin() + static_cast<ptrdiff_t>(at));
      return true;
    case 1:
      program.works.insert(program.works.begin() + static_cast<ptrdiff_t>(at), work);
      return true;
    case 2:
      if (work.trigger.threshold == 0) return false;
      --work.trigger.threshold;
      return true;
    case 3:
      ++work.trigger.threshold;
      return true;
    case 4:
      work.trigger.counter = static_cast<uint32_t>(random.Below(program.counters));
      return true;
    case 5: {
      DeferredWork& other = program.works[random.Below(program.works.size())];
      std::swap(work.trigger, other.trigger);
      return true;
    }
    default:
      if (work.kind != DeferredWork::Kind::kAdd) return false;
      work.value += random.Coin() ? 1 : (uint64_t{1} << 32);
      return true;
  }
}

// Whatever the validator lets pass must execute rightly, in some random orders. Catches a validator
// that only knows how the lowering works.
TEST(DeferredProgramTest, DamageIsFoundOrDoesNoHarm) {
  const uint64_t seed = test::TestSeed();
  Random random(seed);
  uint32_t found = 0, harmless = 0;
  for (uint64_t i = 0; i < test::RandomCases(400); ++i) {
    const Spec spec = test::RandomSpec(random, {.nodes_max = 6, .blocks_max = 5});
    SCOPED_TRACE(testing::Message() << "PREPOST_TEST_SEED=" << seed << " " << test::Label(spec));
    const VerifiedPlan plan = test::CompileOrDie(spec);
    std::vector<DeferredProgram> programs = LowerAll(plan);
    DeferredProgram& program = programs[random.Below(programs.size())];
    if (!Damage(program, random)) continue;
    if (!ValidateDeferred(plan, program).ok()) {
      ++found;
      continue;
    }
    ++harmless;
    for (uint64_t order = 0; order < 5; ++order) {
      ASSERT_EQ(Execution(plan, programs, seed + order).Run(), "") << ListDeferred(plan, program);
    }
  }
  std::cout << found << " damages found, " << harmless << " do no harm\n";
  EXPECT_GT(found, harmless);
}

// What waits for nothing is released before its counter first rises. Catches a validator that looks
// at counters only when they change.
TEST(DeferredProgramTest, EveryWorkWaitsForSomething) {
  const VerifiedPlan plan = test::PlanWithWindowsOf1("binomial_pipeline", 5, 4, /*block_bytes=*/10);
  for (DeferredProgram& program : LowerAll(plan)) {
    for (DeferredWork& work : program.works) {
      const uint64_t threshold = std::exchange(work.trigger.threshold, 0);
      EXPECT_NE(threshold, 0u);
      EXPECT_THAT(ValidateDeferred(plan, program).message(), HasSubstr("waits for nothing"));
      work.trigger.threshold = threshold;
    }
    EXPECT_TRUE(ValidateDeferred(plan, program).ok());
  }
}

// Joins are per channel and source, so that a program of many blocks needs no more counters.
TEST(DeferredProgramTest, CountersDoNotGrowWithBlocks) {
  const auto counters = [](uint32_t blocks) {
    const VerifiedPlan plan =
        test::PlanWithWindowsOf1("binomial_pipeline", 8, blocks, /*block_bytes=*/10);
    uint32_t most = 0;
    for (const DeferredProgram& program : LowerAll(plan)) most = std::max(most, program.counters);
    return most;
  };
  EXPECT_EQ(counters(30), counters(300));
  EXPECT_LE(counters(300), 64u);
}

TEST(DeferredProgramTest, WhatDoesNotFitIsRefusedWithTheNumbers) {
  const VerifiedPlan plan = test::PlanOf(150, 1, "sequential");
  const Status refused = LowerDeferred(plan, NodeId(0)).status();
  EXPECT_EQ(refused.code(), StatusCode::kRejected);
  EXPECT_THAT(refused.message(),
              HasSubstr("node 0 needs 153 counters, 149 for its ends of channels"));
  EXPECT_THAT(refused.message(), HasSubstr("a domain of this provider has 128"));
  EXPECT_TRUE(LowerDeferred(plan, NodeId(1)).ok());
}

}  // namespace
}  // namespace prepost::triggered
