// SPDX-License-Identifier: Apache-2.0
#include "ir/exchange/goal_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "compiler/pass.h"
#include "compiler/pass_manager.h"
#include "compiler/passes/scratch.h"
#include "compiler/schedules/fan.h"
#include "compiler/schedules/schedule.h"
#include "ir/analysis/plan_diff.h"
#include "ir/exchange/goal_writer.h"
#include "tests/support/checker.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"

namespace prepost::goal_reader_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<GoalPlan> Read(const std::string& text, const GoalOptions& options = {}) {
  std::istringstream in(text);
  return ReadGoal(in, "x.goal", options);
}

/// The error of reading `text`, or what the verifier finds at its lines.
std::string ErrorOf(const std::string& text, const GoalOptions& options = {}) {
  const Result<GoalPlan> read = Read(text, options);
  if (!read.ok()) return read.status().ToString();
  const Result<Plan> plan = AssignScratch(Plan(read->plan));
  if (!plan.ok()) return plan.status().ToString();
  std::string findings;
  for (const Diagnostic& finding : Verify(*plan).diagnostics)
    findings += read->AtLine(*plan, finding).ToString() + "\n";
  return findings;
}

std::string Goal(const Plan& plan) {
  std::ostringstream out;
  WriteGoal(plan, out);
  return out.str();
}

/// Messages as "0>1:0", by round.
std::vector<std::string> Routes(const Plan& plan) {
  std::vector<std::string> routes;
  for (uint32_t round = 0; round < plan.header().rounds; ++round) {
    for (const Op& op : plan.ops()) {
      const Channel& channel = plan.channels()[op.channel.index()];
      if (op.is_send() && op.round == round)
        routes.push_back(fmt::format("{}>{}:{}", channel.from.value, channel.to.value, op.block));
    }
  }
  return routes;
}

/// Imports the export of `spec`'s plan with the same readiness.
Plan Again(const Spec& spec, const std::string& text) {
  const Result<GoalPlan> read = Read(text, {.root = {}, .block_bytes = spec.block_bytes});
  if (!read.ok()) {
    ADD_FAILURE() << test::Label(spec) << ": " << read.status().ToString();
    return {};
  }
  EXPECT_EQ(Verify(read->plan).ToString(), "") << test::Label(spec);
  Plan plan = read->plan;
  for (const Pass& pass : {ReadyPass(spec.ready), SendWindowPass(spec.send_window), ThinPass()})
    plan = *pass.run(plan);
  EXPECT_EQ(Verify(plan).ToString(), "") << test::Label(spec);
  return plan;
}

/// Schedules whose every message goes as early as it can, so that rounds found anew are theirs.
bool GoesAtOnce(const std::string& algorithm) {
  return algorithm == "sequential" || algorithm == "chain" || algorithm == "binomial_pipeline";
}

// The round trip: every schedule, ready mode and window. Catches any message, order, size or credit
// that is lost on the way.
TEST(GoalReaderTest, ReadsBackWhatIsWritten) {
  for (const Spec& spec : test::AllSmallSpecs({.nodes_max = 8, .blocks_max = 4})) {
    if (spec.nodes == 1) continue;
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const Plan again = Again(spec, Goal(plan));
    for (const DiffSection& section : DiffPlans(plan, again).sections) {
      if (section.name == "rounds" && !GoesAtOnce(spec.algorithm)) continue;
      ASSERT_EQ(section.name, "header") << test::Label(spec);
      EXPECT_THAT(section.differences.front(), HasSubstr("algorithm: ")) << test::Label(spec);
      if (GoesAtOnce(spec.algorithm)) {
        EXPECT_EQ(section.count, 1u) << test::Label(spec);
      }
    }
    if (!GoesAtOnce(spec.algorithm)) continue;
    Plan named = again;
    {
      PlanHeader header = named.header();
      header.algorithm = spec.algorithm;
      named = named.WithHeader(std::move(header));
    }
    EXPECT_TRUE(named == plan) << test::Label(spec);
  }
}

