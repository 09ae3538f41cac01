// SPDX-License-Identifier: Apache-2.0
//
// Members that mean different things by one group.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "prepost/prepost.h"
#include "runtime/group/group_key.h"
#include "runtime/group/hello.h"
#include "runtime/session/group_terms.h"
#include "runtime/transport/tcp/tcp_address.h"
#include "tests/support/random.h"
#include "tests/support/sessions.h"

namespace prepost::terms_test {
namespace {

using test::GroupLog;
using test::Members;
using test::Random;
using test::Sessions;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSecret = "a secret that a stranger has learnt";

// Each member says whom it holds for the root, or in which order the members are. Catches roots
// that wait for each other, or for members that wait for another one, until connect_max.
TEST(TermsTest, MembersThatDifferHearOfItAtOnce) {
  struct Word {
    std::vector<uint32_t> members;
    uint32_t root;
  };
  struct Case {
    std::string name;
    std::vector<Word> words;  // by member
    std::string cause;        // which one of them hears, at least
  };
  const std::vector<uint32_t> three = {0, 1, 2};
  const std::vector<Case> cases = {
      {"two roots", {{{0, 1}, 0}, {{0, 1}, 1}}, "with another root"},
      {"each is root", {{three, 0}, {three, 1}, {three, 2}}, "with another root"},
      {"in a circle", {{three, 0}, {three, 2}, {three, 1}}, "with another root"},
      {"root of one", {{three, 0}, {three, 1}, {three, 1}}, "with another root"},
      {"one elsewhere", {{three, 0}, {three, 0}, {three, 1}}, "with another root"},
      {"order of two", {{{0, 1}, 0}, {{1, 0}, 0}}, "with its members in another order"},
      {"order of three", {{three, 0}, {three, 0}, {{2, 1, 0}, 0}}, "members in another order"},
      {"both", {{three, 0}, {{1, 0, 2}, 1}, {three, 0}}, "members in another order"}};
  for (const Case& it : cases) {
    SCOPED_TRACE(it.name);
    const auto members = static_cast<uint32_t>(it.words.size());
    Sessions sessions(members);
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t member = 0; member < members; ++member) {
      const Word& word = it.words[member];
      const GroupCallbacks callbacks = sessions.Callbacks(member, 1);
      ASSERT_TRUE(sessions[member].CreateGroup(1, word.members, word.root, {}, callbacks).ok());
    }
    ASSERT_TRUE(sessions.Wait(1, Members(members),
                              [](const GroupLog& log) { return log.failures.size() == 1; }));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
    std::string all;
    for (uint32_t member = 0; member < members; ++member)
      all += sessions.LogOf(member, 1).failures.front() + "\n";
    EXPECT_THAT(all, HasSubstr(it.cause));
    EXPECT_THAT(all, Not(HasSubstr("closed")));
  }
}

// Whatever members say of a group that differs, and whenever they create it: all hear of it soon,
// and the next group of the same number forms. Catches members that wait for a root that has heard
// of it, or that is none, and the news of a group that ends the next one.
TEST(TermsTest, WhateverDiffersAllHearOfItSoonAndTheNextGroupForms) {
  Random random(test::TestSeed());
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const auto count = static_cast<uint32_t>(2 + random.Below(4));
    const std::vector<uint32_t> members = Members(count);
    const bool root_connects = random.Below(3) == 0;
    std::vector<std::vector<uint32_t>> orders(count, members);
    std::vector<uint32_t> roots(count, 0);
    GroupOptions common;
    common.root_connects = root_connects;
    if (root_connects) common.algorithm = "sequential";
    std::vector<GroupOptions> options(count, common);
    // One or two of them, or all, in one way each.
    for (uint64_t others = 1 + random.Below(count); others > 0; --others) {
      const uint64_t other = random.Below(count);
      switch (random.Below(4)) {
        case 0:
          std::swap(orders[other].front(), orders[other].back());
          break;
        case 1:
          roots[other] = static_cast<uint32_t>(1 + random.Below(count - 1));
          break;
        case 2:
          options[other].block_bytes = 1 + random.Below(3);
          break;
        default:
          options[other].seal = true;
      }
    }
    const auto is_first = [&](uint32_t member) {
      return orders[member] == orders[0] && roots[member] == roots[0] &&
             options[member].block_bytes == options[0].block_bytes &&
             options[member].seal == options[0].seal;
    };
    if (std::ranges::all_of(members, is_first)) continue;
    std::string words;
    for (const uint32_t member : members) {
      words += fmt::format("member {}: order {}, root {}, blocks {}, seal {}; ", member,
                           fmt::join(orders[member], ","), roots[member],
                           options[member].block_bytes, options[member].seal);
    }
    SCOPED_TRACE(words);
    Sessions sessions(count);
    for (const uint32_t member : members) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random.Below(100)));
      const Status created = sessions[member].CreateGroup(
          1, orders[member], roots[member], options[member], sessions.Callbacks(member, 1));
      ASSERT_TRUE(created.ok()) << created.ToString();
    }
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(
        sessions.Wait(1, members, [](const GroupLog& log) { return log.failures.size() == 1; }));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1500));
    for (const uint32_t member : members) {
      const std::string cause = sessions.LogOf(member, 1).failures.front();
      EXPECT_THAT(cause, AnyOf(HasSubstr("another"), HasSubstr("seals"))) << member;
      EXPECT_THAT(cause, Not(HasSubstr("closed"))) << member;
    }
    // One that has all of its own connections opens before others have theirs.
    std::vector<int> opened;
    for (const uint32_t member : members) opened.push_back(sessions.LogOf(member, 1).opened);
    for (const uint32_t member : members) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random.Below(100)));
      ASSERT_TRUE(
          sessions[member].CreateGroup(1, members, 0, {}, sessions.Callbacks(member, 1)).ok());
      sessions.Barrier(1, member);
    }
    EXPECT_TRUE(sessions.Wait(1, members, [](const GroupLog& log) {
      return log.passed == 1 || log.failures.size() == 2;
    }));
    for (const uint32_t member : members) {
      const GroupLog log = sessions.LogOf(member, 1);
      EXPECT_EQ(log.opened, opened[member] + 1)
          << member << ": " << fmt::format("{}", fmt::join(log.failures, "; "));
    }
  }
}

