// SPDX-License-Identifier: Apache-2.0
//
// Files of rounds: what is read of them, what is refused and how, and that the rounds of every
// schedule of ours make the schedule's plan.
#include "compiler/rounds/rounds_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "compiler/schedules/fan.h"
#include "compiler/schedules/schedule.h"
#include "tests/support/checker.h"
#include "tests/support/plans.h"
#include "tests/support/rounds.h"
#include "tests/support/sample.h"

namespace prepost::rounds_reader_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Result<RoundsPlan> Read(const std::string& text, const RoundsOptions& options = {}) {
  std::istringstream in(text);
  return ReadRounds(in, "r.txt", options);
}

/// The error of reading `text`; "" if there is none.
std::string ErrorOf(const std::string& text, const RoundsOptions& options = {}) {
  const Result<RoundsPlan> read = Read(text, options);
  return read.ok() ? "" : read.status().ToString();
}

std::string Json(const std::string& rest) {
  return R"({"format": "prepost.rounds", "version": "1.0", )" + rest + "}";
}

constexpr const char* kChain = "0>1:0\n0>1:1 1>2:0\n1>2:1\n";  // 3 nodes, 2 blocks
constexpr const char* kChainJson = R"("rounds": [["0>1:0"], ["0>1:1", "1>2:0"], ["1>2:1"]])";

Payload PayloadOf(const RoundsOptions& options, const std::string& text = kChain) {
  const Result<RoundsPlan> read = Read(text, options);
  EXPECT_TRUE(read.ok()) << read.status().ToString();
  return read.ok() ? read->plan.header().payload : Payload();
}

TEST(RoundsReaderTest, ReadsText) {
  const Result<RoundsPlan> read =
      Read("# a chain\n\n 0>1:0\r\n\t\n0>1:1\t1>2:0 # both\n-# nothing\n1>2:1#last");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(test::RoundsText(read->plan), "0>1:0\n0>1:1 1>2:0\n-\n1>2:1\n");
  const PlanHeader& header = read->plan.header();
  EXPECT_EQ(header.algorithm, "rounds");
  EXPECT_EQ(header.nodes, 3u);
  EXPECT_EQ(header.collective.root, NodeId(0));
  EXPECT_EQ(header.payload, (Payload{.bytes = 2 << 20, .block_bytes = 1 << 20, .blocks = 2}));
  EXPECT_EQ(header.ports, 1u);
  EXPECT_THAT(read->notes, IsEmpty());
}

TEST(RoundsReaderTest, ReadsJsonBehindBlanks) {
  for (const char* blanks : {"", "\n \t\r\n"}) {
    const Result<RoundsPlan> read =
        Read(blanks + Json(R"("nodes": 3, "root": 0, "blocks": 2, "x-note": [[1]], )" +
                           std::string(kChainJson)));
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_TRUE(read->plan == Read(kChain)->plan);
  }
  const Result<RoundsPlan> empty =
      Read(Json(R"("rounds": [[], ["3>0:0", "3>1:0"], [], ["1>2:0"]])"));
  ASSERT_TRUE(empty.ok()) << empty.status().ToString();
  EXPECT_EQ(test::RoundsText(empty->plan), "-\n3>0:0 3>1:0\n-\n1>2:0\n");
  EXPECT_EQ(empty->plan.header().collective.root, NodeId(3));
}

TEST(RoundsReaderTest, WarnsOfANewerMinorVersion) {
  std::istringstream in(R"({"format": "prepost.rounds", "version": "1.3", "rounds": [["0>1:0"]]})");
  std::vector<std::string> warnings;
  EXPECT_TRUE(ReadRounds(in, "r.txt", {}, &warnings).ok());
  EXPECT_THAT(warnings, ElementsAre(StartsWith("version 1.3 is newer than 1.1")));
}

// Rounds after the last transfer count for nothing; those before the first do.
TEST(RoundsReaderTest, CountsEmptyRoundsUpToTheLastTransfer) {
  EXPECT_EQ(Read("-\n-\n0>1:0\n-\n-\n")->plan.header().rounds, 3u);
}

TEST(RoundsReaderTest, OneNodeAloneHasNothingToDo) {
  const Result<RoundsPlan> read =
      Read("# nobody\n", {.nodes = 1, .message_bytes = 25, .block_bytes = 10});
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->plan.header().payload.blocks, 3u);
  EXPECT_TRUE(Read(Json(R"("nodes": 1, "blocks": 7, "rounds": [])")).ok());
  EXPECT_EQ(ErrorOf("-\n"), "r.txt: no transfers, expected at least one such as 0>1:0");
  EXPECT_EQ(ErrorOf("", {.nodes = 4, .root = 1}),
            "r.txt: node 0 never gets any block\n  r.txt: nodes 2 to 3 never get any block");
}