/// Whether the root sends no block for the first time after a later one.
bool RootSendsInOrder(const Plan& plan) {
  uint32_t next = 0;
  for (const Op& op : plan.ops(plan.programs()[plan.header().collective.root.index()])) {
    if (!op.is_send() || op.block < next) continue;
    if (op.block != next++) return false;
  }
  return true;
}

// Without tags that tell blocks apart, requirements and the order of messages must. Catches trees
// dealt to wrong blocks.
TEST(GoalReaderTest, FindsBlocksWithoutTags) {
  int compared = 0;
  for (const Spec& spec : test::AllSmallSpecs({.nodes_max = 8, .blocks_max = 4})) {
    if (spec.nodes == 1 || spec.ready.ready.has_credits()) continue;
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const Plan again = Again(spec, std::regex_replace(Goal(plan), std::regex("tag \\d+"), "tag 3"));
    if (!RootSendsInOrder(plan)) continue;  // other numbers for the same blocks
    const PlanDiff diff = DiffPlans(plan, again);
    ++compared;
    for (const DiffSection& section : diff.sections)
      ASSERT_TRUE(section.name == "header" || section.name == "rounds")
          << test::Label(spec) << ": " << diff.verdict;
  }
  EXPECT_GT(compared, 500);
}

constexpr const char* kPair = "num_ranks 2\nrank 0 {\nl1: send 7b to 1\n}\nrank 1 {\n";

TEST(GoalReaderTest, ReadsWhatTheGrammarAllows) {
  const Result<GoalPlan> read = Read(
      "/* two\nlines */ num_ranks 2 // ranks\r\n\nrank 1 {\n\trecv 7 b from 0 tag 5 cpu 1 nic 0\r\n"
      "calc 100 cpu 2\n}\nrank 0 {\nsend_1 : send 7b to 1 tag 5 nic 1\n}");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_THAT(Routes(read->plan), ElementsAre("0>1:0"));
  EXPECT_THAT(read->op_lines, ElementsAre(9, 5));
}

// Catches lines that are off by one, and words that are let through.
TEST(GoalReaderTest, NamesTheLineOfWhatIsNoGoal) {
  EXPECT_EQ(ErrorOf("rank 0 {\n"), "x.goal:1: 'rank' before 'num_ranks'");
  EXPECT_EQ(ErrorOf(""), "x.goal: no 'num_ranks': this is no GOAL text");
  EXPECT_EQ(ErrorOf("num_ranks 0\n"), "x.goal:1: 0 ranks, at least 1 is needed");
  EXPECT_EQ(ErrorOf("num_ranks 99999999\n"),
            "x.goal:1: expected a number of ranks from 0 to 1048576, found '99999999'");
  EXPECT_EQ(ErrorOf("num_ranks 2\n\nrank 2 {\n"),
            "x.goal:3: expected a rank from 0 to 1, found '2'");
  EXPECT_EQ(ErrorOf(kPair), "x.goal: rank 1 has no '}'");
  EXPECT_EQ(ErrorOf(std::string(kPair) + "l1: revc 7b from 0\n}"),
            "x.goal:6: expected send, recv or calc, found 'revc'");
  EXPECT_EQ(ErrorOf(std::string(kPair) + "l1: recv 7b from 0 tags 3\n}"),
            "x.goal:6: expected the end of the line, found 'tags'");
  EXPECT_EQ(ErrorOf(std::string(kPair) + "l1: calc 1\nl1: calc 1\n}"),
            "x.goal:7: label l1 is that of line 6 already");
  EXPECT_EQ(ErrorOf(std::string(kPair) + "l1: calc 1\nl1 requires l2\n}"),
            "x.goal:7: no op of rank 1 above has the label 'l2'");
  EXPECT_THAT(ErrorOf(std::string(kPair) + "l1: recv 7b from -1\n}"), HasSubstr("any source"));
  EXPECT_THAT(ErrorOf(std::string(kPair) + "l1: recv 7b from 0 tag -1\n}"), HasSubstr("any tag"));
  EXPECT_THAT(ErrorOf("num_ranks 1 /* for ever"), HasSubstr("no '*/'"));
  EXPECT_THAT(ErrorOf("num_ranks 2\n" + std::string(5000, ' ')), HasSubstr("x.goal:2: a line of"));
}

