// SPDX-License-Identifier: Apache-2.0
//
// What the command says on stderr: messages, and progress where that is a terminal. Texts quote
// files and arguments, so they are Printable(); of line breaks only those remain that two spaces
// follow, by which our own texts go on.
#ifndef PREPOST_PLANNING_TEXT_MESSAGES_H_
#define PREPOST_PLANNING_TEXT_MESSAGES_H_

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ir/base/status.h"

namespace prepost {

/// "prepost: `text`".
void PrintMessage(const std::string& text);
/// "prepost: where: message"; what names the place goes on no further line.
void PrintFailure(const Status& status);
/// The same, of what is no error: "prepost: note: `text`".
void PrintNote(const std::string& text);
/// What was read of `name` and is only warned of: the first few of a kind, and how many more there
/// are.
void PrintWarnings(const std::string& name, const std::vector<std::string>& warnings);

/// Whether stderr is a terminal that can clear a line: where TERM is dumb or missing, no progress
/// is shown.
bool ShowsProgress();

/// Prints "what, 3 s" over itself on stderr while it lives, if that ShowsProgress(), and clears the
/// line at its end.
class Ticker {
 public:
  explicit Ticker(std::string what);
  ~Ticker();
  /// Prints `what` at once, and from now on. From any thread.
  void Say(std::string what);
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void Run();

  void Print() const;  ///< under mutex_

  std::mutex mutex_;
  std::string what_;
  int seconds_ = 0;  ///< since it began
  std::condition_variable ended_;
  bool is_ended_ = false;
  std::thread thread_;  ///< only at a terminal
};

}  // namespace prepost

#endif  // PREPOST_PLANNING_TEXT_MESSAGES_H_
