// SPDX-License-Identifier: Apache-2.0
#include "tools/report/ticker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <system_error>

#include "ir/utf8.h"

namespace prepost::tools {

bool ShowsProgress() {
  const char* terminal = std::getenv("TERM");  // NOLINT: nobody sets it
  return isatty(STDERR_FILENO) != 0 && terminal != nullptr && *terminal != '\0' &&
         std::string_view(terminal) != "dumb";
}

Ticker::Ticker(std::string what) : what_(Printable(what)) {
  if (!ShowsProgress()) return;
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error&) {
    // No thread to tick on: the work goes on without.
  }
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

void Ticker::Run() {
  std::unique_lock lock(mutex_);
  for (int seconds = 1;
       !ended_.wait_for(lock, std::chrono::seconds(1), [this] { return is_ended_; }); ++seconds) {
    std::cerr << fmt::format("\r\033[K{}, {} s", what_, seconds) << std::flush;
  }
  std::cerr << "\r\033[K" << std::flush;
}

}  // namespace prepost::tools
