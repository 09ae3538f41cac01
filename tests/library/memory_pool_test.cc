// SPDX-License-Identifier: Apache-2.0
//
// Messages that are received into the buffers of a pool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "prepost/prepost.h"
#include "tests/support/sessions.h"

namespace prepost::memory_pool_test {
namespace {

using test::Bytes;
using test::GroupLog;
using test::Members;
using test::Sessions;
using ::testing::HasSubstr;

/// As Sessions::Callbacks(), with a pool.
GroupCallbacks Pooled(Sessions& sessions, uint32_t member, uint64_t group,
                      std::shared_ptr<MemoryPool> pool) {
  GroupCallbacks callbacks = sessions.Callbacks(member, group);
  callbacks.incoming = nullptr;
  callbacks.pool = std::move(pool);
  return callbacks;
}

TEST(MemoryPoolTest, GivesBackOnlyWhatIsTakenFromIt) {
  EXPECT_EQ(MemoryPool::Make(0, 1).status().code(), StatusCode::kUsage);
  EXPECT_EQ(MemoryPool::Make(1, 0).status().code(), StatusCode::kUsage);
  EXPECT_EQ(MemoryPool::Make(UINT64_MAX / 2, 3).status().code(), StatusCode::kUsage);
  const auto pool = *MemoryPool::Make(100, 2);
  EXPECT_EQ(pool->buffer_bytes(), 100u);
  EXPECT_EQ(pool->free_buffers(), 2u);
  int other = 0;
  EXPECT_EQ(pool->Give(&other).code(), StatusCode::kUsage);
  EXPECT_TRUE(pool->Give(nullptr).ok());
}

// Two groups share a pool with one buffer, and nobody gives it back for a while. Catches messages
// that fail for want of a buffer, one that is overwritten while it is in use, a group that is taken
// for dead while it waits, and a wait that does not end when another thread gives a buffer back.
TEST(MemoryPoolTest, MessagesWaitForABuffer) {
  SessionOptions options;
  options.failure_max = std::chrono::milliseconds(500);
  Sessions sessions(3, options);
  const std::vector<uint32_t> members = Members(3);
  const auto pool = *MemoryPool::Make(70000, 1);
  std::mutex mutex;
  std::vector<void*> taken;
  for (const uint64_t group : {1u, 2u}) {
    for (const uint32_t member : members) {
      GroupCallbacks callbacks = sessions.Callbacks(member, group);
      if (member == 2) {
        callbacks = Pooled(sessions, member, group, pool);
        callbacks.complete = [&, log = callbacks.complete](uint64_t message, void* memory,
                                                           uint64_t bytes) {
          log(message, memory, bytes);
          const std::lock_guard lock(mutex);
          taken.push_back(memory);
        };
      }
      ASSERT_TRUE(sessions[member].CreateGroup(group, members, 0, {}, callbacks).ok());
    }
  }
  std::vector<std::vector<std::byte>> messages;
  for (const uint64_t bytes : {70000u, 0u, 1u, 30000u}) messages.push_back(Bytes(bytes, bytes));
  for (const uint64_t group : {1u, 2u}) {
    for (const std::vector<std::byte>& message : messages)
      ASSERT_TRUE(sessions[0].Send(group, message.data(), message.size()).ok());
  }
  const auto due = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const auto is_any_taken = [&] {
    const std::lock_guard lock(mutex);
    return !taken.empty();
  };
  while (!is_any_taken() && std::chrono::steady_clock::now() < due) std::this_thread::yield();
  // Longer than failure_max.
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  const size_t first =
      sessions.LogOf(2, 1).completed.size() + sessions.LogOf(2, 2).completed.size();
  EXPECT_GE(first, 1u);
  EXPECT_LE(first, 2u) << "more than one message, and the empty one, in one buffer";
  sessions.Barrier(1, 0);
  sessions.Barrier(1, 1);
  sessions.Barrier(1, 2);
  ASSERT_TRUE(sessions.Wait(1, members, [](const GroupLog& log) { return log.passed == 1; }));
  for (size_t given = 0;
       given < 8 && std::chrono::steady_clock::now() < due + std::chrono::seconds(10);) {
    const std::lock_guard lock(mutex);
    for (; given < taken.size(); ++given) EXPECT_TRUE(pool->Give(taken[given]).ok());
  }
  for (const uint64_t group : {1u, 2u}) {
    ASSERT_TRUE(sessions.Wait(group, members,
                              [&](const GroupLog& log) { return log.completed.size() == 4; }));
    EXPECT_EQ(sessions.LogOf(2, group).messages, messages);
  }
  EXPECT_EQ(pool->free_buffers(), 1u);
  EXPECT_EQ(pool->Give(taken.front()).code(), StatusCode::kUsage);  // it is free
}

TEST(MemoryPoolTest, MessagesThatAreTooLargeEndTheGroup) {
  Sessions sessions(2);
  const auto pool = *MemoryPool::Make(100, 3);
  for (const uint32_t member : {0u, 1u}) {
    ASSERT_TRUE(
        sessions[member].CreateGroup(1, {0, 1}, 0, {}, Pooled(sessions, member, 1, pool)).ok());
  }
  const std::vector<std::byte> message = Bytes(101, 1);
  ASSERT_TRUE(sessions[0].Send(1, message.data(), 100).ok());
  ASSERT_TRUE(sessions[0].Send(1, message.data(), 101).ok());
  ASSERT_TRUE(
      sessions.Wait(1, {0, 1}, [](const GroupLog& log) { return log.failures.size() == 1; }));
  for (const uint32_t member : {0u, 1u}) {
    EXPECT_THAT(sessions.LogOf(member, 1).failures.front(),
                HasSubstr("member 1 cannot take message 1 of 101 bytes: the buffers of its pool "
                          "have 100 bytes"));
  }
  EXPECT_EQ(pool->free_buffers(), 2u);  // message 0 is the caller's
}

/// Lets a message begin and not end.
class Dam final : public TcpHook {
 public:
  size_t Limit(const TcpWay& way, size_t bytes) override {
    if (!way.is_send) return bytes;
    const size_t moved = moved_.fetch_add(bytes);
    return moved > 1u << 20 ? 0 : bytes;
  }