TEST(GoalReaderTest, RefusesMessagesThatDoNotMatch) {
  EXPECT_EQ(ErrorOf(std::string(kPair) + "}"),
            "x.goal:3: this send of 0 to 1 with tag 0 has no recv that matches it");
  EXPECT_EQ(ErrorOf(std::string(kPair) + "recv 7b from 0\nrecv 7b from 0\n}"),
            "x.goal:7: this recv of 0 to 1 with tag 0 has no send that matches it");
  EXPECT_EQ(ErrorOf(std::string(kPair) + "recv 8b from 0\n}"),
            "x.goal:6: this recv takes 8 bytes, its send in line 3 has 7 bytes");
}

// LogGOPSim ends with 0 on both. Catches requirements that are not followed over ranks.
TEST(GoalReaderTest, RefusesDeadlocks) {
  EXPECT_EQ(ErrorOf("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}"),
            "x.goal:3: this op waits for itself: its requirements are a cycle");
  EXPECT_THAT(
      ErrorOf("num_ranks 3\nrank 0 {\n}\nrank 1 {\na: recv 1b from 2\nb: send 1b to 2\n"
              "b requires a\n}\nrank 2 {\na: recv 1b from 1\nb: send 1b to 1\nb requires a\n}"),
      HasSubstr("x.goal:6: this send never starts"));
}

TEST(GoalReaderTest, FindsTheRoot) {
  const std::string text = std::string(kPair) + "recv 7b from 0\n}\n";
  EXPECT_EQ(Read(text)->plan.header().collective.root, NodeId(0));
  EXPECT_EQ(Read(text, {.root = 0, .block_bytes = {}})->plan.header().collective.root, NodeId(0));
  EXPECT_THAT(ErrorOf(text, {.root = 2, .block_bytes = {}}), HasSubstr("the ranks are 0 to 1"));
  EXPECT_THAT(ErrorOf(text, {.root = 1, .block_bytes = {}}),
              HasSubstr("what does rank 0 forward here?"));
  EXPECT_THAT(ErrorOf("num_ranks 3\nrank 0 {\nsend 1b to 1\n}\nrank 1 {\nrecv 1b from 0\n}\n"),
              HasSubstr("ranks 0 and 2 both receive nothing"));
}

// Catches findings that still point into a JSON file.
TEST(GoalReaderTest, FindingsStandAtLines) {
  const std::string twice =
      "num_ranks 2\nrank 0 {\nsend 7b to 1 tag 1\nsend 7b to 1 tag 1\n}\n"
      "rank 1 {\nrecv 7b from 0 tag 1\nrecv 7b from 0 tag 1\n}";
  EXPECT_EQ(ErrorOf(twice), "");  // two equal blocks
  EXPECT_THAT(ErrorOf("num_ranks 3\nrank 0 {\nsend 7b to 1 tag 1\nsend 7b to 2 tag 1\nsend 7b to 1 "
                      "tag 2\n}\nrank 1 {\nrecv 7b from 0 tag 1\nrecv 7b from 0 tag 2\n}\n"
                      "rank 2 {\nrecv 7b from 0 tag 1\n}"),
              HasSubstr("x.goal:11: value: "));
}

// Rank 1 forwards over a calc, a chain of calcs and an irequires.
TEST(GoalReaderTest, CalcsArePassedThrough) {
  const std::string text =
      "num_ranks 3\nrank 0 {\nsend 7b to 1\n}\nrank 2 {\nrecv 7b from 1\n}\n"
      "rank 1 {\na: recv 7b from 0\nb: calc 5\nb requires a\nc: calc 5\n"
      "c irequires b\nd: send 7b to 2\nd requires c\n}";
  const Result<GoalPlan> read = Read(text);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(Verify(read->plan).ToString(), "");
  EXPECT_THAT(Routes(read->plan), ElementsAre("0>1:0", "1>2:0"));
  EXPECT_THAT(read->notes, IsEmpty());
}

