// SPDX-License-Identifier: Apache-2.0
//
// Sessions with very much to do, and with nothing. Members are threads of this process.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "prepost/prepost.h"
#include "tests/support/sessions.h"

namespace prepost::session_test {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::ExpectDelivery;
using test::GroupLog;
using test::Members;
using test::Patient;
using test::Sessions;

// Catches counts that fill the control connection, which then counts as gone: one message each,
// sent faster than the other end reads.
TEST(SessionLoadTest, ThousandsOfBarriersAreUnderWayAtOnce) {
  constexpr int kBarriers = 20'000;
  for (const bool are_early : {false, true}) {
    SCOPED_TRACE(are_early);
    Sessions sessions(3, Patient({}));
    const std::vector<uint32_t> members = Members(3);
    const auto pass = [&](const std::vector<uint32_t>& some) {
      for (const uint32_t member : some)
        for (int i = 0; i < kBarriers; ++i) sessions.Barrier(1, member);
    };
    const auto create = [&](uint32_t member) {
      const GroupCallbacks callbacks = sessions.Callbacks(member, 1);
      ASSERT_TRUE(sessions[member].CreateGroup(1, members, 0, {}, callbacks).ok());
    };
    for (const uint32_t member : {0u, 1u}) create(member);
    if (are_early) pass({0, 1});
    create(2);
    if (!are_early) {
      const auto is_open = [](const GroupLog& log) { return log.opened == 1; };
      ASSERT_TRUE(sessions.Wait(1, members, is_open));
      pass({0, 1});
    }
    pass({2});
    ASSERT_TRUE(
        sessions.Wait(1, members, [&](const GroupLog& log) { return log.passed == kBarriers; }));
    ExpectDelivery(sessions, 1, members, 0, {Bytes(5, 1)});
  }
}

// Catches what grows with every short message, of files or of memory.
TEST(SessionLoadTest, ManyShortMessagesLeaveMemoryAndFilesWhereTheyWere) {
  constexpr uint64_t kBurst = 1000;
  const std::vector<uint32_t> members = Members(3);
  for (const bool local_copies : {true, false}) {
    SCOPED_TRACE(local_copies);
    SessionOptions options;
    options.local_copies = local_copies;
    Sessions sessions(3, options);
    std::array<std::atomic<uint64_t>, 3> completed = {};
    std::array<std::array<std::byte, 64>, 3> memory = {};
    for (const uint32_t member : members) {
      GroupCallbacks callbacks = sessions.Callbacks(member, 1);
      callbacks.incoming = [&own = memory[member]](uint64_t, uint64_t) { return own.data(); };
      callbacks.complete = [&own = completed[member]](uint64_t, void*, uint64_t) {
        ++own;
        own.notify_one();
      };
      ASSERT_TRUE(sessions[member].CreateGroup(1, members, 0, {}, callbacks).ok());
    }
    uint64_t sent = 0;
    const auto send_until = [&](uint64_t end) {
      while (sent < end) {
        for (uint64_t i = 0; i < kBurst; ++i, ++sent)
          ASSERT_TRUE(sessions[0].Send(1, memory[0].data(), memory[0].size()).ok());
        for (std::atomic<uint64_t>& own : completed) {
          for (uint64_t had = own; had < sent; had = own) own.wait(had);
        }
      }
    };
    const auto files = [] {
      return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    };
    send_until(20'000);
    const auto files_before = files();
    const size_t bytes_before = mallinfo2().uordblks;
    send_until(120'000);
    EXPECT_EQ(files(), files_before);
    EXPECT_LE(mallinfo2().uordblks, bytes_before + (size_t{1} << 20));
  }
}

/// The processor time of this process.
std::chrono::microseconds ProcessorTime() {
  rusage use = {};
  EXPECT_EQ(getrusage(RUSAGE_SELF, &use), 0);
  const auto of = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return of(use.ru_utime) + of(use.ru_stime);
}

// Catches groups that are looked at for ever once something has come, over memory or connections.
TEST(SessionLoadTest, IdleGroupsCostNothing) {
  constexpr uint64_t kGroups = 8;
  constexpr milliseconds kWatched{500};
  const std::vector<uint32_t> members = Members(3);
  std::vector<std::unique_ptr<Sessions>> all;
  for (const bool local_copies : {true, false}) {
    for (const Waiting waiting : {Waiting::kPolling, Waiting::kHybrid, Waiting::kInterrupt}) {
      SessionOptions options;
      for (uint32_t i = 0; i < members.size(); ++i) {
        const auto place = static_cast<uint32_t>(all.size() * members.size());
        options.members.push_back({.host = test::LoopbackAddress(place + i)});
      }
      options.local_copies = local_copies;
      options.waiting = waiting;
      options.idle_max = milliseconds(10);
      Sessions& sessions = *all.emplace_back(std::make_unique<Sessions>(3, Patient(options)));
      for (uint64_t group = 0; group < kGroups; ++group) {
        sessions.Create(group, members, 0, {.notify_delivered = true});
        ExpectDelivery(sessions, group, members, 0, {Bytes(1000, 1), Bytes(300'000, 2)});
      }
    }
  }
  std::this_thread::sleep_for(milliseconds(200));
  const std::chrono::microseconds before = ProcessorTime();
  std::this_thread::sleep_for(kWatched);
  EXPECT_LT(ProcessorTime() - before, kWatched / 5);  // one that polls takes all of it
}

// More members than cores, whose cores have more to do: catches a wake-up that is lost where nobody
// polls long enough to do without it.
TEST(SessionLoadTest, ManyMembersOnABusyMachine) {
  std::vector<std::jthread> others(2 * std::thread::hardware_concurrency());
  for (std::jthread& other : others) {
    other = std::jthread([](const std::stop_token& end) {
      while (!end.stop_requested()) {
      }
    });
  }
  const std::vector<uint32_t> members = Members(17);
  std::vector<std::vector<std::byte>> messages;
  for (uint64_t i = 0; i < 12; ++i) messages.push_back(Bytes(i % 3 == 0 ? 3000 : 700'000, i));
  for (const bool local_copies : {false, true}) {
    SCOPED_TRACE(local_copies);
    SessionOptions options;
    options.local_copies = local_copies;
    Sessions sessions(17, Patient(options));
    sessions.Create(1, members, 3);
    ExpectDelivery(sessions, 1, members, 3, messages);
  }
}

}  // namespace
}  // namespace prepost::session_test
