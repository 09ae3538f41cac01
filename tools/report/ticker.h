// SPDX-License-Identifier: Apache-2.0
//
// Ticker: tells a user at a terminal what long work is at, a second after it began and every second
// from then on.
#ifndef PREPOST_TOOLS_REPORT_TICKER_H_
#define PREPOST_TOOLS_REPORT_TICKER_H_

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace prepost::tools {

/// Whether stderr is a terminal that can clear a line: where TERM is dumb or missing, no progress is
/// shown.
bool ShowsProgress();

/// Prints "what, 3 s" over itself on stderr while it lives, if that ShowsProgress(), and clears the
/// line at its end.
class Ticker {
 public:
  explicit Ticker(std::string what);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void Run();

  const std::string what_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_ended_ = false;
  std::thread thread_;  ///< only at a terminal
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_TICKER_H_
