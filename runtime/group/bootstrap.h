// SPDX-License-Identifier: Apache-2.0
//
// Bootstrap: how one node of a group on several machines gets its connections: it connects to its
// peers as soon as they are there, and takes from the keeper's lobby (lobby.h) those who belong to
// the group.
#ifndef PREPOST_RUNTIME_GROUP_BOOTSTRAP_H_
#define PREPOST_RUNTIME_GROUP_BOOTSTRAP_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/executor/playable.h"
#include "runtime/files/plan_hash.h"
#include "runtime/group/control_socket.h"
#include "runtime/group/group_key.h"
#include "runtime/group/hello.h"
#include "runtime/group/lobby.h"
#include "runtime/group/peers_file.h"
#include "runtime/transport/tcp/tcp_address.h"
#include "runtime/transport/tcp/tcp_mesh.h"
#include "runtime/transport/tcp/tcp_path.h"

namespace prepost {

/// What a group's nodes have in common, and the connections that they want among each other.
struct Membership {
  uint32_t nodes = 1;
  NodeId leader;
  std::vector<TcpConnection> connections;
  GroupTerms terms;
  /// Those of connections for data: of the groups of one name that a session has had, only this
  /// one. None: the leader has not said them yet; until then there are no such connections.
  std::optional<GroupTerms> data_terms;
  bool is_rolled = false;  ///< the connections are a rolled plan's, of which each has a file
  /// Any two nodes may have connections besides, once either wants them: Bootstrap::Want().
  bool opens_later = false;
  /// The leader opens all of its connections, control among them, and others have none to each
  /// other.
  bool leader_connects = false;
  bool has_eager_tree = false;  ///< connections along the EagerTree below the leader
};

struct BootstrapOptions {
  NodeId node;
  std::vector<PeerAddress> peers;       ///< by node, all of the group
  std::vector<std::string> names = {};  ///< by node, for messages; empty: "node 3"
  std::vector<uint32_t> sites = {};     ///< by node; all nodes have the same list; empty: one site
  GroupKey key;
  /// What its blocks will go over. A node that goes over something else is refused.
  Carrier carrier = Carrier::kTcp;
  PathOptions paths = {};  ///< of connections that this node makes, where blocks go over TCP
  /// From now: until when all peers must be there.
  std::chrono::milliseconds connect_max{30000};
  /// Called about once a second, from the second second on, with the nodes that are missing and
  /// why: "node 3 (no answer); ...". May be empty.
  std::function<void(const std::string& missing)> waiting = {};
  /// Nodes other than the leader wait so much longer, for the leader to say who is missing.
  std::chrono::milliseconds leader_first{2000};
  /// Who is to be called is called after so long, if nobody has: the leader calls those that have
  /// not come, who may hold another node for the leader and wait as well, and where the leader
  /// connects, they call it. 0: never.
  std::chrono::milliseconds ask_after{0};
  /// Nodes that were there a moment ago. Those that do not answer Lost() names; for that the leader
  /// calls the ones that are to call it.
  std::vector<NodeId> known = {};
};

/// A connection along an edge of the GateTree.
struct GateSocket {
  NodeId peer;
  ControlSocket control;
};

/// Used by one thread: AddPolls(), poll(), Step() until connected(), once for the leader, unless it
/// is this node, and once for the peers; of a group that opens connections later, then again and
/// again.
class Bootstrap final : public Lobby::Owner {
 public:
  /// Called at the leader with the control connection of another node.
  using Arrival = std::function<void(NodeId node, ControlSocket control)>;

  /// Its guests come through a lobby that asks it (Lobby::Owner). It seeks the leader first, if it
  /// is another node.
  Bootstrap(Membership group, BootstrapOptions options);
  ~Bootstrap() override;