TEST(RoundsReaderTest, SizesMakeTheBlocksOfTheFile) {
  EXPECT_EQ(PayloadOf({.message_bytes = 11, .block_bytes = 10}),
            (Payload{.bytes = 11, .block_bytes = 10, .blocks = 2}));
  EXPECT_EQ(PayloadOf({.block_bytes = 10}), (Payload{.bytes = 20, .block_bytes = 10, .blocks = 2}));
  EXPECT_EQ(PayloadOf({.message_bytes = 11}),
            (Payload{.bytes = 11, .block_bytes = 6, .blocks = 2}));
  EXPECT_EQ(PayloadOf({.message_bytes = 0}, "0>1:0"),
            (Payload{.bytes = 0, .block_bytes = 1, .blocks = 1}));
  EXPECT_EQ(
      ErrorOf(kChain, {.message_bytes = 30, .block_bytes = 10}),
      "/block_bytes: 30 bytes in blocks of 10 bytes are 3 blocks, but the rounds have 2; blocks "
      "of 15 bytes make so many");
  EXPECT_EQ(ErrorOf(kChain, {.message_bytes = 1}),
            "/message_bytes: 1 byte in blocks of 1 byte are 1 block, but the rounds have 2");
  EXPECT_EQ(
      ErrorOf(kChain, {.message_bytes = 10, .block_bytes = 10}),
      "/block_bytes: 10 bytes in blocks of 10 bytes are 1 block, but the rounds have 2; blocks "
      "of 5 bytes make so many");
  EXPECT_EQ(ErrorOf(kChain, {.block_bytes = uint64_t{1} << 62}),
            "/block_bytes: 2 blocks of 4611686018427387904 bytes are more than a message may have, "
            "4611686018427387904 bytes");
}

TEST(RoundsReaderTest, TheRootSendsInTheFirstRound) {
  EXPECT_EQ(Read("2>1:0\n1>0:0\n")->plan.header().collective.root, NodeId(2));
  // Also where another node is forgotten, or something is sent to it.
  EXPECT_EQ(ErrorOf("2>1:0\n1>2:0\n"),
            "r.txt:2:1: round 1: node 1 sends block 0 to node 2, the root, which has the message\n"
            "  r.txt: node 0 never gets any block");
  EXPECT_EQ(ErrorOf("2>1:0 1>0:0\n"),
            "r.txt:1:7: round 0: node 1 sends block 0, which it does not have yet: it gets it in "
            "this round and can send it from the next one on");
  EXPECT_EQ(
      ErrorOf("0>1:0 2>3:0\n"),
      "r.txt:1:7: round 0: nodes 0 and 2 both send in the first round, in which only the root "
      "has anything: which is it? --root names it");
  EXPECT_EQ(
      ErrorOf("0>1:0 2>3:0\n", {.root = 2}),
      "r.txt:1:1: round 0: node 0 sends block 0, which it does not have yet: it never gets it\n"
      "  r.txt: node 0 never gets any block");
  EXPECT_EQ(ErrorOf(kChain, {.root = 3}), "/root: root 3 is out of range, the nodes are 0 to 2");
  EXPECT_EQ(ErrorOf(Json(R"("root": 3, )" + std::string(kChainJson))),
            "r.txt: root 3 is out of range, the nodes are 0 to 2");
}

TEST(RoundsReaderTest, FlagsWinOverTheFile) {
  const std::string json = Json(R"("nodes": 9, "root": 1, )" + std::string(kChainJson));
  EXPECT_THAT(ErrorOf(json), HasSubstr("nodes 3 to 8 never get any block"));
  EXPECT_EQ(ErrorOf(json, {.nodes = 3, .root = 0}), "");
}

TEST(RoundsReaderTest, NamesThePlaceOfWhatIsNoTransfer) {
  EXPECT_EQ(ErrorOf("0>1:0\n# x\n\n0>1:1  1->2:0\n1>2:\n"),
            "r.txt:4:8: round 1: expected a transfer FROM>TO:BLOCK such as 0>1:0, found '1->2:0'\n"
            "  r.txt:5:1: round 2: expected a transfer FROM>TO:BLOCK such as 0>1:0, found '1>2:'");
  for (const char* wrong : {"0", ">", "0>1", "0>1:", ">1:0", "0>:0", "0:1>0", "0>1:0,", "+0>1:0",
                            "0>1:0x", "0>1:-1", "0>1:0>1:0", "--", "[", "\"0>1:0\""}) {
    EXPECT_EQ(ErrorOf(wrong),
              fmt::format("r.txt:1:1: round 0: expected a transfer FROM>TO:BLOCK such as 0>1:0, "
                          "found '{}'",
                          wrong));
  }
  EXPECT_EQ(ErrorOf(std::string(1, '\0') + "\x1b[1m"),
            "r.txt:1:1: round 0: expected a transfer FROM>TO:BLOCK such as 0>1:0, found "
            "'\\x00\\x1b[1m'");
  EXPECT_EQ(ErrorOf("0>1:" + std::string(100, '0')),
            "r.txt:1:1: round 0: expected a transfer FROM>TO:BLOCK such as 0>1:0, found '0>1:" +
                std::string(36, '0') + "'");
  EXPECT_EQ(ErrorOf("- 0>1:0\n0>1:0 -\n"),
            "r.txt:1:3: round 0: '-' is a round without transfers, found '0>1:0' beside it\n"
            "  r.txt:2:7: round 1: '-' is a round without transfers, found transfers beside it");
}

