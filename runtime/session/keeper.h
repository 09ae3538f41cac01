// SPDX-License-Identifier: Apache-2.0
//
// Keeper: the control side of a session, on a thread of its own, so that it hears and speaks while
// a callback or a copy takes long. It lets members of groups find each other, notices who is gone
// or silent, finds the one cause of a failure and reports it to every member, and carries barriers
// and notices. It moves no messages: the engine does (engine.h), and the two talk through two
// queues.
//
// A group's leader leads it over a control connection with every other member (control_message.h).
// Only what all members are to reach before any goes on is counted along a tree
// (group/gate_tree.h), whose edges are connections of their own where they do not end at the
// leader.
#ifndef PREPOST_RUNTIME_SESSION_KEEPER_H_
#define PREPOST_RUNTIME_SESSION_KEEPER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "runtime/base/event_fd.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/files/plan_hash.h"
#include "runtime/group/bootstrap.h"
#include "runtime/group/control_message.h"
#include "runtime/group/control_socket.h"
#include "runtime/group/eager_tree.h"
#include "runtime/group/gate_tree.h"
#include "runtime/group/group_key.h"
#include "runtime/group/lobby.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost {

struct OwnMemory;

/// The number of a group in this session, for the keeper and the engine. Other than the caller's
/// numbers it is never used again.
using GroupSerial = uint64_t;

/// How often a member of a run that plays over a device finds out how far it is: each time wakes a
/// host that could sleep.
constexpr std::chrono::milliseconds DeviceInterval(std::chrono::milliseconds failure_max) {
  return failure_max / 2;
}

/// Of a group that plays one plan once, as `prepost node` does: its members report what they have
/// done and the sums of their copies to the leader, which answers.
struct KeptRun {
  bool is_rolled = false;
  /// At the leader: how long no member may make any progress once all are there.
  std::chrono::milliseconds no_progress_max{30000};
  bool is_over_device = false;  ///< members find out how far they are every DeviceInterval()
  /// Called about once a second, from the second second on, with the nodes that are missing and
  /// why. By the keeper's thread; may be empty.
  std::function<void(const std::string& missing)> waiting = {};
  /// All members are processes of this machine, which the leader has started: an error of one that
  /// is kEnvironment is the run's.
  bool is_one_machine = false;
};

/// What the keeper needs to know of a group to find its members.
struct KeptGroup {
  GroupSerial serial = 0;
  uint64_t number = 0;                 ///< the caller's, for messages
  std::vector<uint32_t> members;       ///< of the session, by node of the group
  std::vector<PeerAddress> addresses;  ///< theirs
  /// How messages name a member: "member", by the session's number, or "node", by that of the plan.
  const char* word = "member";
  const char* leader_word = "root";  ///< what the leader is to them; "": nothing more than its name
  /// Instead, by node: "node 3 (process 71)". Empty: by word, number and address.
  std::vector<std::string> names = {};
  NodeId self;
  NodeId leader;
  std::vector<TcpConnection> connections;
  bool opens_later = false;     ///< others are opened when they are wanted: Keeper::Want()
  bool has_eager_tree = false;  ///< there are connections along the EagerTree
  bool shares_memory = false;   ///< with peers on this machine (introduction.h)
  bool rings_blocks = false;    ///< such memory for blocks, too
  bool stages_blocks = false;   ///< the same for all such peers together
  std::vector<uint32_t> sites;  ///< by node; empty: all are at one
  PathOptions paths;
  PlanHash terms;                ///< what members must agree on: TermsOfGroup(), or the plan's hash
  bool is_sealed = false;        ///< all its connections are; of all members or of none
  bool leader_connects = false;  ///< to all others, which have no connections to each other
  std::optional<KeptRun> run = {};
  std::chrono::steady_clock::time_point created;  ///< by the caller
  /// Control connections that are there already, so that nothing is to be formed or connected: at
  /// the leader by node, none to itself; elsewhere the one to it. Empty: none is.
  std::vector<FileDescriptor> controls = {};
  /// Likewise: connections with the neighbours in the GateTree other than the leader.
  std::vector<GateSocket> gates = {};

  GateTree Tree() const {
    const auto nodes = static_cast<uint32_t>(members.size());
    return GateTree(nodes, leader, leader_connects ? nodes : GateTree::kFanOut);
  }
};

/// How long a peer may leave everything unacknowledged. It is asked several times in that time and
/// then a moment later; with that, and the time for a better cause, it is within `failure_max`.
constexpr std::chrono::milliseconds PeerSilenceMax(std::chrono::milliseconds failure_max) {
  return failure_max / 2;
}

/// How long a peer that polls its connections may leave questions over them unanswered. The next
/// answers of its keeper, which say that it polls, follow within two of the keeper's ticks, so that
/// this is within `failure_max`, too.
constexpr std::chrono::milliseconds PeerAnswerMax(std::chrono::milliseconds failure_max) {
  return failure_max / 2;
}

