// SPDX-License-Identifier: Apache-2.0
//
// PushRounds: sends what a source has to the receivers that lack something, as the root of a group
// of them and, when that fails, of another one of those who are left.
#ifndef PREPOST_TOOLS_PUSH_PUSH_ROUNDS_H_
#define PREPOST_TOOLS_PUSH_PUSH_ROUNDS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "prepost/prepost.h"
#include "tools/push/push_options.h"
#include "tools/push/push_receivers.h"
#include "tools/push/push_source.h"

namespace prepost::tools {

/// Used by one thread.
class PushRounds {
 public:
  /// All but the secret outlive it.
  PushRounds(PushSource& source, PushReceivers& receivers, const PushOptions& options,
             std::string secret);
  ~PushRounds();

  /// Until all members have written all messages, who have prepared for them. Errors: those of the
  /// source and of PushReceivers::Check(); kInterrupted; kEnvironment; kRejected: groups fail again
  /// and again.
  Status SendAll();
  /// After SendAll(): in all.
  uint64_t messages() const { return first_; }
  uint64_t sent_bytes() const { return sent_bytes_; }
  /// Of the last group.
  std::vector<LinkSpeed> Speeds() const;
  /// Why this machine has sent to each host itself, though something else was asked for; or "".
  const std::string& why_sequential() const { return why_sequential_; }

 private:
  using Clock = std::chrono::steady_clock;
  class GroupState;
  struct Message {
    std::unique_ptr<std::byte[]> memory;
    uint64_t bytes = 0;
  };

  Status OpenGroup();
  void SendGroup(PushReceiver& receiver, const std::vector<uint32_t>& numbers,
                 nlohmann::json addresses);
  void SendMessage(const Message& message);
  bool HasFailed() const;
  uint64_t MinWritten() const;
  uint64_t Written() const;
  void DropFirst();
  bool IsAllWritten() const { return is_read_ && window_.empty(); }
  Status SendInGroup();
  Status Pump(int max_ms, bool wants_stream);
  Status ReadMore();
  void NoteWaiting();
  void NotePaths();
  void ShowProgress();
  void TakeRate();
  Status CheckProgress();
  Status LookForRefused();
  std::string SlowHost() const;
  uint64_t NextBytes() const;
  std::string WhyNotConnected(const Status& cause) const;
  Status JudgeUnreached(const Status& cause, std::optional<uint32_t> where);
  void DropNamed(const Status& cause, std::optional<uint32_t> where);
  enum class Caller : uint8_t { kRoot, kHosts };  ///< of the root's connections
  bool GoSequential(const Status& cause, Caller caller);
  bool RootConnects() const;
  Status CauseOfFailure() const;
  Status WhoIsLeft(Status* cause);

  PushSource& source_;
  PushReceivers& receivers_;
  const PushOptions& options_;
  const std::string secret_;
  std::unique_ptr<GroupState> group_;
  std::unique_ptr<Session> session_;
  std::vector<PushReceiver*> of_group_;  ///< members of the last group
  uint64_t number_ = 0;                  ///< of it
  std::string algorithm_;                ///< of the next
  Caller caller_ = Caller::kRoot;        ///< then, where algorithm_ is sequential
  bool has_other_way_ = false;           ///< the next group is to be tried, with the same hosts
  bool was_opened_ = false;              ///< this machine has had all its connections
  bool has_looked_ = false;              ///< for hosts that refuse connections
  bool is_refused_ = false;              ///< and found some
  uint64_t written_before_ = 0;          ///< messages, by all members of the last group together
  uint64_t written_lately_ = 0;          ///< the same
  Clock::time_point sent_at_;            ///< since when nobody has written what was sent
  uint64_t acknowledged_bytes_ = 0;      ///< of what this machine has sent in it
  Clock::time_point acknowledged_at_;    ///< when that had grown
  std::string why_sequential_;           ///< though something else was asked for
  std::vector<LinkSpeed> own_speeds_;
  Status send_failure_;  ///< of it: a message could not be sent
  std::vector<std::unique_ptr<std::byte[]>> spare_;
  uint64_t first_ = 0;          ///< the first message that not all have written
  std::deque<Message> window_;  ///< from it on
  Message partial_;
  uint64_t partial_max_ = 0;  ///< bytes of it
  bool is_read_ = false;      ///< all, into window_
  bool is_stream_ready_ = false;
  bool has_noted_ = false;       ///< that nobody writes to the source
  std::set<std::string> noted_;  ///< of paths
  uint64_t sent_bytes_ = 0;
  uint64_t done_bytes_ = 0;     ///< written by all
  Clock::time_point rated_at_;  ///< when the rate was taken
  uint64_t rated_bytes_ = 0;    ///< done then
  double rate_ = 0;             ///< of late, bytes/s; 0: not known
  Clock::time_point moved_at_;  ///< when somebody had written something new
  uint64_t moved_ = 0;          ///< messages that all had written then, together
  std::optional<uint64_t> total_bytes_;
  Clock::time_point began_;
  Clock::time_point next_progress_;
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_PUSH_ROUNDS_H_
