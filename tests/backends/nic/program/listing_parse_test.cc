// SPDX-License-Identifier: Apache-2.0
//
// A listing read back gives the bytes that were listed, for every small plan; what is not a listing
// is refused with its place.
#include "backends/nic/program/listing_parse.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>

#include "backends/nic/program/listing.h"
#include "backends/nic/program/lower.h"
#include "backends/nic/program/queue_program_file.h"
#include "backends/nic/validate/object_table.h"
#include "compiler/schedules/schedule.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/sample.h"

namespace prepost::nic::listing_parse_test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

const DeviceProfile kTinyRings = {.name = "tiny", .sq_wqebbs = 16, .rq_wqes = 16};
const LowerOptions kWays[] = {
    {},
    {.profile = kTinyRings},
    {.mode = LoweringMode::kManaged},
    {.mode = LoweringMode::kManaged, .masters = Masters::kLane, .profile = kTinyRings},
    {.mode = LoweringMode::kManaged, .masters = Masters::kQueue}};

Result<QueueProgram> Parse(const std::string& text) {
  std::istringstream in(text);
  return ParseListing(in, "list");
}

/// What hosts need beside the bytes.
std::vector<std::pair<uint32_t, uint32_t>> Needs(const QueueProgram& program) {
  std::vector<std::pair<uint32_t, uint32_t>> needs;
  for (const NodeProgram& node : program.nodes) {
    for (const QueuePair& qp : node.qps) {
      for (const SendEntry& it : qp.sends) {
        if (it.count != 0) needs.emplace_back(it.count, it.qp.value);
      }
    }
  }
  return needs;
}

void ExpectTheSame(const VerifiedPlan& plan, const LowerOptions& way) {
  const auto program = Lower(plan, way);
  if (!program.ok()) return;  // does not fit tiny rings
  const auto parsed = Parse(List(plan, *program));
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(ToBinary(*parsed), ToBinary(*program));
  EXPECT_EQ(Needs(*parsed), Needs(*program));
  ASSERT_EQ(parsed->nodes.size(), program->nodes.size());
  for (size_t i = 0; i < program->nodes.size(); ++i) {
    const Bindings bindings = ExampleBindings(program->nodes[i]);
    EXPECT_EQ(*MakeQueueObjects(parsed->nodes[i], bindings),
              *MakeQueueObjects(program->nodes[i], bindings));
  }
}

// An operand that the listing leaves out, rounds or shows modulo something.
TEST(ListingParseTest, EveryListingGivesItsBytes) {
  const std::vector<Spec> specs = test::AllSmallSpecs({.nodes_max = 5, .blocks_max = 3});
  test::Sample sample(test::ScheduleLabels(specs));
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    const VerifiedPlan plan = test::CompileOrDie(spec);
    for (const LowerOptions& way : kWays) ExpectTheSame(plan, way);
    ASSERT_FALSE(HasFailure()) << test::Label(spec);
  }
}

// More WQEs in one queue than its 16-bit index tells apart.
TEST(ListingParseTest, LongQueuesToo) {
  const VerifiedPlan plan = test::CompileOrDie({.nodes = 2,
                                                .message_bytes = 70000,
                                                .block_bytes = 1,
                                                .algorithm = "chain",
                                                .ready = *ParseReady("window=1")});
  ExpectTheSame(plan, kWays[0]);
  ExpectTheSame(plan, kWays[3]);
}

std::string Listing() {
  const VerifiedPlan plan = test::CompileOrDie({.nodes = 4,
                                                .message_bytes = 600,
                                                .block_bytes = 100,
                                                .algorithm = "binomial_pipeline",
                                                .ready = *ParseReady("window=1")});
  return List(plan, *Lower(plan, {.mode = LoweringMode::kManaged}));
}

// Ops, which no byte encodes.
TEST(ListingParseTest, OpsAreRead) {
  const VerifiedPlan plan = test::PlanOf(6, 4);
  for (const LowerOptions& way : kWays) {
    const auto program = Lower(plan, way);
    EXPECT_EQ(ToJson(*Parse(List(plan, *program))), ToJson(*program));
  }
}