/// What the keeper reports to the engine.
struct KeeperEvent {
  enum class Kind : uint8_t {
    kLetIn,       ///< of a run: the leader has let this node in
    kConnected,   ///< `sockets`: with this node's peers, `eager`, `round_trips`; again: with later
                  ///< ones
    kDelivered,   ///< at the leader: all have message `number`
    kPassed,      ///< all have come to `number` of `gate`
    kPlace,       ///< not at the leader: `text`, which Place() was given there
    kNext,        ///< not at the leader: one more message, of `number` bytes
    kClaim,       ///< `node` waits in call `number`, which is `text` there
    kLast,        ///< not at the leader: it destroys the group after `number` messages
    kRunMessage,  ///< of a run: `message` is from `node`
    kClosed,      ///< all members have all messages; the keeper forgets the group
    kFailed       ///< `status`; the keeper forgets the group
  };
  Kind kind = Kind::kFailed;
  GroupSerial group = 0;
  uint64_t number = 0;
  Gate gate = Gate::kBarrier;
  NodeId node = {};
  uint64_t start_ns = 0;  ///< kPassed, of the start: when, by the leader's clock
  std::string text = {};
  ControlMessage message = {};
  Status status = {};
  bool is_own_finding = false;  ///< kFailed: the leader has not said it
  FailureKind failure = FailureKind::kOther;
  /// kFailed: of the session: where, if that is known, and then all others that are gone.
  std::vector<uint32_t> members = {};
  std::vector<TcpSocket> sockets = {};
  std::vector<TcpSocket> eager = {};  ///< kConnected: along the EagerTree
  /// kConnected, at the leader: to each node, 0 to itself.
  std::vector<std::chrono::microseconds> round_trips = {};
};

struct KeeperOptions {
  std::string who;                   ///< this, in messages: "member 3"
  PeerAddress own;                   ///< port 0: any that is free
  std::optional<GroupKey> key = {};  ///< of one that listens
  std::string bind;
  std::string bind_option = "bind";     ///< what it is called where it is given
  std::optional<PortRange> ports = {};  ///< instead of those of `own`; the first free one is taken
  /// Whoever calls is for the one group that there will be, and these are its terms.
  std::optional<GroupTerms> only_group = {};
  bool listens = true;  ///< else all groups have their control connections
  std::chrono::milliseconds failure_max{2000};
  std::chrono::milliseconds connect_max{30000};
  bool reads_memory = true;  ///< of peers on this machine, where that is permitted
  /// Called by the keeper's thread when there are events to take.
  std::function<void()> notify;
  /// For how long the connections for data have been polled, without a longer pause. By the
  /// keeper's thread.
  std::function<std::chrono::milliseconds()> attention;
  /// Of a run: what this node has done so far and waits for, without the attention. By the keeper's
  /// thread; may be empty.
  std::function<control::Progress()> describe = {};
};

/// Functions may be called by any thread.
class Keeper final : private Lobby::Owner {
 public:
  /// Listens and starts the thread. Errors: those of Lobby::Open(); kEnvironment.
  static Result<std::unique_ptr<Keeper>> Start(KeeperOptions options);
  /// Leaves all groups, without a word; what was said before arrives, which takes a second at most.
  ~Keeper() override;