// What rank 1 sends requires two receives: nothing says which one it hands on.
TEST(GoalReaderTest, AmbiguousSendsAreRefused) {
  const std::string text =
      "num_ranks 4\nrank 0 {\nsend 7b to 1\nsend 7b to 1\n}\nrank 1 {\na: recv 7b from 0\n"
      "b: recv 7b from 0\nc: send 7b to 2\nc requires a\nc requires b\nd: send 7b to 3\n"
      "d requires a\n}\nrank 2 {\nrecv 7b from 1\n}\nrank 3 {\nrecv 7b from 1\n}";
  EXPECT_THAT(ErrorOf(text), HasSubstr("x.goal:9: which block does this send forward? it requires "
                                       "the recv in line 7 and others; a tag per block"));
}

TEST(GoalReaderTest, SizesMakeOneMessage) {
  const auto root_sends = [](const std::vector<int>& sizes) {
    std::string text = "num_ranks 2\nrank 0 {\n";
    for (int size : sizes) text += fmt::format("send {}b to 1\n", size);
    text += "}\nrank 1 {\n";
    for (int size : sizes) text += fmt::format("recv {}b from 0\n", size);
    return text + "}\n";
  };
  EXPECT_EQ(Read(root_sends({10, 10, 4}))->plan.header().payload,
            (Payload{.bytes = 24, .block_bytes = 10, .blocks = 3}));
  // The short block is the last one, whenever it is sent.
  EXPECT_THAT(Routes(Read(root_sends({4, 10, 10}))->plan), ElementsAre("0>1:2", "0>1:0", "0>1:1"));
  EXPECT_THAT(ErrorOf(root_sends({4, 10, 5})),
              HasSubstr("only the last block of a message may be"));
  EXPECT_EQ(Read(root_sends({4}), {.root = {}, .block_bytes = 10})->plan.header().payload,
            (Payload{.bytes = 4, .block_bytes = 10, .blocks = 1}));
  EXPECT_THAT(ErrorOf(root_sends({4, 4}), {.root = {}, .block_bytes = 10}),
              HasSubstr("does not agree with a block size of 10"));
  EXPECT_THAT(ErrorOf(root_sends({0, 0})), HasSubstr("2 blocks of 0 bytes are no message"));
  EXPECT_EQ(Read(root_sends({0}))->plan.header().payload.bytes, 0u);
}

// A rank that hands on a part of what it received is no broadcast.
TEST(GoalReaderTest, PartsAreRefused) {
  EXPECT_THAT(
      ErrorOf("num_ranks 3\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\na: recv 8b from 0\n"
              "b: send 4b to 2\nb requires a\n}\nrank 2 {\nrecv 4b from 1\n}"),
      HasSubstr("x.goal:7: this send has 4 bytes, what it forwards, in line 6, has 8 bytes"));
}

// Receives listed in an order in which one port could never take them. Catches rounds from the
// order of the file alone.
TEST(GoalReaderTest, OrdersThatBlockEachOtherGiveWay) {
  const std::string text =
      "num_ranks 3\nrank 0 {\nsend 8b to 1 tag 0\nsend 8b to 2 tag 1\n}\n"
      "rank 1 {\na: recv 8b from 2 tag 1\nb: recv 8b from 0 tag 0\nc: send 8b to 2 tag 0\n"
      "c requires b\n}\n"
      "rank 2 {\na: recv 8b from 1 tag 0\nb: recv 8b from 0 tag 1\nc: send 8b to 1 tag 1\n"
      "c requires b\n}";
  EXPECT_EQ(ErrorOf(text), "");
  EXPECT_EQ(Read(text)->plan.header().rounds, 3u);
}

TEST(GoalReaderTest, NotesSayWhatIsDropped) {
  const std::string text =
      "num_ranks 3\nrank 0 {\nr: recv 0b from 2\na: send 8b to 1 tag 1\nb: send 8b to 2 tag 1\n"
      "a requires r\nb irequires a\n}\nrank 1 {\nrecv 8b from 0 tag 1\n}\n"
      "rank 2 {\nsend 0b to 0\nrecv 8b from 0 tag 1\n}";
  const Result<GoalPlan> read = Read(text);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_THAT(read->notes, ElementsAre(HasSubstr("1 message without data"),
                                       HasSubstr("1 irequires between ops of different peers")));
}

