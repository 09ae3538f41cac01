// SPDX-License-Identifier: Apache-2.0
//
// Member: what one node does in a run, whoever leads it and whatever plays its part: prepare
// its memory or file, play its program, sum what it has, and end when the leader ends the run or
// when the leader is gone.
#ifndef PREPOST_RUNTIME_GROUP_MEMBER_H_
#define PREPOST_RUNTIME_GROUP_MEMBER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint.h"
#include "runtime/files/message_file.h"
#include "runtime/files/node_buffer.h"
#include "runtime/group/control_socket.h"
#include "runtime/group/sum_proof.h"
#include "runtime/mapping.h"
#include "runtime/op_times.h"
#include "runtime/playable.h"
#include "runtime/player.h"
#include "runtime/wait_policy.h"

namespace prepost {

/// As a time to wait at most: without end.
inline constexpr std::chrono::milliseconds kForever{-1};

/// Pointers and references must outlive the Member.
struct MemberTask {
  Playable plan;  ///< verified
  NodeId node;
  const MappedInput* input = nullptr;  ///< the root's; elsewhere null unless it is at hand
  NodeBuffer* buffer = nullptr;        ///< everyone else's, open
  /// Of another collective than a multicast: the input has this node's from this byte on, and may be
  /// null where that is empty; `buffer` is its output, if it has any, and these are its scratch
  /// buffers, open.
  uint64_t input_offset = 0;
  NodeBuffer* scratch = nullptr;
  PlayerFactory make_player;  ///< called once, when the buffer is reserved
  /// The player touches the message itself, as a NIC does: then it is given memory that no file
  /// backs, read before the start and written to the file after the end.
  bool in_memory = false;
  std::function<Status()> commit;  ///< for kCommit; may be empty
  /// How sums are proved. None: by nothing, where `control` is the launcher's socket pair.
  std::optional<SumProver> prover = {};
  WaitPolicy wait;
  RunTrace* trace = nullptr;  ///< null: none
  ControlSocket control;
  std::string leader;  ///< in messages, e.g. "the launching process"
  /// The member is interrupted when this is readable (InterruptSignals); -1: never.
  int interrupt_fd = -1;
  /// How long the leader may say nothing, before its first word and between two; its own interval
  /// counts if that is longer. 0: for ever.
  std::chrono::milliseconds first_word_max{0};
  std::chrono::milliseconds silence_max{0};
};

/// Used by one thread.
class Member {
 public:
  explicit Member(MemberTask task);

  /// From preparation to release. Errors: those of its files, its player and `commit`; the leader
  /// is gone, silent, sends nonsense or a sum that is not proved, or says that the run has failed
  /// (kRejected); kInterrupted.
  Status Run();
  /// Ends the player, reports to the leader that Run() has failed, and waits until it has ended the
  /// run, for up to `max` (negative: for ever). The cause: `failure` or, if that is only a lost
  /// peer, what the leader says.
  Status ReportFailure(const Status& failure, std::chrono::milliseconds max);
  /// After Run(): what it did, and what its copy sums to.
  const NodeReport& report() const { return report_; }
  const std::vector<QueueRearms>& queue_rearms() const { return queue_rearms_; }
  const MessageSum& sum() const { return sum_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Kind = ControlMessage::Kind;

  bool is_target() const { return task_.plan.header().roles().IsTarget(task_.node); }
  Status Prepare();
  Result<NodeMemory> PrepareMemory();
  Result<NodeMemory> PrepareRooms();
  Status Transfer(uint64_t start_ns);
  Status Sum();
  ProvenSum SumFrom(ProvenSum::Sender sender) const;
  Status CheckLeadersSum(const ControlMessage& commit) const;
  Result<ControlMessage> Await(Kind kind);
  Status AnswerQueries();
  Status Handle(const ControlMessage& message);
  std::optional<ControlMessage> Receive();
  Status CheckLeader();
  Status WaitForControl(Clock::time_point due);
  std::chrono::milliseconds SilenceLeft() const;
  Checkpoint Answering();

  MemberTask task_;
  FileDescriptor wake_;  ///< epoll: control and interrupt
  Mapping message_;      ///< the root's, or the node's input, if it is to be in memory
  /// Of another collective than a multicast, in memory: what a device is told of besides.
  Mapping staging_;
  std::unique_ptr<const BlockPlaces> places_;
  std::unique_ptr<Player> player_;
  uint64_t checkpoints_ = 0;  ///< progress outside of the transfer
  Clock::time_point heard_;   ///< of the leader, last
  std::chrono::milliseconds silence_max_;
  bool is_aborted_ = false;      ///< the leader has said so
  bool is_leader_lost_ = false;  ///< gone or silent
  NodeReport report_;
  std::vector<QueueRearms> queue_rearms_;
  NonceBytes nonce_ = {};         ///< for proofs
  NonceBytes leader_nonce_ = {};  ///< of the leader
  MessageSum sum_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_MEMBER_H_