  /// It must listen.
  uint16_t port() const { return lobby_->port(); }
  void Add(KeptGroup group);
  /// Of a group that opens connections later: this node wants some with `peers`. kConnected follows
  /// when each of them wants them, too, or has opened them itself. The group must be connected.
  void Want(GroupSerial group, std::vector<NodeId> peers);
  /// This node has message `number`.
  void Have(GroupSerial group, uint64_t number);
  /// This node has come to `number` of `gate`.
  void Arrive(GroupSerial group, Gate gate, uint64_t number);
  /// Of a run: to the leader or, there, to the member `to`; kRunMessage at the other end.
  void SendRunMessage(GroupSerial group, ControlMessage message,
                      std::optional<NodeId> to = std::nullopt);
  /// At the leader: what members must know to find its NICs (printable, at most kControlTextBytes).
  void Place(GroupSerial group, std::string text);
  /// At the leader: the next message has so many bytes.
  void Announce(GroupSerial group, uint64_t bytes);
  /// At the leader: `number` messages are all, and this node is done with them. Elsewhere: this
  /// node is done with those that kLast has named.
  void Close(GroupSerial group, uint64_t number);
  /// This node waits for others in call `number`, which is `text` (printable) here. Every member
  /// gets kClaim.
  void Claim(GroupSerial group, uint64_t number, std::string text);
  /// This node's part has failed, or only lost `lost_peer`: kFailed follows, with the cause.
  /// `where`: at that peer; none: here. `differs`: members have called different things, and which
  /// of them is wrong nobody knows.
  void Fail(GroupSerial group, Status status, std::optional<NodeId> lost_peer, bool differs,
            std::optional<NodeId> where = {});
  /// This node has a message to move, and `peer` has not answered over its connections for data,
  /// which are open, for PeerAnswerMax(). Said again for as long as that is so.
  void Stalled(GroupSerial group, NodeId peer);
  std::vector<KeeperEvent> TakeEvents();

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer;
  struct Newcomer;
  struct Group;
  struct Command {
    enum class Kind : uint8_t {
      kAdd,
      kWant,
      kSay,   ///< `message` to the leader, which this node may be
      kTell,  ///< at the leader: `message` to all others or, if there is one, to `peer`
      kArrive,
      kClose,
      kFail
    };
    Kind kind = Kind::kAdd;
    GroupSerial group = 0;
    uint64_t number = 0;
    Gate gate = Gate::kBarrier;
    ControlMessage message = {};
    Status status = {};
    std::optional<NodeId> peer = {};   ///< kFail: a lost one
    std::optional<NodeId> where = {};  ///< kFail
    bool differs = false;
    KeptGroup kept = {};
    std::vector<NodeId> peers = {};
  };
  /// A member that another one hears nothing of over their connections for data.
  struct Stall {
    NodeId by;
    NodeId where;
  };
  struct Failure {
    Status cause;
    std::optional<NodeId> where;  ///< as far as that is known
    FailureKind kind = FailureKind::kOther;
    std::optional<NodeId> by = {};  ///< of a lost connection: its other end, which says so
    std::vector<NodeId> also_gone = {};
  };
  /// What a member says of a group that it creates, too.
  struct OtherTerms {
    Refusal what = Refusal::kOtherPlan;  ///< IsOfTerms()
    std::optional<NodeId> node = {};     ///< none: its numbers of members mean others
    std::string host = {};               ///< then: where it called from
  };
  /// A member that calls, by the order of members that it goes by: OrderOf(), its own number.
  using Caller = std::pair<uint32_t, NodeId>;
  /// When a member was there last, or was found to be gone.
  struct Sighting {
    PeerAddress address;
    Clock::time_point at;
  };
  /// A group that failed here while it formed. Members that call this one as its leader later hear
  /// of it once, as does its leader that asks, as long as this member has not created the next
  /// group.
  struct Former {
    GroupTerms terms;
    NodeId leader;
    bool was_leader = false;
    std::vector<uint32_t> members;  ///< of the session
    std::string self;               ///< this member, in messages
    std::set<Caller> told = {};     ///< have heard of the failure, by this or from the group itself
    Failure failure = {};
    Clock::time_point created, ended;
    Clock::time_point asked_until = {};  ///< leaders that ask hear of it
    Clock::time_point until = {};
  };
  /// A control connection that is over: its last words are still under way.
  struct Parting {
    ControlSocket control;
    Clock::time_point due;
    bool is_shut = false;  ///< nothing waits to be sent any more
  };

  explicit Keeper(KeeperOptions options);
  void Push(Command command);
  std::chrono::milliseconds Attention() const;
  void Run();
  void Break(Group& group);
  void EndPartings();
  void Wait();
  void Obey(Command command);
  void Say(Group& group, const ControlMessage& message);
  void FailPart(Group& group, Command command);

  std::optional<Refusal> Judge(const LinkName& name, const GroupTerms& terms,
                               const TcpAddress& from) override;
  void NoteRefused(const LinkName& name, const std::string& address,
                   const std::string& why) override;
  void Admit(const LinkName& name, const GroupTerms& terms, FileDescriptor fd,
             LinkKeys keys) override;
  Group* FindByTerms(const PlanHash& terms);
  Former* FindFormer(const PlanHash& terms);
  std::optional<Refusal> JudgeByFormer(const LinkName& name, const GroupTerms& terms);
  static Refusal DifferenceOf(const GroupTerms& own, const GroupTerms& other);
  static ControlMessage LastWordFor(const Former& former, const LinkName& name,
                                    const GroupTerms& terms);
  void NoteFormer(const Group& group, const Failure& failure);
  void ServeFormers();

