// SPDX-License-Identifier: Apache-2.0
//
// The plan file: exact round trips, and for every kind of wrong file the place and the words of the
// error.
#include "ir/json/plan_json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "compiler/compile.h"
#include "compiler/schedules/schedule.h"
#include "ir/json/file_format.h"
#include "tests/support/random.h"

namespace prepost::plan_json_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr PlanEncoding kEncodings[] = {PlanEncoding::kRows, PlanEncoding::kColumns};

std::string Written(const Plan& plan, PlanEncoding encoding = PlanEncoding::kRows) {
  std::ostringstream out;
  WritePlan(plan, out, encoding);
  return out.str();
}

Result<Plan> Read(const std::string& text, std::vector<std::string>* warnings = nullptr) {
  std::istringstream in(text);
  return ReadPlan(in, "p.json", warnings);
}

std::string ErrorOf(const std::string& text) {
  const Result<Plan> plan = Read(text);
  return plan.ok() ? "no error" : plan.status().ToString();
}

/// A small valid file: 2 nodes, one block, one channel.
std::string Small() {
  return Written(*Compile({.nodes = 2, .message_bytes = 3, .algorithm = "chain"}));
}

/// A valid file in columns: 3 nodes, two blocks, credits.
std::string Columns() {
  return Written(*Compile({.nodes = 3,
                           .message_bytes = 20,
                           .block_bytes = 10,
                           .algorithm = "chain",
                           .ready = *ParseReady("window=1")}),
                 PlanEncoding::kColumns);
}

/// `text` with the first `from` replaced by `to`.
std::string With(std::string text, const std::string& from, const std::string& to) {
  const size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  if (place != std::string::npos) text.replace(place, from.size(), to);
  return text;
}
std::string SmallWith(const std::string& from, const std::string& to) {
  return With(Small(), from, to);
}
std::string ColumnsWith(const std::string& from, const std::string& to) {
  return With(Columns(), from, to);
}

TEST(PlanJsonTest, RoundTripIsExact) {
  for (const std::string& algorithm : ScheduleNames()) {
    for (const char* ready : {"auto", "barrier", "channel", "window=2", "retry"}) {
      for (const uint32_t nodes : {1u, 2u, 7u}) {
        const Result<VerifiedPlan> plan = Compile({.nodes = nodes,
                                                   .root = NodeId(nodes - 1),
                                                   .message_bytes = 2500,
                                                   .block_bytes = 1000,
                                                   .algorithm = algorithm,
                                                   .ready = *ParseReady(ready)});
        ASSERT_TRUE(plan.ok()) << plan.status().ToString();
        for (const PlanEncoding encoding : kEncodings) {
          const std::string text = Written(*plan, encoding);
          std::vector<std::string> warnings;
          const Result<Plan> again = Read(text, &warnings);
          ASSERT_TRUE(again.ok()) << again.status().ToString();
          EXPECT_THAT(warnings, IsEmpty());
          EXPECT_EQ(*again, *plan);
          EXPECT_EQ(Written(*again, encoding), text);
        }
      }
    }
  }
}

