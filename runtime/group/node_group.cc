// SPDX-License-Identifier: Apache-2.0
//
// A node is a member of a group that plays one plan (session/keeper.h, KeptRun). The keeper's thread
// lets the nodes find each other, notices who is gone or silent, and finds the cause, whatever a disk
// does meanwhile; this thread prepares, plays and sums. All nodes take each step together:
//
//     armed      -> all are: start
//     delivered  with what it has done -> all have: the leader asks for sums, with its nonce
//     summed     with a proof -> the leader compares, and answers each with its own proof
//     done       the copy has its name -> all are: the end
//
// Sums are computed after all have delivered, so that they cost no node's transfer any time, and
// copies get their names only when all sums are equal.
#include "runtime/group/node_group.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/clock.h"
#include "runtime/event_fd.h"
#include "runtime/files/collective_sums.h"
#include "runtime/group/copy_sums.h"
#include "runtime/group/node_part.h"
#include "runtime/group/sum_proof.h"
#include "runtime/interrupt.h"
#include "runtime/session/attention.h"
#include "runtime/session/keeper.h"
#include "runtime/transport/path_notes.h"
#include "runtime/transport/tcp_endpoint.h"
#include "runtime/transport/tcp_links.h"
#include "runtime/transport/tcp_path.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Kind = ControlMessage::Kind;

constexpr GroupSerial kSerial = 1;     ///< of the one group
constexpr milliseconds kEndMax{1000};  ///< beyond failure_max, for the cause of a failure
constexpr size_t kNodeFiles = 32;

class NodeRun {
 public:
  NodeRun(Playable plan, const MappedInput* input, OutputSet* outputs, NodeRunOptions options)
      : plan_(plan),
        input_(input),
        outputs_(outputs),
        options_(std::move(options)),
        node_(options_.bootstrap.node),
        leader_(plan_.header().collective.root),
        tick_(options_.failure_max / 8),
        terms_{.plan = plan_.Hash(),
               .carrier = options_.make_player ? Carrier::kDevice : Carrier::kTcp,
               .message_bytes = plan_.header().payload.bytes},
        prover_(options_.bootstrap.key, terms_),
        attention_(tick_),
        part_(PartTask()),
        reports_(plan_.header().nodes) {}

  Result<LocalRun> Run();

 private:
  bool is_leader() const { return node_ == leader_; }
  bool is_multicast() const { return plan_.header().collective.kind == CollectiveKind::kMulticast; }
  NodePartTask PartTask();
  Status OpenBuffers();
  Status OpenKeeper();
  Status Play();
  Result<std::unique_ptr<Player>> MakePlayer(const PlayerContext& context);
  Status Await(const bool& condition);
  Status TakeEvents();
  Status TakeNote(const KeeperEvent& event);
  Status Wait(milliseconds timeout);
  Status CheckPeers();
  void Describe(ControlMessage* answer);
  void Publish();
  Status EndFailed(const Status& failure);
  Status CheckLeadersSum() const;
  ProvenSum OwnSum(ProvenSum::Sender sender) const;
  void NotePaths(std::span<const TcpSocket> sockets) const;
  Status Commit();
  LocalRun MakeRun() const;

  const Playable plan_;
  const MappedInput* const input_;
  OutputSet* const outputs_;
  const NodeRunOptions options_;
  const NodeId node_;
  const NodeId leader_;
  const milliseconds tick_;
  const GroupTerms terms_;
  const SumProver prover_;
  Attention attention_;
  NodeBuffer buffer_;   ///< where something is received for keeps
  NodeBuffer scratch_;  ///< of another collective than a multicast
  NodePart part_;
  TcpEndpoint* endpoint_ = nullptr;  ///< the player's, if it goes over TCP
  Clock::time_point next_tick_;
  bool is_playing_ = false;
  bool is_committed_ = false;
  uint64_t checkpoints_ = 0;  ///< progress outside of the transfer

  // What the keeper has said.
  std::vector<TcpSocket> sockets_;
  bool is_let_in_ = false;
  bool is_connected_ = false;
  bool may_start_ = false;
  bool have_all_delivered_ = false;
  bool may_sum_ = false;
  bool may_commit_ = false;
  bool is_closed_ = false;
  std::optional<Status> ended_;  ///< the group has failed
  NonceBytes nonce_ = RandomNonce();
  NonceBytes leader_nonce_ = {};
  ControlMessage commit_;  ///< the leader's sum of this copy
  MessageSum sum_;         ///< of this copy

