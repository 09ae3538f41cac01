// SPDX-License-Identifier: Apache-2.0
//
// Member: one node of a run on this machine, led by the launching process (coordinator.h) over a
// socket pair: prepares, plays and sums its part, and ends when the launcher ends the run or is gone.
#ifndef PREPOST_RUNTIME_GROUP_MEMBER_H_
#define PREPOST_RUNTIME_GROUP_MEMBER_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/checkpoint.h"
#include "runtime/group/control_socket.h"
#include "runtime/group/node_part.h"

namespace prepost {

/// Used by one thread.
class Member {
 public:
  /// `leader`: in messages, "the launching process".
  Member(NodePartTask part, ControlSocket control, std::string leader);

  /// From preparation to release. Errors: those of its files and its player; the leader is gone,
  /// sends nonsense, or says that the run has failed (kRejected).
  Status Run();
  /// Ends the player, reports to the leader that Run() has failed, and waits until it has ended the
  /// run. The cause: `failure` or, if that is only a lost peer, what the leader says.
  Status ReportFailure(const Status& failure);

 private:
  using Kind = ControlMessage::Kind;

  Status Transfer(uint64_t start_ns);
  Result<ControlMessage> Await(Kind kind);
  Status AnswerQueries();
  Status Handle(const ControlMessage& message);
  Status CheckLeader();
  Status WaitForControl();
  Checkpoint Answering();

  ControlSocket control_;  // goes last: then the leader may end this process
  const std::string leader_;
  NodePart part_;
  uint64_t checkpoints_ = 0;  ///< progress outside of the transfer
  bool is_aborted_ = false;   ///< the leader has said so
  bool is_leader_lost_ = false;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_MEMBER_H_