// Plans that no compiler makes keep every value too: the file holds what the Plan holds.
// Catches sizes of parts that are lost, cut to 32 bits, or read twice.
TEST(PlanJsonTest, SizesOfPartsComeBack) {
  const Result<VerifiedPlan> plan = Compile({.collective = CollectiveKind::kAlltoall,
                                             .nodes = 2,
                                             .message_bytes = uint64_t{1} << 40,
                                             .part_bytes = {1, 0, 7, uint64_t{1} << 40},
                                             .block_bytes = uint64_t{1} << 41,
                                             .algorithm = "pairwise"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  for (const PlanEncoding encoding : kEncodings) {
    const std::string text = Written(*plan, encoding);
    EXPECT_THAT(text, HasSubstr("\"part_bytes\": [1,0,7,1099511627776]"));
    EXPECT_EQ(*Read(text), *plan);
    EXPECT_THAT(ErrorOf(With(text, "[1,0,7,1099511627776]", "[]")),
                HasSubstr("/message/part_bytes: expected at least 1 elements, found 0"));
    EXPECT_THAT(ErrorOf(With(text, "[1,0,", "[1,-1,")),
                HasSubstr("/message/part_bytes/1: expected an integer from 0 to"));
  }
}

TEST(PlanJsonTest, RoundTripOfArbitraryPlans) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937 engine(static_cast<uint32_t>(seed));
  const auto random = [&] { return static_cast<uint32_t>(engine()); };
  for (int i = 0; i < 200; ++i) {
    PlanHeader header{
        .generator = "g\"\n\\", .algorithm = "\xc3\xa9\t", .nodes = random() % kNodesMax};
    header.payload = {
        .bytes = kMessageBytesMax, .block_bytes = random(), .blocks = random() % kBlocksMax};
    header.ready = {.mode = static_cast<ReadyMode>(random() % 4), .window = random() % 3};
    if (random() % 2) header.send_window = random();
    header.rounds = random();
    header.ports = 1 + random() % 2;
    PlanBuilder builder(header);
    for (uint32_t c = random() % 4; c > 0; --c) {
      builder.AddChannel(
          {NodeId(random()), NodeId(random()), random() % 2 ? Lane::kBlocks : Lane::kCredits});
    }
    for (uint32_t p = random() % 4; p > 0; --p) {
      builder.BeginProgram(NodeId(random()));
      for (uint32_t o = random() % 5; o > 0; --o) {
        std::vector<OpId> after;
        for (uint32_t a = random() % 4; a > 0; --a) after.push_back(OpId(random()));
        const uint32_t block = random() % 3 == 0 ? kNoBlock : random() / 2;
        builder.AddOp({.channel = ChannelId(random()),
                       .block = block,
                       .round = random(),
                       .grants = random() % 3,
                       .kind = random() % 2 ? OpKind::kSend : OpKind::kRecv},
                      after);
      }
    }
    const Plan plan = std::move(builder).Build();
    for (const PlanEncoding encoding : kEncodings) {
      const Result<Plan> again = Read(Written(plan, encoding));
      ASSERT_TRUE(again.ok()) << again.status().ToString();
      ASSERT_EQ(*again, plan) << Written(plan, encoding);
    }
  }
}

TEST(PlanJsonTest, KeysMayStandInAnyOrder) {
  const Result<Plan> plan = Read(
      R"({"programs":[{"ops":[{"after":[],"round":0,"block":0,"channel":0,"op":"send"}],"node":0},
          {"ops":[{"after":[],"round":0,"block":0,"channel":0,"op":"recv"}],"node":1}],
          "channels":[{"lane":0,"to":1,"from":0}],"rounds":1,"send_window":null,
          "ready":{"mode":"barrier"},"message":{"blocks":1,"block_bytes":1048576,"bytes":3},
          "root":0,"nodes":2,"algorithm":"chain","collective":"multicast",
          "generator":"prepost 0.1.0","version":"1.0","format":"prepost.plan"})");
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(*plan, *Read(Small()));
}

TEST(PlanJsonTest, SkipsUserKeys) {
  const Result<Plan> plan =
      Read(SmallWith("\"rounds\"", R"("x-a": [1, {"b": [null]}], "x-b": 3, "rounds")"));
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(*plan, *Read(Small()));
}

TEST(PlanJsonTest, Versions) {
  std::vector<std::string> warnings;
  EXPECT_TRUE(Read(SmallWith("\"1.0\"", "\"1.7\""), &warnings).ok());
  EXPECT_THAT(warnings, ::testing::ElementsAre(HasSubstr("version 1.7 is newer than 1.2")));
  EXPECT_THAT(ErrorOf(SmallWith("\"1.0\"", "\"2.0\"")),
              HasSubstr("/version: version 2.0 is not supported"));
  EXPECT_THAT(ErrorOf(SmallWith("\"1.0\"", "\"one\"")),
              HasSubstr("expected a version such as \"1.2\""));
  EXPECT_THAT(ErrorOf(SmallWith("\"1.0\"", "1.0")), HasSubstr("expected a version"));
}

