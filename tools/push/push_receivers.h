// SPDX-License-Identifier: Apache-2.0
//
// PushReceivers: the talk with the receivers on all hosts (push_protocol.h). It knows what each has
// said, and drops those that fail; what is said to them when is the business of others.
#ifndef PREPOST_TOOLS_PUSH_PUSH_RECEIVERS_H_
#define PREPOST_TOOLS_PUSH_PUSH_RECEIVERS_H_

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "runtime/transport/tcp/tcp_address.h"
#include "tools/push/agent_process.h"
#include "tools/push/file_attributes.h"
#include "tools/push/push_options.h"
#include "tools/push/slow_host.h"

namespace prepost::tools {

/// A host, and what its receiver has said.
struct PushReceiver {
  PushHost given;
  uint32_t member = 0;  ///< of the session; the pusher is 0
  AgentProcess agent;
  Status status;  ///< an error: it is out
  std::chrono::steady_clock::time_point heard;
  std::vector<TcpAddress> addresses;  ///< of the host, in the order in which they are tried
  std::string address_text;
  std::optional<uint16_t> port;
  std::optional<std::set<size_t>> have;
  bool lacks_something = false;
  bool writes_in_place = false;  ///< a pipe or device: what was written stays
  bool is_prepared = false;
  bool is_broken = false;  ///< since the group began
  std::string broken_text;
  bool is_unreached = false;      ///< because two members could not connect to each other
  bool has_left = false;          ///< since then
  uint64_t written = 0;           ///< messages
  uint64_t written_before = 0;    ///< the last group
  std::vector<LinkSpeed> speeds;  ///< from it to others, in the group at hand
  std::chrono::steady_clock::time_point last_written;
  std::optional<std::vector<std::string>> sums;  ///< of what it has received, by file
  bool is_committing = false;                    ///< it has been told to name its files
  bool is_done = false;
  bool has_closed = false;  ///< it says nothing more
  std::vector<Unkept> unkept;
  uint64_t bytes = 0;

  bool is_in() const { return status.ok(); }
  /// For a session: all of them.
  std::string host() const;
  bool is_member() const { return is_in() && lacks_something; }
};

/// Used by one thread.
class PushReceivers {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kPumpMs = 100;  ///< between polls of a clock
  static constexpr std::chrono::milliseconds kNever = std::chrono::milliseconds::max();

  /// `options` outlives it.
  explicit PushReceivers(const PushOptions& options);
  /// Ends the agents.
  ~PushReceivers();
  PushReceivers(const PushReceivers&) = delete;
  PushReceivers& operator=(const PushReceivers&) = delete;

  const std::vector<std::unique_ptr<PushReceiver>>& all() const { return receivers_; }
  /// Those that are in and lack something.
  std::vector<PushReceiver*> Members() const;
  /// Whether the others go on when one is out: as PushOptions says, unless changed. Returns what it
  /// was.
  bool set_keep_going(bool keep_going) { return std::exchange(keep_going_, keep_going); }
  bool keep_going() const { return keep_going_; }

  Status CheckInterrupt() const;
  /// Who is out, if that ends all; or that none is in.
  Status Check() const;
  /// It is out, because of `why`.
  static void Drop(PushReceiver& receiver, const std::string& why);
  /// One poll of all that may happen, `others` among it, whose `revents` it sets; `max_ms` at most.
  /// Errors: kInterrupted.
  Status Pump(int max_ms, std::span<pollfd> others = {});
  /// Pumps until `is_ready` of all that are in, or `max` is over: who is not ready then is out
  /// because of `late`. Errors: those of Check() and Pump().
  /// `what` they are waited for, "starting receivers", is shown as progress.
  Status Until(const std::string& what, const std::function<bool(const PushReceiver&)>& is_ready,
               std::chrono::milliseconds max, const std::string& late);
  /// Those that have said nothing for PushOptions::silence_max are out, if `is_awaited`: a disk
  /// that hangs holds a receiver, but neither its connections nor its session. Errors:
  /// kInterrupted.
  Status DropSilent(const std::function<bool(const PushReceiver&)>& is_awaited);
  /// A session speaks of members, "member 3 (address)" or "member 3"; people know hosts.
  std::string NameHosts(std::string text) const;
  /// Why the group is over, as `receiver` has said it, with the host that says so.
  std::string WordsOf(const PushReceiver& receiver) const;

 private:
  void ShowWaiting(const std::string& what,
                   const std::function<bool(const PushReceiver&)>& is_ready) const;
  void Hear(PushReceiver& receiver);
  void Obey(PushReceiver& receiver, const nlohmann::json& line);

  const PushOptions& options_;
  bool keep_going_;
  std::vector<std::unique_ptr<PushReceiver>> receivers_;
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_PUSH_RECEIVERS_H_
