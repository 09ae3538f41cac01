// SPDX-License-Identifier: Apache-2.0
//
// Programs that fork while they have sessions, whose files are closed in the child at once, and
// which can do nothing there; that have few files; and that close files which are not theirs.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "prepost/prepost.h"
#include "tests/support/sanitizers.h"
#include "tests/support/sessions.h"

namespace prepost::forks_test {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::GroupLog;
using test::Members;
using test::Sessions;
using ::testing::HasSubstr;

bool IsOpen(const GroupLog& log) { return log.opened == 1; }
bool HasFailed(const GroupLog& log) { return log.failures.size() == 1; }
bool IsFileOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

std::set<int> OpenFiles() {
  std::set<int> files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    files.insert(std::stoi(entry.path().filename()));
  std::erase_if(files, [](int fd) { return !IsFileOpen(fd); });  // that of the folder itself
  return files;
}
std::set<int> FilesSince(const std::set<int>& before) {
  std::set<int> files = OpenFiles();
  std::erase_if(files, [&](int fd) { return before.contains(fd); });
  return files;
}

/// What `child` returns in a fork of this process; -1: it ended otherwise.
template <typename Child>
int InFork(Child child) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);  // locks that no thread opens
    _exit(child());
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Catches connections that a child keeps open, threads that it waits for, and files of its own that
// it closes with its parent's.
TEST(ForksTest, AChildHasNothingOfItsParentsSessions) {
  const std::set<int> before = OpenFiles();
  std::optional<Sessions> sessions(std::in_place, 2u);
  const std::vector<uint32_t> members = Members(2);
  sessions->Create(1, members, 0);
  ASSERT_TRUE(sessions->Wait(1, members, IsOpen));
  const std::shared_ptr<MemoryPool> pool = *MemoryPool::Make(100, 1);
  const std::set<int> files = FilesSince(before);
  ASSERT_GE(files.size(), 14u);  // five of each session, its listener, and connections
  const int failed_step = InFork([&] {
    for (const int fd : files) {
      if (IsFileOpen(fd)) return 1;
    }
    const auto is_usage = [](const Status& status) { return status.code() == StatusCode::kUsage; };
    for (const uint32_t member : members) {
      Session& session = (*sessions)[member];
      GroupCallbacks callbacks;
      callbacks.incoming = [](uint64_t, uint64_t) { return nullptr; };
      if (!is_usage(session.CreateGroup(2, members, 0, {}, callbacks))) return 2;
      if (!is_usage(session.Send(1, "x", 1).status())) return 3;
      if (!is_usage(session.Barrier(1, {})) || !is_usage(session.DestroyGroup(1))) return 4;
      if (!is_usage(session.AbortGroup(1, "x")) || !is_usage(session.Paths(1).status())) return 5;
      if (!is_usage(session.SetAddress(1 - member, {"127.0.0.1"}))) return 6;
      if (session.fd() != -1 || session.Poll(milliseconds(0)).ok()) return 7;
      session.Resume();
    }
    if (pool->Give(pool.get()).ok() || pool->free_buffers() != 0) return 8;
    std::set<int> own;  // of the same numbers
    while (own.size() < files.size()) own.insert(open("/dev/null", O_RDONLY | O_CLOEXEC));
    sessions.reset();
    for (const int fd : own) {
      if (!IsFileOpen(fd)) return 9;
    }
    for (const int fd : own) close(fd);
    if (test::kHasThreadSanitizer) return 0;  // which has no threads in a child of several
    Sessions next(2);
    next.Create(1, members, 0);
    return next.Wait(1, members, IsOpen) ? 0 : 10;
  });
  EXPECT_EQ(failed_step, 0);
  ExpectDelivery(*sessions, 1, members, 0, {Bytes(100'000, 1)});
}

// Catches files that a fork misses while they are made, and numbers that are the program's
// meanwhile.
TEST(ForksTest, AChildHasTheProgramsFilesAndNoOthers) {
  const std::set<int> before = OpenFiles();
  std::atomic<bool> is_over = false;
  std::mutex mutex;
  std::set<int> own;
  std::thread program([&] {
    for (int turn = 0; !is_over; ++turn) {
      const std::lock_guard lock(mutex);
      if (turn % 4 != 3) {
        own.insert(open("/dev/null", O_RDONLY | O_CLOEXEC));
      } else {
        for (const int fd : std::exchange(own, {})) close(fd);
      }
    }
    for (const int fd : own) close(fd);
  });
  {
    Sessions sessions(2);
    std::thread groups([&] {
      for (uint64_t number = 1; !is_over; ++number) {
        sessions.Create(number, Members(2), 0);
        EXPECT_TRUE(sessions.Wait(number, Members(2), IsOpen));
        EXPECT_TRUE(sessions[0].AbortGroup(number, "").ok());
        EXPECT_TRUE(sessions.Wait(number, Members(2), HasFailed));
      }
    });
    for (int i = 0; i < 40; ++i) {
      const std::lock_guard lock(mutex);
      const int wrong = InFork([&] {
        std::set<int> found;
        for (int fd = 0; fd < 1000; ++fd) {
          if (IsFileOpen(fd) && !before.contains(fd)) found.insert(fd);
        }
        return found == own ? 0 : 1;
      });
      if (wrong != 0) ADD_FAILURE() << "fork " << i << ": " << wrong;
    }
    is_over = true;
    groups.join();
  }
  program.join();
}

// Of a process that has a child. Catches connections that the child keeps open: the other members
// notice nothing until they ask, and no process can listen at the address.
TEST(ForksTest, AParentsEndIsNoticedThoughItsChildLives) {
  constexpr milliseconds kFailureMax{10'000};
  SessionOptions options;
  options.members = test::SessionAddresses(2);
  options.secret = "a secret of more than 16 bytes";
  options.failure_max = kFailureMax;
  int alive[2];
  ASSERT_EQ(pipe2(alive, O_CLOEXEC), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    options.self = 1;
    auto session = Session::Open(options);
    std::atomic<bool> is_open = false;
    GroupCallbacks callbacks;
    callbacks.incoming = [](uint64_t, uint64_t) { return nullptr; };
    callbacks.opened = [&] { is_open = true; };
    if (!session.ok() || !(*session)->CreateGroup(1, {0, 1}, 0, {}, callbacks).ok()) _exit(1);
    while (!is_open) usleep(1000);
    close(alive[1]);
    if (fork() != 0) kill(getpid(), SIGKILL);
    char byte = 0;
    _exit(read(alive[0], &byte, 1) == 0 ? 0 : 1);  // until the test is over
  }
  Sessions sessions(1, options);
  ASSERT_TRUE(sessions[0].CreateGroup(1, {0, 1}, 0, {}, sessions.Callbacks(0, 1)).ok());
  ASSERT_TRUE(sessions.Wait(1, {0}, HasFailed));
  EXPECT_THAT(sessions.LogOf(0, 1).failures.front(), HasSubstr(" is gone"));
  waitpid(parent, nullptr, 0);
  options.self = 1;
  EXPECT_EQ(Session::Open(options).status().ToString(), "");
  close(alive[0]);
  close(alive[1]);
}

// Catches a limit that each group is within, and all together are not.
TEST(FileLimitTest, GroupsHaveRoomBeyondTheSoftLimit) {
  constexpr uint64_t kGroups = 30;
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 64;
  if (few.rlim_max < 1024) GTEST_SKIP() << "the hard limit of open files is " << few.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  {
    SessionOptions options;
    options.connect_max = milliseconds(5000);
    Sessions sessions(2, options);
    for (uint64_t number = 0; number < kGroups; ++number) sessions.Create(number, Members(2), 0);
    for (uint64_t number = 0; number < kGroups; ++number)
      EXPECT_TRUE(sessions.Wait(number, Members(2), IsOpen)) << number;
    rlimit now = {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
    EXPECT_GE(now.rlim_cur, 64 + OpenFiles().size());  // what the program had is still its own
    EXPECT_LT(now.rlim_cur, 4096u);
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

// As a daemon does that closes all files. Catches the library's own checks, which end the program,
// and threads that nothing wakes any more.
TEST(ClosedFilesTest, EndGroupsAndNotTheProgram) {
  struct Part {
    std::set<int> files;
    std::unique_ptr<Sessions> sessions;
  };
  std::vector<Part> parts;
  for (size_t i = 0; i < 7; ++i) {
    const std::set<int> before = OpenFiles();
    SessionOptions options;
    options.failure_max = milliseconds(500);
    options.members = {{.host = "127.0.0.1", .port = 0}};
    Part& part = parts.emplace_back();
    part.sessions = std::make_unique<Sessions>(1, options);
    part.sessions->Create(1, {0}, 0);
    ASSERT_TRUE(part.sessions->Wait(1, {0}, IsOpen));
    part.files = FilesSince(before);
  }
  ASSERT_EQ(parts[0].files.size(), 6u);  // each alone, and all of them
  for (size_t i = 0; i < 7; ++i) {
    size_t place = 0;
    for (const int fd : parts[i].files) {
      // Not close(): the thread sanitizer knows that others use the file.
      if (i == 6 || place++ == i) syscall(SYS_close, fd);
    }
    static_cast<void>(parts[i].sessions->operator[](0).Barrier(1, {}));
  }
  for (size_t i = 0; i < 7; ++i) {
    SCOPED_TRACE(i);
    EXPECT_TRUE(parts[i].sessions->Wait(1, {0}, HasFailed));
    EXPECT_THAT(parts[i].sessions->LogOf(0, 1).failures.front(), HasSubstr("file descriptor"));
  }
  std::vector<std::thread> ends;
  for (Part& part : parts) ends.emplace_back([&part] { part.sessions.reset(); });
  for (std::thread& end : ends) end.join();
}

}  // namespace
}  // namespace prepost::forks_test
