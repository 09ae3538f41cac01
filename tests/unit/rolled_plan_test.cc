// SPDX-License-Identifier: Apache-2.0
#include "prepost/ir/rolled_plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "prepost/compiler/compile.h"
#include "prepost/compiler/pass.h"
#include "prepost/compiler/roll.h"
#include "prepost/compiler/rolled_schedule.h"
#include "prepost/compiler/verify_rolled.h"
#include "prepost/ir/rolled_plan_json.h"
#include "tests/support/random.h"
#include "tests/support/rolled_plans.h"

namespace prepost {
namespace {

using test::Random;
using test::RolledNames;
using test::RollOrDie;

constexpr uint64_t kBlockBytes = 10;

Spec SpecOf(const std::string& algorithm, uint32_t nodes, uint32_t blocks = 1) {
  return {.nodes = nodes,
          .root = NodeId(nodes / 3),
          .message_bytes = blocks * kBlockBytes - 3,
          .block_bytes = kBlockBytes,
          .algorithm = algorithm};
}

void ExpectUnrolledIsCompiled(const Spec& spec) {
  const Result<Plan> compiled = Compile(spec);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const Result<Plan> unrolled = Unroll(RollOrDie(spec), *spec.message_bytes);
  ASSERT_TRUE(unrolled.ok()) << unrolled.status().ToString();
  ASSERT_EQ(*unrolled, *compiled) << spec.algorithm << " n=" << spec.nodes
                                  << " bytes=" << *spec.message_bytes << "\n"
                                  << Dump(*unrolled) << Dump(*compiled);
}

// A segment boundary, a credit too many, or auto settled otherwise than by the passes.
TEST(RolledPlanTest, UnrollsToWhatIsCompiled) {
  for (const std::string& name : RolledNames()) {
    for (uint32_t n = 1; n <= 17; ++n) {
      for (uint32_t k = 1; k <= 14; ++k) ExpectUnrolledIsCompiled(SpecOf(name, n, k));
    }
  }
}

TEST(RolledPlanTest, UnrollsToWhatIsCompiledAtRandom) {
  Random random(test::TestSeed());
  SCOPED_TRACE(test::TestSeed());
  for (int i = 0; i < 100; ++i) {
    Spec spec = SpecOf(random.Pick(RolledNames()), random.Between(1, 140), random.Between(1, 90));
    spec.root = NodeId(random.Between(0, spec.nodes - 1));
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
      const RolledExtent rolled{.nodes = n, .fanout = algorithm.fanout};
      for (const uint32_t k : {1u, 2u, 3u, 4u, 7u, 20u, 70u}) {
        const Extent extent{.nodes = n, .blocks = k, .fanout = algorithm.fanout};
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
        const Fan said = algorithm.schedule->rolled()->FanOf(rolled);
        ASSERT_EQ(fan.in, k > 1 && said.in) << name << n << " " << k;
        ASSERT_EQ(fan.out, said.out) << name << n << " " << k;
      }
    }
  }
}

// The same schedule as the flat one for any number of nodes: one node's program does not need the
// others'.
TEST(RolledPlanTest, OneNodeAloneIsTheSame) {
  for (const std::string& name : RolledNames()) {
    for (const uint32_t n : {1, 2, 5, 8, 33}) {
      const Spec spec = SpecOf(name, n);
      const RolledPlan whole = RollOrDie(spec);
      for (uint32_t node = 0; node < n; ++node) {
        const Result<RolledPlan> alone = Roll(spec, NodeId(node));
        ASSERT_TRUE(alone.ok());
        ASSERT_EQ(alone->programs.size(), 1u);
        ASSERT_EQ(alone->programs[0], whole.programs[node]) << name << " n=" << n;
        if (n > 1) {
          const Result<Plan> flat = Unroll(*alone, 100);
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
       {"chain", "kary_chain", "kary_tree", "binomial_tree", "binomial_pipeline", "circulant"}) {
    for (const uint32_t nodes : {kNodes, kNodes - 1}) {
      const Result<RolledPlan> alone = Roll(SpecOf(name, nodes), NodeId(12345));
      ASSERT_TRUE(alone.ok());
      std::ostringstream out;
      WriteRolledPlan(*alone, out);
      EXPECT_LE(out.str().size(), 16u << 10) << name;
    }
  }
}

TEST(RolledPlanTest, FilesComeBackAsTheyWere) {
  for (const std::string& name : RolledNames()) {
    for (const uint32_t n : {1, 2, 5, 8, 13}) {
      RolledPlan plan = RollOrDie(SpecOf(name, n));
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

TEST(VerifyRolledTest, AcceptsEverySchedule) {
  for (const std::string& name : RolledNames()) {
    for (const uint32_t n : {1, 2, 3, 4, 7, 8, 12}) {
      const RolledPlan plan = RollOrDie(SpecOf(name, n));
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
      if (slot.send) slot.send->peer = NodeId((program.node.value + 1) % plan.nodes);
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
// that of flat verification of many more k than were looked at.
TEST(VerifyRolledTest, AgreesWithTheFlatVerifierOnMutants) {
  Random random(test::TestSeed());
  SCOPED_TRACE(test::TestSeed());
  int refused = 0, accepted = 0, unproved = 0;
  for (int i = 0; i < 400; ++i) {
    RolledPlan plan = RollOrDie(SpecOf(random.Pick(RolledNames()), random.Between(2, 6)));
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
      if (!Unroll(plan, k * kBlockBytes).ok()) wrong = k;
    }
    EXPECT_EQ(verdict.ok(), wrong == 0)
        << plan.algorithm << " n=" << plan.nodes << " " << what << ": looked at " << *last
        << ", wrong with " << wrong << " blocks, " << verdict.ToString();
    ++(verdict.ok() ? accepted : refused);
  }
  EXPECT_GT(refused, 150);
  EXPECT_GT(accepted, 0);  // damage that changes nothing
  EXPECT_GT(unproved, 0);
}

// One node's file: what is wrong with the node itself shows without the others.
TEST(VerifyRolledTest, KnowsWhatIsWrongWithOneNodeAlone) {
  for (const std::string& name : RolledNames()) {
    for (uint32_t node = 0; node < 9; ++node) {
      const RolledPlan alone = *Roll(SpecOf(name, 9), NodeId(node));
      const Result<uint32_t> settled = VerifyRolledPrograms(alone);
      EXPECT_TRUE(settled.ok()) << name << " node " << node << ": " << settled.status().ToString();
    }
  }
  const auto refuses = [](const std::function<void(Segment&)>& damage, const char* message) {
    RolledPlan alone = *Roll(SpecOf("chain", 9), NodeId(5));  // in the middle
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

// Going round by round through a gap took minutes, for each number of blocks. Long segments in which
// nothing happens for long are as bad.
TEST(VerifyRolledTest, GapsTakeNoTime) {
  RolledPlan alone = test::WithGap(100);
  EXPECT_TRUE(VerifyRolledPrograms(alone).ok()) << VerifyRolledPrograms(alone).status().ToString();
  const RolledRounds far(test::WithGap(4'000'000'000).programs[0], 3);
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
  const RolledPlan leaf = *Roll(SpecOf("kary_tree=5", 9), NodeId(2));  // the last one
  const RolledRounds rounds(leaf.programs[0], 4);
  uint32_t visits = 0;
  for (uint32_t round = rounds.begin(); round < rounds.end(); round = rounds.Next(round + 1)) {
    EXPECT_TRUE(rounds.Incoming(round)) << round;
    ++visits;
  }
  EXPECT_EQ(visits, 4u);
}

// A small file that would keep the proof busy for hours: 2^50 rounds, most of them idle.
TEST(VerifyRolledTest, RefusesMoreRoundsThanCanBeLookedAt) {
  RolledPlan alone = *Roll(SpecOf("chain", 2), NodeId(1));
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
}  // namespace prepost
