// SPDX-License-Identifier: Apache-2.0
//
// LocalOrder against plain closure, on random programs of every form that `shape` allows.
#include "ir/local_order.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/local_closure.h"
#include "tests/support/random.h"

namespace prepost::local_order_test {
namespace {

/// With up to `channels_max` channels and `ops_max` ops; of the ops before a send, it waits for one
/// in `sparseness`.
Plan RandomProgram(std::mt19937& engine, uint32_t channels_max, uint32_t ops_max,
                   uint32_t sparseness) {
  const auto random = [&](uint32_t below) { return static_cast<uint32_t>(engine() % below); };
  PlanBuilder builder(PlanHeader{});
  const uint32_t channels = 1 + random(channels_max);
  for (uint32_t c = 0; c < channels; ++c)
    builder.AddChannel({.from = NodeId(0), .to = NodeId(c + 1)});
  builder.BeginProgram(NodeId(0));
  const uint32_t ops = 1 + random(ops_max);
  for (uint32_t i = 0; i < ops; ++i) {
    // Even channels carry sends, odd ones receives.
    const ChannelId channel(random(channels));
    const bool is_send = channel.value % 2 == 0;
    std::vector<OpId> after;
    for (uint32_t before = 0; is_send && before < i; ++before) {
      if (random(sparseness) == 0) after.push_back(OpId(before));
    }
    builder.AddOp({.channel = channel, .block = 0, .kind = is_send ? OpKind::kSend : OpKind::kRecv},
                  after);
  }
  return std::move(builder).Build();
}

void ExpectClosure(const Plan& plan) {
  const Program& program = plan.programs()[0];
  const auto closure = test::LocalClosure(plan, program);
  LocalOrder order(plan, program);
  for (uint32_t id = 0; id < program.op_count; ++id) {
    order.Advance();
    const Op& op = plan.ops(program)[id];
    if (!op.is_send()) continue;
    for (uint32_t before = 0; before < id; ++before) {
      ASSERT_EQ(order.Precedes(OpId(before)), closure[id].contains(before))
          << Dump(plan) << id << " " << before;
    }
    for (size_t entry = 0; entry < op.after_count; ++entry) {
      PlanBuilder without(plan.header());
      without.BeginProgram(program.node);
      for (uint32_t o = 0; o <= id; ++o) {
        const auto given = plan.after(plan.ops(program)[o]);
        std::vector<OpId> after(given.begin(), given.end());
        if (o == id) after.erase(after.begin() + static_cast<std::ptrdiff_t>(entry));
        without.AddOp(plan.ops(program)[o], after);
      }
      const Plan less = std::move(without).Build();
      const bool is_implied = test::LocalClosure(less, less.programs()[0])[id] == closure[id];
      ASSERT_EQ(order.IsImplied(entry), is_implied) << Dump(plan) << id << " entry " << entry;
    }
  }
}

TEST(LocalOrderTest, AgreesWithClosure) {
  const auto seed = static_cast<uint32_t>(test::TestSeed());
  SCOPED_TRACE(seed);
  std::mt19937 engine(seed);
  for (int i = 0; i < 5000; ++i)
    ASSERT_NO_FATAL_FAILURE(ExpectClosure(RandomProgram(engine, 5, 24, 6)));
}

// Clocks of several blocks.
TEST(LocalOrderTest, AgreesWithClosureOnManyChannels) {
  const auto seed = static_cast<uint32_t>(test::TestSeed());
  SCOPED_TRACE(seed);
  std::mt19937 engine(seed);
  for (int i = 0; i < 100; ++i)
    ASSERT_NO_FATAL_FAILURE(ExpectClosure(RandomProgram(engine, 300, 100, 20)));
}

}  // namespace
}  // namespace prepost::local_order_test
