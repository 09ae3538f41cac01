// SPDX-License-Identifier: Apache-2.0
//
// Command: the built `prepost` as a child process of a test, with its output in files, and a look
// at its own children, the processes of a run's nodes.
#ifndef PREPOST_TESTS_SUPPORT_COMMAND_H_
#define PREPOST_TESTS_SUPPORT_COMMAND_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/file_descriptor.h"
#include "tests/support/temp_folder.h"

namespace prepost::test {

/// What takes longer than any test needs on a loaded machine is a hang.
constexpr std::chrono::seconds kHang{120};

/// Waits for the end of the process behind `pidfd` until `due`; whether it has ended.
inline bool WaitForEnd(int pidfd, std::chrono::steady_clock::time_point due) {
  pollfd ended = {.fd = pidfd, .events = POLLIN, .revents = 0};
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(due - std::chrono::steady_clock::now());
    const int timeout_ms = static_cast<int>(std::max<int64_t>(left.count(), 0));
    const int events = poll(&ended, 1, timeout_ms);
    if (events >= 0) return events == 1;
  }
}

class Command {
 public:
  /// Starts `prepost arguments...` in a process group of its own. `wrapper`, if any, is a command
  /// that executes its arguments.
  explicit Command(const std::vector<std::string>& arguments,
                   std::vector<std::string> wrapper = {}) {
    std::vector<std::string> words = std::move(wrapper);
    words.push_back(PREPOST_COMMAND);
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, 1, (folder_ / "out").c_str(), flags, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, (folder_ / "err").c_str(), flags, 0600);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    EXPECT_EQ(posix_spawn(&pid_, words[0].c_str(), &actions, &attributes, argv.data(), environ), 0);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    pidfd_ = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command() {
    if (!exit_code_) kill(-pid_, SIGKILL);
    Wait();
  }

  pid_t pid() const { return pid_; }

  /// Waits for the end; the exit code, or 128 + the signal. Fails the test and kills what hangs.
  int Wait() {
    if (!exit_code_) {
      if (!WaitForEnd(pidfd_.get(), std::chrono::steady_clock::now() + kHang)) {
        ADD_FAILURE() << "the command hangs, it is killed";
        kill(-pid_, SIGKILL);
      }
      int status = 0;
      EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return *exit_code_;
  }
  bool running() const {
    siginfo_t info = {};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  }

  /// What was printed; after Wait().
  std::string out() const { return ReadText(folder_ / "out"); }
  std::string err() const { return ReadText(folder_ / "err"); }
  size_t err_lines() const {
    const std::string text = err();
    return static_cast<size_t>(std::ranges::count(text, '\n'));
  }

  /// The processes of nodes that run now, by node.
  std::map<uint32_t, pid_t> Nodes() const {
    const std::string pid = std::to_string(pid_);
    std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
    std::map<uint32_t, pid_t> nodes;
    for (pid_t child = 0; children >> child;) {
      std::ifstream file("/proc/" + std::to_string(child) + "/comm");
      std::string name;
      std::getline(file, name);
      if (name.starts_with("prepost:"))
        nodes[static_cast<uint32_t>(std::stoul(name.substr(8)))] = child;
    }
    return nodes;
  }
  /// Waits until all `count` nodes run; false if the command ended before.
  bool WaitForNodes(size_t count) const {
    return WaitUntil([&] { return Nodes().size() == count; });
  }
  /// Waits until `condition` holds, looking every millisecond; false if the command ended before or
  /// hangs.
  bool WaitUntil(const std::function<bool()>& condition) const {
    const auto due = std::chrono::steady_clock::now() + kHang;
    while (!condition()) {
      if (!running() || std::chrono::steady_clock::now() > due) return false;
      poll(nullptr, 0, /*timeout=*/1);
    }
    return true;
  }

 private:
  TempFolder folder_;
  pid_t pid_ = -1;
  FileDescriptor pidfd_;
  std::optional<int> exit_code_;
};

/// What the command prints with `arguments`, which are expected to be right.
inline std::string OutputOf(const std::vector<std::string>& arguments) {
  Command command(arguments);
  EXPECT_EQ(command.Wait(), 0) << command.err();
  return command.out();
}

/// Of those that are shipped.
inline std::string ProfilePath(const std::string& name) {
  return PREPOST_SOURCE_DIR "/examples/profiles/" + name + ".json";
}

/// Runs a command that is to be refused: it ends with `code`, says so in one line that has `text`,
/// prints nothing else, and neither leaves nor takes a file in `folder`.
inline void ExpectRefused(const std::vector<std::string>& arguments, int code,
                          const std::string& text, const TempFolder& folder) {
  const size_t files = CountFiles(folder.path());
  Command command(arguments);
  EXPECT_EQ(command.Wait(), code) << text;
  EXPECT_NE(command.err().find(text), std::string::npos) << command.err() << "has no: " << text;
  EXPECT_EQ(command.err_lines(), 1u) << command.err();
  EXPECT_EQ(command.out(), "");
  EXPECT_EQ(CountFiles(folder.path()), files);
}

/// A process that is not a child of the test.
class Process {
 public:
  explicit Process(pid_t pid)
      : pid_(pid), pidfd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}

  void Signal(int signal) const { EXPECT_EQ(kill(pid_, signal), 0); }
  /// Lets it go on after a Stop(); it may have been ended meanwhile.
  void Continue() const { EXPECT_TRUE(kill(pid_, SIGCONT) == 0 || errno == ESRCH); }
  /// Stops it, and returns when it has stopped or ended.
  void Stop() const {
    EXPECT_TRUE(kill(pid_, SIGSTOP) == 0 || errno == ESRCH);
    while (!WaitForEnd(pidfd_.get(), std::chrono::steady_clock::now()) && State() != 'T') {
      poll(nullptr, 0, /*timeout=*/1);
    }
  }
  /// Waits for its end until `due`; whether it has ended.
  bool Ended(std::chrono::steady_clock::time_point due) const {
    return !pidfd_.valid() || WaitForEnd(pidfd_.get(), due);
  }

 private:
  /// As in proc(5): the first character behind the name.
  char State() const {
    const std::string stat = ReadText("/proc/" + std::to_string(pid_) + "/stat");
    const size_t name_end = stat.rfind(") ");
    return name_end == std::string::npos ? 'X' : stat[name_end + 2];
  }

  pid_t pid_;
  FileDescriptor pidfd_;  ///< empty: had ended already
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_COMMAND_H_
