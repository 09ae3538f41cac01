// SPDX-License-Identifier: Apache-2.0
//
// PushOptions: what the caller of Push() wants (pusher.h), for its parts.
#ifndef PREPOST_TOOLS_PUSH_PUSH_OPTIONS_H_
#define PREPOST_TOOLS_PUSH_PUSH_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "prepost/prepost.h"
#include "tools/push/push_hosts.h"

namespace prepost::tools {

struct PushOptions {
  std::vector<PushHost> hosts;
  /// Words before the host's name; empty: a host called localhost is this machine, and the others
  /// are reached by ssh.
  std::vector<std::string> agent;
  std::string remote_command = "prepost";  ///< the command there
  std::string
      own_address;    ///< where hosts reach this machine; "": what it reaches each of them from
  uint16_t port = 0;  ///< where all listen; 0: anywhere
  bool keep_going = false;
  bool by_content = false;  ///< what a host has already is found by sums instead of sizes and times
  bool allow_devices = false;
  bool sync = false;
  bool is_strict = false;  ///< who cannot keep modes, times and owners has failed
  std::string algorithm = "auto";
  uint64_t block_bytes = 0;  ///< 0: chosen
  /// Of this machine, as those of hosts; "": none is named.
  std::string site;
  PathOptions paths = {};
  std::string device;  ///< what everybody has for the files, as for groups; "": TCP
  /// Over TCP nothing is encrypted. Nothing is anyhow where all hosts are processes of this
  /// machine.
  bool is_plain = false;
  std::chrono::milliseconds failure_max{15000};
  /// Nobody writes anything new, though all answer; 0: for ever.
  std::chrono::milliseconds no_progress_max{0};
  std::chrono::milliseconds connect_max{30000};
  /// For a receiver that says nothing, not even that it is alive: it may be in a long call of its
  /// disk.
  std::chrono::milliseconds silence_max{60000};
  int interrupt_fd = -1;
  /// Called some times a second with a line for the terminal; may be empty.
  std::function<void(const std::string& line)> progress;
  /// Called when it goes on without a host, or once more with all, and when somebody who does not
  /// come is waited for; may be empty.
  std::function<void(const std::string& text)> note = {};
};

/// For a receiver to connect to this machine, once all are listening; this machine waits a little
/// longer, so that the others, which know why not, say it first.
std::chrono::milliseconds JoinMax(const PushOptions& options);

/// Whether the receiver of `host` is a process of this machine.
bool IsHere(const PushOptions& options, const PushHost& host);
/// Whether groups seal their connections.
bool IsSealed(const PushOptions& options);

/// By member of the session; empty: none is named.
std::vector<std::string> SitesOf(const PushOptions& options);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_PUSH_OPTIONS_H_