TEST(RoundsReaderTest, NamesThePlaceInJson) {
  EXPECT_EQ(
      ErrorOf("{\"format\": \"prepost.rounds\", \"version\": \"1.0\",\n \"rounds\": [[\"0>1\", "
              "\"0>1:0 \"],\n [\"1\"]]}"),
      "r.txt:2:15: round 0: expected a transfer FROM>TO:BLOCK such as 0>1:0, found '0>1'\n"
      "  r.txt:2:22: round 0: expected a transfer FROM>TO:BLOCK such as 0>1:0, found '0>1:0 '\n"
      "  r.txt:3:4: round 1: expected a transfer FROM>TO:BLOCK such as 0>1:0, found '1'");
  EXPECT_EQ(ErrorOf("\n  " + Json(R"("rounds": [["0>1:0"], ["1>0:0"]])")),
            "r.txt:2:74: round 1: node 1 sends block 0 to node 0, the root, which has the message");
  // What is wrong before a file breaks off is not lost.
  EXPECT_EQ(ErrorOf(Json(R"("rounds": [["0"], [3]])")),
            "r.txt:1:61: round 0: expected a transfer FROM>TO:BLOCK such as 0>1:0, found '0'\n"
            "  r.txt:1:68: /rounds/1/0: expected a transfer such as \"0>1:0\", found 3");
  for (const auto& [rest, error] :
       {std::pair(R"("nodes": 3)", "key 'rounds' is missing"),
        std::pair(R"("rounds": ["0>1:0"])", "/rounds/0: expected an array, found string \"0>1:0\""),
        std::pair(R"("rounds": [[], [["0>1:0"]]])",
                  "/rounds/1/0: expected an element that is no array, found an array"),
        std::pair(R"("rounds": [["0>1:0", {}]])",
                  "/rounds/0/1: expected a scalar, found an object"),
        std::pair(R"("rounds": {})", "/rounds: expected an array, found an object"),
        std::pair(R"("rounds": "0>1:0")", "/rounds: expected an array, found string"),
        std::pair(R"("rounds": [[null]])", "expected a transfer such as \"0>1:0\", found null"),
        std::pair(R"("rounds": [[]], "node": 3)", "unknown key, did you mean 'nodes'?"),
        std::pair(R"("nodes": 0, "rounds": [])", "/nodes: expected 1 or more, found 0"),
        std::pair(R"("nodes": 1048577, "rounds": [])", "is too large, the limit is 1048576"),
        std::pair(R"("blocks": 16777217, "rounds": [])", "is too large, the limit is 16777216")}) {
    EXPECT_THAT(ErrorOf(Json(rest)), HasSubstr(error));
  }
  EXPECT_THAT(ErrorOf(R"({"format": "prepost.plan"})"), HasSubstr("expected \"prepost.rounds\""));
  EXPECT_THAT(ErrorOf("{"), HasSubstr("the file ends in the middle"));
}

TEST(RoundsReaderTest, RefusesWhatNoPlanHas) {
  EXPECT_EQ(
      ErrorOf("0>1048576:0\n0>1:16777216\n99999999999999999999999>1:0\n"),
      "r.txt:1:1: round 0: a node of '0>1048576:0' is too large, a plan has at most 1048576 "
      "nodes\n"
      "  r.txt:2:1: round 1: the block of '0>1:16777216' is too large, a plan has at most "
      "16777216 blocks\n"
      "  r.txt:3:1: round 2: a node of '99999999999999999999999>1:0' is too large, a plan has at "
      "most 1048576 nodes");
  // The largest numbers cost no memory.
  EXPECT_EQ(ErrorOf("0>1048575:16777215\n"),
            "r.txt: nodes 1 to 1048574 never get any block\n"
            "  r.txt: node 1048575 never gets blocks 0 to 16777214");
}

