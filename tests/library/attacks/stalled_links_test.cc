// SPDX-License-Identifier: Apache-2.0
//
// Connections that stay open and carry nothing any more, as a proxy's or a tunnel's may: it
// acknowledges what it gets, and keeps it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "prepost/prepost.h"
#include "tests/support/relayed_sessions.h"

namespace prepost::stalled_links_test {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::GroupLog;
using test::Members;
using test::RelayedBytes;
using test::RelayedLink;
using test::RelayedSessions;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr milliseconds kFailureMax{1000};
/// Twice what is promised, as other tests run beside these.
constexpr milliseconds kFailureTime = 2 * kFailureMax;

SessionOptions Options() {
  SessionOptions options;
  options.failure_max = kFailureMax;
  return options;
}

struct Stall {
  const char* name;
  bool is_blocks;     ///< connections of blocks, or of credits and notes
  bool to_connector;  ///< member 1
  bool is_sealed = false;
  bool is_eager = false;  ///< instead, the connection of short messages
};

class StalledLinksTest : public testing::TestWithParam<Stall> {};

INSTANTIATE_TEST_SUITE_P(Ways, StalledLinksTest,
                         testing::Values(Stall{"blocks", true, true}, Stall{"notes", false, false},
                                         Stall{"sealedBlocks", true, true, true},
                                         Stall{"sealedNotes", false, false, true},
                                         Stall{"eager", false, true, false, true},
                                         Stall{"eagerReports", false, false, false, true},
                                         Stall{"sealedEager", false, true, true, true}),
                         [](const auto& it) { return it.param.name; });

TEST_P(StalledLinksTest, WhileMessagesMove) {
  std::atomic<bool> is_stalled = false;
  SessionOptions options = Options();
  options.local_copies = false;
  RelayedSessions sessions(
      3, options, [&](RelayedLink& link, bool to_connector, RelayedBytes& bytes) {
        const bool is_it = GetParam().is_eager
                               ? link.purpose == LinkPurpose::kEager
                               : link.purpose == LinkPurpose::kData &&
                                     (link.lane == Lane::kBlocks) == GetParam().is_blocks;
        if (is_it && to_connector == GetParam().to_connector && is_stalled) bytes.clear();
      });
  const std::vector<uint32_t> members = Members(3);
  GroupOptions group = {.algorithm = "chain", .block_bytes = 65536};
  if (GetParam().is_eager) group = {};
  group.seal = GetParam().is_sealed;
  sessions->Create(1, members, 0, group);
  const std::vector<std::byte> message = Bytes(GetParam().is_eager ? 1000 : 1 << 20, 1);
  test::ExpectDelivery(*sessions, 1, members, 0, {message, message});
  is_stalled = true;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE((*sessions)[0].Send(1, message.data(), message.size()).ok());
  ASSERT_TRUE(
      sessions->Wait(1, members, [](const GroupLog& log) { return !log.failures.empty(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kFailureTime);
  for (const uint32_t member : members) {
    const GroupLog log = sessions->LogOf(member, 1);
    EXPECT_THAT(log.failures.front(),
                AnyOf(HasSubstr("connection to member 0"), HasSubstr("connection to member 1")));
    EXPECT_THAT(log.failed_member, AnyOf(0u, 1u));
  }
}

// Catches blocks, records or short messages that still need the connection, and questions over it
// which nobody hears.
TEST(StalledLinksTest, WhereMemoryIsSharedNothingNeedsThem) {
  std::atomic<bool> is_stalled = false;
  RelayedSessions sessions(3, Options(), [&](RelayedLink& link, bool, RelayedBytes& bytes) {
    const bool is_data = link.purpose == LinkPurpose::kData || link.purpose == LinkPurpose::kEager;
    if (is_data && is_stalled) bytes.clear();
  });
  const std::vector<uint32_t> members = Members(3);
  sessions->Create(1, members, 0);
  ASSERT_TRUE(sessions->Wait(1, members, [](const GroupLog& log) { return log.opened > 0; }));
  if ((*sessions)[0].Paths(1)->memory < 2) GTEST_SKIP() << "memory cannot be shared here";
  const std::vector<std::byte> message = Bytes(1 << 20, 1), small = Bytes(1000, 2);
  size_t sent = 0;
  const auto deliver = [&](const std::vector<std::byte>& it) {
    ASSERT_TRUE((*sessions)[0].Send(1, it.data(), it.size()).ok());
    ++sent;
    ASSERT_TRUE(sessions->Wait(1, members,
                               [&](const GroupLog& log) { return log.messages.size() == sent; }));
    for (const uint32_t member : members)
      EXPECT_TRUE(sessions->LogOf(member, 1).messages.back() == it) << member;
  };
  deliver(message);
  is_stalled = true;
  deliver(small);
  deliver(message);
  std::this_thread::sleep_for(2 * kFailureMax);
  deliver(message);
  deliver(small);
}

TEST(StalledLinksTest, WhileMembersIntroduceThemselves) {
  RelayedSessions sessions(3, Options(), [&](RelayedLink& link, bool, RelayedBytes& bytes) {
    if (link.purpose == LinkPurpose::kData && link.lane == Lane::kBlocks) bytes.clear();
  });
  const auto begin = std::chrono::steady_clock::now();
  sessions->Create(1, Members(3), 0, {.algorithm = "chain"});
  ASSERT_TRUE(
      sessions->Wait(1, Members(3), [](const GroupLog& log) { return !log.failures.empty(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kFailureTime);
}

// A member whose callback takes its time answers nothing on its connections for data, and has not
// failed.
class SlowCallbackTest : public testing::TestWithParam<uint64_t> {};

INSTANTIATE_TEST_SUITE_P(Bytes, SlowCallbackTest, testing::Values(1000, 1 << 20));

TEST_P(SlowCallbackTest, IsNoStall) {
  RelayedSessions sessions(3, Options(), [](RelayedLink&, bool, RelayedBytes&) {});
  const std::vector<uint32_t> members = Members(3);
  std::atomic<bool> is_sleepy = true;
  for (const uint32_t member : members) {
    GroupCallbacks callbacks = sessions->Callbacks(member, 1);
    callbacks.complete = [&, member, complete = callbacks.complete](uint64_t number, void* memory,
                                                                    uint64_t bytes) {
      if (member == 1 && is_sleepy.exchange(false)) std::this_thread::sleep_for(3 * kFailureMax);
      complete(number, memory, bytes);
    };
    GroupOptions group = {.algorithm = "chain", .block_bytes = 65536};
    if (GetParam() <= 1000) group = {};  // short ones, of which many wait
    ASSERT_TRUE((*sessions)[member].CreateGroup(1, members, 0, group, callbacks).ok());
  }
  const std::vector<std::byte> message = Bytes(GetParam(), 1);
  test::ExpectDelivery(*sessions, 1, members, 0, {message, message, message});
}

}  // namespace
}  // namespace prepost::stalled_links_test
