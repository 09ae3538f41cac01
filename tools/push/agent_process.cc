// SPDX-License-Identifier: Apache-2.0
#include "tools/push/agent_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

namespace prepost::tools {
namespace {

constexpr int kReapStepMs = 5;
constexpr size_t kErrorTextMax = 4096;
constexpr size_t kLastLinesMax = 4;  ///< of its stderr, in a verdict

struct Pipe {
  FileDescriptor read_end, write_end;
};

bool MakePipe(Pipe* made) {
  std::array<int, 2> files = {};
  if (pipe2(files.data(), O_CLOEXEC) != 0) return false;
  made->read_end = FileDescriptor(files[0]);
  made->write_end = FileDescriptor(files[1]);
  return true;
}

/// The last `max` lines of `text` that are not empty, in one.
std::string LastLines(const std::string& text, size_t max) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    std::string line = text.substr(begin, end - begin);
    while (line.ends_with(' ')) line.pop_back();
    if (!line.empty()) lines.push_back(std::move(line));
    begin = end + 1;
  }
  if (lines.size() > max) lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(max));
  return fmt::format("{}", fmt::join(lines, "; "));
}

}  // namespace

Result<AgentProcess> AgentProcess::Start(const std::vector<std::string>& words) {
  const auto fail = [&words](int error) {
    return SystemError(StatusCode::kEnvironment, fmt::format("cannot start {}", words.front()),
                       error);
  };
  Pipe in, out, errors;
  if (!MakePipe(&in) || !MakePipe(&out) || !MakePipe(&errors)) return fail(errno);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read_end.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.write_end.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, pipe_only;
  sigemptyset(&none);
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &pipe_only);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  AgentProcess process;
  const int error =
      posix_spawnp(&process.pid_, argv.front(), &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    process.pid_ = -1;
    return fail(error);
  }
  process.channel_ = LineChannel(std::move(out.read_end), std::move(in.write_end));
  process.errors_ = std::move(errors.read_end);
  fcntl(process.errors_.get(), F_SETFL, O_NONBLOCK);
  return process;
}

AgentProcess::AgentProcess(AgentProcess&& other) noexcept { *this = std::move(other); }

AgentProcess& AgentProcess::operator=(AgentProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(status_, other.status_);
  std::swap(channel_, other.channel_);
  std::swap(errors_, other.errors_);
  std::swap(error_text_, other.error_text_);
  return *this;
}

void AgentProcess::EndAll(const std::vector<AgentProcess*>& agents, int max_ms) {
  for (AgentProcess* const agent : agents) agent->HangUp();
  if (ReapAll(agents, max_ms)) return;
  for (const AgentProcess* const agent : agents) {
    if (agent->pid_ != -1) kill(-agent->pid_, SIGKILL);
  }
  ReapAll(agents, max_ms);
}

/// Waits for their ends; false: not all have come.
bool AgentProcess::ReapAll(const std::vector<AgentProcess*>& agents, int max_ms) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point due = Clock::now() + std::chrono::milliseconds(max_ms);
  for (;;) {
    bool is_any_left = false;
    for (AgentProcess* const agent : agents) {
      if (agent->pid_ == -1) continue;
      if (waitpid(agent->pid_, &agent->status_, WNOHANG) == agent->pid_) {
        agent->pid_ = -1;
      } else {
        is_any_left = true;
      }
    }
    if (!is_any_left) return true;
    if (Clock::now() >= due) return false;
    poll(nullptr, 0, kReapStepMs);
  }
}

bool AgentProcess::FillErrors() {
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = read(errors_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) {
      errors_.Close();
      return false;
    }
    error_text_.append(buffer.data(), static_cast<size_t>(got));
    if (error_text_.size() > kErrorTextMax)
      error_text_.erase(0, error_text_.size() - kErrorTextMax);
  }
}

std::string AgentProcess::LastWords(int max_ms) {
  const bool has_ended = ReapAll({this}, max_ms);
  if (errors_.valid()) FillErrors();
  std::string text = LastLines(error_text_, kLastLinesMax);
  constexpr int kNoSuchCommand = 127;  // what shells, and so ssh, say
  if (has_ended && WIFEXITED(status_) && WEXITSTATUS(status_) == kNoSuchCommand)
    text += (text.empty() ? "" : "; ") +
            std::string("--remote-command says where prepost is on the hosts");
  if (!text.empty()) return text;
  if (!has_ended) return "it has closed its output";
  if (WIFSIGNALED(status_)) {
    const int signal = WTERMSIG(status_);
    return fmt::format("its remote shell was killed by signal {} ({})", signal, strsignal(signal));
  }
  return fmt::format("its remote shell ended with exit code {}", WEXITSTATUS(status_));
}

}  // namespace prepost::tools