  void AddGroup(KeptGroup kept);
  void AddFormed(KeptGroup kept);
  static void AddGates(Group& group, std::vector<GateSocket> gates);
  void Serve(Group& group);
  void SayLastWord(Group& group);
  void Connect(Group& group);
  void ConnectLater(Group& group);
  void CheckJoined(Group& group);
  static EagerTree EagerTreeOf(const Group& group);
  static Newcomer& AddNewcomer(Group& group, TcpSocket socket);
  void TakeNewcomers(Group& group);
  static bool GiveBack(Group& group, const Newcomer& newcomer);
  OwnMemory MemoryFor(Group& group, const TcpSocket& socket, size_t ring_bytes);
  static std::shared_ptr<BlockStage> StageOf(Group& group);
  void Introduce(Group& group);
  void Hear(Group& group, Peer& peer);
  void HearGate(Group& group, Peer& peer, const ControlMessage& message);
  void ServeGates(Group& group);
  void HearArrived(Group& group, Peer& peer, const control::Arrived& arrived);
  void HearPassed(Group& group, const Peer& peer, const control::Passed& passed);
  void CountArrivals(Group& group);
  static Peer& NeighbourOf(Group& group, NodeId node);
  static bool IsNews(const Group& group, const Peer& peer, const ControlMessage& message);
  static bool RepeatsTooOften(Peer& peer, Clock::time_point now);
  void HearMember(Group& group, Peer& peer, const ControlMessage& message);
  void HearFailed(Group& group, Peer& peer, const control::Failed& failed);
  void HearLeader(Group& group, const ControlMessage& message);
  void RelayClaim(Group& group, Peer& peer, const control::Waiting& claim);
  void ReportClaim(const Group& group, const control::Waiting& claim);
  void Pass(Group& group, const control::Passed& passed);
  void ReportPassed(Group& group, const control::Passed& passed);
  void Finish(Group& group);
  void CheckSilence(Group& group);
  bool is_silent(const Peer& peer) const;
  void CheckLosses(Group& group);
  std::optional<Refusal> JudgeOther(Group& group, const LinkName& name, const GroupTerms& terms,
                                    const TcpAddress& from);
  static bool IsAsking(const LinkName& name, const GroupTerms& terms);
  void EndOverTerms(Group& group);
  void EndForming(Group& group, Failure failure);
  void Lose(Group& group, Failure failure);
  void NoteMembers(const Group& group, const Failure& failure);
  std::vector<NodeId> KnownNodes(const KeptGroup& kept) const;
  void AskAll(Group& group);
  void CheckProgress(Group& group);
  control::Progress Answer() const;
  bool TakeRunMessage(Group& group, NodeId from, const ControlMessage& message);
  void NoteStall(Group& group, NodeId by, NodeId where);
  void JudgeStall(Group& group, NodeId where, std::chrono::milliseconds attention);
  void Suspect(Group& group, Failure failure);
  static const Failure& CauseOf(const std::vector<Failure>& suspicions);
  void End(Group& group, const Failure& failure);
  void ReportFailure(const Group& group, const Failure& failure, bool is_own_finding);
  static control::Failed FailedOf(const Failure& failure, Clock::time_point created,
                                  bool lost_peer = false);
  static bool IsOfFormer(const Group& group, uint64_t age_ms);
  static uint64_t MsSince(Clock::time_point when);
  static control::Abort AbortOf(const Failure& failure, Clock::time_point created);
  Failure NotAuthenticFrom(const Group& group, NodeId node) const;
  Failure Nonsense(const Group& group, NodeId node, const std::string& what) const;
  Failure Nonsense(const Group& group, NodeId node, const ControlMessage& message) const;
  void Broadcast(Group& group, const ControlMessage& message);
  void BroadcastLatest(Group& group, const ControlMessage& message);
  void Part(Group& group);
  void Part(ControlSocket control);
  std::string Who(const Group& group, NodeId node) const;
  void Report(KeeperEvent event);

  const KeeperOptions options_;
  const std::chrono::milliseconds tick_;         ///< between two questions
  const std::chrono::milliseconds silence_max_;  ///< until a peer counts as lost
  const std::chrono::milliseconds grace_;        ///< for the cause behind a lost connection
  /// For a connection that is opened later: many may be at once, and members that are gone are
  /// noticed otherwise.
  const std::chrono::milliseconds open_max_;
  const std::chrono::milliseconds join_max_;
  FileRoom files_;                ///< beside those of groups
  std::unique_ptr<Lobby> lobby_;  ///< null: it does not listen
  EventFd wake_;
  std::thread thread_;

  std::mutex mutex_;
  std::vector<Command> commands_;    ///< under mutex_
  std::vector<KeeperEvent> events_;  ///< under mutex_
  bool is_ending_ = false;           ///< under mutex_

  // The thread's own.
  Clock::time_point awake_since_;  ///< the thread has run without a pause since then
  Clock::time_point awake_at_;     ///< when it was known to run last
  std::map<GroupSerial, std::unique_ptr<Group>> groups_;
  std::vector<Parting> partings_;
  std::vector<Former> formers_;
  std::map<uint32_t, Sighting> losses_;  ///< by member, the last
  /// By member: those that were still there in a group that has failed.
  std::map<uint32_t, Sighting> seen_;
  Status broken_;  ///< what all groups end with from now on
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_KEEPER_H_