TEST(RoundsReaderTest, RefusesTransfersThatCannotBe) {
  EXPECT_EQ(ErrorOf("0>1:0\n0>3:0 1>2:0\n", {.nodes = 3}),
            "r.txt:2:1: round 1: node 3 is out of range, the nodes are 0 to 2");
  EXPECT_EQ(ErrorOf("0>1:0\n", {.nodes = 1}),
            "r.txt:1:1: round 0: node 1 is out of range, the only node is 0");
  EXPECT_EQ(ErrorOf(Json(R"("blocks": 2, "rounds": [["0>1:1"], ["0>1:2"], ["0>1:0"]])")),
            "r.txt:1:85: round 1: block 2 is out of range, the blocks are 0 to 1");
  EXPECT_EQ(ErrorOf(Json(R"("blocks": 1, "rounds": [["0>1:1"], ["0>1:0"]])")),
            "r.txt:1:74: round 0: block 1 is out of range, the only block is 0");
  EXPECT_EQ(ErrorOf("0>1:0\n1>1:0\n"), "r.txt:2:1: round 1: node 1 sends block 0 to itself");
  EXPECT_EQ(ErrorOf("0>1:0\n1>0:0\n"),
            "r.txt:2:1: round 1: node 1 sends block 0 to node 0, the root, which has the message");
}

TEST(RoundsReaderTest, RefusesBlocksThatTheSenderLacks) {
  EXPECT_EQ(ErrorOf("0>1:0\n1>2:1\n-\n0>1:1\n1>2:0\n"),
            "r.txt:2:1: round 1: node 1 sends block 1, which it does not have yet: it gets it in "
            "round 3 (line 4)");
  EXPECT_EQ(ErrorOf("0>1:0\n0>1:1 1>2:1\n0>2:0\n"),
            "r.txt:2:7: round 1: node 1 sends block 1, which it does not have yet: it gets it in "
            "this round and can send it from the next one on");
  EXPECT_EQ(
      ErrorOf("0>1:0\n2>1:1\n0>2:0\n"),
      "r.txt:2:1: round 1: node 2 sends block 1, which it does not have yet: it never gets it\n"
      "  r.txt: node 2 never gets block 1");
}

TEST(RoundsReaderTest, RefusesBlocksThatComeTwice) {
  EXPECT_EQ(
      ErrorOf("0>1:0\n0>2:0 1>2:0\n0>1:0\n"),
      "r.txt:2:7: round 1: node 2 gets block 0 a second time, it comes from node 0 in round 1 "
      "(line 2)\n"
      "  r.txt:3:1: round 2: node 1 gets block 0 a second time, it comes from node 0 in round 0 "
      "(line 1)");
}

TEST(RoundsReaderTest, ListsTheBlocksThatNeverCome) {
  EXPECT_EQ(ErrorOf("0>1:1 0>1:3 0>1:4 0>1:8 0>4:8\n"),
            "r.txt: node 1 never gets blocks 0, 2 and 5 to 7\n"
            "  r.txt: nodes 2 to 3 never get any block\n"
            "  r.txt: node 4 never gets blocks 0 to 7");
  std::string odd;
  for (int block = 1; block < 40; block += 2) odd += fmt::format("0>1:{} ", block);
  EXPECT_EQ(ErrorOf(odd), "r.txt: node 1 never gets blocks 0, 2, 4, 6, 8, 10, 12, 14 and 12 more");
}

// The first findings are shown, all are counted.
TEST(RoundsReaderTest, CountsWhatItDoesNotShow) {
  std::string text = "0>1:0\n";
  for (int i = 0; i < 30; ++i) text += "0>1:0 0>1:x\n";
  EXPECT_THAT(ErrorOf(text), HasSubstr("\n  and 10 more"));
  text = "0>1:0\n";
  for (int i = 0; i < 30; ++i) text += "0>1:0\n";
  const std::string error = ErrorOf(text);
  EXPECT_THAT(error, ::testing::EndsWith("\n  and 10 more"));
  EXPECT_EQ(std::ranges::count(error, '\n'), 20);
}

TEST(RoundsReaderTest, SeveralTransfersOfARoundNeedPorts) {
  const Result<RoundsPlan> sends = Read("0>1:0\n0>1:1 0>2:1\n0>3:1 1>2:0 2>3:0\n");
  EXPECT_FALSE(sends.ok());
  const Result<RoundsPlan> read = Read("0>1:0 0>2:1\n0>3:0 1>2:0 2>1:1 0>3:1\n");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->plan.header().ports, 2u);
  EXPECT_THAT(read->notes,
              ElementsAre("r.txt:1:7: round 0: node 0 sends 2 blocks: the plan has 2 ports"));
  EXPECT_THAT(Read("0>1:0\n0>1:1\n0>2:0 1>2:1\n")->notes,
              ElementsAre("r.txt:3:7: round 2: node 2 receives 2 blocks: the plan has 2 ports"));
}

