// SPDX-License-Identifier: Apache-2.0
//
// What finding waits and rounds costs, and what a send requires of a block that its rank has
// received several times.
#include "ir/exchange/goal_rounds.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "ir/exchange/goal_messages.h"
#include "ir/exchange/goal_text.h"

namespace prepost::goal_rounds_test {
namespace {

using ::testing::HasSubstr;

/// Of a text whose messages carry block 0 alone, if `ranges` are not others.
Result<GoalMessages> Find(const std::string& text, const GoalBudget& budget = {},
                          const GoalRange& range = {}) {
  std::istringstream in(text);
  const Result<GoalFile> file = ReadGoalText(in, "x.goal");
  if (!file.ok()) return file.status();
  Result<GoalMessages> messages = FindGoalMessages(*file, CollectiveKind::kAllreduce, budget);
  if (!messages.ok()) return messages;
  const std::vector<GoalRange> ranges(messages->messages.size(), range);
  PREPOST_RETURN_IF_ERROR(FindGoalRounds(*file, ranges, &*messages, budget));
  return messages;
}

/// Two ranks that exchange what they have of a block so many times.
std::string Exchanges(int times) {
  std::string text = "num_ranks 2\n";
  for (int rank = 0; rank < 2; ++rank) {
    text += fmt::format("rank {} {{\n", rank);
    for (int i = 0; i < times; ++i) {
      text +=
          fmt::format("s{0}: send 8b to {1}\nr{0}: recv 8b from {1}\nc{0}: calc 1\n", i, 1 - rank);
      text += fmt::format("c{0} requires r{0}\n", i);
      if (i > 0) text += fmt::format("s{} requires c{}\n", i, i - 1);
    }
    text += "}\n";
  }
  return text;
}

/// A rank that combines what all others send it, one after the other, and sends each what it has.
std::string Star(int ranks) {
  std::string text = fmt::format("num_ranks {}\nrank 0 {{\n", ranks);
  for (int peer = 1; peer < ranks; ++peer) {
    text += fmt::format("r{0}: recv 8b from {0}\nc{0}: calc 1\nc{0} requires r{0}\n", peer);
    if (peer > 1) text += fmt::format("c{} requires c{}\n", peer, peer - 1);
  }
  for (int peer = 1; peer < ranks; ++peer)
    text += fmt::format("s{0}: send 8b to {0}\ns{0} requires c{1}\n", peer, ranks - 1);
  for (int rank = 1; rank < ranks; ++rank)
    text += fmt::format("}}\nrank {} {{\nsend 8b to 0\nrecv 8b from 0\n", rank);
  return text + "}\n";
}

// Catches walks over all receives of a block for each of its sends: k * k / 2 here, for k sends.
TEST(GoalRoundsTest, BlocksThatAreSentManyTimesCostNoMore) {
  uint64_t few = 0;
  for (const int times : {100, 3200}) {
    const Result<GoalMessages> found = Find(Exchanges(times));
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    const uint64_t per_exchange = found->steps / static_cast<uint64_t>(times);
    EXPECT_EQ(found->messages.back().round, static_cast<uint32_t>(times) - 1);
    if (few == 0) few = per_exchange;
    EXPECT_LE(per_exchange, few + 1);
  }
  EXPECT_LE(few, 40u);
}

// What its sends waited for is known of each send: catches lists of it that become edges of graphs.
TEST(GoalRoundsTest, WaitsAreWithoutWhatSendsWaitedFor) {
  const Result<GoalMessages> found = Find(Exchanges(50));
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  for (const auto& waits : found->waits) EXPECT_LE(waits.size(), 1u);
}

// Catches texts for which memory or time is not bounded, and a bound that counts the size of a
// text.
TEST(GoalRoundsTest, WhatWaitsForManyPeersHasABudget) {
  const GoalBudget tight = {.per_op = 64, .free_ops = 0};
  EXPECT_TRUE(Find(Exchanges(2000), tight).ok());
  EXPECT_TRUE(Find(Star(8), tight).ok());
  EXPECT_TRUE(Find(Star(400)).ok());
  EXPECT_THAT(
      Find(Star(400), tight).status().ToString(),
      testing::ContainsRegex("x.goal:[0-9]+: too much that waits for too many peers at once"));
  // Blocks of ranges count, too.
  EXPECT_TRUE(Find(Exchanges(20), tight, {.count = 8}).ok());
  EXPECT_THAT(Find(Exchanges(20), tight, {.count = 8000}).status().ToString(),
              HasSubstr("too much that waits"));
}

/// Rank 0 receives block 0 from ranks 1, 2 and 3, in this order, and combines it, but for `taken`,
/// the place of one that replaces what it has; then sends it to rank 4, which requires those of
/// `required`.
std::string SendAfter(const std::vector<int>& required, int taken = 0) {
  std::string text = "num_ranks 5\nrank 0 {\n";
  for (int peer = 1; peer <= 3; ++peer) {
    text += fmt::format("r{0}: recv 8b from {0}\n", peer);
    if (peer == taken) continue;
    text += fmt::format("c{0}: calc 1\nc{0} requires r{0}\n", peer);
    if (peer > 1) text += fmt::format("c{} irequires r{}\n", peer, peer - 1);
  }
  text += "s: send 8b to 4\n";
  for (const int peer : required)
    text += fmt::format("s requires {}{}\n", peer == taken ? 'r' : 'c', peer);
  for (int peer = 1; peer <= 3; ++peer) text += fmt::format("}}\nrank {} {{\nsend 8b to 0\n", peer);
  return text + "}\nrank 4 {\nr: recv 8b from 0\nc: calc 1\nc requires r\n}\n";
}

/// The round of rank 0's send, and of what it receives, or the error.
std::string RoundsOf(const std::string& text) {
  const Result<GoalMessages> found = Find(text);
  if (!found.ok()) return found.status().ToString();
  std::string rounds = fmt::format("{} after", found->messages[0].round);
  for (size_t m = 1; m < found->messages.size(); ++m)
    rounds += fmt::format(" {}", found->messages[m].round);
  return rounds;
}

// A send comes before what it does not require. Catches prefixes that are off by one, those of all
// channels that are taken for one, and receives before one that replaces them.
TEST(GoalRoundsTest, SendsComeBeforeWhatTheyDoNotRequire) {
  EXPECT_EQ(RoundsOf(SendAfter({})), "0 after 0 1 2");
  EXPECT_EQ(RoundsOf(SendAfter({1})), "1 after 0 1 2");
  EXPECT_EQ(RoundsOf(SendAfter({1, 2})), "2 after 0 1 2");
  EXPECT_EQ(RoundsOf(SendAfter({1, 2, 3})), "3 after 0 1 2");
  EXPECT_EQ(RoundsOf(SendAfter({2})),
            "x.goal:14: this send of block 0 requires what comes in line 7, and not what comes in "
            "line 4, which its rank has before");
  EXPECT_THAT(RoundsOf(SendAfter({1, 3})),
              HasSubstr("comes in line 11, and not what comes in line 7"));
  // What rank 2 sends replaces what rank 1 sent.
  EXPECT_EQ(RoundsOf(SendAfter({2}, /*taken=*/2)), "2 after 0 1 2");
  EXPECT_EQ(RoundsOf(SendAfter({2, 3}, /*taken=*/2)), "3 after 0 1 2");
  EXPECT_THAT(RoundsOf(SendAfter({3}, /*taken=*/2)), HasSubstr("and not what comes in line 4"));
}

}  // namespace
}  // namespace prepost::goal_rounds_test