/// What `member` says to `link`, of a group with `terms`.
Refusal AnswerTo(const LinkName& link, const PlanHash& terms, const Address& member) {
  const Result<GroupKey> key = GroupKey::FromSecret(kSecret, "");
  int error = 0;
  const FileDescriptor fd =
      StartConnect(NumericAddress(member.host)->WithPort(member.port), &error);
  HelloConnector hello(*key, RandomNonce(), link, {.plan = terms});
  std::vector<std::byte> out = hello.Begin();
  while (hello.state() == HelloState::kTalking) {
    const auto wait = [&fd](short events) {
      pollfd polls[] = {{.fd = fd.get(), .events = events, .revents = 0}};
      return poll(polls, 1, 5000) == 1;
    };
    if (!out.empty() &&
        (!wait(POLLOUT) || send(fd.get(), out.data(), out.size(), MSG_NOSIGNAL) < 0))
      break;
    std::vector<std::byte> in(hello.wanted());
    size_t have = 0;
    while (have < in.size() && wait(POLLIN)) {
      const ssize_t got = recv(fd.get(), in.data() + have, in.size() - have, 0);
      if (got <= 0) break;
      have += static_cast<size_t>(got);
    }
    if (have < in.size()) break;
    out = hello.Take(in);
  }
  return hello.refusal();
}

// It has the secret, and its number is beyond the group. Catches a group that ends because of the
// terms of one that cannot be in it.
TEST(TermsTest, NobodyBeyondTheGroupEndsIt) {
  SessionOptions options;
  options.secret = kSecret;
  options.members = test::SessionAddresses(3);
  Sessions sessions(3, options);
  const std::vector<uint32_t> members = Members(3);
  for (const uint32_t member : {0u, 1u}) {
    ASSERT_TRUE(
        sessions[member].CreateGroup(1, members, 0, {}, sessions.Callbacks(member, 1)).ok());
  }
  for (const uint32_t to : {0u, 1u}) {
    for (const uint32_t beyond : {3u, 0xfffffff0u}) {
      const LinkName link = {
          .from = NodeId(beyond), .to = NodeId(to), .purpose = LinkPurpose::kControl};
      for (const uint32_t root : {beyond, to}) {
        const PlanHash terms = TermsOfGroup(1, members, NodeId(root), {}, "other");
        EXPECT_EQ(AnswerTo(link, terms, options.members[to]), Refusal::kUnexpected);
      }
    }
  }
  ASSERT_TRUE(sessions[2].CreateGroup(1, members, 0, {}, sessions.Callbacks(2, 1)).ok());
  EXPECT_TRUE(sessions.Wait(1, members, [](const GroupLog& log) { return log.opened == 1; }));
}

}  // namespace
}  // namespace prepost::terms_test
