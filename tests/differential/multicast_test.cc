// SPDX-License-Identifier: Apache-2.0
//
// Multicasts over every engine (tests/support/engines.h), driven and preposted: every node ends
// with the oracle's bytes, and the order in which ops really happened contains the plan's. A
// completion that is given to the wrong op, a WAIT that lowering forgets, an index that is off by
// one, a ring that wraps wrongly, what a model of a library does not know of it, and a sleep that
// misses its event (the test hangs) show here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "compiler/schedules/schedule.h"
#include "tests/support/engines.h"
#include "tests/support/random.h"
#include "tests/support/rounds.h"
#include "tests/support/sample.h"

namespace prepost::multicast_test {
namespace {

using emulated::SchedulerMode;
using test::CompileOrDie;
using test::Engine;
using test::PlayOptions;
using test::Way;

constexpr SchedulerMode kOrders[] = {SchedulerMode::kRoundRobin, SchedulerMode::kRandom,
                                     SchedulerMode::kAdversarial};
constexpr const char* kReadyModes[] = {"auto",     "barrier",  "channel",
                                       "window=1", "window=3", "retry"};

/// One schedule over one way; where each play is dear, all schedules.
struct Instance {
  Way way;
  std::string schedule = {};  ///< one of ScheduleParameters(); empty: all
  friend void PrintTo(const Instance& it, std::ostream* out) { PrintTo(it.way, out); }
};

std::vector<Instance> Instances(const std::vector<Way>& ways) {
  std::vector<Instance> instances;
  for (const Way& way : ways) {
    if (way.engine->is_library()) {
      instances.push_back({way});
      continue;
    }
    for (const std::string& schedule : test::ScheduleParameters())
      instances.push_back({way, schedule});
  }
  return instances;
}

class MulticastTest : public testing::TestWithParam<Instance> {
 protected:
  void SetUp() override { PREPOST_SKIP_IF_NOT_THERE(engine()); }

  static const Way& way() { return GetParam().way; }
  static const Engine& engine() { return *GetParam().way.engine; }
  /// The orders of NICs take turns.
  static PlayOptions OptionsOf(const VerifiedPlan& plan, uint64_t seed) {
    PlayOptions options = way().Options(plan);
    options.seed = seed;
    options.scheduler = kOrders[seed % std::size(kOrders)];
    return options;
  }