// Both windows follow the ports, and a smaller one is refused, since receives of one round would
// wait for each other.
TEST(RoundsReaderTest, WindowsFollowThePorts) {
  const std::string text = "0>1:0 0>2:1\n1>2:0 2>1:1\n";
  const Result<VerifiedPlan> automatic = test::CompileRounds(text, {});
  ASSERT_TRUE(automatic.ok()) << automatic.status().ToString();
  EXPECT_EQ(ToString(automatic->header().ready), "window=2");
  EXPECT_EQ(automatic->header().send_window, 2u);
  for (const char* ready : {"barrier", "channel", "retry", "window=2", "window=5"}) {
    for (const char* send_window : {"none", "1", "3"}) {
      EXPECT_TRUE(
          test::CompileRounds(text, {}, *ParseReady(ready), *ParseSendWindow(send_window)).ok())
          << ready << " " << send_window;
    }
  }
  EXPECT_EQ(
      test::CompileRounds(text, {}, *ParseReady("window=1")).status().ToString(),
      "/ready: window=1 is too small: a node may receive 2 blocks in a round, and all of them "
      "must be granted");
}

// A program's transfers make the plan of the same file, and what is wrong has its round for a
// place.
TEST(RoundsReaderTest, PlansTheTransfersOfAProgram) {
  const std::vector<PlannedTransfer> chain = {
      {.round = 0, .from = 0, .to = 1, .block = 0},
      {.round = 1, .from = 1, .to = 2, .block = 0},
      {.round = 1, .from = 0, .to = 1, .block = 1},
      {.round = 2, .from = 1, .to = 2, .block = 1},
  };
  const Result<RoundsPlan> plan = PlanRounds(chain, "rounds", {.message_bytes = 11});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_TRUE(plan->plan == Read(kChain, {.message_bytes = 11})->plan);
  const auto error_of = [](const std::vector<PlannedTransfer>& transfers) {
    return PlanRounds(transfers, "rounds").status().ToString();
  };
  EXPECT_EQ(error_of({}), "rounds: no transfers, expected at least one such as 0>1:0");
  EXPECT_EQ(
      error_of({{0, 0, 1, 0}, {2, 1, 2, 1}, {3, 0, 1, 1}, {5, 0, 1, 0}}),
      "rounds: round 2: node 1 sends block 1, which it does not have yet: it gets it in "
      "round 3\n"
      "  rounds: round 5: node 1 gets block 0 a second time, it comes from node 0 in round 0\n"
      "  rounds: node 2 never gets block 0");
  EXPECT_EQ(error_of({{0, 0, 1, 0}, {0, 2, 3, 0}}),
            "rounds: round 0: nodes 0 and 2 both send in the first round, in which only the root "
            "has anything: which is it? root names it");
  EXPECT_EQ(error_of({{0, 0, 1u << 20, 0}, {4, 0, 1, 1u << 24}}),
            "rounds: round 0: a node of '0>1048576:0' is too large, a plan has at most 1048576 "
            "nodes\n"
            "  rounds: round 4: the block of '0>1:16777216' is too large, a plan has at most "
            "16777216 blocks");
  EXPECT_THAT(error_of({{0xffffffff, 0, 1, 0}}), HasSubstr("more than 4294967294 rounds"));
  const std::vector<PlannedTransfer> two = {{0, 0, 1, 0}, {0, 0, 2, 0}};
  EXPECT_THAT(PlanRounds(two, "rounds")->notes,
              ElementsAre("rounds: round 0: node 0 sends 2 blocks: the plan has 2 ports"));
}

/// The rounds of the plan of `spec`, in both forms, make that plan, to the last op.
void ExpectRoundsMakePlan(const Spec& spec, const SpecReady& ready,
                          const SpecSendWindow& send_window) {
  const VerifiedPlan plan = test::CompileOrDie(spec);
  RoundsOptions options{.message_bytes = spec.message_bytes, .block_bytes = spec.block_bytes};
  const Result<VerifiedPlan> from_json =
      test::CompileRounds(test::RoundsJson(plan), options, ready, send_window);
  if (spec.nodes == 1) options.nodes = 1;  // nothing in the text says it
  // Nor who leads where there is no root.
  if (spec.nodes == 1 || !HasRoot(spec.collective)) options.root = spec.root.value;
  const Result<VerifiedPlan> from_text =
      test::CompileRounds(test::RoundsText(plan), options, ready, send_window);
  for (const Result<VerifiedPlan>* again : {&from_text, &from_json}) {
    ASSERT_TRUE(again->ok()) << test::Label(spec) << ": " << again->status().ToString() << "\n"
                             << test::RoundsText(plan);
    PlanHeader header = (*again)->header();
    EXPECT_EQ(header.algorithm, "rounds");
    header.algorithm = spec.algorithm;
    ASSERT_TRUE((*again)->WithHeader(header) == plan) << test::Label(spec) << "\n"
                                                      << Dump(**again) << Dump(plan);
  }
}

