// SPDX-License-Identifier: Apache-2.0
//
// What RDMC's implementation is known to do wrong, each as a test that fails where a group does it,
// too; sizes also over a device of libibverbs, where there is one, as RDMC itself goes over such.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "compiler/roll.h"
#include "compiler/schedules/schedule.h"
#include "ir/json/rolled_plan_json.h"
#include "library/hooked_session.h"
#include "prepost/prepost.h"
#include "tests/support/plans.h"
#include "tests/support/rolled_plans.h"
#include "tests/support/sample.h"
#include "tests/support/sessions.h"
#include "tests/support/temp_folder.h"
#include "tests/support/verbs_device.h"

namespace prepost::rdmc_defects_test {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::GroupLog;
using test::Members;
using test::Sessions;
using ::testing::HasSubstr;

/// Receives into memory with bytes around it that nobody may write.
class GuardedMemory {
 public:
  void* Take(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    auto memory = std::make_unique<std::vector<std::byte>>(bytes + 2 * kGuard, kPattern);
    std::byte* const place = memory->data() + kGuard;
    taken_.emplace(place, std::move(memory));
    return place;
  }
  void ExpectUntouched(const void* place) {
    const std::lock_guard lock(mutex_);
    const std::vector<std::byte>& memory = *taken_.at(place);
    for (size_t i = 0; i < kGuard; ++i) {
      EXPECT_EQ(memory[i], kPattern) << i - kGuard;
      EXPECT_EQ(memory[memory.size() - 1 - i], kPattern) << "behind the end, from behind: " << i;
    }
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr std::byte kPattern{0xa5};
  std::mutex mutex_;
  std::map<const void*, std::unique_ptr<std::vector<std::byte>>> taken_;
};

// Defects 1 and 3: sizes that are rounded up to blocks, and bytes that are written behind the
// message, where the last block is not a whole one.
class SizesTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint64_t kBlockBytes = 96;

  GroupOptions OptionsFor(const Schedule& schedule, uint32_t nodes, NodeId root) {
    const std::string name(schedule.name());
    const std::string device = test::VerbsDeviceOfTests();
    if (!name.starts_with("rack_"))
      return {.algorithm = name, .block_bytes = kBlockBytes, .device = device};
    // Only a file says which member is in which rack.
    Spec spec = test::RolledSpec(name, nodes);
    spec.root = root;
    spec.block_bytes = kBlockBytes;
    const std::string path = folder_ / name;
    std::ofstream out(path);
    WriteRolledPlan(test::RollOrDie(spec), out);
    return {.plan = path, .device = device};
  }