  const std::vector<std::string> schedules_ =
      GetParam().schedule.empty()
          ? test::SchedulesToRun()
          : std::vector<std::string>{test::ScheduleInTurn(GetParam().schedule)};
};

/// What changes of how one plan is played.
struct Variant {
  std::string label;
  WaitMode wait = WaitMode::kInterrupt;
  uint32_t ring_wqes_max = 32768;
  SchedulerMode scheduler = SchedulerMode::kRoundRobin;
};

std::vector<Variant> VariantsOf(const Way& way) {
  if (!way.engine->nics) return {{}};
  std::vector<Variant> variants;
  if (way.is_preposted) {
    for (const SchedulerMode order : kOrders)
      variants.push_back({.label = fmt::format(" order={}", Name(order)), .scheduler = order});
    return variants;
  }
  for (const WaitMode wait : {WaitMode::kInterrupt, WaitMode::kPolling, WaitMode::kHybrid}) {
    for (const uint32_t ring : {2u, 32768u})
      variants.push_back({fmt::format(" wait={} ring={}", Name(wait), ring), wait, ring});
  }
  return variants;
}

TEST_P(MulticastTest, EverySmallPlanDelivers) {
  const std::vector<Spec> specs = test::SpecsForExecutors(engine().limits, schedules_);
  const std::vector<Variant> variants = VariantsOf(way());
  std::vector<std::string> labels;
  for (const std::string& schedule : test::ScheduleLabels(specs)) {
    for (const Variant& variant : variants) labels.push_back(schedule + variant.label);
  }
  // Preposted NICs need no threads.
  const uint64_t fewer = way().is_preposted && engine().nics ? 2 : variants.size();
  test::Sample sample(labels, test::SampleDivisor(engine().fewer * fewer));
  uint64_t seed = test::TestSeed();
  for (const Spec& spec : specs) {
    for (const Variant& variant : variants) {
      if (!sample.Takes()) continue;
      SCOPED_TRACE(test::Label(spec));
      const VerifiedPlan plan = CompileOrDie(spec);
      PlayOptions options = OptionsOf(plan, ++seed);
      options.wait = variant.wait;
      options.ring_wqes_max = variant.ring_wqes_max;
      if (way().is_preposted) options.scheduler = variant.scheduler;
      ExpectDelivers(engine(), plan, options);
      if (HasFailure()) return;
    }
  }
}

// Blocks that move in several pieces or packets: catches lost places in them.
TEST_P(MulticastTest, LargeBlocksDeliver) {
  if (engine().transport) PREPOST_SKIP_IF_IN_ANOTHER_PART();
  std::vector<std::string> labels;
  for (const std::string& schedule : schedules_) {
    for (const char* const ready : kReadyModes)
      labels.push_back(fmt::format("schedule={} ready={}", schedule, ready));
  }
  test::Sample sample(labels, test::SampleDivisor(engine().fewer));
  const uint64_t block = engine().large_block_bytes;
  for (const std::string& schedule : schedules_) {
    for (const char* const ready : kReadyModes) {
      if (!sample.Takes()) continue;
      const Spec spec = test::WithRacks({.nodes = 5,
                                         .root = NodeId(3),
                                         .message_bytes = 4 * block - block / 8,
                                         .block_bytes = block,
                                         .algorithm = schedule,
                                         .ready = *ParseReady(ready)},
                                        3);
      SCOPED_TRACE(test::Label(spec));
      const VerifiedPlan plan = CompileOrDie(spec);
      ExpectDelivers(engine(), plan, OptionsOf(plan, test::TestSeed()));
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MulticastTest, testing::ValuesIn(Instances(test::Ways())),
                         [](const auto& it) {
                           const std::string& schedule = it.param.schedule;
                           return (schedule.empty() ? "" : schedule + "_over_") +
                                  it.param.way.name();
                         });

/// Some nodes are preposted, and the others driven.
class MixedMembersTest : public MulticastTest {};

// Both kinds make the same endpoints and put the same messages on them, so a peer cannot tell which
// its neighbour is. Catches a difference in pairing, immediates, credits or order.
TEST_P(MixedMembersTest, DeliverTheSameBytes) {
  constexpr uint32_t kRings[] = {16, 32768};
  std::vector<Spec> specs;
  for (const std::string& schedule : schedules_) {
    for (const char* const ready : kReadyModes) {
      for (const uint32_t nodes : {2u, 3u, 6u, 8u, 13u}) {
        for (const uint32_t blocks : {1u, 5u, 16u}) {
          specs.push_back(test::WithRacks({.nodes = nodes,
                                           .root = NodeId(nodes / 2),
                                           .message_bytes = blocks * 100 - 13,
                                           .block_bytes = 100,
                                           .algorithm = schedule,
                                           .ready = *ParseReady(ready)},
                                          4));
        }
      }
    }
  }
  // The cheapest take a fraction of a millisecond.
  test::Sample sample(test::ScheduleLabels(specs),
                      engine().fewer == 1 ? 1 : test::SampleDivisor(2 * engine().fewer));
  uint64_t seed = test::TestSeed();
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(testing::Message() << test::Label(spec) << " seed " << ++seed);
    const VerifiedPlan plan = CompileOrDie(spec);
    PlayOptions options = OptionsOf(plan, seed);
    test::Random random(seed);
    for (size_t i = 0; i < options.preposted.size(); ++i) options.preposted[i] = random.Coin();
    const uint32_t ring = random.Pick(kRings);
    if (engine().nics) options.lower.profile = {.sq_wqebbs = ring, .rq_wqes = ring};
    ExpectDelivers(engine(), plan, options);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MixedMembersTest,
                         testing::ValuesIn(Instances(test::Ways([](const Way& way) {
                           return way.is_preposted;
                         }))),
                         [](const auto& it) {
                           const std::string& schedule = it.param.schedule;
                           return (schedule.empty() ? "" : schedule + "_") + it.param.way.name();
                         });

class WaysTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override { PREPOST_SKIP_IF_NOT_THERE(engine()); }
  static const Engine& engine() { return *GetParam().engine; }
};
INSTANTIATE_TEST_SUITE_P(All, WaysTest, testing::ValuesIn(test::Ways()),
                         [](const auto& it) { return it.param.name(); });

// Schedules that nobody has thought of, also with several transfers of a node in one round.
TEST_P(WaysTest, RandomRoundsDeliver) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  const uint64_t cases = test::RandomCases(64) / engine().fewer;
  for (uint64_t i = 0; i < cases && !HasFailure(); ++i) {
    const test::RandomRounds rounds = test::MakeRandomRounds(random, 8, 6);
    const std::string ready =
        random.Pick(std::array{"auto", "barrier", "channel", "window=3", "retry"});
    const std::string send_window = random.Pick(std::array{"auto", "none", "1"});
    const uint64_t block_bytes = random.Pick(std::array{uint64_t{16}, uint64_t{10'000}});
    SCOPED_TRACE(fmt::format("seed {} case {} ready {} send window {}\n{}", seed, i, ready,
                             send_window, rounds.text));
    const Result<VerifiedPlan> plan =
        test::CompileRounds(rounds.text, {.block_bytes = block_bytes}, *ParseReady(ready),
                            *ParseSendWindow(send_window));
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    PlayOptions options = GetParam().Options(*plan);
    options.scheduler = random.Pick(kOrders);
    options.seed = random.Between(1, 1000);
    ExpectDelivers(engine(), *plan, options);
  }
}

// Far more blocks than queues and rings hold, and than 16-bit indices count: catches lost laps, and
// completion queues that run over.
TEST_P(WaysTest, IndicesWrap) {
  if (GetParam().is_preposted)
    GTEST_SKIP() << "its queues are as long as the plan, or in parts: "
                 << "offload_test.cc";
  if (engine().nics && test::kIsSanitized) PREPOST_SKIP_IF_IN_ANOTHER_PART();
  const uint32_t blocks = engine().nics ? 70'000 : 5'000;
  const VerifiedPlan plan = CompileOrDie({.nodes = 3,
                                          .message_bytes = blocks,
                                          .block_bytes = 1,
                                          .algorithm = "chain",
                                          .ready = *ParseReady("barrier"),
                                          .send_window = *ParseSendWindow("none")});
  PlayOptions options = GetParam().Options(plan);
  options.ring_wqes_max = 64;
  ExpectDelivers(engine(), plan, options);
}

}  // namespace
}  // namespace prepost::multicast_test