TEST(RoundsReaderTest, RoundsOfASchedulesPlanMakeThatPlan) {
  const std::vector<Spec> specs = test::AllSmallSpecs({.nodes_max = 8, .blocks_max = 5});
  test::Sample sample(test::ScheduleLabels(specs));
  for (const Spec& spec : specs)
    if (sample.Takes()) ExpectRoundsMakePlan(spec, spec.ready, spec.send_window);
}

// Any rounds that are right make a valid plan in every mode. CompileRounds() verifies after every
// pass.
TEST(RoundsReaderTest, RandomRoundsMakeValidPlans) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  uint64_t several_ports = 0;
  for (uint64_t i = 0; i < test::RandomCases(300); ++i) {
    const test::RandomRounds rounds = test::MakeRandomRounds(random, 9, 7);
    for (const char* ready : {"auto", "barrier", "channel", "window=3", "retry"}) {
      const std::string send_window = random.Pick(std::array{"auto", "none", "1", "2"});
      const Result<VerifiedPlan> plan =
          test::CompileRounds(rounds.text, {}, *ParseReady(ready), *ParseSendWindow(send_window));
      ASSERT_TRUE(plan.ok()) << "seed " << seed << " case " << i << " " << ready << " "
                             << send_window << ": " << plan.status().ToString() << "\n"
                             << rounds.text;
      EXPECT_THAT(test::IndependentCheck(*plan), IsEmpty());
      EXPECT_LE(plan->header().ports, rounds.ports);
      several_ports += plan->header().ports > 1 ? 1u : 0u;
    }
  }
  EXPECT_GT(several_ports, 0u) << "seed " << seed;
}

// One change of right rounds: whatever is still accepted is valid.
TEST(RoundsReaderTest, ChangedRoundsAreRefusedOrValid) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  uint64_t refused = 0;
  const uint64_t cases = test::RandomCases(2000);
  for (uint64_t i = 0; i < cases; ++i) {
    std::string text = test::MakeRandomRounds(random, 5, 3).text;
    text[random.Below(text.size())] = random.Pick(std::string_view("0123456789>:+-# \n"));
    const Result<RoundsPlan> read = Read(text);
    refused += read.ok() ? 0u : 1u;
    if (read.ok()) {
      ASSERT_EQ(Verify(read->plan).ToString(), "") << "seed " << seed << " case " << i << "\n"
                                                   << text;
    } else {
      ASSERT_THAT(read.status().where(), StartsWith("r.txt")) << text;
    }
  }
  EXPECT_GT(refused, cases / 4) << "seed " << seed;
  EXPECT_LT(refused, cases) << "seed " << seed;
}

// The same of every schedule of another collective, in every ready mode. Catches a combine that is
// read as a receive, ranges that are cut, and roots and blocks per part that are found wrong.
TEST(RoundsReaderTest, RoundsOfACollectivesPlanMakeThatPlan) {
  const std::vector<Spec> specs = test::SpecsOfCollectives({.nodes_max = 9, .blocks_max = 5});
  test::Sample sample(test::ScheduleLabels(specs));
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SpecReady ready = spec.ready;
    SpecSendWindow send_window = spec.send_window;
    ready.path_blocks = send_window.path_blocks = BlocksOnPath(spec);
    ExpectRoundsMakePlan(spec, ready, send_window);
  }
}

/// What `prepost compile --rounds` says of `text`; "" if it is a plan.
std::string CompileErrorOf(const std::string& text, const RoundsOptions& options = {}) {
  const Result<VerifiedPlan> plan = test::CompileRounds(text, options);
  return plan.ok() ? "" : plan.status().ToString();
}

TEST(RoundsReaderTest, FlagsSayWhatATextIsOf) {
  const Combine sum = {.op = CombineOp::kSum, .type = ElementType::kInt32};
  const Result<VerifiedPlan> of_text =
      test::CompileRounds("allreduce sum:int32 # both\n\n0>1+0 1>0+0\n", {});
  ASSERT_TRUE(of_text.ok()) << of_text.status().ToString();
  EXPECT_EQ(of_text->header().collective.kind, CollectiveKind::kAllreduce);
  EXPECT_EQ(of_text->header().combine, sum);
  EXPECT_EQ(of_text->header().rounds, 1u);
  const RoundsOptions options{.collective = CollectiveKind::kAllreduce, .combine = sum};
  for (const char* text : {"0>1+0 1>0+0\n", "reduce max:int8\n0>1+0 1>0+0\n"})
    EXPECT_TRUE(*test::CompileRounds(text, options) == *of_text) << text;
  // A barrier needs no operation, and has no bytes.
  const Result<VerifiedPlan> barrier = test::CompileRounds("barrier\n0>1+0 1>0+0\n", {});
  ASSERT_TRUE(barrier.ok()) << barrier.status().ToString();
  EXPECT_EQ(barrier->header().payload.bytes, 0u);
  EXPECT_EQ(barrier->header().combine.op, CombineOp::kAnd);
}