// Damaged text is read or refused, never anything else; sanitizer builds see more.
TEST(ListingParseTest, DamageIsRefusedWithItsPlace) {
  const std::string text = Listing();
  test::Random random(test::TestSeed());
  SCOPED_TRACE(test::TestSeed());
  size_t refused = 0;
  constexpr size_t kRounds = 3000;
  for (size_t round = 0; round < kRounds; ++round) {
    std::string damaged = text;
    for (uint32_t i = random.Between(1, 3); i != 0; --i) {
      const size_t at = random.Below(damaged.size());
      switch (random.Below(4)) {
        case 0:
          damaged[at] = static_cast<char>(random.Below(256));
          break;
        case 1:
          damaged.erase(at, random.Between(1, 100));
          break;
        case 2:
          damaged.insert(at, damaged.substr(random.Below(damaged.size()), random.Below(100)));
          break;
        default:
          damaged.insert(at, std::to_string(random.Below(SIZE_MAX) * uint64_t{0x100000001}));
      }
    }
    const auto parsed = Parse(damaged);
    if (parsed.ok()) {
      EXPECT_FALSE(ToBinary(*parsed).empty());
      continue;
    }
    ++refused;
    EXPECT_FALSE(parsed.status().message().empty());
    EXPECT_THAT(parsed.status().where(), testing::StartsWith("list:"));
  }
  EXPECT_GT(refused, kRounds / 2);
}

TEST(ListingParseTest, SaysWhatWasExpectedWhere) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = Listing();
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return Parse(text.replace(at, from.size(), to)).status().ToString();
  };
  EXPECT_EQ(Parse("").status().ToString(), "list: an empty file is no listing");
  EXPECT_EQ(Parse("plan").status().ToString(), "list:1:1: expected \"queues: \", found \"plan\"");
  EXPECT_EQ(with("RNR retries: 7", "RNR retries: 8"),
            "list:1:70: expected a number up to 7, found \"8\"");
  EXPECT_THAT(with("in blocks of 100", "in blocks of 0"), HasSubstr("list:1: blocks have no"));
  EXPECT_THAT(with("sq 000000", "sq 000001"), HasSubstr("expected \"000000  \""));
  EXPECT_THAT(with("SEND_EN QP 0<>", "SEND_EN QP 9<>"), HasSubstr("the name of a QP of the node"));
  EXPECT_THAT(with("WAIT receives", "WAIT repeats"), HasSubstr("the name of a CQ of the node"));
  EXPECT_THAT(with("ring: 2", "ring: 3"),
              MatchesRegex("list:[0-9]+:[0-9]+: expected a power of two, found \"3\""));
  EXPECT_THAT(with("rings: 4", "rings: 5"), HasSubstr("expected a power of two, found \"5 and "));
  // What is wrong is the head of the node, not every line below it.
  const std::string text = Listing();
  const auto line =
      std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(text.find("node 1\n")), '\n') +
      1;
  for (const char* node : {"0", "4"}) {
    EXPECT_EQ(with("node 1\n", fmt::format("node {}\n", node)),
              fmt::format("list:{}:6: expected node 1 of the QPs below, found \"{}\"", line, node));
  }
  EXPECT_THAT(with("  QP 1<>", "  QP 2<>"), HasSubstr("expected node 2 of the QPs below"));
  const std::string other_lane = std::regex_replace(text, std::regex("([01]) blocks"), "$1 lane 2");
  EXPECT_THAT(Parse(other_lane).status().ToString(),
              HasSubstr("expected \"blocks\" or \"credits\", found \"lane 2: "));
}

// What editors and people leave in a text; line numbers are those of the file.
TEST(ListingParseTest, EmptyLinesNotesAndCarriageReturnsArePassedOver) {
  const std::string text = Listing();
  std::string noted = "# by hand\r\n";
  for (const char c : text)
    noted += c == '\n' ? std::string("\r\n\n  # note\n") : std::string(1, c);
  const auto parsed = Parse(noted);
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(*parsed, *Parse(text));
  EXPECT_THAT(Parse("# one\n\nplan").status().ToString(), testing::StartsWith("list:3:1: "));
}

}  // namespace
}  // namespace prepost::nic::listing_parse_test