GoalOptions OptionsOf(const Spec& spec) {
  GoalOptions options{.collective = spec.collective, .combine = spec.combine};
  if (HasRoot(spec.collective)) options.root = spec.root.value;
  return options;
}

// The round trip of collectives: every schedule and ready mode. With its sizes a plan has the same
// messages, order and credits again; without, the same message or part, in as many blocks or fewer.
// Catches combines that become receives, ranges that are cut, sends that carry more or less than in
// the plan, and sizes that are guessed wrong.
TEST(GoalReaderTest, ReadsBackCollectives) {
  const std::vector<Spec> specs = test::SpecsOfCollectives({.nodes_max = 9, .blocks_max = 6});
  test::Sample sample(test::ScheduleLabels(specs));
  int same_order = 0, compared = 0, fewer_blocks = 0;
  for (const Spec& spec : specs) {
    if (!sample.Takes() || spec.nodes == 1) continue;
    const VerifiedPlan plan = test::CompileOrDie(spec);
    GoalOptions options = OptionsOf(spec);
    SpecReady ready = {.automatic = false, .ready = plan.header().ready};
    const SpecSendWindow send_window = {.automatic = false, .window = plan.header().send_window};
    for (const bool has_sizes : {true, false}) {
      if (has_sizes) {
        options.message_bytes = spec.message_bytes;
        options.block_bytes = spec.block_bytes;
      } else {
        options.message_bytes = options.block_bytes = std::nullopt;
      }
      const Result<GoalPlan> read = Read(Goal(plan), options);
      ASSERT_TRUE(read.ok()) << test::Label(spec) << ": " << read.status().ToString() << "\n"
                             << Goal(plan);
      const CompileOptions compile_options;
      const Result<VerifiedPlan> again =
          CompletePlan(read->plan, ready, send_window, compile_options);
      ASSERT_TRUE(again.ok()) << test::Label(spec) << ": " << again.status().ToString() << "\n"
                              << Goal(plan) << Dump(read->plan);
      EXPECT_THAT(test::IndependentCheck(*again), IsEmpty()) << test::Label(spec);
      EXPECT_EQ(again->header().payload.bytes, plan.header().payload.bytes) << test::Label(spec);
      EXPECT_LE(again->header().payload.blocks, plan.header().payload.blocks) << test::Label(spec);
      if (!has_sizes) {
        fewer_blocks += again->header().payload.blocks < plan.header().payload.blocks ? 1 : 0;
        continue;
      }
      ++compared;
      bool is_same = true;
      for (const DiffSection& section : DiffPlans(plan, *again).sections) {
        if (section.name == "header" || section.name == "rounds") continue;
        // Where blocks or credits wait in a row, which windows make, other rounds are another
        // order.
        is_same = false;
        ASSERT_TRUE((section.name == "order" || section.name == "credits") &&
                    (ready.ready.mode == ReadyMode::kWindow || send_window.window))
            << test::Label(spec) << ": " << section.name << ": " << section.differences.front()
            << "\n"
            << Goal(plan) << Dump(plan) << Dump(*again);
      }
      same_order += is_same ? 1 : 0;
    }
  }
  EXPECT_GT(same_order, compared / 2) << compared;
  EXPECT_GT(fewer_blocks, 0);
}

/// Ranks 0 and 1 exchange what they have of a block of 8 bytes, with `rank_0` in rank 0.
std::string Exchange(const std::string& rank_0) {
  return "num_ranks 2\nrank 0 {\n" + rank_0 +
         "}\nrank 1 {\ns: send 8b to 0 tag 7\nr: recv 8b from 0 tag 7\nc: calc 2\nc requires "
         "r\n}\n";
}

const GoalOptions kAllreduce = {.collective = CollectiveKind::kAllreduce,
                                .combine = {.op = CombineOp::kSum, .type = ElementType::kFloat32}};

