// SPDX-License-Identifier: Apache-2.0
//
// RunMember: one node of a run as a member of a group (session/keeper.h, KeptRun), whose nodes are
// processes of one machine (local_node.h) or of several (node_group.h). The keeper's thread lets
// nodes find each other, notices who is gone or silent, and finds the cause, whatever a disk does
// meanwhile; the caller's prepares, plays and sums. All nodes take each step together:
//
//     armed      -> all are: start
//     delivered  with what it has done -> all have: the leader asks for sums, with its nonce
//     summed     with a proof -> the leader compares, and answers each with its own proof
//     done       the copy has its name -> all are: the end
//
// Sums are computed after all have delivered, so that they cost no node's transfer any time, and
// copies get their names only when all sums are equal. On one machine the leader, which is the
// launching process and plays no part, names them, and sums are not proved.
#ifndef PREPOST_RUNTIME_RUN_RUN_MEMBER_H_
#define PREPOST_RUNTIME_RUN_RUN_MEMBER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "runtime/executor/endpoint.h"
#include "runtime/executor/player.h"
#include "runtime/run/node_part.h"
#include "runtime/run/run_control.h"
#include "runtime/run/run_leader.h"
#include "runtime/run/sum_proof.h"
#include "runtime/session/attention.h"
#include "runtime/session/keeper.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost {

/// Pointers must outlive the member.
struct RunMemberTask {
  NodePartTask part;                  ///< without its player
  KeeperOptions keeper;               ///< without what the member adds: notify, attention, describe
  KeptGroup group;                    ///< `self` and `leader` are this node and who leads
  const SumProver* prover = nullptr;  ///< null: sums are not proved
  int interrupt_fd = -1;              ///< -1: none. Not owned
  /// Either of them: what the CPU executor goes over, or another player. With the connections that
  /// the keeper has opened, if it has. Called once.
  std::function<Result<std::unique_ptr<Endpoint>>(const PlayerContext& context,
                                                  std::vector<TcpSocket> sockets)>
      make_endpoint;
  std::function<Result<std::unique_ptr<Player>>(const PlayerContext& context,
                                                std::vector<TcpSocket> sockets)>
      make_player = {};
  /// Names the copy. May be empty.
  std::function<Status()> commit = {};
  /// At a leader that plays a part.
  std::optional<RunLeaderOptions> leads = {};
};

/// Used by one thread.
class RunMember {
 public:
  explicit RunMember(RunMemberTask task);

  /// Starts the keeper, which takes connections from then on. Errors: those of RunControl::Open().
  Status Open();
  /// From finding the others to the end. Errors: this node's own, those of others as the leader
  /// reports them, the loss of the leader (kRejected); kInterrupted.
  Status Run();

  /// After Run().
  const NodePart& part() const { return part_; }
  const MessageSum& sum() const { return sum_; }
  /// Null: this node does not lead.
  const RunLeader* leader() const { return leader_ ? &*leader_ : nullptr; }
  /// Run() has failed because the leader is gone, or does not answer.
  bool has_lost_leader() const { return control_.has_lost(leader_node_); }

 private:
  using Clock = std::chrono::steady_clock;

  NodePartTask PartTask();
  Status Play();
  Status Transfer();
  Result<std::unique_ptr<Player>> MakePlayer(const PlayerContext& context);
  Status Await(const bool& condition);
  Status Take(KeeperEvent& event);
  Status CheckPeers();
  Checkpoint Checking();
  void Publish();
  control::Progress Describe();
  ProvenSum OwnSum(ProvenSum::Sender sender) const;
  Status CheckLeadersSum() const;

  RunMemberTask task_;
  const NodeId node_;
  const NodeId leader_node_;
  const bool is_formed_;  ///< from the beginning: all are processes of one machine
  const std::chrono::milliseconds failure_max_;
  const std::chrono::milliseconds tick_;
  const std::chrono::milliseconds interval_;  ///< between two CheckPeers()
  Attention attention_;
  NodePart part_;
  Endpoint* endpoint_ = nullptr;  ///< the player's, if it is driven by this CPU
  Clock::time_point next_tick_;
  bool is_playing_ = false;
  uint64_t checkpoints_ = 0;  ///< progress outside of the transfer

  // What the keeper has said.
  std::vector<TcpSocket> sockets_;
  bool is_let_in_ = false;
  bool is_connected_ = false;
  bool may_start_ = false;
  bool may_sum_ = false;
  bool may_commit_ = false;
  uint64_t start_ns_ = 0;
  NonceBytes nonce_ = RandomNonce();
  NonceBytes leader_nonce_ = {};
  control::Commit commit_;  ///< the leader's sum of this copy
  MessageSum sum_;          ///< of this copy

  // For the keeper's thread.
  std::mutex mutex_;
  NodeReport so_far_;      ///< under mutex_
  std::string waits_for_;  ///< under mutex_
  uint64_t progress_ = 0;  ///< under mutex_: rises whenever there is some

  std::optional<RunLeader> leader_;
  RunControl control_;  ///< goes first: its keeper's thread calls back
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_RUN_RUN_MEMBER_H_
