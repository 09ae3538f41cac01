// SPDX-License-Identifier: Apache-2.0
#include "ir/rolled/rolled_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <numeric>
#include <sstream>

#include "compiler/compile.h"
#include "compiler/pass.h"
#include "compiler/roll.h"
#include "compiler/schedules/node_order.h"
#include "compiler/schedules/rolled_schedule.h"
#include "compiler/verify_rolled.h"
#include "ir/json/rolled_plan_json.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/rolled_plans.h"
#include "tests/support/sample.h"

namespace prepost::rolled_plan_test {
namespace {

using test::kRolledBlockBytes;
using test::Random;
using test::RolledNames;
using test::RolledSpec;
using test::RollOrDie;

/// `spec` for racks of these sizes, the root's first. The nodes of a rack are not neighbours.
Spec WithUnevenRacks(Spec spec, std::vector<uint32_t> sizes) {
  spec.nodes = std::reduce(sizes.begin(), sizes.end());
  spec.root = NodeId(0);
  Network& topology = spec.topology.emplace();
  for (size_t rack = 0; rack < sizes.size(); ++rack)
    topology.racks.push_back({.name = fmt::format("r{}", rack), .up_rate = 1e9, .down_rate = 1e9});
  for (uint32_t rack = 0; topology.nodes.size() < spec.nodes;
       rack = (rack + 1) % static_cast<uint32_t>(sizes.size())) {
    if (sizes[rack] == 0) continue;
    --sizes[rack];
    topology.nodes.push_back({.name = fmt::format("h{}", topology.nodes.size()),
                              .rack = rack,
                              .out_rate = 1e9,
                              .in_rate = 1e9});
  }
  return spec;
}

const char* const kRackSchedules[] = {"rack_chain", "rack_hybrid", "rack_circulant"};

void ExpectUnrolledIsCompiled(const Spec& spec) {
  const Result<VerifiedPlan> compiled = Compile(spec);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const Result<VerifiedPlan> unrolled = Unroll(RollOrDie(spec), *spec.message_bytes);
  ASSERT_TRUE(unrolled.ok()) << unrolled.status().ToString();
  ASSERT_EQ(*unrolled, *compiled) << spec.algorithm << " n=" << spec.nodes
                                  << " bytes=" << *spec.message_bytes << "\n"
                                  << Dump(*unrolled) << Dump(*compiled);
}

/// Long runs: many more cases, for minutes.
const bool kIsSweep = test::TakesAllCases();

// A segment boundary, a credit too many, or auto settled otherwise than by the passes.
TEST(RolledPlanTest, UnrollsToWhatIsCompiled) {
  for (const std::string& name : RolledNames()) {
    for (uint32_t n = 1; n <= (kIsSweep ? 70 : 17); ++n) {
      for (uint32_t k = 1; k <= (kIsSweep ? 70 : 14); ++k)
        ExpectUnrolledIsCompiled(RolledSpec(name, n, k));
    }
  }
}

// What the flat schedule does that its segments do not, for every layout of three small racks: a
// leader that is a rack, racks that pass nothing on, a root alone in its rack.
TEST(RolledPlanTest, UnrollsToWhatIsCompiledForAllSmallRacks) {
  for (const char* name : kRackSchedules) {
    for (uint32_t layout = 0; layout < 5 * 4 * 5; ++layout) {
      std::vector<uint32_t> sizes = {1 + layout % 5, layout / 5 % 4, layout / 20};
      std::erase(sizes, 0u);
      for (const uint32_t k : {1u, 2u, 3u, 4u, 5u, 7u, 12u, 23u}) {
        ExpectUnrolledIsCompiled(WithUnevenRacks(RolledSpec(name, 1, k), sizes));
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Racks of 5 to 140 nodes: several phases, and a leader that hears from racks of other sizes.
TEST(RolledPlanTest, UnrollsToWhatIsCompiledForLargerRacks) {
  Random random(test::TestSeed());
  SCOPED_TRACE(test::TestSeed());
  for (int i = 0; i < (kIsSweep ? 1000 : 24); ++i) {
    std::vector<uint32_t> sizes(random.Between(1, 9));
    const uint32_t size_max = i % 6 == 0 ? 140 : 20;
    for (uint32_t& size : sizes)
      size = i % 2 == 0 && &size != &sizes[0] ? sizes[0] : random.Between(1, size_max);
    const uint32_t k = random.Between(1, random.Coin() ? 12 : 200);
    ExpectUnrolledIsCompiled(WithUnevenRacks(
        RolledSpec(kRackSchedules[static_cast<size_t>(i) % std::size(kRackSchedules)], 1, k),
        sizes));
    if (HasFatalFailure()) return;
  }
}

TEST(RolledPlanTest, UnrollsToWhatIsCompiledAtRandom) {
  Random random(test::TestSeed());
  SCOPED_TRACE(test::TestSeed());
  const uint32_t most = kIsSweep ? 1000 : 90;
  for (int i = 0; i < 100; ++i) {
    Spec spec = RolledSpec(random.Pick(RolledNames()), random.Between(1, most + most / 2),
                           random.Between(1, most));
    spec.root = NodeId(random.Between(0, spec.nodes - 1));
    spec = test::WithRacks(spec, random.Between(1, spec.nodes));
    const uint32_t window = random.Between(1, 5);
    spec.ready = *ParseReady(random.Pick(std::vector<std::string>{
        "auto", "channel", "barrier", "retry", "window=" + std::to_string(window)}));
    spec.send_window = *ParseSendWindow(
        random.Pick(std::vector<std::string>{"auto", "none", std::to_string(window)}));
    ExpectUnrolledIsCompiled(spec);
  }
}

// FanOf() stands in for what the passes see in the plan.
TEST(RolledPlanTest, SchedulesKnowTheirFans) {
  for (const std::string& name : RolledNames()) {
    const Algorithm algorithm = *FindAlgorithm(name);
    for (uint32_t n = 2; n <= 70; ++n) {
      const std::vector<uint32_t> racks = OrderNodes(RolledSpec(name, n)).rack_begin;
      const RolledExtent rolled({.nodes = n, .racks = racks, .fanout = algorithm.fanout});
      const RolledSchedule& schedule = *algorithm.schedule->rolled();
      for (const uint32_t k : {1u, 2u, 3u, 4u, 7u, 20u, 70u}) {
        const Extent extent{.nodes = n, .blocks = k, .racks = racks, .fanout = algorithm.fanout};
        Fan fan;
        for (uint32_t node = 0; node < n && !(fan.in && fan.out); ++node) {
          const auto part = algorithm.schedule->ForNode(extent, node);
          std::optional<uint32_t> sender, receiver;
          const RoundRange rounds = part->ActiveRounds();
          for (uint32_t round = rounds.begin; round < rounds.end; ++round) {
            if (const auto to = part->Outgoing(round)) {
              fan.out |= receiver.value_or(to->peer) != to->peer;
              receiver = to->peer;
            }
            if (const auto from = part->Incoming(round)) {
              fan.in |= sender.value_or(from->peer) != from->peer;
              sender = from->peer;
            }
          }
        }
        const Fan said = schedule.FanOf(rolled);
        ASSERT_EQ(fan.in, said.in && k >= schedule.BlocksForFanIn(rolled)) << name << n << " " << k;
        ASSERT_EQ(fan.out, said.out && k >= schedule.BlocksForFanOut(rolled))
            << name << n << " " << k;
      }
    }
  }
}

TEST(RolledPlanTest, RefusesWhatHasNoSuchForm) {
  EXPECT_EQ(Roll(RolledSpec("scatter_allgather", 5)).status().ToString(),
            "/algorithm: 'scatter_allgather' has no rolled form, its parts depend on the number of "
            "blocks: it is compiled for one message size");
  // Catches slots by the million: racks of 2, 3, 5, 9, .. nodes have 1, 2, 3, 4, .. phases.
  std::vector<uint32_t> sizes;
  for (uint32_t phases = 1; phases <= 13; ++phases) sizes.push_back((1u << (phases - 1)) + 1);
  const Spec spec = WithUnevenRacks(RolledSpec("rack_circulant", 1), sizes);
  EXPECT_THAT(Roll(spec, NodeId(7)).status().ToString(),
              testing::HasSubstr("racks of so many different sizes repeat themselves only after"));
}

// The same schedule as the flat one for any number of nodes: one node's program does not need the
// others'.
TEST(RolledPlanTest, OneNodeAloneIsTheSame) {
  for (const std::string& name : RolledNames()) {
    for (const uint32_t n : {1u, 2u, 5u, 8u, 33u}) {
      const Spec spec = RolledSpec(name, n);
      const RolledPlan whole = RollOrDie(spec);
      for (uint32_t node = 0; node < n; ++node) {
        const Result<RolledPlan> alone = Roll(spec, NodeId(node));
        ASSERT_TRUE(alone.ok());
        ASSERT_EQ(alone->programs.size(), 1u);
        ASSERT_EQ(alone->programs[0], whole.programs[node]) << name << " n=" << n;
        if (n > 1) {
          const Result<VerifiedPlan> flat = Unroll(*alone, 100);
          EXPECT_EQ(flat.status().message(), "programs of 1 of " + std::to_string(n) +
                                                 " nodes are there; a flat plan needs all");
        }
      }
    }
  }
}

// O(degree + period): nothing in a program grows with the message, and little with the group.
TEST(RolledPlanTest, ProgramsOfManyNodesAreSmall) {
  constexpr uint32_t kNodes = 65536;
  for (const char* name :
       {"chain", "kary_chain", "kary_tree", "binomial_tree", "binomial_pipeline", "circulant",
        "two_tree", "rack_chain", "rack_hybrid", "rack_circulant"}) {
    for (const uint32_t nodes : {kNodes, kNodes - 1u}) {
      const Result<RolledPlan> alone =
          Roll(test::WithRacks(RolledSpec(name, nodes), 256), NodeId(12345));
      ASSERT_TRUE(alone.ok());
      std::ostringstream out;
      WriteRolledPlan(*alone, out);
      EXPECT_LE(out.str().size(), 16u << 10) << name;
    }
  }
}

TEST(RolledPlanTest, FilesComeBackAsTheyWere) {
  for (const std::string& name : RolledNames()) {
    for (const uint32_t n : {1u, 2u, 3u, 5u, 8u, 13u}) {
      RolledPlan plan = RollOrDie(RolledSpec(name, n));
      if (n > 1)
        plan.programs[0].segments[0].phase = {.per_block = -3, .constant = 7, .divisor = 4};
      std::ostringstream out;
      WriteRolledPlan(plan, out);
      std::istringstream in(out.str());
      const Result<RolledPlan> back = ReadRolledPlan(in, "plan");
      ASSERT_TRUE(back.ok()) << back.status().ToString();
      EXPECT_EQ(*back, plan) << out.str();
    }
  }
}

// Catches a file that is called right because there is nothing in it.
TEST(RolledPlanTest, NoProgramIsNoPlan) {
  RolledPlan plan = RollOrDie(RolledSpec("chain", 3));
  plan.programs.clear();
  EXPECT_EQ(CheckRolled(plan).where(), "/programs");
}

TEST(VerifyRolledTest, AcceptsEverySchedule) {
  for (const std::string& name : RolledNames()) {
    for (const uint32_t n : {1u, 2u, 3u, 4u, 7u, 8u, 9u, 10u, 12u, 23u}) {
      const RolledPlan plan = RollOrDie(RolledSpec(name, n));
      const Status status = VerifyRolled(plan).status();
      EXPECT_TRUE(status.ok()) << name << " n=" << n << ": " << status.ToString();
    }
  }
}

/// Changes one number of `plan`; returns what it did.
std::string Damage(Random& random, RolledPlan& plan) {
  const auto one_of = [&](auto& items) -> auto& { return items[random.Below(items.size())]; };
  RolledProgram& program = one_of(plan.programs);
  Segment& segment = one_of(program.segments);
  RolledSlot& slot = one_of(segment.slots);
  std::vector<std::pair<std::string, int64_t*>> numbers = {
      {"from", &segment.from.constant},   {"to", &segment.to.constant},
      {"phase", &segment.phase.constant}, {"from k", &segment.from.per_block},
      {"to k", &segment.to.per_block},    {"phase k", &segment.phase.per_block},
      {"rounds", &plan.rounds.constant},  {"to over", &segment.to.divisor}};
  for (auto* end : {&slot.send, &slot.recv}) {
    if (!*end) continue;
    numbers.emplace_back("offset", &(*end)->offset.constant);
    numbers.emplace_back("offset k", &(*end)->offset.per_block);
    numbers.emplace_back("offset over", &(*end)->offset.divisor);
  }
  switch (random.Between(0, 9)) {
    case 0:
      slot.send.reset();
      return "lost send";
    case 1:
      slot.recv.reset();
      return "lost recv";
    case 2:
      segment.clamps = !segment.clamps;
      return "above";
    case 3:
      segment.blocks_min += random.Between(1, 4);
      return "blocks_min";
    case 4:
      if (slot.send) slot.send->peer = NodeId((program.node.value + 1) % plan.header.nodes);
      return "peer";
    default: {
      const auto [what, number] = one_of(numbers);
      const auto change = static_cast<int64_t>(random.Between(1, 3));
      *number += what.ends_with("over") || random.Coin() ? change : -change;
      return what;
    }
  }
}

// The argument of verify_rolled.cc, put to the test: on damaged plans, the verdict for all k is
// that of flat verification of many more k than VerifyRolled() checks.
TEST(VerifyRolledTest, AgreesWithTheFlatVerifierOnMutants) {
  Random random(test::TestSeed());
  SCOPED_TRACE(test::TestSeed());
  int refused = 0, accepted = 0, unproved = 0, refused_beyond = 0;
  for (int i = 0; i < 600; ++i) {
    RolledPlan plan = RollOrDie(RolledSpec(random.Pick(RolledNames()), random.Between(2, 7)));
    const RolledPlan sound = plan;
    std::string what = Damage(random, plan);
    if (!CheckRolled(plan).ok() || plan == sound) continue;
    const Result<uint32_t> last = BlocksThatSettle(plan);
    const Status verdict = VerifyRolled(plan).status();
    if (!last.ok()) {
      EXPECT_FALSE(verdict.ok());
      ++unproved;
      continue;
    }
    uint32_t wrong = 0;
    const uint32_t beyond = 2 * *last + 10;
    for (uint32_t k = 1; k <= beyond && wrong == 0; ++k) {
      if (!Unroll(plan, k * kRolledBlockBytes).ok()) wrong = k;
    }
    EXPECT_EQ(verdict.ok(), wrong == 0)
        << plan.header.algorithm << " n=" << plan.header.nodes << " " << what << ": looked at "
        << *last << ", wrong with " << wrong << " blocks, " << verdict.ToString();
    for (int sample = 0; sample < 6; ++sample) {  // half of them beyond
      const uint32_t k =
          sample % 2 == 0 ? random.Between(*last + 1, beyond) : random.Between(1, *last);
      const bool is_right = Unroll(plan, k * kRolledBlockBytes).ok();
      const Status of_one = VerifyRolledFor(plan, k);
      EXPECT_TRUE(is_right || !of_one.ok()) << plan.header.algorithm << " " << what << " k=" << k;
      if (verdict.ok() || k <= *last) {
        EXPECT_EQ(of_one.ok(), is_right) << k << " " << of_one.ToString();
      }
      if (k > *last && !is_right) ++refused_beyond;
    }
    ++(verdict.ok() ? accepted : refused);
  }
  EXPECT_GT(refused, 150);
  EXPECT_GT(refused_beyond, 150);
  EXPECT_GT(accepted, 0);  // damage that changes nothing
  EXPECT_GT(unproved, 0);
}

// Catches a period that is not counted, and one that is although the segment has no middle: the
// last of 40 slots has no send, and only the last round is played from them.
TEST(VerifyRolledTest, CountsThePeriodsOfWhatRepeats) {
  RolledPlan plan = RollOrDie(RolledSpec("chain", 2));
  std::vector<Segment>& segments = plan.programs[0].segments;
  Segment last = segments[0];
  segments[0].to = last.from = {.per_block = 1, .constant = -1};
  last.slots.assign(40, last.slots[0]);
  last.slots[39].send.reset();
  segments.push_back(last);
  EXPECT_THAT(VerifyRolled(plan).status().message(),
              testing::HasSubstr("unrolled to k = 40 blocks"));
  segments[1].phase = {.per_block = -1, .constant = 1};  // always slot 0
  const Result<uint32_t> settled = VerifyRolled(plan);
  ASSERT_TRUE(settled.ok()) << settled.status().ToString();
  EXPECT_LT(*settled, 40u);
}

// One node's file: what is wrong with the node itself shows without the others.
// Catches one node's file that is checked for another size than the message's or its stand-in, and
// work without a limit.
TEST(VerifyRolledTest, OneSizeOfOneNodeAlone) {
  Random random(test::TestSeed());
  SCOPED_TRACE(test::TestSeed());
  int refused = 0, refused_beyond = 0;
  for (int i = 0; i < 400; ++i) {
    const Spec spec = RolledSpec(random.Pick(RolledNames()), random.Between(2, 7));
    RolledPlan alone = *Roll(spec, NodeId(random.Below(spec.nodes)));
    Damage(random, alone);
    const Result<uint32_t> last = BlocksThatSettle(alone);
    if (!last.ok()) continue;
    const bool is_right = VerifyRolledPrograms(alone).ok();
    bool one_is_wrong = false;
    for (uint32_t k = 1; k <= *last; ++k) one_is_wrong |= !VerifyRolledFor(alone, k).ok();
    EXPECT_NE(is_right, one_is_wrong) << alone.header.algorithm;
    refused += one_is_wrong ? 1 : 0;
    for (int sample = 0; sample < 4 && !is_right; ++sample) {
      const uint32_t k = random.Between(*last + 1, 3 * *last);
      refused_beyond += VerifyRolledFor(alone, k).ok() ? 0 : 1;
    }
    EXPECT_TRUE(!is_right || VerifyRolledFor(alone, 5 * *last + 3).ok()) << alone.header.algorithm;
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(refused_beyond, 50);
  RolledPlan endless = RollOrDie(RolledSpec("chain", 300));
  endless.programs[0].segments[0].slots.assign(1 << 16, endless.programs[0].segments[0].slots[0]);
  EXPECT_THAT(VerifyRolledFor(endless, kBlocksMax).message(),
              testing::HasSubstr("would have to be looked at, which is too much for 300 nodes"));
}

TEST(VerifyRolledTest, KnowsWhatIsWrongWithOneNodeAlone) {
  for (const std::string& name : RolledNames()) {
    for (uint32_t node = 0; node < 9; ++node) {
      const RolledPlan alone = *Roll(RolledSpec(name, 9), NodeId(node));
      const Result<uint32_t> settled = VerifyRolledPrograms(alone);
      EXPECT_TRUE(settled.ok()) << name << " node " << node << ": " << settled.status().ToString();
    }
  }
  const auto refuses = [](const std::function<void(Segment&)>& damage, const char* message) {
    RolledPlan alone = *Roll(RolledSpec("chain", 9), NodeId(5));  // in the middle
    damage(alone.programs[0].segments[0]);
    EXPECT_EQ(VerifyRolledPrograms(alone).status().ToString(), message);
  };
  refuses([](Segment& segment) { segment.slots[0].send->offset.constant += 1; },
          "/programs/0/segments/0/slots/0/send: with 1 block: node 5 sends block 0 in round 1 "
          "before it "
          "has it");
  refuses([](Segment& segment) { segment.to.constant -= 2; },
          "/programs/0: with 1 block: node 5 never receives block 0");
  refuses([](Segment& segment) { segment.clamps = true, segment.to.constant += 3; },
          "/programs/0: with 1 block: node 5 receives from node 4 5 blocks of 1");
  refuses(
      [](Segment& segment) {
        segment.from.constant += 9, segment.to.constant += 9;
        segment.slots[0].send->offset.constant -= 9;
        segment.slots[0].recv->offset.constant -= 9;
      },
      "/programs/0: with 1 block: node 5 has a transfer in round 11, the plan has 8 rounds");
}

// Going round by round through a gap took minutes, for each number of blocks. Long segments in
// which nothing happens for long are as bad.
TEST(VerifyRolledTest, GapsTakeNoTime) {
  RolledPlan alone = test::WithGap(100);
  EXPECT_TRUE(VerifyRolledPrograms(alone).ok()) << VerifyRolledPrograms(alone).status().ToString();
  const RolledPlan far_apart = test::WithGap(4'000'000'000);
  const RolledRounds far(far_apart.programs[0], 3);
  EXPECT_EQ(far.end(), 4'000'000'010u);
  EXPECT_EQ(far.active(), 6u);
  EXPECT_EQ(far.Next(6), 6u);
  EXPECT_EQ(far.Next(7), 4'000'000'007u);
  EXPECT_EQ(far.Next(4'000'000'010u), far.end());
  for (Segment& segment : alone.programs[0].segments) {
    segment.from = {};
    segment.to = {.constant = 4'000'000'000};
  }
  alone.programs[0].segments.erase(alone.programs[0].segments.begin());
  const RolledRounds idle(alone.programs[0], 3);
  EXPECT_EQ(idle.begin(), 107u);
  EXPECT_EQ(idle.active(), 3u);
}

// A leaf of a tree receives once in a period. Catches a walk through the rounds in between.
TEST(VerifyRolledTest, EmptySlotsAreSkipped) {
  const RolledPlan leaf = *Roll(RolledSpec("kary_tree=5", 9), NodeId(2));  // the last one
  const RolledRounds rounds(leaf.programs[0], 4);
  uint32_t visits = 0;
  for (uint32_t round = rounds.begin(); round < rounds.end(); round = rounds.Next(round + 1)) {
    EXPECT_TRUE(rounds.Incoming(round)) << round;
    ++visits;
  }
  EXPECT_EQ(visits, 4u);
}

// Catches a file of few bytes whose 2^32 rounds are gone through before the header's are asked.
TEST(RolledPlanTest, RoundsBehindTheHeadersAreNotPlayed) {
  RolledPlan plan = RollOrDie(RolledSpec("chain", 3));
  for (RolledProgram& program : plan.programs) {
    for (Segment& segment : program.segments) {
      segment.to = {.constant = UINT32_MAX};
      segment.clamps = true;
    }
  }
  EXPECT_EQ(Unroll(plan, 37).status().where(), "/rounds");
}

// A small file that would keep the proof busy for hours: 2^50 rounds, most of them idle.
TEST(VerifyRolledTest, RefusesMoreRoundsThanCanBeLookedAt) {
  RolledPlan alone = *Roll(RolledSpec("chain", 2), NodeId(1));
  constexpr uint32_t kPeriod = 1u << 15;
  alone.rounds = {.constant = int64_t{1} << 32};
  Segment& segment = alone.programs[0].segments[0];
  segment.from = {.constant = 131'000};
  segment.to = {.per_block = kPeriod, .constant = 131'000};
  segment.rounds_per_block = kPeriod;
  segment.slots[0].recv->offset = {.constant = -131'000};
  segment.slots.resize(kPeriod);
  alone.programs[0].segments.push_back({.slots = {RolledSlot()}});  // nothing, at the beginning
  EXPECT_EQ(VerifyRolledPrograms(alone).status().message(),
            "with up to 262005 blocks there are more than 8589934592 rounds to look at");
}

}  // namespace
}  // namespace prepost::rolled_plan_test