TEST(PlanJsonTest, SaysWhereAFileIsWrong) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("p.json:1:0: the file is empty"));
  EXPECT_THAT(ErrorOf("hello"), AllOf(StartsWith("p.json:1:"), HasSubstr("not JSON")));
  EXPECT_THAT(ErrorOf("{ \"version\": 1e400 }"), HasSubstr("/version: the number is too large"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("expected an object, found an array"));
  EXPECT_THAT(ErrorOf("7"), HasSubstr("expected an object, found 7"));
  EXPECT_THAT(ErrorOf(Small() + "x"), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf(Small().substr(0, 200)), HasSubstr("the file ends in the middle"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("key 'format' is missing"));
  EXPECT_THAT(ErrorOf(SmallWith("prepost.plan", "prepost.spec")),
              AllOf(StartsWith("p.json:1:"), HasSubstr(": /format: expected \"prepost.plan\"")));
  EXPECT_THAT(ErrorOf(SmallWith("\"algorithm\"", "\"algoritm\"")),
              AllOf(StartsWith("p.json:2:"),
                    HasSubstr("/algoritm: unknown key, did you mean 'algorithm'?")));
  EXPECT_THAT(ErrorOf(SmallWith("\"root\": 0", "\"nodes\": 0")),
              HasSubstr("/nodes: the key stands here twice"));
  EXPECT_THAT(ErrorOf(SmallWith("\"root\": 0,", "")), HasSubstr("key 'root' is missing"));
  EXPECT_THAT(
      ErrorOf(SmallWith("\"op\": \"recv\"", "\"op\": \"receive\"")),
      AllOf(StartsWith("p.json:12:"), HasSubstr("/programs/1/ops/0/op: expected one of \"send\", "
                                                "\"recv\", \"combine\", found string")));
  EXPECT_THAT(
      ErrorOf(SmallWith("\"after\": []", "\"after\": [0, null]")),
      HasSubstr("/programs/0/ops/0/after/1: expected an integer from 0 to 4294967295, found null"));
  EXPECT_THAT(ErrorOf(SmallWith("\"after\": []", "\"after\": 3")),
              HasSubstr("/after: expected an array, found 3"));
  EXPECT_THAT(ErrorOf(SmallWith("\"after\": []", "\"after\": [[]]")),
              HasSubstr("/after/0: expected an element"));
  EXPECT_THAT(ErrorOf(SmallWith("\"after\": []", "\"after\": [{}]")),
              HasSubstr("/after/0: expected a scalar"));
  EXPECT_THAT(ErrorOf(SmallWith("\"channel\": 0", "\"channel\": {}")),
              HasSubstr("expected a scalar, found an object"));
  EXPECT_THAT(ErrorOf(SmallWith("multicast", "gathers")),
              HasSubstr("found string \"gathers\", did you mean 'gather'?"));
  EXPECT_THAT(ErrorOf(SmallWith("\"ready\": {", "\"ready\": 1, \"x\": {")),
              HasSubstr("/ready: expected an object, found 1"));
}

TEST(PlanJsonTest, BoundsItsNumbers) {
  EXPECT_THAT(
      ErrorOf(SmallWith("\"bytes\": 3", "\"bytes\": -3")),
      HasSubstr("/message/bytes: expected an integer from 0 to 4611686018427387904, found -3"));
  EXPECT_THAT(ErrorOf(SmallWith("\"block_bytes\": 1048576", "\"block_bytes\": 0")),
              HasSubstr("/message/block_bytes: expected 1 or more, found 0"));
  EXPECT_THAT(ErrorOf(SmallWith("\"bytes\": 3", "\"bytes\": 99999999999999999999999")),
              HasSubstr("/message/bytes"));
  EXPECT_THAT(ErrorOf(SmallWith("\"bytes\": 3", "\"bytes\": 9223372036854775808")),
              HasSubstr("too large"));
  EXPECT_THAT(ErrorOf(SmallWith("\"bytes\": 3", "\"bytes\": 3.0")), HasSubstr("found 3.0"));
  EXPECT_THAT(ErrorOf(SmallWith("\"nodes\": 2", "\"nodes\": 4294967296")),
              HasSubstr("/nodes: 4294967296 is too large"));
  EXPECT_THAT(ErrorOf(SmallWith("\"round\": 0", "\"round\": 1e3")),
              HasSubstr("/round: expected an integer"));
  EXPECT_THAT(ErrorOf(SmallWith("\"block\": 0", "\"block\": 4294967295")), HasSubstr("/block"));
  EXPECT_THAT(
      ErrorOf(SmallWith("\"round\": 0", "\"round\": 4294967295")),
      HasSubstr("/round: 4294967295 is too large"));  // no number could say how many there are
}

// Catches a number that becomes a lane which is none, whatever the form of the channels.
TEST(PlanJsonTest, LanesAreTwo) {
  for (const char* const lane : {"2", "7", "256", "4294967296"}) {
    const std::string why = fmt::format("{} is too large, the limit is 1", lane);
    EXPECT_THAT(ErrorOf(SmallWith("\"lane\": 0", fmt::format("\"lane\": {}", lane))),
                AllOf(StartsWith("p.json:"), HasSubstr("/channels/0/lane: " + why)));
    EXPECT_THAT(ErrorOf(ColumnsWith("\"lane\": [0,", fmt::format("\"lane\": [0, {},", lane))),
                AllOf(StartsWith("p.json:"), HasSubstr("/channels/lane/1: " + why)));
  }
}

// Numbers of a column are taken past the parser: catches a form of number, or of white space, that
// only one of the two ways reads, and a place that is counted in one of them only.
TEST(PlanJsonTest, ColumnsTakeWhatJsonAllows) {
  const Plan plan = *Read(Columns());
  for (const char* const separator : {" , ", ",\n\t", "\r\n,\r\n", ",   "}) {
    std::string text = Columns();
    for (size_t at = 0; (at = text.find(',', at)) != std::string::npos;) {
      text.replace(at, 1, separator);
      at += std::string(separator).size();
    }
    const Result<Plan> read = Read(text);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(*read, plan);
  }
  EXPECT_EQ(*Read(ColumnsWith("\"from\": [", "\"from\": [ \n ")), plan);
  EXPECT_EQ(*Read(ColumnsWith("\"columns\": {", "\"columns\": { \"x-a\": [1, [2]],")), plan);
}

// Pieces of the file end anywhere: catches a number, or a place, that is cut there.
TEST(PlanJsonTest, ColumnsAcrossPieces) {
  const Plan plan = *Read(Columns());
  for (size_t spaces = 65'300; spaces < 65'560; ++spaces) {
    const Result<Plan> read = Read(std::string(spaces, ' ') + Columns());
    ASSERT_TRUE(read.ok()) << spaces << ": " << read.status().ToString();
    ASSERT_EQ(*read, plan) << spaces;
  }
  EXPECT_THAT(ErrorOf(std::string(70'000, '\n') + SmallWith("\"root\"", "\"rot\"")),
              StartsWith("p.json:70002:"));
}

TEST(PlanJsonTest, SaysWhereColumnsAreWrong) {
  const std::string round = "\"round\": [";
  EXPECT_THAT(ErrorOf(ColumnsWith(round, round + "-3,")),
              AllOf(StartsWith("p.json:15:"),
                    HasSubstr("/programs/0/columns/round/0: expected an integer from 0 to "
                              "4294967294, found -3")));
  EXPECT_THAT(ErrorOf(ColumnsWith(round, round + "0, 1.0,")),
              HasSubstr("/programs/0/columns/round/1: expected an integer"));
  EXPECT_THAT(ErrorOf(ColumnsWith(round, round + "0, 1,null,")), HasSubstr("/round/2: expected"));
  EXPECT_THAT(ErrorOf(ColumnsWith(round, round + "4294967296,")),
              HasSubstr("/round/0: 4294967296 is too large"));
  EXPECT_THAT(ErrorOf(ColumnsWith(round, round + "\"a\",")), HasSubstr("found string"));
  EXPECT_THAT(ErrorOf(ColumnsWith(round, round + "[],")),
              HasSubstr("/round/0: expected an element"));
  EXPECT_THAT(ErrorOf(ColumnsWith(round, round + "01,")), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf(ColumnsWith(round, round + "1 2,")), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf(ColumnsWith(round, round + ",")), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf(ColumnsWith(round, "\"round\": [1,], \"x-r\": [")), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf(ColumnsWith(round, "\"round\": 7, \"x-r\": [")),
              HasSubstr("/columns/round: expected an array, found 7"));
  EXPECT_THAT(ErrorOf(ColumnsWith("\"block\": [", "\"block\": [4294967295,")),
              HasSubstr("/block/0: 4294967295 is too large"));
  EXPECT_THAT(ErrorOf(ColumnsWith(round, round + "1,")),
              HasSubstr("/programs/0/columns: 'round' has "));
  EXPECT_THAT(ErrorOf(ColumnsWith("\"after\": [", "\"after\": [0,")),
              HasSubstr("the sum of 'after_count'"));
  EXPECT_THAT(ErrorOf(ColumnsWith("\"op\": \"", "\"op\": \"x")),
              HasSubstr("/op: expected a string of letters s (send), r (recv) and c (combine), "
                        "found another at 0"));
  EXPECT_THAT(ErrorOf(ColumnsWith("\"to\": [", "\"to\": [0,")), HasSubstr("/channels: 'to' has "));
  EXPECT_THAT(ErrorOf(ColumnsWith("\"columns\"", "\"ops\": [], \"columns\"")),
              HasSubstr("/programs/0: keys 'ops' and 'columns' exclude each other"));
  EXPECT_THAT(ErrorOf(ColumnsWith("\"columns\"", "\"x-columns\"")),
              HasSubstr("/programs/0: key 'ops' or 'columns' is missing"));
  EXPECT_THAT(ErrorOf(ColumnsWith("\"channels\": {", "\"channels\": 7, \"x-c\": {")),
              HasSubstr("/channels: expected an object or an array, found 7"));
}

// A parser that recurses, or a handler that keeps what it skips, would fall over here.
TEST(PlanJsonTest, DeepNestingIsAnError) {
  EXPECT_THAT(ErrorOf(std::string(1'000'000, '[')),
              HasSubstr("expected an object, found an array"));
  EXPECT_THAT(ErrorOf("{\"x-deep\": " + std::string(1'000'000, '[')),
              HasSubstr("nested deeper than 64"));
  EXPECT_THAT(ErrorOf("{\"programs\": [" + std::string(1'000'000, '{')), HasSubstr("not JSON"));
}

// The parser would keep each as a whole, for no reader. Catches files that take seconds and
// gigabytes to be refused, and columns that count as one value.
TEST(PlanJsonTest, ValuesThatNeverEndAreErrors) {
  constexpr size_t kBytes = size_t{5} << 20;
  for (const char byte : {'a', ' '}) {
    const std::string many(kBytes, byte);
    for (const std::string begin : {"{\"x-a\": \"", "{\"", "\""})
      EXPECT_THAT(ErrorOf(begin + many + "\""), HasSubstr("more than 4194304 bytes")) << begin;
  }
  for (const std::string begin : {"", "{", "{\"x-a\":"})
    EXPECT_THAT(ErrorOf(begin + std::string(kBytes, ' ')), HasSubstr("more than 4194304 bytes"));
  EXPECT_THAT(ErrorOf("{\"x-a\":" + std::string(kBytes, '1')), HasSubstr("more than 4194304"));
  std::string numbers;
  while (numbers.size() < kBytes) numbers += "1,";
  EXPECT_THAT(ErrorOf(ColumnsWith("\"round\": [", "\"round\": [" + numbers)),
              HasSubstr("'round' has "));
  EXPECT_THAT(ErrorOf(ColumnsWith("\"op\": \"", "\"op\": \"" + std::string(kBytes, 's'))),
              HasSubstr("/programs/0/columns: '"));
  std::istringstream endless("{\"" + std::string(kBytes, 'a') +
                             "\": 1, \"format\": \"prepost.plan\"}");
  EXPECT_EQ(FormatOf(endless), "");
}

// Cut anywhere, changed anywhere: an error or a plan, never a crash.
TEST(PlanJsonTest, SurvivesDamage) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (const std::string& text : {Small(), Columns()}) {
    for (size_t length = 0; length + 2 < text.size(); ++length)
      EXPECT_FALSE(Read(text.substr(0, length)).ok());
    for (int i = 0; i < 3000; ++i) {
      std::string damaged = text;
      for (uint32_t change = 0; change <= random() % 4; ++change) {
        damaged[random() % damaged.size()] = static_cast<char>(random());
      }
      const Result<Plan> plan = Read(damaged);
      if (!plan.ok()) {
        EXPECT_THAT(plan.status().where(), StartsWith("p.json:"));
        EXPECT_THAT(plan.status().message(), ::testing::Not(IsEmpty()));
      }
    }
  }
}

}  // namespace
}  // namespace prepost::plan_json_test