  test::TempFolder folder_;
};

TEST_P(SizesTest, AreExactAndNothingIsWrittenBehindThem) {
  const uint32_t nodes = GetParam();
  SessionOptions options;
  options.waiting = Waiting::kInterrupt;  // as many threads as there are do not spin
  const std::vector<uint32_t> members = Members(nodes);
  const uint32_t root = nodes / 3;
  std::vector<std::vector<std::byte>> messages;
  for (uint64_t k = 1; k <= 6; ++k) messages.push_back(Bytes(k * kBlockBytes - 5 * k, k + nodes));
  GuardedMemory memory;
  std::mutex mutex;
  std::map<uint64_t, std::vector<uint64_t>> sizes;   // by group, of all members
  Sessions sessions(nodes, test::Patient(options));  // uses these until it is gone
  // Of large groups, whose connections take their time, this run's part of the schedules.
  test::Sample sample(Schedules().size(), nodes < 16 ? 1 : test::SampleDivisor());
  std::vector<const Schedule*> schedules;
  for (const Schedule* schedule : Schedules()) {
    if (sample.Takes()) schedules.push_back(schedule);
  }
  uint64_t group = 0;
  for (const Schedule* schedule : schedules) {
    ++group;
    const GroupOptions group_options = OptionsFor(*schedule, nodes, NodeId(root));
    for (const uint32_t member : members) {
      GroupCallbacks callbacks = sessions.Callbacks(member, group);
      callbacks.incoming = [&](uint64_t, uint64_t bytes) { return memory.Take(bytes); };
      callbacks.complete = [&, group, member, log = callbacks.complete](
                               uint64_t message, void* place, uint64_t bytes) {
        if (member != root) memory.ExpectUntouched(place);
        {
          const std::lock_guard lock(mutex);
          sizes[group].push_back(bytes);
        }
        log(message, place, bytes);
      };
      const Status status =
          sessions[member].CreateGroup(group, members, root, group_options, callbacks);
      ASSERT_TRUE(status.ok()) << schedule->name() << ": " << status.ToString();
    }
    for (const std::vector<std::byte>& message : messages)
      ASSERT_TRUE(sessions[root].Send(group, message.data(), message.size()).ok());
  }
  group = 0;
  for (const Schedule* schedule : schedules) {
    SCOPED_TRACE(schedule->name());
    ++group;
    ASSERT_TRUE(sessions.Wait(group, members, [&](const GroupLog& log) {
      return log.completed.size() == messages.size();
    }));
    for (const uint32_t member : members)
      EXPECT_EQ(sessions.LogOf(member, group).messages, messages) << member;
    std::map<uint64_t, size_t> counts;
    for (const uint64_t bytes : sizes[group]) ++counts[bytes];
    for (const std::vector<std::byte>& message : messages)
      EXPECT_EQ(counts[message.size()], nodes) << message.size();
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, SizesTest, testing::Values(4u, 8u, 16u, 17u, 20u));

/// Counts what is put on connections, by lane, and cuts one of them when it is told.
class Meter final : public TcpHook {
 public:
  size_t Limit(const TcpWay& way, size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (is_cutting_ && way.self == NodeId(1) && way.peer == NodeId(2)) return kCut;
    if (way.is_send) (way.lane == Lane::kCredits ? of_notes_ : of_blocks_) += bytes;
    return bytes;
  }
  void Cut() {
    const std::lock_guard lock(mutex_);
    is_cutting_ = true;
  }
  uint64_t of_blocks() const { return of_blocks_; }
  uint64_t of_notes() const { return of_notes_; }

 private:
  std::mutex mutex_;
  bool is_cutting_ = false;
  uint64_t of_blocks_ = 0, of_notes_ = 0;
};

/// Sessions like Sessions', with a hook.
std::vector<std::unique_ptr<Session>> Hooked(uint32_t members, TcpHook& hook) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (uint32_t self = 0; self < members; ++self) {
    SessionOptions options = {.self = self,
                              .members = test::SessionAddresses(members),
                              .secret = "a secret of more than 16 bytes",
                              .local_copies = false};
    Result<std::unique_ptr<Session>> session = HookedSession::Open(options, &hook);
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    sessions.push_back(*std::move(session));
  }
  return sessions;
}

// Defect 2: a small message goes as a whole block. All bytes of all connections: to each of the
// seven receivers the message once behind its start and its record, and back a start and a note.
TEST(RdmcDefectsTest, SmallMessagesAreNotPaddedToBlocks) {
  constexpr uint64_t kRecord = 16;
  Meter meter;
  std::atomic<int> completed = 0;
  std::vector<std::array<std::byte, 100>> received(8);
  auto sessions = Hooked(8, meter);
  for (uint32_t self = 0; self < 8; ++self) {
    GroupCallbacks callbacks;
    callbacks.incoming = [&, self](uint64_t, uint64_t) { return received[self].data(); };
    callbacks.complete = [&](uint64_t, void*, uint64_t) { ++completed; };
    ASSERT_TRUE(sessions[self]
                    ->CreateGroup(1, Members(8), 0,
                                  {.algorithm = "binomial_pipeline", .block_bytes = 65536},
                                  callbacks)
                    .ok());
  }
  const std::vector<std::byte> message = Bytes(100, 1);
  ASSERT_TRUE(sessions[0]->Send(1, message.data(), message.size()).ok());
  for (int i = 0; i < 2000 && completed < 8; ++i) std::this_thread::sleep_for(milliseconds(5));
  ASSERT_EQ(completed, 8);
  sessions.clear();
  EXPECT_EQ(meter.of_blocks(), 7 * (100 + 2 * kRecord));
  EXPECT_EQ(meter.of_notes(), 7 * 2 * kRecord);
}

// Defect 4: a broken connection that only a log hears of, or that each of its consequences reports.
TEST(RdmcDefectsTest, ABrokenConnectionIsReportedByTheCallbackOnce) {
  Meter meter;
  std::mutex mutex;
  std::map<uint32_t, std::vector<std::string>> failures;
  std::map<uint32_t, int> after;  // callbacks after the failure
  std::atomic<int> completed = 0;
  std::vector<std::vector<std::byte>> received(4, std::vector<std::byte>(1000));
  auto sessions = Hooked(4, meter);
  for (uint32_t self = 0; self < 4; ++self) {
    const auto count = [&, self] {
      const std::lock_guard lock(mutex);
      if (!failures[self].empty()) ++after[self];
    };
    GroupCallbacks callbacks;
    callbacks.incoming = [&, count, self](uint64_t, uint64_t) -> void* {
      count();
      return received[self].data();
    };
    callbacks.complete = [&, count](uint64_t, void*, uint64_t) {
      count();
      ++completed;
    };
    callbacks.failed = [&, self](const Status& cause, std::optional<uint32_t>) {
      const std::lock_guard lock(mutex);
      failures[self].push_back(cause.ToString());
    };
    ASSERT_TRUE(
        sessions[self]->CreateGroup(1, Members(4), 0, {.algorithm = "chain"}, callbacks).ok());
  }
  const std::vector<std::byte> message = Bytes(1000, 1);
  ASSERT_TRUE(sessions[0]->Send(1, message.data(), message.size()).ok());
  for (int i = 0; i < 2000 && completed < 4; ++i) std::this_thread::sleep_for(milliseconds(5));
  ASSERT_EQ(completed, 4);
  meter.Cut();
  // After the failure it is refused.
  for (int i = 0; i < 20; ++i)
    static_cast<void>(sessions[0]->Send(1, message.data(), message.size()));
  const auto is_everywhere = [&] {
    const std::lock_guard lock(mutex);
    return failures.size() == 4 &&
           std::ranges::all_of(failures, [](const auto& it) { return !it.second.empty(); });
  };
  const auto cut = std::chrono::steady_clock::now();
  while (!is_everywhere() && std::chrono::steady_clock::now() - cut < std::chrono::seconds(10))
    std::this_thread::sleep_for(milliseconds(5));
  EXPECT_LT(std::chrono::steady_clock::now() - cut, milliseconds(2000));
  std::this_thread::sleep_for(milliseconds(500));  // for a second one
  sessions.clear();
  for (uint32_t self = 0; self < 4; ++self) {
    ASSERT_EQ(failures[self].size(), 1u) << self;
    EXPECT_THAT(failures[self].front(), HasSubstr("lost its connection to member"));
    EXPECT_EQ(after[self], 0) << self;
  }
}

// Defect 6: barriers that know members by their numbers in the session, or one group's only. No
// barrier passes before the last member of its own group has come.
TEST(RdmcDefectsTest, BarriersOfOverlappingGroups) {
  Sessions sessions(4);
  const std::vector<std::vector<uint32_t>> groups = {{3, 1}, {2, 3, 0}, {1, 2, 3}, {0, 1, 2, 3}};
  for (size_t g = 0; g < groups.size(); ++g) sessions.Create(g, groups[g], groups[g].back());
  for (size_t g = 0; g < groups.size(); ++g) {
    for (size_t i = 0; i + 1 < groups[g].size(); ++i) sessions.Barrier(g, groups[g][i]);
    sessions.Barrier(g, groups[g].front());  // its next one already
  }
  std::this_thread::sleep_for(milliseconds(50));
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const uint32_t member : groups[g]) EXPECT_EQ(sessions.LogOf(member, g).passed, 0);
    sessions.Barrier(g, groups[g].back());
    ASSERT_TRUE(sessions.Wait(g, groups[g], [](const GroupLog& log) { return log.passed == 1; }));
    if (g + 1 == groups.size()) continue;
    for (const uint32_t member : groups[g + 1]) EXPECT_EQ(sessions.LogOf(member, g + 1).passed, 0);
  }
}