  void AddPolls(std::vector<pollfd>* polls) const;
  /// Goes on with calls, and begins those that are due, some 100 ms after the last at the latest.
  /// Errors (kRejected): the leader, whose word is final, refuses this node, or not all have come
  /// in time.
  Status Step();
  /// With the leader, until TakeControl(); then with all that it begins with.
  bool connected() const;
  /// Nothing is being opened, later connections included.
  bool settled() const;
  /// When connected() with the leader, which is another node: the control connection.
  ControlSocket TakeControl();
  /// After TakeControl(), before it has any other connection: what it took was nobody's of this
  /// group, and the leader is sought again.
  void SeekLeader();
  /// At the leader: the same of `node`, whose control connection has arrived. False: it cannot be
  /// sought, and may come by itself.
  bool SeekMember(NodeId node);
  /// After an error of Step(): it is no matter of time, but a refusal or what this process lacks.
  bool is_final() const { return !refused_.ok(); }
  /// Whether the connection is there already that `name` would be.
  bool HasServed(const LinkName& name);
  void set_data_terms(const GroupTerms& terms) { group_.data_terms = terms; }
  /// Peers that have proved the secret to this node and were lost before they were in the group:
  /// they do not listen any more, or have not come back within `max`. Also known ones that have not
  /// answered for `max`.
  std::vector<NodeId> Lost(std::chrono::milliseconds max) const;
  /// Whose terms are others: the leader, or one that the leader has asked and that has said so
  /// twice. Once may be of a group that is just ending there.
  struct Differing {
    NodeId peer;
    Refusal why = Refusal::kOtherPlan;  ///< IsOfTerms()
  };
  std::optional<Differing> differing() const { return differing_; }
  /// Who is to have what arrives at the leader.
  void set_arrival(const Arrival& arrival) { arrival_ = arrival; }
  /// Those that are there and were not taken yet, all of a peer's at once. Errors: kEnvironment.
  Result<std::vector<TcpSocket>> TakeSockets();
  /// One of these has ended before anybody used it: it is opened again.
  void GiveBack(const TcpSocket& socket);
  /// Of a group that opens connections later, when connected() with all: this node wants
  /// connections with `peer`. One of the two connects (as above), within `within`, whether or not
  /// the other one wants them yet; at the other one this does nothing.
  void Want(NodeId peer, std::chrono::milliseconds within);
  /// A peer that was not reached in that time, or has opened one connection of two, and why.
  struct Unreached {
    NodeId peer;
    std::string why;
  };
  std::optional<Unreached> Overdue() const;
  /// When connected() with all: those with the other end in the GateTree, which is not the leader.
  std::vector<GateSocket> TakeGates();
  /// When connected() with all: those along the EagerTree. Errors: kEnvironment.
  Result<std::vector<TcpSocket>> TakeEager();
  /// For the files of streams, as long as these are open.
  std::vector<FileRoom> TakeRooms() { return std::move(rooms_); }
  /// Calls BootstrapOptions::waiting, if it is time to.
  void TellWaiting();
  /// Nodes that are missing and why: "node 3 (no answer); ...".
  std::string Missing() const;
  /// The missing node, if it is one. Without the leader the others wait for it as well.
  std::optional<NodeId> OnlyMissing() const;

  std::optional<Refusal> Judge(const LinkName& name, const GroupTerms& terms,
                               const TcpAddress& from) override;
  void NoteRefused(const LinkName& name, const std::string& address,
                   const std::string& why) override;
  void Admit(const LinkName& name, const GroupTerms& terms, FileDescriptor fd,
             LinkKeys keys) override;

 private:
  using Clock = std::chrono::steady_clock;

  struct Link;
  struct Call;

  LinkName DataLink(NodeId one, NodeId other, Lane lane,
                    LinkPurpose purpose = LinkPurpose::kData) const;
  bool IsLater(const LinkName& name) const;
  Status AddPeer(NodeId peer, std::optional<Clock::time_point> due);
  NodeId PeerOf(const Link& link) const;
  Clock::time_point DueOf(const Link& link) const;
  void ListLinks();
  void ListQuestions();
  std::string Name(NodeId node) const;
  bool is_leader() const { return options_.node == group_.leader; }
  LinkName ControlLink(NodeId node) const;
  bool IsServed(const Link& link) const;
  static bool IsGone(const Link& link);
  const GroupTerms* TermsOf(const LinkName& name) const;
  Status NotThere() const;

  Link* FindLink(const LinkName& name);
  Status AddStreams(const LinkName& first, std::optional<Clock::time_point> due);
  void StartCalls();
  void StartCall(Link& link, const Result<std::vector<TcpAddress>>& addresses);
  bool ServeCall(Call& call);
  bool EndCall(Call& call, const std::string& why);
  bool TakeRefusal(Call& call);

  Membership group_;
  const BootstrapOptions options_;
  const Clock::time_point due_;
  Clock::time_point tell_at_ = Clock::now() + std::chrono::seconds(1);
  std::deque<Link> links_;       ///< calls point to them
  std::vector<FileRoom> rooms_;  ///< for streams
  HostLookups lookups_;
  std::vector<std::unique_ptr<Call>> calls_;
  bool to_leader_only_ = false;
  std::optional<Differing> differing_;
  Arrival arrival_;
  Status refused_;  ///< by the leader, for good; or what this process lacks
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_BOOTSTRAP_H_
