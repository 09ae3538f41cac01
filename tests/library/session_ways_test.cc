// SPDX-License-Identifier: Apache-2.0
//
// Groups whose members are threads of this process, with messages that move in every way there is:
// over connections, from memory to memory, and over devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "prepost/prepost.h"
#include "tests/support/engines.h"
#include "tests/support/random.h"
#include "tests/support/sessions.h"

namespace prepost::session_ways_test {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::ExpectDelivery;
using test::GroupLog;
using test::Members;
using test::Patient;
using test::Sessions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// How messages move: over connections, from memory to memory, or over devices.
struct Way {
  std::string name;
  bool local_copies = true;
  bool is_sealed = false;
  test::Way device = {};  ///< its engine null: none

  friend void PrintTo(const Way& it, std::ostream* out) { *out << it.name; }
};

/// Devices are preposted that can be, and one of them is also driven.
std::vector<Way> AllWays() {
  std::vector<Way> ways = {{.name = "tcp", .local_copies = false},
                           {.name = "memory"},
                           {.name = "sealed", .is_sealed = true}};
  const auto is_one = [](const test::Way& way) {
    const test::Engine& engine = *way.engine;
    return !engine.device.empty() && way.mode == nic::LoweringMode::kInline &&
           (way.is_preposted || !engine.can_prepost() || engine.name == "emulated");
  };
  for (const test::Way& way : test::Ways(is_one)) {
    const char* const suffix = way.is_preposted ? "_preposted" : "_driven";
    ways.push_back({.name = way.engine->name + suffix, .device = way});
  }
  return ways;
}

/// What NICs' devices have in common, one of them shows.
std::vector<Way> WaysOfEvents() {
  std::vector<Way> ways = AllWays();
  std::erase_if(ways, [](const Way& way) {
    return way.device.engine != nullptr && way.device.engine->nics &&
           way.name != "emulated_preposted";
  });
  return ways;
}

class SessionWaysTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (engine() != nullptr) PREPOST_SKIP_IF_NOT_THERE(*engine());
  }
  static const test::Engine* engine() { return GetParam().device.engine; }
  static SessionOptions Options() {
    SessionOptions options;
    options.local_copies = GetParam().local_copies;
    return options;
  }
  static GroupOptions Group(GroupOptions options = {}) {
    options.seal = GetParam().is_sealed;
    if (engine() == nullptr) return options;
    options.device = engine()->device;
    options.executor = GetParam().device.is_preposted ? "offload" : "cpu";
    return options;
  }
};

class SessionEventsTest : public SessionWaysTest {};

// One group carries messages of any size from 0 bytes on. Catches sizes that are rounded to blocks,
// connections that depend on the number of blocks, and an order that is lost between messages.
TEST_P(SessionWaysTest, MessagesOfAllSizesInOrder) {
  for (const uint32_t nodes : {1u, 2u, 5u, 8u}) {
    const uint32_t root = nodes / 2;
    SCOPED_TRACE(testing::Message() << nodes << " nodes, root " << root);
    Sessions sessions(nodes, Options());
    const std::vector<uint32_t> members = Members(nodes);
    sessions.Create(7, members, root, Group());
    std::vector<std::vector<std::byte>> messages;
    for (const uint64_t bytes :
         {uint64_t{0}, uint64_t{1}, uint64_t{100}, uint64_t{16384}, uint64_t{16385}, uint64_t{0},
          uint64_t{1} << 20, uint64_t{3000001}, uint64_t{5}}) {
      messages.push_back(Bytes(bytes, bytes + nodes));
    }
    ExpectDelivery(sessions, 7, members, root, messages);
    for (const uint32_t member : members) EXPECT_TRUE(sessions[member].DestroyGroup(7).ok());
    EXPECT_TRUE(sessions.Wait(7, members, [](const GroupLog& log) { return log.closed == 1; }));
  }
}

