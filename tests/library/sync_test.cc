// SPDX-License-Identifier: Apache-2.0
//
// Messages that are complete when they are on a disk. The program's own msync() stands before that
// of the C library, so that tests can hold it up and have it fail.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "prepost/prepost.h"
#include "runtime/base/mapping.h"
#include "tests/support/sessions.h"
#include "tests/support/temp_folder.h"

namespace prepost::sync_test {
namespace {

/// What msync() does in this process.
struct Disk {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_held = false;
  int error = 0;
  std::vector<std::pair<uintptr_t, size_t>> synced;
};
Disk& TheDisk() {
  static Disk disk;
  return disk;
}

}  // namespace
}  // namespace prepost::sync_test

extern "C" int msync(void* address, size_t bytes, int flags) {
  auto& disk = prepost::sync_test::TheDisk();
  std::unique_lock lock(disk.mutex);
  disk.changed.wait(lock, [&] { return !disk.is_held; });
  if (disk.error != 0) {
    errno = disk.error;
    return -1;
  }
  disk.synced.emplace_back(reinterpret_cast<uintptr_t>(address), bytes);
  return static_cast<int>(syscall(SYS_msync, address, bytes, flags));
}

namespace prepost::sync_test {
namespace {

using test::Bytes;
using test::GroupLog;
using test::Members;
using test::Sessions;
using ::testing::HasSubstr;

class SyncTest : public testing::Test {
 protected:
  ~SyncTest() override { Set(false, 0); }

  static void Set(bool is_held, int error) {
    Disk& disk = TheDisk();
    const std::lock_guard lock(disk.mutex);
    disk.is_held = is_held;
    disk.error = error;
    disk.changed.notify_all();
  }
  static std::vector<std::pair<uintptr_t, size_t>> TakeSynced() {
    const std::lock_guard lock(TheDisk().mutex);
    return std::exchange(TheDisk().synced, {});
  }

  /// Members 1 and 2 receive into files, 100 bytes behind their beginning.
  void Create(Sessions& sessions) {
    for (uint32_t member = 0; member < 3; ++member) {
      GroupCallbacks callbacks = sessions.Callbacks(member, 1);
      callbacks.incoming = [this, member](uint64_t message, uint64_t bytes) -> void* {
        const std::string path = folder_ / std::to_string(member * 100 + message);
        const int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
        EXPECT_EQ(ftruncate(file, static_cast<off_t>(bytes + 100)), 0);
        Mapping mapping = *Mapping::OfFile(file, bytes + 100, Mapping::Access::kReadWrite);
        close(file);
        const std::lock_guard lock(mutex_);
        return files_.emplace_back(std::move(mapping)).bytes().data() + 100;
      };
      ASSERT_TRUE(
          sessions[member]
              .CreateGroup(1, Members(3), 0, {.notify_delivered = true, .sync = true}, callbacks)
              .ok());
    }
  }