// Blocks are as small as the message allows, in whole elements; of parts, those of each.
TEST(RoundsReaderTest, SizesAreOfWholeElementsAndOfParts) {
  const std::string three = "0>1+0\n0>1+1\n0>1+2\n";
  const auto payload_of = [](const std::string& text, const RoundsOptions& options) {
    const Result<VerifiedPlan> plan = test::CompileRounds(text, options);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    return plan.ok() ? plan->header().payload : Payload();
  };
  EXPECT_EQ(payload_of("reduce sum:float32\n" + three, {.message_bytes = 40}),
            (Payload{.bytes = 40, .block_bytes = 16, .blocks = 3}));
  // Root 1 is the last of the gather: its own part does not move, and has as many blocks.
  EXPECT_EQ(payload_of("gather\n0>1:0\n0>1:1\n0>1:2\n", {.message_bytes = 25}),
            (Payload{.bytes = 25, .block_bytes = 9, .blocks = 6, .parts = 2}));
  EXPECT_EQ(payload_of("alltoall\n0>1:2-3 1>0:4-5\n", {.block_bytes = 10}),
            (Payload{.bytes = 20, .block_bytes = 10, .blocks = 8, .parts = 4}));
  EXPECT_EQ(CompileErrorOf("reduce sum:float32\n" + three, {.message_bytes = 38}),
            "/message_bytes: 38 bytes are not a whole number of float32 (4 bytes each)");
  EXPECT_EQ(CompileErrorOf("reduce sum:float32\n" + three, {.block_bytes = 10}),
            "/message_bytes: 30 bytes are not a whole number of float32 (4 bytes each)");
  EXPECT_EQ(CompileErrorOf("gather\n0>1:0\n0>1:1\n", {.message_bytes = 30, .block_bytes = 10}),
            "/block_bytes: 30 bytes in blocks of 10 bytes are 3 blocks, but the rounds have 2 in a "
            "part; blocks of 15 bytes make so many");
  EXPECT_EQ(
      CompileErrorOf("barrier\n0>1+0 1>0+0\n0>1+1 1>0+1\n"),
      "/message_bytes: 0 bytes in blocks of 1048576 bytes are 1 block, but the rounds have 2");
  EXPECT_EQ(ErrorOf(R"({"format": "prepost.rounds", "version": "1.1", "collective": "allgather",)"
                    R"("blocks": 3, "rounds": [["0>1:0", "1>0:1"]]})"),
            "r.txt: 3 blocks cannot be those of 2 parts of equally many blocks, which allgather "
            "between 2 nodes has");
}