// Two ranks that exchange share a round: each sends what it had before. Catches rounds that put one
// before the other, which would count a contribution twice.
TEST(GoalReaderTest, ExchangesShareARound) {
  const Result<GoalPlan> read =
      Read(Exchange("s: send 8b to 1 tag 7\nr: recv 8b from 1 tag 7\nc: calc 2\nc requires r\n"),
           kAllreduce);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->plan.header().rounds, 1u);
  EXPECT_EQ(read->plan.header().payload, (Payload{.bytes = 8, .block_bytes = 8, .blocks = 1}));
  const Result<Plan> placed = AssignScratch(Plan(read->plan));
  ASSERT_TRUE(placed.ok());
  EXPECT_EQ(Verify(*placed).ToString(), "");
}

TEST(GoalReaderTest, CalcsOfACollectiveCombine) {
  const std::string send = "s: send 8b to 1 tag 7\n", recv = "r: recv 8b from 1 tag 7\n";
  // A calc without a recv, two for one, a send between the two, none at all.
  EXPECT_EQ(ErrorOf(Exchange(send + recv + "c: calc 2\n"), kAllreduce),
            "x.goal:5: this calc requires no recv of data: in a collective that combines, a calc "
            "combines what a recv brings with what its rank has");
  EXPECT_EQ(
      ErrorOf(Exchange(send + recv + "c: calc 2\nc requires r\nd: calc 2\nd requires r\n"),
              kAllreduce),
      "x.goal:7: the recv in line 4, which this calc requires, is combined already: two calcs "
      "require it");
  EXPECT_EQ(
      ErrorOf(Exchange(recv + "c: calc 2\nc requires r\n" + send + "s requires r\n"), kAllreduce),
      "x.goal:6: this send requires the recv in line 3, and not the calc in line 4 that "
      "combines it: a plan's nodes send what they have combined");
  EXPECT_THAT(ErrorOf(Exchange(send + recv), kAllreduce),
              HasSubstr("no round is left for this send"));
  EXPECT_EQ(ErrorOf(Exchange(send + recv), {.collective = CollectiveKind::kAllreduce}),
            "/combine: what allreduce does to values is missing, such as sum:float32");
  EXPECT_EQ(ErrorOf(Exchange(send + recv),
                    {.collective = CollectiveKind::kAllgather, .combine = kAllreduce.combine}),
            "/combine: allgather combines nothing");
  // Rank 0 combines before it sends, so rank 1 gets its own contribution back.
  EXPECT_THAT(
      ErrorOf(Exchange(recv + "c: calc 2\nc requires r\n" + send + "s requires c\n"), kAllreduce),
      HasSubstr("x.goal:11: value: block 0, made of {1}, is combined with one that is made "
                "of {0-1}: node 1's contribution is in both"));
}

// Catches findings at the lines of other ops, once credits stand between these.
TEST(GoalReaderTest, OpsKeepTheirLinesBetweenCredits) {
  const Result<GoalPlan> read =
      Read(Exchange("s: send 8b to 1 tag 7\nr: recv 8b from 1 tag 7\nc: calc 2\nc requires r\n"),
           kAllreduce);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  const Result<Plan> credited = ReadyPass(*ParseReady("channel")).run(read->plan);
  ASSERT_TRUE(credited.ok()) << credited.status().ToString();
  ASSERT_GT(credited->ops().size(), read->plan.ops().size());
  std::vector<std::string> lines;
  for (uint32_t p = 0; p < credited->programs().size(); ++p) {
    const std::span<const Op> ops = credited->ops(credited->programs()[p]);
    for (uint32_t i = 0; i < ops.size(); ++i) {
      Diagnostic finding;
      finding.place = Place::OpAt(p, i);
      const std::string where = read->AtLine(*credited, finding).where;
      if (!ops[i].is_credit()) {
        lines.push_back(where);
      } else {
        EXPECT_EQ(where, p == 0 ? "x.goal:2" : "x.goal:8");
      }
    }
  }
  EXPECT_THAT(lines, ElementsAre("x.goal:3", "x.goal:4", "x.goal:9", "x.goal:10"));
}

