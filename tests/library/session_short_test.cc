// SPDX-License-Identifier: Apache-2.0
//
// Short messages of groups, and when the root hears that they are everywhere. Members are threads
// of this process.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "prepost/prepost.h"
#include "tests/support/sessions.h"

namespace prepost::session_test {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::GroupLog;
using test::Members;
using test::Sessions;

// Catches a short message that waits for the session's thread, which here does nothing, and a
// Poll() that goes on waiting though it has called back.
TEST(SessionShortTest, AShortMessageLeavesInSend) {
  SessionOptions options;
  options.own_thread = false;
  options.waiting = Waiting::kPolling;
  Sessions sessions(2, options);
  const std::vector<uint32_t> members = Members(2);
  sessions.Create(1, members, 0);
  const auto due = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto has_opened = [&](uint32_t member) { return sessions.LogOf(member, 1).opened > 0; };
  while (!(has_opened(0) && has_opened(1)) && std::chrono::steady_clock::now() < due) {
    for (const uint32_t member : members) ASSERT_TRUE(sessions[member].Poll(milliseconds(1)).ok());
  }
  const std::vector<std::byte> message = Bytes(1000, 1);
  for (size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(sessions[0].Send(1, message.data(), message.size()).ok());
    while (sessions.LogOf(1, 1).completed.size() < i && std::chrono::steady_clock::now() < due)
      ASSERT_TRUE(sessions[1].Poll(milliseconds(10)).ok());
    EXPECT_EQ(sessions.LogOf(1, 1).completed.size(), i);
    EXPECT_EQ(sessions.LogOf(0, 1).completed.size(), i - 1) << "called back in Send()";
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(sessions[0].Poll(std::chrono::seconds(30)).ok());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
    EXPECT_EQ(sessions.LogOf(0, 1).completed.size(), i);
  }
}

// At first nothing is known of a network, and it may be slow. Catches messages of 64 KiB that go
// down a tree for ever, each several times over the root's port.
TEST(SessionShortTest, OverASlowNetworkPlansMoveWhatElseWouldBeShort) {
  constexpr size_t kShortMax = 64 << 10;
  SessionOptions options;
  options.local_copies = false;
  options.paths.pace = 5e6;
  Sessions sessions(8, options);
  const std::vector<uint32_t> members = Members(8);
  sessions.Create(1, members, 0, {.notify_delivered = true});
  const std::vector<std::byte> message = Bytes(kShortMax, 1);
  const auto is_by_plan = [&] {
    const std::vector<PeerSpeed> speeds = sessions[0].Speeds(1).value();
    return std::ranges::any_of(speeds, [](const PeerSpeed& it) { return it.bytes >= kShortMax; });
  };
  size_t sent = 0;
  while (!is_by_plan()) {
    ASSERT_LT(sent, 200u);
    ASSERT_TRUE(sessions[0].Send(1, message.data(), message.size()).ok());
    ++sent;
    ASSERT_TRUE(sessions.Wait(
        1, {0}, [sent](const GroupLog& log) { return log.delivered.size() == sent; }));
  }
  EXPECT_GT(sent, 4u);  // the first ones were short
}

// A short message is sent, and its group fails, between two turns of the root. Catches its
// `complete` behind `failed`, when its memory is the program's again.
TEST(SessionShortTest, NothingIsCalledAfterFailed) {
  SessionOptions options;
  options.local_copies = false;
  Sessions sessions(2, options, nullptr,
                    [](SessionOptions& own) { own.own_thread = own.self != 0; });
  bool has_failed = false;
  GroupCallbacks root = sessions.Callbacks(0, 1);
  root.failed = [&](const Status&, const FailedMembers&) { has_failed = true; };
  root.complete = [&](uint64_t, void*, uint64_t) { EXPECT_FALSE(has_failed); };
  GroupCallbacks other = sessions.Callbacks(1, 1);
  other.incoming = [](uint64_t, uint64_t) { return nullptr; };
  ASSERT_TRUE(sessions[0].CreateGroup(1, {0, 1}, 0, {}, root).ok());
  ASSERT_TRUE(sessions[1].CreateGroup(1, {0, 1}, 0, {}, other).ok());
  const auto due = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (sessions.LogOf(0, 1).opened == 0 && std::chrono::steady_clock::now() < due)
    ASSERT_TRUE(sessions[0].Poll(milliseconds(1)).ok());
  const std::vector<std::byte> message = Bytes(10, 1);
  ASSERT_TRUE(sessions[0].Send(1, message.data(), message.size()).ok());
  ASSERT_TRUE(sessions.Wait(1, {1}, [](const GroupLog& log) { return !log.failures.empty(); }));
  std::this_thread::sleep_for(milliseconds(100));  // the root's keeper has heard of it
  while (!has_failed && std::chrono::steady_clock::now() < due)
    ASSERT_TRUE(sessions[0].Poll(milliseconds(1)).ok());
  EXPECT_TRUE(has_failed);
}

// Catches a root that hears of the last messages after it has heard that all have left, and counts
// them as lost for ever.
TEST(SessionShortTest, AllMessagesAreDeliveredBeforeAGroupIsClosed) {
  const std::vector<uint32_t> members = Members(4);
  for (const bool local_copies : {true, false}) {
    SessionOptions options;
    options.local_copies = local_copies;
    Sessions sessions(4, options);
    const std::vector<std::byte> message = Bytes(200'000, 1);
    for (uint64_t group = 0; group < 30; ++group) {
      const size_t bytes = group % 2 == 0 ? 1000 : message.size();
      SCOPED_TRACE(testing::Message() << local_copies << ", group " << group << ", " << bytes);
      std::atomic<size_t> delivered = 0, delivered_at_close = 0;
      for (const uint32_t member : members) {
        GroupCallbacks callbacks = sessions.Callbacks(member, group);
        if (member == 0) {
          callbacks.delivered = [&](uint64_t number) { EXPECT_EQ(number, delivered++); };
          callbacks.closed = [&, closed = callbacks.closed] {
            delivered_at_close = delivered.load();
            closed();
          };
        }
        ASSERT_TRUE(sessions[member]
                        .CreateGroup(group, members, 0, {.notify_delivered = true}, callbacks)
                        .ok());
      }
      for (int i = 0; i < 10; ++i) ASSERT_TRUE(sessions[0].Send(group, message.data(), bytes).ok());
      for (const uint32_t member : members) ASSERT_TRUE(sessions[member].DestroyGroup(group).ok());
      ASSERT_TRUE(
          sessions.Wait(group, members, [](const GroupLog& log) { return log.closed > 0; }));
      EXPECT_EQ(delivered_at_close, 10u);
    }
  }
}

}  // namespace
}  // namespace prepost::session_test
