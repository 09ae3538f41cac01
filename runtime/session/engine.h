// SPDX-License-Identifier: Apache-2.0
//
// Engine: the data side of a session: plays one message after another of every group, by a CPU
// executor over the group's endpoint or by a mover (message_mover.h), and calls back. One thread
// turns it, its own or the caller's; the keeper (keeper.h) brings it connections and failures.
#ifndef PREPOST_RUNTIME_SESSION_ENGINE_H_
#define PREPOST_RUNTIME_SESSION_ENGINE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/base/status.h"
#include "prepost/prepost.h"
#include "runtime/base/event_fd.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/message_endpoint.h"
#include "runtime/executor/wait_policy.h"
#include "runtime/session/attention.h"
#include "runtime/session/eager_lane.h"
#include "runtime/session/file_sync.h"
#include "runtime/session/group_call.h"
#include "runtime/session/group_plans.h"
#include "runtime/session/keeper.h"
#include "runtime/session/message_mover.h"
#include "runtime/session/turn_lock.h"
#include "runtime/transport/tcp/tcp_hook.h"
#include "runtime/transport/tcp/tcp_watch.h"

namespace prepost {

struct EngineGroupOptions {
  uint64_t number = 0;
  std::vector<uint32_t> members;
  std::vector<PeerAddress> addresses;  ///< of the members
  NodeId self;
  Collective collective;
  bool notify_delivered = false;
  bool sync = false;
  bool is_for_calls = false;  ///< `collective` says who leads, nothing else
  PathOptions paths = {};
  std::vector<uint32_t> sites = {};  ///< by node; empty: all are at one
  bool is_sealed = false;            ///< all its connections are; without a mover
  bool root_connects = false;        ///< to all others, which have no connections to each other
  std::string terms;                 ///< what else members must agree on
};

/// Create(), Send(), Call(), Barrier(), Destroy(), Abort() and Resume() may be called by any
/// thread; Turn() by one, which calls all callbacks. A short message leaves in Send(), unless many
/// come right after each other, where the turning thread sleeps.
class Engine {
 public:
  /// `options` as KeeperOptions; its `notify` is the engine's. Errors: those of Keeper::Start().
  /// `hook`: on all connections for blocks; null: none. Must outlive the engine.
  static Result<std::unique_ptr<Engine>> Make(KeeperOptions options, const WaitPolicy& wait,
                                              TcpHook* hook = nullptr);
  ~Engine();

  uint16_t port() const { return keeper_->port(); }
  /// See Session. `mover`: moves the messages, from the plans that it has; null: the CPU does, over
  /// TCP.
  Status Create(const EngineGroupOptions& options, std::unique_ptr<GroupPlans> plans,
                GroupCallbacks callbacks, std::unique_ptr<MessageMover> mover = nullptr);
  Result<uint64_t> Send(uint64_t number, std::span<const MessagePart> parts);
  /// Of a group for calls, to be made by all members in the same order. `call.done` is called when
  /// this member's part is over: its memory is the caller's again.
  Status Call(uint64_t number, GroupCall call);
  Status Barrier(uint64_t number, std::function<void()> passed);
  Status Destroy(uint64_t number);
  Status Abort(uint64_t number, const std::string& why);
  void Resume();
  /// Errors: as Barrier().
  Result<std::vector<uint32_t>> MembersOf(uint64_t number);
  Result<bool> IsForCalls(uint64_t number);
  Result<PeerPaths> Paths(uint64_t number);
  Result<std::vector<PeerSpeed>> Speeds(uint64_t number);
  Result<std::vector<std::string>> Notes(uint64_t number);

  /// Readable when Poll() has something to do. Whoever does not ask for it spares the others the
  /// signals.
  int fd();
  /// Does what there is to do, of each group some; when there is nothing, waits for it as `wait`
  /// says, up to `timeout` (negative: for ever). Errors: kEnvironment.
  Status Poll(std::chrono::milliseconds timeout);
  /// The Poll() that is under way returns, or the next one. By any thread.
  void Wake() {
    is_called_.store(true);
    wake_.Signal();
  }

 private:
  struct Group;
  struct Command;
  struct Message {
    uint64_t number = 0;
    void* memory = nullptr;
    uint64_t bytes = 0;
  };