// One line and column for each way in which rounds that combine can be wrong.
TEST(RoundsReaderTest, WrongCollectivesHaveTheirPlace) {
  struct Case {
    const char* text;
    const char* error;
  };
  constexpr Case kCases[] = {
      // Counted twice, missing, never delivered.
      {"reduce sum:float32\n0>1+0\n1>2+0\n0>2+0\n",
       "r.txt:4:1: round 2: value: block 0, made of {0-2}, is combined with one that is made of "
       "{0}: "
       "node 0's contribution is in both"},
      {"reduce max:float32\n0>1+0\n1>2+0\n0>2+0\n", ""},
      {"allreduce sum:float32\n0>1+0\n1>2+0\n2>1:0\n",
       "r.txt: value: block 0 at node 0 is made of {0}, node 1's contribution is missing"},
      {"reduce_scatter sum:int32\n0>1+0 1>0+0\n",
       "r.txt: value: block 1 at node 1 is made of {1}, node 0's contribution is missing"},
      // Takes in the place of a combine.
      {"reduce sum:float32\n0>1:0\n",
       "r.txt: value: block 0 at node 1 is made of {0}, node 1's contribution is missing"},
      {"allreduce sum:int32\n0>1+0 1>0:0\n",
       "r.txt:2:1: round 0: node 0 sends block 0 and takes it from another node in this round: it "
       "can send what it takes from the next one on"},
      {"allreduce sum:float32\n0>1+0 1>2+0 2>0+0\n0>1+0 1>2+0 2>0+0\n",
       "r.txt:3:13: round 1: value: block 0, made of {0,2}, is combined with one that is made of "
       "{1-2}: node 2's contribution is in both; 2 more"},
      // Sums of floats in other orders.
      {"allreduce sum:float32\n0>2+0 1>0+0 2>1+0\n2>0+0 0>1+0 1>2+0\n", nullptr},
      // What combines nothing.
      {"0>1+0\n",
       "r.txt:1:1: round 0: 0>1+0 combines, and a multicast does not; a first line "
       "such as 'allreduce sum:float32', or --collective and --combine, name another collective"},
      {"allgather\n0>1+0 1>0:1\n",
       "r.txt:2:1: round 0: 0>1+0 adds to what node 1 has, and an allgather combines nothing\n"
       "  r.txt: node 1 never gets any block"},
      {"allgather sum:int8\n0>1:0 1>0:1\n", "r.txt: allgather combines nothing"},
      {"allreduce\n0>1+0 1>0+0\n",
       "/combine: what allreduce does to values is missing, such as sum:float32"},
      {"allreduce and:float32\n0>1+0 1>0+0\n", nullptr},
      // Parts.
      {"allgather\n0>1:0 1>0:1\n0>2:0-1\n",
       "r.txt: node 0 never gets block 2\n  r.txt: node 1 never gets block 2"},
      {"allgather\n0>1:1 1>0:1\n",
       "r.txt:2:1: round 0: node 0 sends block 1 to node 1, which has it from the start\n"
       "  r.txt: node 1 never gets any block"},
      {"alltoall\n0>1:1 1>0:1-2\n", nullptr},
      {"alltoall\n0>1:1 1>2:3\n2>0:6\n",
       "r.txt: node 0 never gets block 3\n  r.txt: node 1 never gets block 7\n"
       "  r.txt: node 2 never gets blocks 2 and 5"},
      {"scatter\n0>1:1\n1>2:1-2\n",
       "r.txt:3:1: round 1: node 1 sends block 2, which it does not have yet: it never gets it"},
      {"gather\n1>0:1 2>0:2\n1>0:0-1\n",
       "r.txt:3:1: round 1: node 1 sends block 0 to node 0, which has it from the start"},
      // The root.
      {"gather\n1>0:1 0>1:0\n",
       "r.txt: all nodes that receive something send something, too: which is the root of the "
       "gather? --root names it"},
      {"reduce sum:int8\n1>0+0 1>2+0\n",
       "r.txt: nodes 0 and 2 both receive and send nothing: which is the root of the reduce? "
       "--root "
       "names it"},
      // The form.
      {"alreduce sum:int8\n",
       "r.txt:1:1: round 0: expected a transfer FROM>TO:BLOCK such as 0>1:0, found 'alreduce', did "
       "you mean 'allreduce'?\n"
       "  r.txt:1:10: round 0: expected a transfer FROM>TO:BLOCK such as 0>1:0, found 'sum:int8'"},
      {"reduce sum:int8 0>1+0\n",
       "r.txt:1:17: expected the first round on a line of its own, found '0>1+0' behind the "
       "operation"},
      {"reduce sum:int8\nreduce\n",
       "r.txt:2:1: round 0: expected a transfer FROM>TO:BLOCK such as 0>1:0, found 'reduce'"},
      {"allgather\n0>1:0-\n",
       "r.txt:2:1: round 0: expected a transfer FROM>TO:BLOCK such as 0>1:0, found '0>1:0-'"},
      {"allgather\n0>1:3-2\n", "r.txt:2:1: round 0: the blocks of '0>1:3-2' end before they begin"},
      {"0>1:0-1\n",
       "r.txt:1:1: round 0: 0>1:0-1 are several blocks in one message, and messages of a multicast "
       "have one; a transfer for each is what is meant\n"
       "  r.txt: node 1 never gets any block"},
  };
  for (const auto& [text, error] : kCases) {
    const std::string found = CompileErrorOf(text);
    if (error != nullptr) {
      EXPECT_THAT(found, StartsWith(error)) << text;
      EXPECT_EQ(found.empty(), *error == '\0') << found;
    } else {
      EXPECT_NE(found, "") << text;
    }
  }
}

// One change of a collective's rounds: whatever is still accepted is valid, also for a checker that
// shares no code.
TEST(RoundsReaderTest, ChangedCollectivesAreRefusedOrValid) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  const std::vector<Spec> specs = test::SpecsOfCollectives({.nodes_max = 5, .blocks_max = 3});
  uint64_t refused = 0;
  const uint64_t cases = test::RandomCases(1500);
  for (uint64_t i = 0; i < cases; ++i) {
    const Spec& spec = specs[random.Below(specs.size())];
    if (spec.nodes == 1) continue;
    std::string text = test::RoundsText(test::CompileOrDie(spec));
    text[random.Below(text.size())] = random.Pick(std::string_view("0123456789>:+-# \n"));
    const Result<VerifiedPlan> plan = test::CompileRounds(text, {});
    refused += plan.ok() ? 0u : 1u;
    if (plan.ok()) {
      EXPECT_THAT(test::IndependentCheck(*plan), IsEmpty()) << "seed " << seed << "\n" << text;
    } else {
      ASSERT_FALSE(plan.status().message().empty()) << text;
    }
  }
  EXPECT_GT(refused, cases / 4) << "seed " << seed;
}

}  // namespace
}  // namespace prepost::rounds_reader_test