  // At the leader.
  std::optional<CopySums> sums_;
  std::vector<NodeReport> reports_;

  // For the keeper's thread.
  std::mutex mutex_;
  NodeReport so_far_;      ///< under mutex_
  std::string waits_for_;  ///< under mutex_
  uint64_t progress_ = 0;  ///< under mutex_: rises whenever there is some

  // The keeper goes first: its thread calls back.
  EventFd keeper_event_;
  FileDescriptor wake_;  ///< epoll: keeper_event_ and the interrupt
  std::unique_ptr<Keeper> keeper_;
};

NodePartTask NodeRun::PartTask() {
  return {.plan = plan_,
          .node = node_,
          .input = input_,
          .buffer = &buffer_,
          .scratch = is_multicast() ? nullptr : &scratch_,
          .make_player = [this](const PlayerContext& context) { return MakePlayer(context); },
          .in_memory = static_cast<bool>(options_.make_player),
          .wait = options_.wait,
          .trace = options_.trace};
}

Result<LocalRun> NodeRun::Run() {
  PREPOST_RETURN_IF_ERROR(OpenKeeper());
  // First of all, because once the leader has let this node in, its failure is everyone's.
  PREPOST_RETURN_IF_ERROR(OpenBuffers());
  Status status = Play();
  if (!status.ok()) status = EndFailed(status);
  if (!status.ok() && is_committed_ && outputs_ != nullptr) outputs_->Withdraw();
  if (!status.ok()) return status;
  return MakeRun();
}

Status NodeRun::OpenKeeper() {
  const BootstrapOptions& given = options_.bootstrap;
  PREPOST_RETURN_IF_ERROR(
      RaiseFileLimit(2 * plan_.channels().size() + plan_.header().nodes + kNodeFiles));
  Result<EventFd> event = EventFd::Make();
  if (!event.ok()) return event.status();
  keeper_event_ = *std::move(event);
  wake_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {keeper_event_.fd(), options_.interrupt_fd}) {
    epoll_event watched = {.events = EPOLLIN, .data = {.fd = fd}};
    if (fd >= 0 && epoll_ctl(wake_.get(), EPOLL_CTL_ADD, fd, &watched) != 0)
      return SystemError(StatusCode::kEnvironment, "cannot watch the group", errno);
  }
  Result<std::unique_ptr<Keeper>> keeper =
      Keeper::Start({.who = fmt::format("node {}", node_.value),
                     .own = given.peers[node_.index()],
                     .key = given.key,
                     .bind = options_.bind,
                     .bind_option = "--bind",
                     .ports = options_.ports,
                     .only_group = terms_,
                     .failure_max = options_.failure_max,
                     .connect_max = given.connect_max,
                     .reads_memory = false,
                     .notify = [this] { keeper_event_.Signal(); },
                     .attention = [this] { return attention_.Get(); },
                     .describe = [this](ControlMessage* answer) { Describe(answer); }});
  if (!keeper.ok()) return keeper.status();
  keeper_ = *std::move(keeper);
  if (is_leader()) sums_.emplace(plan_.header(), prover_);
  return {};
}

Status NodeRun::OpenBuffers() {
  const PlanHeader& header = plan_.header();
  const NodeBytes bytes =
      is_multicast() ? NodeBytes{.output = header.payload.bytes} : NodeBytesOf(header, node_);
  if (header.roles().IsTarget(node_)) {
    Result<NodeBuffer> buffer = NodeBuffer::Open(node_, bytes.output, outputs_);
    if (!buffer.ok()) return buffer.status();
    buffer_ = std::move(*buffer);
  }
  if (is_multicast()) return {};
  Result<NodeBuffer> scratch = NodeBuffer::Open(node_, bytes.scratch, /*outputs=*/nullptr);
  if (!scratch.ok()) return scratch.status();
  scratch_ = std::move(*scratch);
  return {};
}