// As Schedgen writes recursive doubling: one tag, and nothing for the work. Rank 0 sends the second
// time what it has combined by then.
TEST(GoalReaderTest, WithoutCalcsEachRecvCombines) {
  std::string text = "num_ranks 4\n";
  for (int rank = 0; rank < 4; ++rank) {
    text += fmt::format(
        "rank {} {{\na: send 8b to {}\nb: recv 8b from {}\nc: send 8b to {}\nc requires b\n"
        "d: recv 8b from {}\n}}\n",
        rank, rank ^ 1, rank ^ 1, rank ^ 2, rank ^ 2);
  }
  EXPECT_EQ(ErrorOf(text, kAllreduce), "");
  const Result<GoalPlan> read = Read(text, kAllreduce);
  EXPECT_EQ(read->plan.header().rounds, 2u);
  EXPECT_THAT(read->notes, ElementsAre("no calcs: each recv is taken to combine what it brings"));
  // Without the order, the second send is of its own contribution alone, which comes too late for
  // that.
  EXPECT_THAT(ErrorOf(std::regex_replace(text, std::regex("c requires b\n"), ""), kAllreduce),
              HasSubstr("no round is left for this send"));
}

// What a rank sends of a block is what it requires, wherever it stands. Catches sends that carry
// what came before them in the file.
TEST(GoalReaderTest, ASendCarriesWhatItRequires) {
  const std::string text =
      "num_ranks 3\nrank 0 {\nr: recv 8b from 1 tag 0\nc: calc 2\nc requires r\n"
      "s: send 8b to 2 tag 0\n}\n"  // its own alone
      "rank 1 {\nsend 8b to 0 tag 0\nsend 8b to 2 tag 0\n}\n"
      "rank 2 {\na: recv 8b from 0 tag 0\nx: calc 2\nx requires a\n"
      "b: recv 8b from 1 tag 0\ny: calc 2\ny requires b\ny requires x\n}\n";
  GoalOptions options = kAllreduce;
  options.collective = CollectiveKind::kReduce;
  options.root = 2;
  EXPECT_EQ(ErrorOf(text, options), "");
  const std::string late =
      std::regex_replace(text, std::regex("tag 0\n\\}\nrank 1"), "tag 0\ns requires c\n}\nrank 1");
  ASSERT_NE(late, text);
  EXPECT_THAT(ErrorOf(late, options), HasSubstr("node 1's contribution is in both"));
}

TEST(GoalReaderTest, TagsAndSizesMakeRanges) {
  const auto two = [](const std::string& messages) {
    std::string text = "num_ranks 2\nrank 0 {\n", peer = "}\nrank 1 {\n";
    std::istringstream in(messages);
    for (std::string bytes, tag; in >> bytes >> tag;) {
      text += fmt::format("send {}b to 1 tag {}\n", bytes, tag);
      peer += fmt::format("r{0}: recv {1}b from 0 tag {0}\n", tag, bytes);
    }
    return text + peer + "}\n";
  };
  const auto read = [&](const std::string& messages, std::optional<uint64_t> message_bytes,
                        std::optional<uint64_t> block_bytes) {
    return Read(two(messages), {.root = 0,
                                .block_bytes = block_bytes,
                                .collective = CollectiveKind::kScatter,
                                .message_bytes = message_bytes});
  };
  // Part 1 of 2 in three blocks, one in all, and a range of the latter two.
  EXPECT_EQ(read("10 3 10 4 5 5", {}, {})->plan.header().payload,
            (Payload{.bytes = 25, .block_bytes = 10, .blocks = 6, .parts = 2}));
  EXPECT_EQ(read("25 1", {}, {})->plan.header().payload,
            (Payload{.bytes = 25, .block_bytes = 25, .blocks = 2, .parts = 2}));
  EXPECT_EQ(read("25 1", {}, 64)->plan.header().payload,
            (Payload{.bytes = 25, .block_bytes = 64, .blocks = 2, .parts = 2}));
  const Result<GoalPlan> ranges = read("10 3 15 4", 25, 10);
  ASSERT_TRUE(ranges.ok()) << ranges.status().ToString();
  EXPECT_EQ(ranges->plan.ops()[1].count, 2u);
  const auto error_of = [&](const std::string& messages, std::optional<uint64_t> message_bytes,
                            std::optional<uint64_t> block_bytes) {
    return read(messages, message_bytes, block_bytes).status().ToString();
  };
  EXPECT_EQ(error_of("10 3 12 4", 25, 10),
            "x.goal:4: 12 bytes are no whole blocks from block 4 on, of 25 bytes in blocks of 10");
  EXPECT_EQ(error_of("10 3 15 9", 25, 10),
            "x.goal:4: tag 9 is no block, there are 6 blocks: a tag is the number of the first "
            "block of a message");
  EXPECT_EQ(error_of("10 3 15 4", {}, {}),
            "x.goal: how many blocks a message has is open: a tag is the first one's number, and "
            "--message-bytes (of a part) with --block-bytes says how large they are");
  EXPECT_EQ(error_of("4611686018427387904 1", {}, {}),
            "x.goal: 2 times 4611686018427387904 bytes are above the limit of 4611686018427387904");
  EXPECT_EQ(
      error_of("25 1", 30, {}),
      "x.goal: --message-bytes 30 does not agree with the messages, which are those of 25 in a "
      "part; --block-bytes beside it may");
}