// Short messages are under way together, and long ones come between them. Catches a short one that
// overtakes a long one or the other way round, one that is lost where its way changes, notices that
// are early, and a limit of what is short that is one off.
TEST_P(SessionWaysTest, ShortMessagesAmongLongOnesKeepTheirOrder) {
  test::Random random(test::TestSeed());
  const size_t count = engine() == nullptr ? 1000 : 40;
  for (const uint32_t nodes : {2u, 5u}) {
    SCOPED_TRACE(nodes);
    Sessions sessions(nodes, Patient(Options()));
    const std::vector<uint32_t> members = Members(nodes);
    sessions.Create(1, members, 1, Group({.notify_delivered = true}));
    std::vector<std::vector<std::byte>> messages;
    for (uint64_t i = 0; i < count; ++i) {
      const uint32_t kind = random.Below(count < 100 ? 10 : 60);
      const uint64_t bytes = kind == 0   ? random.Below(300'000)
                             : kind == 1 ? (64u << 10) + random.Below(2)
                             : kind < 5  ? random.Below(20'000)
                                         : random.Below(100);
      messages.push_back(Bytes(bytes, i));
    }
    ExpectDelivery(sessions, 1, members, 1, messages);
    ASSERT_TRUE(sessions.Wait(
        1, {1}, [&](const GroupLog& log) { return log.delivered.size() == messages.size(); }));
    std::vector<uint64_t> all(count);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sessions.LogOf(1, 1).delivered, all);
    for (const uint32_t member : members) EXPECT_TRUE(sessions[member].DestroyGroup(1).ok());
    EXPECT_TRUE(sessions.Wait(1, members, [](const GroupLog& log) { return log.closed == 1; }));
  }
}

// Where the library chooses who plays, it says whom it took and why, once. Catches a reason that
// stays with the choice, and one more for every message.
TEST(SessionNotesTest, OverADeviceTheySayWhoPlays) {
  Sessions sessions(2);
  sessions.Create(1, {0, 1}, 0, {.algorithm = "chain", .block_bytes = 100, .device = "emulated"});
  std::vector<std::vector<std::byte>> messages;
  for (const uint64_t bytes : {500u, 700u, 900u}) messages.push_back(Bytes(bytes, bytes));
  ExpectDelivery(sessions, 1, {0, 1}, 0, messages);
  for (const uint32_t member : {0u, 1u}) {
    EXPECT_THAT(sessions[member].Notes(1).value(),
                ElementsAre("executor offload: the plan fits device emulated"));
  }
}

// Groups with the same members and with others, at once, and one sends from its callbacks.
TEST_P(SessionWaysTest, GroupsOverlap) {
  Sessions sessions(4, Options());
  const std::vector<std::vector<uint32_t>> groups = {
      {0, 1, 2, 3}, {3, 2, 1, 0}, {0, 1, 2, 3}, {1, 3}, {2}};
  const std::vector<uint32_t> roots = {0, 1, 2, 3, 2};
  for (size_t g = 0; g < groups.size(); ++g) sessions.Create(g, groups[g], roots[g], Group());
  std::vector<std::vector<std::vector<std::byte>>> messages(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    // Some of each size one after the other: what moved one may be used for the next.
    for (uint64_t i = 0; i < 20; ++i) messages[g].push_back(Bytes(1 + i / 5 * 5005, g * 100 + i));
  }
  std::vector<std::thread> threads;
  for (size_t g = 0; g < groups.size(); ++g) {
    threads.emplace_back([&, g] { ExpectDelivery(sessions, g, groups[g], roots[g], messages[g]); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(SessionWaysTest, CallbacksMayCallTheSession) {
  Sessions sessions(2, Options());
  const std::vector<uint32_t> members = Members(2);
  std::vector<std::byte> first = Bytes(10, 1), second = Bytes(20, 2);
  GroupCallbacks callbacks = sessions.Callbacks(0, 1);
  const auto complete = callbacks.complete;
  callbacks.complete = [&](uint64_t message, void* memory, uint64_t bytes) {
    complete(message, memory, bytes);
    if (message != 0) return;
    EXPECT_TRUE(sessions[0].Send(1, second.data(), second.size()).ok());
    EXPECT_TRUE(sessions[0].DestroyGroup(1).ok());
    EXPECT_FALSE(sessions[0].Send(1, second.data(), second.size()).ok());
  };
  ASSERT_TRUE(sessions[0].CreateGroup(1, members, 0, Group(), callbacks).ok());
  ASSERT_TRUE(sessions[1].CreateGroup(1, members, 0, Group(), sessions.Callbacks(1, 1)).ok());
  ASSERT_TRUE(sessions[1].DestroyGroup(1).ok());  // receives what is still to come
  ASSERT_TRUE(sessions[0].Send(1, first.data(), first.size()).ok());
  ASSERT_TRUE(sessions.Wait(1, members, [](const GroupLog& log) { return log.closed == 1; }));
  EXPECT_THAT(sessions.LogOf(1, 1).messages, ElementsAre(first, second));
}

// Catches a pool that is made known to a device in another way than other memory, and hosts that
// poll and hear of nothing else.
TEST_P(SessionWaysTest, MessagesIntoAPoolByHostsThatPoll) {
  SessionOptions options = Options();
  options.waiting = Waiting::kPolling;
  Sessions sessions(3, options);
  const std::vector<uint32_t> members = Members(3);
  std::vector<std::shared_ptr<MemoryPool>> pools;
  for (const uint32_t member : members) {
    pools.push_back(MemoryPool::Make(/*buffer_bytes=*/100'000, /*buffers=*/3).value());
    GroupCallbacks callbacks = sessions.Callbacks(member, 1);
    callbacks.incoming = nullptr;
    callbacks.pool = pools.back();
    callbacks.complete = [pool = pools.back(), complete = callbacks.complete,
                          is_root = member == 0](uint64_t message, void* memory, uint64_t bytes) {
      complete(message, memory, bytes);
      if (!is_root) {
        EXPECT_TRUE(pool->Give(memory).ok());
      }
    };
    ASSERT_TRUE(sessions[member].CreateGroup(1, members, 0, Group(), callbacks).ok());
  }
  std::vector<std::vector<std::byte>> messages;
  for (uint64_t i = 0; i < 6; ++i) messages.push_back(Bytes(i < 4 ? 70'000 : 100'000, i));
  ExpectDelivery(sessions, 1, members, 0, messages);
}

TEST_P(SessionEventsTest, BarriersAndNotices) {
  Sessions sessions(3, Options());
  const std::vector<uint32_t> members = Members(3);
  sessions.Create(1, members, 1, Group({.notify_delivered = true}));
  ExpectDelivery(sessions, 1, members, 1, {Bytes(5, 1), Bytes(50000, 2)});
  ASSERT_TRUE(sessions.Wait(1, {1}, [](const GroupLog& log) { return log.delivered.size() == 2; }));
  EXPECT_THAT(sessions.LogOf(1, 1).delivered, ElementsAre(0, 1));
  sessions.Barrier(1, 0);
  sessions.Barrier(1, 0);
  sessions.Barrier(1, 1);
  std::this_thread::sleep_for(milliseconds(50));
  for (const uint32_t member : members) EXPECT_EQ(sessions.LogOf(member, 1).passed, 0);
  sessions.Barrier(1, 2);
  ASSERT_TRUE(sessions.Wait(1, members, [](const GroupLog& log) { return log.passed == 1; }));
  sessions.Barrier(1, 1);
  sessions.Barrier(1, 2);
  ASSERT_TRUE(sessions.Wait(1, {0}, [](const GroupLog& log) { return log.passed == 2; }));
}

// Those that all members have called pass before the group is closed, whatever else is under way;
// another one's function is gone when `closed` is called.
TEST_P(SessionEventsTest, BarriersOfAGroupThatIsClosed) {
  for (const bool is_root_ahead : {true, false}) {
    SCOPED_TRACE(is_root_ahead);
    Sessions sessions(3, Patient(Options()));
    const std::vector<uint32_t> members = Members(3);
    const uint32_t ahead = is_root_ahead ? 0 : 2;
    auto kept = std::make_shared<int>(0);
    std::atomic<long> uses_when_closed = 0;
    for (const uint32_t member : members) {
      GroupCallbacks callbacks = sessions.Callbacks(member, 1);
      if (member == ahead) {
        callbacks.closed = [&, weak = std::weak_ptr(kept), closed = callbacks.closed] {
          uses_when_closed = weak.use_count();
          closed();
        };
      }
      ASSERT_TRUE(sessions[member].CreateGroup(1, members, 0, Group(), callbacks).ok());
    }
    for (int i = 0; i < 100; ++i) {
      for (const uint32_t member : members) sessions.Barrier(1, member);
    }
    ASSERT_TRUE(sessions[ahead].Barrier(1, [kept] { ADD_FAILURE() << "it passed"; }).ok());
    for (const uint32_t member : members) EXPECT_TRUE(sessions[member].DestroyGroup(1).ok());
    ASSERT_TRUE(sessions.Wait(1, members, [](const GroupLog& log) { return log.closed == 1; }));
    for (const uint32_t member : members) EXPECT_EQ(sessions.LogOf(member, 1).passed, 100);
    EXPECT_EQ(uses_when_closed, 1);  // the test's own
  }
}

// A member that is gone: every survivor hears of it once, with its name, soon; other groups go on,
// and the survivors make a new group of the same number at once.
TEST_P(SessionWaysTest, SurvivorsOfAFailureHearOfItOnceAndGoOn) {
  for (const uint32_t victim : {0u, 2u}) {
    SCOPED_TRACE(victim);
    Sessions sessions(5, Options());
    const std::vector<uint32_t> members = Members(5);
    std::vector<uint32_t> survivors = members;
    std::erase(survivors, victim);
    sessions.Create(1, members, 0, Group());
    sessions.Create(2, survivors, survivors[1], Group());
    ExpectDelivery(sessions, 1, members, 0, {Bytes(100, 1)});
    const std::vector<std::byte> large = Bytes(16u << 20, 1);
    ASSERT_TRUE(sessions[0].Send(1, large.data(), large.size()).ok());
    const auto killed = std::chrono::steady_clock::now();
    sessions.Kill(victim);
    ASSERT_TRUE(
        sessions.Wait(1, survivors, [](const GroupLog& log) { return !log.failures.empty(); }));
    EXPECT_LT(std::chrono::steady_clock::now() - killed, milliseconds(2000));
    for (const uint32_t member : survivors) {
      EXPECT_THAT(sessions.LogOf(member, 1).failures.front(),
                  HasSubstr("member " + std::to_string(victim)));
      EXPECT_EQ(sessions.LogOf(member, 1).failed_member, victim);
      EXPECT_EQ(sessions.LogOf(member, 1).failed_messages,
                sessions.LogOf(member, 1).completed.size());
      EXPECT_FALSE(sessions[member].Barrier(1, {}).ok());
      ASSERT_TRUE(
          sessions[member]
              .CreateGroup(1, survivors, survivors[0], Group(), sessions.Callbacks(member, 100))
              .ok());
    }
    const std::vector<std::byte> again = Bytes(70000, 2);
    ASSERT_TRUE(sessions[survivors[0]].Send(1, again.data(), again.size()).ok());
    ASSERT_TRUE(
        sessions.Wait(100, survivors, [](const GroupLog& log) { return !log.completed.empty(); }));
    ExpectDelivery(sessions, 2, survivors, survivors[1], {Bytes(1234, 3)});
    for (const uint32_t member : survivors) {
      EXPECT_EQ(sessions.LogOf(member, 1).failures.size(), 1u);
      EXPECT_EQ(sessions.LogOf(member, 100).messages.front(), again);
    }
  }
}

TEST_P(SessionEventsTest, MemberWithoutMemoryEndsTheGroup) {
  Sessions sessions(3, Options());
  const std::vector<uint32_t> members = Members(3);
  for (const uint32_t member : members) {
    GroupCallbacks callbacks = sessions.Callbacks(member, 1);
    if (member == 2) {
      callbacks.incoming = nullptr;
      EXPECT_EQ(sessions[2].CreateGroup(1, members, 0, Group(), callbacks).code(),
                StatusCode::kUsage);
      callbacks.incoming = [](uint64_t, uint64_t) { return nullptr; };
    }
    ASSERT_TRUE(sessions[member].CreateGroup(1, members, 0, Group(), callbacks).ok());
  }
  const std::vector<std::byte> message = Bytes(10, 1);
  ASSERT_TRUE(sessions[0].Send(1, message.data(), message.size()).ok());
  ASSERT_TRUE(
      sessions.Wait(1, members, [](const GroupLog& log) { return log.failures.size() == 1; }));
  for (const uint32_t member : members) {
    EXPECT_THAT(sessions.LogOf(member, 1).failures.front(),
                HasSubstr("member 2 has no memory for message 0 of 10 bytes"));
    EXPECT_EQ(sessions.LogOf(member, 1).failed_member, 2u);
  }
}

// In the middle of a message, and of a group that others wait to see closed. Catches words of the
// caller that are changed, and an end that comes late or twice.
TEST_P(SessionEventsTest, AnyMemberMayAbortTheGroup) {
  const std::vector<uint32_t> members = Members(3);
  Sessions sessions(3, Options());
  for (const uint32_t member : members) {
    SCOPED_TRACE(member);
    sessions.Create(member, members, 1, Group());
    ExpectDelivery(sessions, member, members, 1, {Bytes(100, 1)});
    const std::vector<std::byte> large = Bytes(1u << 20, 1);
    ASSERT_TRUE(sessions[1].Send(member, large.data(), large.size()).ok());
    for (const uint32_t other : {0u, 2u}) {
      EXPECT_TRUE(sessions[other].DestroyGroup(member).ok());
    }
    ASSERT_TRUE(sessions[member].AbortGroup(member, "node 7 is no use\n\xff").ok());
    ASSERT_TRUE(sessions.Wait(member, members,
                              [](const GroupLog& log) { return log.failures.size() == 1; }));
    for (const uint32_t other : members) {
      const std::string cause = sessions.LogOf(other, member).failures.front();
      EXPECT_THAT(cause, HasSubstr("member " + std::to_string(member) +
                                   " has aborted the group: node 7 is no use"));
      // Whoever has aborted it hears it as the others do.
      EXPECT_TRUE(std::ranges::all_of(cause, [](char it) { return it >= ' ' && it <= '~'; }))
          << cause;
      EXPECT_EQ(sessions.LogOf(other, member).failed_member, member);
    }
    EXPECT_FALSE(sessions[member].AbortGroup(member, "").ok());
  }
}

// Catches a message that is lost or taken twice, other groups that wait with it, a group that is
// taken for dead meanwhile, and a wait that does not end.
TEST_P(SessionEventsTest, MessagesWaitForIncoming) {
  SessionOptions options = Options();
  options.failure_max = milliseconds(1000);
  std::vector<std::vector<std::byte>> messages;
  for (const uint64_t bytes : {70000u, 0u, 300001u}) messages.push_back(Bytes(bytes, bytes));
  std::atomic<int> room = 0;
  std::atomic<int> refused = 0;
  Sessions sessions(3, options);
  const std::vector<uint32_t> members = Members(3);
  for (const uint32_t member : members) {
    GroupCallbacks callbacks = sessions.Callbacks(member, 1);
    if (member == 2) {
      callbacks.incoming = [&, supply = callbacks.incoming](uint64_t message, uint64_t bytes) {
        if (room > 0) {
          --room;
          return supply(message, bytes);
        }
        ++refused;
        return kNotYet;
      };
    }
    ASSERT_TRUE(sessions[member].CreateGroup(1, members, 0, Group(), callbacks).ok());
  }
  sessions.Create(2, members, 0, Group());
  for (const auto& message : messages)
    ASSERT_TRUE(sessions[0].Send(1, message.data(), message.size()).ok());
  const auto due = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (refused == 0 && std::chrono::steady_clock::now() < due)
    std::this_thread::sleep_for(milliseconds(1));
  EXPECT_GT(refused, 0);
  ASSERT_TRUE(sessions[0].Send(2, messages[0].data(), messages[0].size()).ok());
  const auto has = [](size_t count) {
    return [count](const GroupLog& log) { return log.messages.size() == count; };
  };
  EXPECT_TRUE(sessions.Wait(2, {1, 2}, has(1)));
  std::this_thread::sleep_for(options.failure_max);
  EXPECT_TRUE(sessions.LogOf(2, 1).messages.empty());
  for (size_t count = 1; count <= messages.size(); ++count) {
    ++room;
    sessions[2].Resume();
    EXPECT_TRUE(sessions.Wait(1, {2}, has(count))) << count;
  }
  EXPECT_TRUE(sessions.Wait(1, members, has(messages.size())));
  EXPECT_TRUE(sessions.Wait(2, members, has(1)));
  for (const uint32_t member : {1u, 2u}) EXPECT_EQ(sessions.LogOf(member, 1).messages, messages);
}

// Catches an exception that ends the program.
TEST_P(SessionEventsTest, AnIncomingThatThrowsEndsTheGroup) {
  Sessions sessions(3, Options());
  const std::vector<uint32_t> members = Members(3);
  for (const bool is_standard : {true, false}) {
    const uint64_t group = is_standard ? 1 : 2;
    for (const uint32_t member : members) {
      GroupCallbacks callbacks = sessions.Callbacks(member, group);
      if (member == 2) {
        callbacks.incoming = [is_standard](uint64_t, uint64_t) -> void* {
          if (is_standard) throw std::bad_alloc();
          throw 7;
        };
      }
      ASSERT_TRUE(sessions[member].CreateGroup(group, members, 0, Group(), callbacks).ok());
    }
    const std::vector<std::byte> message = Bytes(10, 1);
    ASSERT_TRUE(sessions[0].Send(group, message.data(), message.size()).ok());
    ASSERT_TRUE(sessions.Wait(group, members,
                              [](const GroupLog& log) { return log.failures.size() == 1; }));
    for (const uint32_t member : members) {
      EXPECT_THAT(sessions.LogOf(member, group).failures.front(),
                  HasSubstr(is_standard ? "member 2 has no memory for message 0 of 10 bytes: its "
                                          "callback `incoming` threw an exception: std::bad_alloc"
                                        : "threw an exception: of a type"));
      EXPECT_EQ(sessions.LogOf(member, group).failed_member, 2u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, SessionWaysTest, testing::ValuesIn(AllWays()),
                         [](const auto& it) { return it.param.name; });
INSTANTIATE_TEST_SUITE_P(Ways, SessionEventsTest, testing::ValuesIn(WaysOfEvents()),
                         [](const auto& it) { return it.param.name; });
}  // namespace
}  // namespace prepost::session_ways_test