Status NodeRun::Play() {
  const BootstrapOptions& given = options_.bootstrap;
  KeptGroup group = {.serial = kSerial,
                     .addresses = given.peers,
                     .word = "node",
                     .leader_word = HasRoot(plan_.header().collective.kind) ? "root" : "leader",
                     .self = node_,
                     .leader = leader_,
                     .connections = TcpConnections(plan_),
                     .sites = given.sites,
                     .paths = given.paths,
                     .terms = terms_.plan,
                     .run = KeptRun{.is_rolled = plan_.is_rolled(),
                                    .no_progress_max = options_.no_progress_max,
                                    .waiting = given.waiting},
                     .created = Clock::now()};
  for (uint32_t node = 0; node < plan_.header().nodes; ++node) group.members.push_back(node);
  keeper_->Add(std::move(group));
  // From then on its failure is everyone's.
  if (!is_leader()) PREPOST_RETURN_IF_ERROR(Await(is_let_in_));
  const Checkpoint checkpoint = [this] {
    ++checkpoints_;
    Publish();
    return Wait(milliseconds(0));
  };
  PREPOST_RETURN_IF_ERROR(part_.Prepare(wake_.get(), checkpoint));
  Publish();
  keeper_->Arrive(kSerial, Gate::kArmed, 0, {.proof = nonce_});
  PREPOST_RETURN_IF_ERROR(Await(may_start_));
  next_tick_ = Clock::now() + tick_;
  const auto wait_max = [this] {
    return std::max(std::chrono::ceil<milliseconds>(next_tick_ - Clock::now()), milliseconds(0));
  };
  is_playing_ = true;
  PREPOST_RETURN_IF_ERROR(part_.Play(
      MonotonicNs(), wait_max, [this] { return CheckPeers(); }, &attention_));
  is_playing_ = false;
  Publish();
  keeper_->Arrive(kSerial, Gate::kMoved, 0, {.report = part_.report()});
  PREPOST_RETURN_IF_ERROR(Await(may_sum_));
  const Result<MessageSum> sum = part_.Sum(checkpoint);
  if (!sum.ok()) return sum.status();
  sum_ = *sum;
  keeper_->Note(kSerial, {.kind = Kind::kSummed,
                          .sum = sum_,
                          .proof = prover_.Prove(OwnSum(ProvenSum::Sender::kMember))});
  PREPOST_RETURN_IF_ERROR(Await(may_commit_));
  if (!is_leader()) PREPOST_RETURN_IF_ERROR(CheckLeadersSum());
  PREPOST_RETURN_IF_ERROR(Commit());
  keeper_->Close(kSerial, 1);
  return Await(is_closed_);
}

Result<std::unique_ptr<Player>> NodeRun::MakePlayer(const PlayerContext& context) {
  PREPOST_RETURN_IF_ERROR(Await(is_connected_));
  NotePaths(sockets_);
  if (options_.make_player)
    return options_.make_player(node_, std::make_unique<TcpLinks>(std::move(sockets_)), context);
  auto endpoint = TcpEndpoint::Make(plan_, node_, std::move(sockets_), context.wake_fd);
  if (!endpoint.ok()) return endpoint.status();
  endpoint_ = endpoint->get();
  return std::unique_ptr<Player>(
      std::make_unique<CpuPlayer>(plan_, node_, std::move(*endpoint), context));
}

/// Until `condition`, which an event of the keeper makes true.
Status NodeRun::Await(const bool& condition) {
  PREPOST_RETURN_IF_ERROR(TakeEvents());
  while (!condition) {
    PREPOST_RETURN_IF_ERROR(Wait(tick_));
    if (endpoint_ != nullptr) PREPOST_RETURN_IF_ERROR(CheckPeers());
  }
  return {};
}