  Engine(const WaitPolicy& wait, std::chrono::milliseconds failure_max);
  Status Open();
  Result<std::shared_ptr<Group>> Find(uint64_t number, const char* what);
  Result<std::shared_ptr<Group>> FindToAsk(uint64_t number);
  Status Turn(std::chrono::milliseconds timeout);
  bool Listen(std::chrono::milliseconds timeout, std::unique_lock<TurnLock>& turn,
              std::vector<std::shared_ptr<Group>>* ready, Status* status);
  bool LooksInMemory();
  bool HasArrivals() const;
  bool FallAsleep();
  void WakeUp();
  void Alert();
  static Status CheckSend(const Group& group, std::span<const MessagePart> parts);
  void Obey(Command command);
  void Hear(KeeperEvent event);
  Status Connect(const std::shared_ptr<Group>& group, KeeperEvent event);
  Status OpenEager(Group& group, std::vector<TcpSocket> sockets);
  Status AddConnections(Group& group, std::vector<TcpSocket> sockets);
  void KeepAwake(Group& group);
  void LookForArrivals(std::vector<std::shared_ptr<Group>>* ready);
  bool IsQuiet(Group& group) const;
  void NotePeers(Group& group, std::span<const TcpSocket> sockets,
                 std::vector<std::chrono::microseconds> round_trips);
  void Opened(Group& group);
  void Pass(Group& group, Gate gate, uint64_t number);
  void HearMovers();
  void Report(GroupSerial serial, MessageMover::Event event);
  void Advance(Group& group);
  bool Step(Group& group);
  bool StepMover(Group& group);
  bool ServeEager(Group& group);
  static bool IsShort(const Group& group, uint64_t bytes);
  bool SendShort(Group& group);
  void AppendShort(Group& group, const MessagePart& part);
  bool CanSendAtOnce(const Group& group, std::span<const MessagePart> parts) const;
  static bool MayWait(Group& group);
  bool SendAtOnce(Group& group, std::span<const MessagePart> parts);
  void CompleteSent(Group& group);
  bool TakeShort(Group& group, const EagerLane::Front& front);
  bool CheckEager(Group& group);
  bool FindMemory(Group& group, uint64_t bytes);
  bool Begin(Group& group, const MessageStart& message, NodeMemory memory);
  void Play(Group& group, Playable plan, const NodeMemory& memory);
  static Status PollExecutor(Group& group);
  bool StepCalls(Group& group);
  bool OpenConnections(Group& group, std::span<const NodeId> peers);
  static Status PrepareCall(Group& group, const GroupCall& call, const GroupPlans::OfCall& plan,
                            NodeMemory* memory);
  static void FinishCall(Group& group);
  static void Remember(Group& group, uint64_t number, const CallShape& shape);
  static void FailCalls(Group& group, const Status& cause);
  void ClaimCall(Group& group);
  void HearClaim(Group& group, uint64_t number, NodeId node, const std::string& what);
  static void NoteRate(Group& group);
  static void NoteShortRate(Group& group, uint64_t bytes);
  void Finish(Group& group);
  void Received(Group& group, const Message& message);
  void Complete(Group& group, const Message& message);
  static bool TellsBySends(const Group& group);
  void Delivered(Group& group, uint64_t number);
  void TellDelivered(Group& group);
  void TakeSynced(Group& group);
  void ReturnBuffers(Group& group);
  void CloseIfDone(Group& group);
  void BreakNonsense(Group& group, const char* what);
  void Break(Group& group, const Status& status, std::optional<NodeId> lost_peer);
  void BreakDiffering(Group& group, const Status& status);
  static Status NameBothCalls(const Group& group, const Status& status);
  void Fail(Group& group, Status cause, std::optional<NodeId> lost_peer, bool differs = false);
  void Retire(Group& group);
  void Unlist(const Group& group);
  void CountRunning(int change);
  void SetTicking(bool is_ticking);
  void CheckPeers();
  void NoteSpeeds(Group& group);
  void CheckFiles();

  std::unique_ptr<Keeper> keeper_;
  EventFd wake_;
  FileDescriptor timer_;  ///< ticks while something is running, or not acknowledged
  FileDescriptor epoll_;  ///< wake_, timer_, and each group's endpoint
  WaitPacer pacer_;
  Attention attention_;  ///< for the keeper: whether connections are polled
  TcpHook* hook_ = nullptr;
  const std::chrono::milliseconds idle_max_;  ///< of WaitPolicy
  const std::chrono::milliseconds failure_max_;
  const std::chrono::milliseconds tick_;  ///< between polls of connections on which nothing moves
  const std::chrono::milliseconds silence_max_;  ///< until a peer that acknowledges nothing is lost
  const std::chrono::milliseconds answer_max_;   ///< until one that answers nothing is asked about
  const std::chrono::milliseconds claim_after_;  ///< of a call that waits
  const KeepAliveTimes keep_alive_;              ///< of connections on which nothing moves

  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Group>> by_number_;  ///< under mutex_: those that may be used
  std::vector<Command> commands_;                         ///< under mutex_
  std::vector<std::pair<GroupSerial, MessageMover::Event>> mover_events_;  ///< under mutex_
  GroupSerial next_serial_ = 2;          ///< under mutex_; 0 and 1 are in epoll
  std::atomic<bool> has_work_ = false;   ///< commands, or events of the keeper
  std::atomic<bool> rests_ = false;      ///< somebody waits for epoll_ between two calls of Poll()
  std::atomic<bool> is_called_ = false;  ///< Wake()
  std::atomic<bool> sleeps_ = false;     ///< who turns it waits for epoll_, or is about to

  /// Of the turning thread, but where that waits for epoll_; then also of one in Send(). Before
  /// mutex_.
  TurnLock turn_;

  // Under turn_.
  std::map<GroupSerial, std::shared_ptr<Group>> groups_;
  /// For which it is to be looked in memory; the others, where nothing has come for a while, are
  /// woken by bells.
  std::map<GroupSerial, std::shared_ptr<Group>> awake_;
  std::vector<std::unique_ptr<FileSync>> ending_syncs_;  ///< of groups that are over
  std::atomic<uint64_t> progress_ = 0;
  uint32_t looks_ = 0;
  int running_ = 0;          ///< groups in the middle of a message
  bool is_busy_ = false;     ///< a group is
  bool is_ticking_ = false;  ///< timer_
  std::chrono::steady_clock::time_point check_files_at_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_ENGINE_H_
