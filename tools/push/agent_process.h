// SPDX-License-Identifier: Apache-2.0
//
// AgentProcess: the command that runs a receiver on a host, ssh or what the user has, with a
// channel to it.
#ifndef PREPOST_TOOLS_PUSH_AGENT_PROCESS_H_
#define PREPOST_TOOLS_PUSH_AGENT_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"
#include "tools/push/line_channel.h"

namespace prepost::tools {

/// Move only. Used by one thread.
class AgentProcess {
 public:
  /// Starts `words`, with default signals, in a process group of its own: Ctrl-C is ours to handle.
  /// Errors (kEnvironment): it cannot be started.
  static Result<AgentProcess> Start(const std::vector<std::string>& words);

  AgentProcess() = default;
  AgentProcess(AgentProcess&& other) noexcept;
  AgentProcess& operator=(AgentProcess&& other) noexcept;
  ~AgentProcess() { EndAll({this}, kEndMaxMs); }

  /// How long a receiver has to clean up and go.
  static constexpr int kEndMaxMs = 2000;
  /// Ends those that have not ended, all at the same time: their receivers hear of the end of their
  /// input, clean up and go. What has not gone after `max_ms` is killed.
  static void EndAll(const std::vector<AgentProcess*>& agents, int max_ms);

  LineChannel& channel() { return channel_; }
  int errors_fd() const { return errors_.get(); }
  /// Takes in what it writes to stderr; false at the end.
  bool FillErrors();
  void HangUp() { channel_.HangUp(); }
  /// Waits, `max_ms` at most, for its end. What it says about it: the last lines of its stderr, or
  /// how it ended.
  std::string LastWords(int max_ms);

 private:
  static bool ReapAll(const std::vector<AgentProcess*>& agents, int max_ms);

  pid_t pid_ = -1;
  int status_ = 0;  ///< of waitpid(), when pid_ is -1 again
  LineChannel channel_;
  FileDescriptor errors_;
  std::string error_text_;
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_AGENT_PROCESS_H_