/// Errors: also the interrupt.
Status NodeRun::Wait(milliseconds timeout) {
  const int interrupt_fd = options_.interrupt_fd;
  std::array<pollfd, 2> files = {pollfd{.fd = keeper_event_.fd(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = interrupt_fd, .events = POLLIN, .revents = 0}};
  poll(files.data(), files.size(), static_cast<int>(timeout.count()));
  if (IsInterrupted(interrupt_fd)) return Interrupted();
  return TakeEvents();
}

/// During the transfer.
Status NodeRun::CheckPeers() {
  if (IsInterrupted(options_.interrupt_fd)) return Interrupted();
  PREPOST_RETURN_IF_ERROR(TakeEvents());
  if (Clock::now() < next_tick_) return {};
  next_tick_ = Clock::now() + tick_;
  Publish();
  if (endpoint_ == nullptr || part_.player() == nullptr) return {};
  PREPOST_RETURN_IF_ERROR(endpoint_->CheckPeers(PeerSilenceMax(options_.failure_max)));
  if (!is_playing_ || part_.player()->done()) return {};
  if (const auto silent = endpoint_->AskPeers(PeerAnswerMax(options_.failure_max)))
    keeper_->Stalled(kSerial, *silent);
  return {};
}

/// What this node has done so far, for the keeper's next answer.
void NodeRun::Publish() {
  Player* const player = part_.player();
  const uint64_t progress = checkpoints_ + (player == nullptr ? 0 : player->AskProgress());
  const std::lock_guard lock(mutex_);
  progress_ = progress;
  if (player == nullptr) return;
  so_far_ = player->report();
  waits_for_ = player->Waiting(kWaitingOpsMax);
}

/// By the keeper's thread.
void NodeRun::Describe(ControlMessage* answer) {
  const std::lock_guard lock(mutex_);
  answer->report = so_far_;
  answer->start_ns = progress_;
  answer->SetText(waits_for_);
}

/// Errors: the group has failed.
Status NodeRun::TakeEvents() {
  keeper_event_.Take();
  for (KeeperEvent& event : keeper_->TakeEvents()) {
    switch (event.kind) {
      case KeeperEvent::Kind::kLetIn:
        is_let_in_ = true;
        break;
      case KeeperEvent::Kind::kConnected:
        sockets_ = std::move(event.sockets);
        is_connected_ = true;
        break;
      case KeeperEvent::Kind::kPassed:
        may_start_ |= event.gate == Gate::kArmed;
        if (event.gate != Gate::kMoved || !is_leader()) break;
        may_sum_ = true;
        for (uint32_t node = 0; node < plan_.header().nodes; ++node) {
          if (NodeId(node) != node_)
            keeper_->Note(kSerial, {.kind = Kind::kSum, .proof = sums_->nonce()}, NodeId(node));
        }
        leader_nonce_ = sums_->nonce();
        break;
      case KeeperEvent::Kind::kNote:
        PREPOST_RETURN_IF_ERROR(TakeNote(event));
        break;
      case KeeperEvent::Kind::kClosed:
        is_closed_ = true;
        break;
      case KeeperEvent::Kind::kFailed:
        ended_ = event.status;
        break;
      case KeeperEvent::Kind::kDelivered:
      case KeeperEvent::Kind::kPlace:
      case KeeperEvent::Kind::kNext:
      case KeeperEvent::Kind::kClaim:
      case KeeperEvent::Kind::kLast:
        break;  // of groups that move many messages
    }
  }
  return ended_.value_or(Status());
}

Status NodeRun::TakeNote(const KeeperEvent& event) {
  if (!is_leader()) {
    if (event.note.kind == Kind::kSum) {
      leader_nonce_ = event.note.proof;
      may_sum_ = true;
    } else if (event.note.kind == Kind::kCommit) {
      commit_ = event.note;
      may_commit_ = true;
    }
    return {};
  }
  NodeReport& report = reports_[event.node.index()];
  switch (event.note.kind) {
    case Kind::kReady:
      sums_->NoteNonce(event.node, event.note.proof);
      return {};
    case Kind::kProgress:
      if (have_all_delivered_ || report.elapsed_ns != 0) return {};
      report = event.note.report;
      if (options_.progress) {
        uint64_t bytes = 0;
        for (const NodeReport& it : reports_) bytes += it.bytes_received;
        options_.progress(bytes);
      }
      return {};
    case Kind::kDelivered:
      report = event.note.report;
      return {};
    case Kind::kSummed:
      if (!sums_->NoteSum(event.node, event.note.sum, event.note.proof) ||
          std::exchange(may_commit_, true))
        return {};
      PREPOST_RETURN_IF_ERROR(sums_->Compare());
      for (uint32_t node = 0; node < plan_.header().nodes; ++node) {
        if (NodeId(node) != node_)
          keeper_->Note(kSerial, sums_->CommitOf(NodeId(node)), NodeId(node));
      }
      return {};
    default:
      return {};
  }
}

ProvenSum NodeRun::OwnSum(ProvenSum::Sender sender) const {
  return {.sender = sender,
          .node = node_,
          .member_nonce = nonce_,
          .leader_nonce = leader_nonce_,
          .sum = sum_};
}

/// Without it, who can change the leader's words could have this node name what it has received
/// although the leader knows better.
Status NodeRun::CheckLeadersSum() const {
  if (commit_.sum == sum_ && prover_.Verify(commit_.proof, OwnSum(ProvenSum::Sender::kLeader))) {
    return {};
  }
  return Rejected(fmt::format(
      "the sum of node {}, the {}, is not proved to be that of this copy: its control messages "
      "were changed on the way",
      leader_.value, HasRoot(plan_.header().collective.kind) ? "root" : "leader"));
}

/// Reports `failure`, unless the group has failed already; the cause, which is `failure` or, if that
/// is only a lost peer, what the group finds.
Status NodeRun::EndFailed(const Status& failure) {
  const std::optional<NodeId> lost = part_.Stop();
  if (ended_) return *ended_;
  keeper_->Fail(kSerial, failure, lost, /*differs=*/false);
  const auto due = Clock::now() + options_.failure_max + kEndMax;
  while (!ended_ && !is_closed_ && Clock::now() < due) {
    pollfd event = {.fd = keeper_event_.fd(), .events = POLLIN, .revents = 0};
    poll(&event, 1, static_cast<int>(tick_.count()));
    static_cast<void>(TakeEvents());
  }
  return lost && ended_ ? *ended_ : failure;
}

/// Over connections of its own; where sites are named, also whether its peers are where they say.
void NodeRun::NotePaths(std::span<const TcpSocket> sockets) const {
  if (!options_.note) return;
  const std::vector<PeerAddress>& peers = options_.bootstrap.peers;
  GroupPaths group = {.members = {},
                      .self = node_,
                      .sites = {},
                      .round_trips = {},
                      .options = options_.bootstrap.paths,
                      .word = "node"};
  std::map<std::string, uint32_t> sites;
  for (uint32_t node = 0; node < peers.size(); ++node) {
    group.members.push_back(node);
    const auto next = static_cast<uint32_t>(sites.size());
    if (!peers[node].site.empty())
      group.sites.push_back(sites.try_emplace(peers[node].site, next).first->second);
  }
  if (!group.sites.empty()) {
    group.round_trips.resize(peers.size());
    for (const TcpSocket& socket : sockets)
      group.round_trips[socket.peer.index()] = RoundTripOf(socket.fd.get());
  }
  for (const std::string& note : PathNotes(group, sockets)) options_.note(note);
}

Status NodeRun::Commit() {
  if (outputs_ == nullptr) return {};
  PREPOST_RETURN_IF_ERROR(buffer_.GiveName());
  PREPOST_RETURN_IF_ERROR(outputs_->Commit());
  is_committed_ = true;
  return {};
}

LocalRun NodeRun::MakeRun() const {
  RunReport report = {.nodes = is_leader() ? reports_ : std::vector{part_.report()},
                      .queue_rearms = part_.queue_rearms()};
  for (uint32_t i = 0; i < report.nodes.size(); ++i) {
    NodeReport& node = report.nodes[i];
    node.node = is_leader() ? NodeId(i) : node_;
    report.elapsed_ns = std::max(report.elapsed_ns, node.elapsed_ns);
  }
  report.executor = options_.executor;
  report.detail = options_.detail;
  report.wait = Name(options_.wait.mode);
  LocalRun run = {.report = std::move(report), .sum = sum_};
  if (is_multicast()) return run;
  run.outputs.resize(plan_.header().nodes);
  for (const NodeReport& it : run.report.nodes) {
    if (plan_.header().roles().IsTarget(it.node))
      run.outputs[it.node.index()] = is_leader() ? sums_->of(it.node) : sum_;
  }
  return run;
}

}  // namespace

Result<LocalRun> RunNode(Playable plan, const MappedInput* input, OutputSet* outputs,
                         NodeRunOptions options) {
  const PlanHeader& header = plan.header();
  const NodeId node = options.bootstrap.node;
  if (header.collective.kind == CollectiveKind::kMulticast) {
    PREPOST_CHECK(header.roles().IsSource(node) == (input != nullptr));
    PREPOST_CHECK(input == nullptr || input->size_bytes() == header.payload.bytes);
  } else {
    PREPOST_CHECK((input != nullptr ? input->size_bytes() : 0) == NodeBytesOf(header, node).input);
    PREPOST_CHECK(outputs == nullptr || header.roles().IsTarget(node));
  }
  return NodeRun(plan, input, outputs, std::move(options)).Run();
}

}  // namespace prepost
