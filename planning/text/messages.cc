// SPDX-License-Identifier: Apache-2.0
#include "planning/text/messages.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string_view>

#include "ir/base/utf8.h"
#include "runtime/base/thread.h"

namespace prepost {
namespace {

/// So many of the same warning are printed, one for each file of a folder.
constexpr size_t kWarningsOfAKind = 3;

}  // namespace

void PrintMessage(const std::string& text) {
  std::cerr << fmt::format("prepost: {}\n", PrintableLines(text));
}

void PrintFailure(const Status& status) {
  const std::string place = status.where().empty() ? "" : Printable(status.where()) + ": ";
  std::cerr << fmt::format("prepost: {}{}\n", place, PrintableLines(status.message()));
}

void PrintNote(const std::string& text) { PrintMessage("note: " + text); }

void PrintWarnings(const std::string& name, const std::vector<std::string>& warnings) {
  std::map<std::string, size_t> seen;  // by kind: the text behind the place
  for (const std::string& warning : warnings) {
    const size_t colon = warning.rfind(": ");
    const std::string kind = warning.substr(colon == std::string::npos ? 0 : colon + 2);
    if (++seen[kind] <= kWarningsOfAKind)
      PrintMessage(fmt::format("warning: {}: {}", name, warning));
  }
  for (const auto& [kind, count] : seen) {
    if (count <= kWarningsOfAKind) continue;
    PrintMessage(
        fmt::format("warning: {}: {} more times: {}", name, count - kWarningsOfAKind, kind));
  }
}

bool ShowsProgress() {
  const char* terminal = std::getenv("TERM");  // NOLINT: nobody sets it
  return isatty(STDERR_FILENO) != 0 && terminal != nullptr && *terminal != '\0' &&
         std::string_view(terminal) != "dumb";
}

Ticker::Ticker(std::string what) : what_(Printable(what)) {
  if (!ShowsProgress()) return;
  // Without a thread to tick on, the work goes on.
  Result<std::thread> thread = StartThread("the thread of a clock", [this] { Run(); });
  if (thread.ok()) thread_ = *std::move(thread);
}

Ticker::~Ticker() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Ticker::Say(std::string what) {
  if (!thread_.joinable()) return;
  const std::lock_guard lock(mutex_);
  what_ = Printable(what);
  Print();
}

void Ticker::Print() const {
  std::cerr << fmt::format("\r\033[K{}, {} s", what_, seconds_) << std::flush;
}

void Ticker::Run() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::seconds(1), [this] { return is_ended_; })) {
    ++seconds_;
    Print();
  }
  std::cerr << "\r\033[K" << std::flush;
}

}  // namespace prepost