  /// Of two members, one of whose files is empty.
  void ShrinkAndSend(uint64_t bytes, bool is_senders, bool local_copies) {
    alarm(60);
    std::vector<Mapping> files;
    for (const bool is_shrunk : {is_senders, !is_senders}) {
      const int file = open((folder_ / "shrunk").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
      EXPECT_EQ(ftruncate(file, static_cast<off_t>(bytes)), 0);
      files.push_back(*Mapping::OfFile(file, bytes, Mapping::Access::kReadWrite));
      EXPECT_EQ(ftruncate(file, static_cast<off_t>(is_shrunk ? 0 : bytes)), 0);
      close(file);
      unlink((folder_ / "shrunk").c_str());
    }
    SessionOptions options;
    options.local_copies = local_copies;
    Sessions sessions(2, options);
    for (const uint32_t member : Members(2)) {
      GroupCallbacks callbacks = sessions.Callbacks(member, 1);
      callbacks.incoming = [&](uint64_t, uint64_t) { return files[1].bytes().data(); };
      ASSERT_TRUE(sessions[member].CreateGroup(1, Members(2), 0, {.sync = true}, callbacks).ok());
    }
    ASSERT_TRUE(sessions[0].Send(1, files[0].bytes().data(), bytes).ok());
    ASSERT_TRUE(
        sessions.Wait(1, Members(2), [](const GroupLog& log) { return log.failures.size() == 1; }));
    EXPECT_TRUE(sessions.LogOf(1, 1).completed.empty());
    for (const uint32_t member : Members(2))
      EXPECT_EQ(sessions.LogOf(member, 1).failed_member, is_senders ? 0u : 1u);
  }

  test::TempFolder folder_;
  std::mutex mutex_;
  std::vector<Mapping> files_;
};

// Catches a message that is complete, or delivered, before it is on the disk; a session whose other
// groups wait for the disk; an order that is lost; and pages that are left out.
TEST_F(SyncTest, MessagesAreOnTheDiskWhenTheyAreComplete) {
  Sessions sessions(3);
  Create(sessions);
  sessions.Create(2, Members(3), 0);
  Set(/*is_held=*/true, 0);
  TakeSynced();
  std::vector<std::vector<std::byte>> messages;
  for (const uint64_t bytes : {5000u, 1u, 0u, 100000u, 3u, 4096u}) {
    messages.push_back(Bytes(bytes, bytes));
    ASSERT_TRUE(sessions[0].Send(1, messages.back().data(), bytes).ok());
  }
  test::ExpectDelivery(sessions, 2, Members(3), 0, {Bytes(300000, 7), Bytes(5, 8)});
  ASSERT_TRUE(sessions.Wait(1, {0}, [](const GroupLog& log) { return !log.completed.empty(); }));
  EXPECT_TRUE(sessions.LogOf(1, 1).completed.empty());
  EXPECT_TRUE(sessions.LogOf(2, 1).completed.empty());
  EXPECT_TRUE(sessions.LogOf(0, 1).delivered.empty());
  Set(/*is_held=*/false, 0);
  ASSERT_TRUE(
      sessions.Wait(1, Members(3), [](const GroupLog& log) { return log.completed.size() == 6; }));
  ASSERT_TRUE(sessions.Wait(1, {0}, [](const GroupLog& log) { return log.delivered.size() == 6; }));
  for (const uint32_t member : {1u, 2u})
    EXPECT_EQ(sessions.LogOf(member, 1).messages, messages) << member;
  const auto synced = TakeSynced();
  EXPECT_EQ(synced.size(), 10u);  // five messages with bytes, two members
  const std::lock_guard lock(mutex_);
  for (const Mapping& file : files_) {
    const auto begin = reinterpret_cast<uintptr_t>(file.bytes().data());
    if (file.bytes().size() == 100) continue;
    EXPECT_THAT(synced, testing::Contains(testing::Pair(begin, file.bytes().size())));
  }
}

TEST_F(SyncTest, ADiskThatFailsEndsTheGroup) {
  Sessions sessions(3);
  Create(sessions);
  Set(/*is_held=*/false, EIO);
  const std::vector<std::byte> message = Bytes(5000, 1);
  ASSERT_TRUE(sessions[0].Send(1, message.data(), message.size()).ok());
  ASSERT_TRUE(
      sessions.Wait(1, Members(3), [](const GroupLog& log) { return log.failures.size() == 1; }));
  for (const uint32_t member : Members(3)) {
    const GroupLog log = sessions.LogOf(member, 1);
    EXPECT_THAT(log.failures.front(), HasSubstr(" has message 0 of 5000 bytes, but cannot write it "
                                                "to its file: Input/output error"));
    EXPECT_TRUE(log.delivered.empty());
    if (member != 0) {
      EXPECT_TRUE(log.completed.empty());
    }
  }
}

// The file behind a message is shortened before it is sent, or received. Catches a copy of our own
// of it, which is a SIGBUS; the kernel's is an error.
TEST_F(SyncTest, AFileThatHasShrunkEndsTheGroup) {
  for (const uint64_t bytes : {100u, 5000u, 60'000u, 3'000'000u}) {
    for (const bool is_senders : {true, false}) {
      for (const bool local_copies : {true, false}) {
        SCOPED_TRACE(testing::Message() << bytes << ", " << is_senders << ", " << local_copies);
        const pid_t child = fork();  // which may be killed
        if (child == 0) {
          ShrinkAndSend(bytes, is_senders, local_copies);
          _exit(HasFailure() ? 1 : 0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
      }
    }
  }
}

// msync() is content with pages that a file has no more. Catches a message that is delivered to a
// file that does not have it.
TEST_F(SyncTest, AFileThatShrinksWhileItIsWrittenEndsTheGroup) {
  Sessions sessions(3);
  Create(sessions);
  Set(/*is_held=*/true, 0);
  const std::vector<std::byte> message = Bytes(100'000, 1);
  ASSERT_TRUE(sessions[0].Send(1, message.data(), message.size()).ok());
  ASSERT_TRUE(sessions.Wait(1, {0}, [](const GroupLog& log) { return !log.completed.empty(); }));
  for (int i = 0; i < 1000 && std::filesystem::exists(folder_ / "200") == false; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // it is there, and waits
  ASSERT_EQ(truncate((folder_ / "200").c_str(), 100), 0);
  Set(/*is_held=*/false, 0);
  ASSERT_TRUE(
      sessions.Wait(1, Members(3), [](const GroupLog& log) { return log.failures.size() == 1; }));
  EXPECT_THAT(sessions.LogOf(0, 1).failures.front(),
              HasSubstr("but cannot write it to its file, which was truncated meanwhile"));
  EXPECT_EQ(sessions.LogOf(0, 1).failed_member, 2u);
  EXPECT_TRUE(sessions.LogOf(0, 1).delivered.empty());
  EXPECT_TRUE(sessions.LogOf(2, 1).completed.empty());
}

// A group that fails does not wait for a slow disk, and nothing is complete afterwards.
TEST_F(SyncTest, AFailureDoesNotWaitForTheDisk) {
  Sessions sessions(3);
  Create(sessions);
  Set(/*is_held=*/true, 0);
  const std::vector<std::byte> message = Bytes(5000, 1);
  ASSERT_TRUE(sessions[0].Send(1, message.data(), message.size()).ok());
  ASSERT_TRUE(sessions.Wait(1, {0}, [](const GroupLog& log) { return !log.completed.empty(); }));
  sessions.Kill(0);
  ASSERT_TRUE(
      sessions.Wait(1, {1, 2}, [](const GroupLog& log) { return log.failures.size() == 1; }));
  Set(/*is_held=*/false, 0);
  sessions.Create(3, {1, 2}, 1);
  test::ExpectDelivery(sessions, 3, {1, 2}, 1, {Bytes(10, 1)});
  for (const uint32_t member : {1u, 2u}) EXPECT_TRUE(sessions.LogOf(member, 1).completed.empty());
}

}  // namespace
}  // namespace prepost::sync_test