// Defect 6, too: a barrier that waits for ever for a member that is gone.
TEST(RdmcDefectsTest, AFailureEndsBarriers) {
  Sessions sessions(4);
  const std::vector<uint32_t> members = {2, 0, 3, 1};
  sessions.Create(1, members, 0);
  for (const uint32_t member : {0u, 1u, 2u}) sessions.Barrier(1, member);
  ASSERT_TRUE(sessions.Wait(1, members, [](const GroupLog& log) { return log.opened == 1; }));
  sessions.Kill(3);
  ASSERT_TRUE(
      sessions.Wait(1, {0, 1, 2}, [](const GroupLog& log) { return !log.failures.empty(); }));
  for (const uint32_t member : {0u, 1u, 2u}) {
    EXPECT_EQ(sessions.LogOf(member, 1).passed, 0);
    EXPECT_EQ(sessions.LogOf(member, 1).failed_member, 3u);
    EXPECT_FALSE(sessions[member].Barrier(1, {}).ok());
  }
}

size_t Threads() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& it : std::filesystem::directory_iterator("/proc/self/task"))
    ++count;
  return count;
}

// Defect 8: threads that go on, or wait for ever, when a session ends in the middle of messages.
TEST(RdmcDefectsTest, SessionsEndWhileMessagesRun) {
  std::thread([] {}).join();  // the thread sanitizer has one of its own from the first on
  const size_t before = Threads();
  const std::vector<std::byte> message = Bytes(32u << 20, 1);
  for (const char* device : {"", "emulated"}) {
    SCOPED_TRACE(device);
    Sessions sessions(3);
    for (uint32_t root = 0; root < 3; ++root) {
      sessions.Create(root, Members(3), root, {.device = device});
      for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(sessions[root].Send(root, message.data(), message.size()).ok());
    }
    ASSERT_TRUE(sessions.Wait(0, {0}, [](const GroupLog& log) { return log.opened == 1; }));
    EXPECT_GT(Threads(), before);
    for (const uint32_t member : {1u, 0u, 2u}) {
      const auto begin = std::chrono::steady_clock::now();
      sessions.Kill(member);
      EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(2000));
    }
  }
  // A thread that is joined is gone from /proc a moment later.
  for (int i = 0; i < 100 && Threads() > before; ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(Threads(), before);
}

}  // namespace
}  // namespace prepost::rdmc_defects_test
