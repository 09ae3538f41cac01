// SPDX-License-Identifier: Apache-2.0
//
// What a keeper knows of a group; for its own files alone.
#ifndef PREPOST_RUNTIME_SESSION_KEEPER_GROUP_H_
#define PREPOST_RUNTIME_SESSION_KEEPER_GROUP_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/group/gate_tree.h"
#include "runtime/session/introduction.h"
#include "runtime/session/keeper.h"
#include "runtime/transport/tcp/tcp_watch.h"

namespace prepost {

/// A number for each gate.
struct GateCounts {
  uint64_t& operator[](Gate gate) { return counts[static_cast<size_t>(gate)]; }
  uint64_t operator[](Gate gate) const { return counts[static_cast<size_t>(gate)]; }

  std::array<uint64_t, kGates> counts = {};
};

/// The other end of a control connection: at the leader any node, elsewhere the leader.
struct Keeper::Peer {
  NodeId node;
  std::optional<ControlSocket> control;
  Clock::time_point heard;
  bool has_spoken = false;    ///< since it has this connection
  bool has_answered = false;  ///< at the leader: so that it knows which group this is
  // So many messages more may be read of it, as of `allowed_at`; and how many have said nothing
  // new since `repeats_since`.
  double allowance = 0;
  Clock::time_point allowed_at;
  uint32_t repeats = 0;
  Clock::time_point repeats_since;
  uint64_t have = 0;  ///< messages
  GateCounts arrived;
  bool joined = false;  ///< it has all its connections
  bool done = false;
  uint64_t barriers = 0;         ///< when done: how many it has come to
  Clock::time_point claimed_at;  ///< at the leader: when a claim of its was told to all
  // Of a run, at the leader: its last answer.
  uint64_t progress = 0;
  std::string waiting;
};

/// A connection, until the two ends know each other.
struct Keeper::Newcomer {
  std::unique_ptr<TcpSocket> socket;           ///< at one place, for the introduction
  std::unique_ptr<Introduction> introduction;  ///< null: it is over, or there is none
  TcpWatch watch;
  Clock::time_point since;
  bool is_eager = false;  ///< it is along the EagerTree
};

struct Keeper::Group {
  KeptGroup kept;
  FileRoom files;
  std::vector<FileRoom> stream_files;
  std::vector<FileRoom> memory_files;
  /// Null: connected, and nothing is to be opened later.
  std::unique_ptr<Bootstrap> bootstrap;
  std::shared_ptr<BlockStage> stage;  ///< null: no peer has wanted it so far
  bool is_formed = false;             ///< this node has the connections that the group begins with
  uint64_t generation = 0;            ///< the leader's word
  uint64_t announced = 0;             ///< not at the leader: messages, for a mover
  control::Waiting claim;             ///< at the leader: what was told to all last
  Clock::time_point claimed_at;
  uint32_t claims = 0;  ///< that were passed on since `claims_since`
  Clock::time_point claims_since;
  bool is_done = false;   ///< this node
  bool has_last = false;  ///< not at the leader: it has said how many there are
  std::vector<Newcomer> newcomers;
  /// All members have all their connections: those that do not say who they are by then never will.
  std::optional<Clock::time_point> introductions_due;
  Clock::time_point join_due;  ///< since this node has joined: by then all have
  bool is_reported = false;    ///< the engine has its first connections
  std::vector<Peer> peers;     ///< at the leader by node, itself included
  GateTree tree{1, NodeId(0)};
  std::vector<NodeId> children;  ///< of this node in `tree`
  std::vector<Peer> gates;       ///< those of its neighbours in `tree` that are not in `peers`
  Clock::time_point next_sign;   ///< of life, to `gates`
  Clock::time_point next_question;
  uint64_t delivered = 0;
  // Of a run, at the leader: what all have reported together, and since when nothing new.
  uint64_t progress = 0;
  Clock::time_point progress_at;
  GateCounts passed;
  GateCounts arrived;                     ///< this node
  GateCounts reported;                    ///< it and all below it, up the tree
  std::optional<OtherTerms> other_terms;  ///< of a member that came with them while it formed
  std::set<NodeId> other_leaders;         ///< not at the leader: who has asked once with others
  std::set<Caller> refused;               ///< not at the leader: who has called it as theirs
  /// When the last group of these members and this number has ended here, before it was formed.
  std::optional<Clock::time_point> former_ended;
  std::vector<Failure> suspicions;  ///< lost connections, one of each member that says so
  Clock::time_point suspicion_due;
  std::optional<Clock::time_point> gathered_at;  ///< at the leader: all have joined
  std::vector<Stall> stalls;       ///< at the leader: not judged yet, one by each member
  std::optional<Failure> finding;  ///< at the leader: a member is gone, and others may go with it
  Clock::time_point finding_due;
  std::vector<NodeId> also_gone;  ///< not at the leader: whom its Gone has named, before its Abort
  /// It is over here, and the leader, to which there is no connection yet, is still to hear why.
  std::optional<Failure> last_word;
  bool is_over = false;

  bool is_leader() const { return kept.self == kept.leader; }
  Peer& own() { return peers[kept.self.index()]; }
  bool Has(NodeId node) const { return node.index() < kept.members.size(); }
  /// Of a message: `where`, unless it is no member.
  std::optional<NodeId> WhereOf(std::optional<NodeId> where) const {
    return where && Has(*where) ? where : std::nullopt;
  }
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_KEEPER_GROUP_H_