// What Verify() would find in the header stands at the file's line, or is refused before.
TEST(GoalReaderTest, ABarrierCarriesNothing) {
  const GoalOptions barrier{.collective = CollectiveKind::kBarrier};
  EXPECT_EQ(ErrorOf("num_ranks 2\nrank 0 {\nsend 0b to 1\nrecv 3b from 1\n}\n"
                    "rank 1 {\nrecv 0b from 0\nsend 3b to 0\n}\n",
                    barrier),
            "x.goal:8: a barrier carries nothing, this send has 3 bytes");
  GoalOptions sized = barrier;
  sized.message_bytes = 25;
  sized.block_bytes = 25;
  EXPECT_EQ(ErrorOf("num_ranks 2\nrank 0 {\nsend 0b to 1\nrecv 0b from 1\n}\n"
                    "rank 1 {\nrecv 0b from 0\nsend 0b to 0\n}\n",
                    sized),
            "x.goal: a barrier carries nothing, found 25 bytes");
  // Tags tell its messages from each other, and say nothing of blocks.
  const Result<GoalPlan> linear = Read(
      "num_ranks 3\nrank 0 {\na: recv 0b from 1 tag 5\nb: recv 0b from 2 tag 5\n"
      "c: send 0b to 1 tag 7\nd: send 0b to 2 tag 7\nc requires a\nc requires b\n"
      "d requires a\nd requires b\n}\n"
      "rank 1 {\nsend 0b to 0 tag 5\nrecv 0b from 0 tag 7\n}\n"
      "rank 2 {\nsend 0b to 0 tag 5\nrecv 0b from 0 tag 7\n}\n",
      barrier);
  ASSERT_TRUE(linear.ok()) << linear.status().ToString();
  EXPECT_EQ(linear->plan.header().payload.bytes, 0u);
  EXPECT_EQ(Verify(*AssignScratch(Plan(linear->plan))).ToString(), "");
}

TEST(GoalReaderTest, ScratchThatCannotBeCountedIsRefused) {
  const std::string text =
      "num_ranks 3\nrank 0 {\nrecv 8b from 1 tag 0\nrecv 8b from 2 tag 0\n}\n"
      "rank 1 {\nsend 8b to 0 tag 0\n}\nrank 2 {\nsend 8b to 0 tag 0\n}\n";
  GoalOptions options = kAllreduce;
  options.collective = CollectiveKind::kReduce;
  options.block_bytes = kMessageBytesMax;
  const Result<GoalPlan> read = Read(text, options);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(AssignScratch(Plan(read->plan)).status().message(),
            "2 scratch buffers of 4611686018427387904 bytes are above the limit of "
            "4611686018427387904");
}

}  // namespace
}  // namespace prepost::goal_reader_test