 private:
  std::atomic<size_t> moved_ = 0;
};

void ExpectTaken(const MemoryPool& pool, uint32_t left) {
  const auto due = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (pool.free_buffers() != left && std::chrono::steady_clock::now() < due)
    std::this_thread::yield();
  ASSERT_EQ(pool.free_buffers(), left);
}

// Catches a buffer that is lost with its message, one that is back while it is written to, and a
// session that calls back into itself when it is gone.
TEST(MemoryPoolTest, BuffersOfMessagesUnderWayAreBackAfterAFailure) {
  const auto pool = *MemoryPool::Make(16u << 20, 1);
  const std::vector<std::byte> message = Bytes(16u << 20, 1);
  for (const bool is_own_session : {false, true}) {
    Dam dam;
    SessionOptions options;
    options.local_copies = false;
    Sessions sessions(2, options, &dam);
    for (const uint32_t member : {0u, 1u}) {
      ASSERT_TRUE(
          sessions[member].CreateGroup(1, {0, 1}, 0, {}, Pooled(sessions, member, 1, pool)).ok());
    }
    ASSERT_TRUE(sessions[0].Send(1, message.data(), message.size()).ok());
    ExpectTaken(*pool, 0);
    sessions.Kill(is_own_session ? 1 : 0);
    if (!is_own_session) {
      ASSERT_TRUE(
          sessions.Wait(1, {1}, [](const GroupLog& log) { return log.failures.size() == 1; }));
    }
    EXPECT_TRUE(sessions.LogOf(1, 1).completed.empty());
    EXPECT_EQ(pool->free_buffers(), 1u);
  }
  // Who waits when the session ends is forgotten.
  Sessions sessions(2);
  const auto small = *MemoryPool::Make(10, 1);
  for (const uint32_t member : {0u, 1u}) {
    ASSERT_TRUE(
        sessions[member].CreateGroup(1, {0, 1}, 0, {}, Pooled(sessions, member, 1, small)).ok());
  }
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(sessions[0].Send(1, message.data(), 10).ok());
  ASSERT_TRUE(sessions.Wait(1, {1}, [](const GroupLog& log) { return log.completed.size() == 1; }));
  sessions.Kill(1);
  EXPECT_EQ(small->free_buffers(), 0u);
}

// The same of messages that NICs move: the second waits until all have memory for it. Catches a
// message that starts before, and buffers that are lost.
TEST(MemoryPoolTest, MessagesOverNicsWaitForEverybodysBuffers) {
  Sessions sessions(3);
  const auto small = *MemoryPool::Make(1000, 1), large = *MemoryPool::Make(1000, 4);
  for (const uint32_t member : Members(3)) {
    ASSERT_TRUE(sessions[member]
                    .CreateGroup(1, Members(3), 0, {.device = "emulated"},
                                 Pooled(sessions, member, 1, member == 2 ? small : large))
                    .ok());
  }
  const std::vector<std::byte> message = Bytes(1000, 1);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(sessions[0].Send(1, message.data(), 1000).ok());
  ASSERT_TRUE(
      sessions.Wait(1, Members(3), [](const GroupLog& log) { return log.completed.size() == 1; }));
  ExpectTaken(*large, 1);  // message 0 is the caller's, two wait
  EXPECT_EQ(small->free_buffers(), 0u);
  sessions.Kill(0);
  ASSERT_TRUE(
      sessions.Wait(1, {1, 2}, [](const GroupLog& log) { return log.failures.size() == 1; }));
  EXPECT_EQ(large->free_buffers(), 3u);
  EXPECT_EQ(sessions.LogOf(1, 1).completed.size(), 1u);
}

TEST(MemoryPoolTest, TwoSourcesOfMemoryAreRefused) {
  Sessions sessions(2);
  GroupCallbacks callbacks = sessions.Callbacks(0, 1);
  callbacks.pool = *MemoryPool::Make(10, 1);
  EXPECT_THAT(sessions[0].CreateGroup(1, {0, 1}, 0, {}, callbacks).ToString(),
              HasSubstr("both a pool and `incoming`"));
  callbacks.incoming = nullptr;
  EXPECT_THAT(sessions[0].CreateGroup(1, {0, 1}, 0, {.sync = true}, callbacks).ToString(),
              HasSubstr("no file to be synced to"));
}

}  // namespace
}  // namespace prepost::memory_pool_test
