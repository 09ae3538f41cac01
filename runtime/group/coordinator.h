// SPDX-License-Identifier: Apache-2.0
//
// Coordinator: leads the members of a group through the steps of a run (control_message.h), watches
// that they move, and finds the cause when one of them fails. It is the launcher's side of a run on
// one machine, and sees members as control connections only.
#ifndef PREPOST_RUNTIME_GROUP_COORDINATOR_H_
#define PREPOST_RUNTIME_GROUP_COORDINATOR_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/plan.h"
#include "ir/status.h"
#include "runtime/file_descriptor.h"
#include "runtime/files/message_sum.h"
#include "runtime/group/control_socket.h"
#include "runtime/report.h"

namespace prepost {

/// How the leader learns that a member's process has ended, if it can.
struct DeathWatch {
  int fd = -1;                    ///< readable when it has ended; not owned
  std::function<Status()> cause;  ///< then: why, an error
};

/// Used by one thread.
class Coordinator {
 public:
  struct Options {
    /// How long nothing may move anywhere in the group, or a member may not answer.
    std::chrono::milliseconds no_progress_max{30000};
    /// The run is interrupted when this is readable (InterruptSignals); -1: never. Not owned.
    int interrupt_fd = -1;
    /// Called about once a second with the bytes that all receivers have received together. May be
    /// empty.
    std::function<void(uint64_t bytes_received)> progress;
    /// Which sum each node's output must have, none: it has no output; asked when all are known.
    /// Empty: all must have the leader's.
    std::function<Result<std::vector<std::optional<MessageSum>>>()> expected = {};
  };
  Coordinator(uint32_t nodes, NodeId leader, Options options);

  /// From now on `node` is led over `control`. Each node once.
  void Join(NodeId node, ControlSocket control, DeathWatch death = {});

  /// To the point where all copies are known to be equal, as far as the options say that they are.
  /// `start_ns` is sent to all as the start, when all are
  /// ready; 0: each takes its own.
  ///
  /// Errors: a member failed or died, copies differ, nothing moved for too long (kRejected, or what
  /// the member says); kInterrupted. The message is one line that names the cause.
  Status Lead(const std::function<uint64_t()>& start_ns);
  /// Lets all members go, and waits a bounded time until they have gone.
  void Release();
  /// Reports to all members that the run has failed with `cause`, and waits a bounded time until
  /// they have gone.
  void Abort(const std::string& cause);

  /// What members have reported, and the time to the last completion.
  RunReport report() const;
  /// The sum of every copy. After Lead().
  MessageSum sum() const { return members_[leader_.index()].sum; }
  /// By node, those of outputs that differ. After Lead().
  MessageSum sum(NodeId node) const { return members_[node.index()].sum; }

 private:
  using Clock = std::chrono::steady_clock;
  using Kind = ControlMessage::Kind;

  struct Member {
    NodeId node;
    std::optional<ControlSocket> control;  ///< none: has not joined
    DeathWatch death;
    bool reached = false;     ///< the step that is awaited
    bool asked = false;       ///< kQuery, not answered yet
    uint32_t unanswered = 0;  ///< ticks since it was asked
    uint64_t progress = 0;
    std::string waiting;
    NodeReport report;
    MessageSum sum;

    bool is_open() const { return control && !control->closed(); }
  };

  Status Await(Kind kind);
  Status WaitForEvents(std::chrono::milliseconds timeout);
  Status Drain(Member& member);
  Status Handle(Member& member, const ControlMessage& message);
  Status Nonsense(const Member& member, const std::string& what) const;
  Status NoteLoss(Status loss);
  Status AfterTick();
  void Send(Member& member, const ControlMessage& message);
  void Ask(Member& member);
  Status Stalled(const std::string& what) const;
  Status CompareSums() const;
  void Broadcast(const ControlMessage& message);
  void Dismiss(const ControlMessage& message);

  const NodeId leader_;
  const Options options_;
  const std::chrono::milliseconds tick_;  ///< between questions to members
  std::vector<Member> members_;           ///< by node
  std::optional<Kind> awaited_;
  std::chrono::milliseconds idle_{0};
  uint64_t progress_ = 0;       ///< of all, at the last tick
  std::optional<Status> loss_;  ///< a lost connection whose cause has not shown up
  Clock::time_point loss_due_;  ///< when it is reported without
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_COORDINATOR_H_
