// SPDX-License-Identifier: Apache-2.0
//
// What the leader says last is still under way when the group is gone here: such connections
// (Parting) are shut down one way and kept until the other end has closed them, as closing them
// with anything unread would take back the words.
#include "runtime/session/keeper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <system_error>
#include <utility>

#include "runtime/clock.h"
#include "runtime/session/group_terms.h"
#include "runtime/session/keeper_group.h"
#include "runtime/session/member_words.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTickMin{10}, kTickMax{60'000};
constexpr milliseconds kFormingTick{100};  ///< while a group forms: calls are due, hosts looked up
constexpr milliseconds kPartingMax{1000};
constexpr milliseconds kPartingTick{100};
constexpr milliseconds kCrowdedTick{1};
/// Without groups: until a file that would wake it, and that the program has closed, is noticed.
constexpr milliseconds kIdleTick{1000};
constexpr size_t kParkedGuestsMax = 1024;  ///< connections of members whose group is not here yet
constexpr size_t kSessionFiles = 8;        ///< of a session, with its engine's

/// Control messages of one member that are read per visit and second. A member whose queue is full
/// keeps only the latest of a type (ControlSocket::QueueLatest()), so that the rest can wait.
constexpr double kMessagesPerVisit = 64;
constexpr double kMessagesPerSecond = 50'000;
/// Messages that report nothing new. A member needs fewer: some ten answers per failure_max.
constexpr uint32_t kRepeatsPerSecondMax = 1000;
constexpr uint32_t kClaimsPerSecondMax = 200;  ///< that are told to all
/// Messages that a leader may announce before those before them are complete: more than a mover
/// takes.
constexpr uint64_t kAnnouncedMax = 16;
constexpr uint64_t kAttentionMax = 200'000'000;  ///< ms; more says no more
constexpr size_t kStalledMax = 4;                ///< members named when nothing moves

template <typename... Type>
bool IsOneOf(const ControlMessage& message) {
  return (std::holds_alternative<Type>(message) || ...);
}

pollfd PollOf(const ControlSocket& control) {
  const int events = control.has_unsent() ? POLLIN | POLLOUT : POLLIN;
  return {.fd = control.fd(), .events = static_cast<short>(events), .revents = 0};
}

}  // namespace

Keeper::Keeper(KeeperOptions options)
    : options_(std::move(options)),
      tick_(std::clamp(options_.failure_max / 8, kTickMin, kTickMax)),
      silence_max_(options_.failure_max * 6 / 10),
      grace_(options_.failure_max * 2 / 10),
      open_max_(std::min(options_.connect_max, 5 * options_.failure_max)) {}

Result<std::unique_ptr<Keeper>> Keeper::Start(KeeperOptions options) {
  std::unique_ptr<Keeper> keeper(new Keeper(std::move(options)));
  const KeeperOptions& given = keeper->options_;
  const size_t parked_guests_max = given.listens ? std::min(kParkedGuestsMax, FilesMax() / 4) : 0;
  Result<FileRoom> files = FileRoom::Reserve(
      kSessionFiles + (given.listens ? Lobby::kGuestsMax + parked_guests_max : 0));
  if (!files.ok()) return files.status();
  keeper->files_ = *std::move(files);
  Result<EventFd> wake = EventFd::Make();
  if (!wake.ok()) return wake.status();
  keeper->wake_ = std::move(*wake);
  if (given.listens) {
    Result<std::unique_ptr<Lobby>> lobby =
        Lobby::Open({.who = given.who,
                     .own = given.own,
                     .bind = given.bind,
                     .bind_option = given.bind_option,
                     .ports = given.ports,
                     .key = *given.key,
                     .terms = given.only_group.value_or(GroupTerms()),
                     .parked_max = given.connect_max,
                     .parked_guests_max = parked_guests_max},
                    *keeper);
    if (!lobby.ok()) return lobby.status();
    keeper->lobby_ = std::move(*lobby);
  }
  try {
    keeper->thread_ = std::thread([raw = keeper.get()] { raw->Run(); });
  } catch (const std::system_error&) {
    return EnvironmentError("cannot start the thread of a session");
  }
  return keeper;
}

Keeper::~Keeper() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.Signal();
  thread_.join();
}

void Keeper::Add(KeptGroup group) {
  Push({.kind = Command::Kind::kAdd, .group = group.serial, .kept = std::move(group)});
}
void Keeper::Want(GroupSerial group, std::vector<NodeId> peers) {
  Push({.kind = Command::Kind::kWant, .group = group, .peers = std::move(peers)});
}
void Keeper::Have(GroupSerial group, uint64_t number) {
  Push({.kind = Command::Kind::kSay, .group = group, .message = control::Have{number + 1}});
}
void Keeper::Arrive(GroupSerial group, Gate gate, uint64_t number) {
  Push({.kind = Command::Kind::kArrive, .group = group, .number = number + 1, .gate = gate});
}
void Keeper::SendRunMessage(GroupSerial group, ControlMessage message, std::optional<NodeId> to) {
  Push({.kind = to ? Command::Kind::kTell : Command::Kind::kSay,
        .group = group,
        .message = std::move(message),
        .peer = to});
}
void Keeper::Place(GroupSerial group, std::string text) {
  Push({.kind = Command::Kind::kTell,
        .group = group,
        .message = control::Device{ControlText(text)}});
}
void Keeper::Announce(GroupSerial group, uint64_t bytes) {
  Push({.kind = Command::Kind::kTell, .group = group, .message = control::Next{bytes}});
}
void Keeper::Claim(GroupSerial group, uint64_t number, std::string text) {
  Push({.kind = Command::Kind::kSay,
        .group = group,
        .message = control::Waiting{.call = number, .what = ControlText(text)}});
}
void Keeper::Close(GroupSerial group, uint64_t number) {
  Push({.kind = Command::Kind::kClose, .group = group, .number = number});
}
void Keeper::Fail(GroupSerial group, Status status, std::optional<NodeId> lost_peer, bool differs) {
  Push({.kind = Command::Kind::kFail,
        .group = group,
        .status = std::move(status),
        .peer = lost_peer,
        .differs = differs});
}
void Keeper::Stalled(GroupSerial group, NodeId peer) {
  Push({.kind = Command::Kind::kSay, .group = group, .message = control::Stalled{peer}});
}

std::vector<KeeperEvent> Keeper::TakeEvents() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

void Keeper::Push(Command command) {
  {
    const std::lock_guard lock(mutex_);
    // Of many small messages the last one's notice is enough, and of many barriers the last one's.
    const bool is_latest = command.kind == Command::Kind::kArrive ||
                           std::holds_alternative<control::Have>(command.message);
    if (is_latest && !commands_.empty() && commands_.back().kind == command.kind &&
        commands_.back().message.index() == command.message.index() &&
        commands_.back().group == command.group && commands_.back().gate == command.gate) {
      commands_.pop_back();
    }
    commands_.push_back(std::move(command));
  }
  wake_.Signal();
}

void Keeper::Report(KeeperEvent event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  options_.notify();
}

/// For how long connections for data have been polled, as far as this thread ran itself.
milliseconds Keeper::Attention() const {
  const auto awake = std::chrono::duration_cast<milliseconds>(Clock::now() - awake_since_);
  return std::min(options_.attention(), awake);
}

void Keeper::Run() {
  for (;;) {
    std::vector<Command> commands;
    {
      const std::lock_guard lock(mutex_);
      if (is_ending_) break;
      commands = std::exchange(commands_, {});
    }
    for (Command& command : commands) Obey(std::move(command));
    // A machine that has no room for one more connection may have some later.
    if (lobby_ != nullptr) static_cast<void>(lobby_->Serve());
    for (const auto& [serial, group] : groups_) {
      if (broken_.ok()) {
        Serve(*group);
      } else if (!group->is_over) {
        Break(*group);
      }
    }
    ServeUnformed();
    std::erase_if(groups_, [](const auto& group) { return group.second->is_over; });
    EndPartings();
    Wait();
  }
  groups_.clear();
  // What was said last, such as that all is well, still has to arrive.
  for (EndPartings(); !partings_.empty(); EndPartings()) {
    std::vector<pollfd> polls;
    for (const Parting& parting : partings_) polls.push_back(PollOf(parting.control));
    poll(polls.data(), polls.size(), static_cast<int>(kPartingTick.count()));
  }
}

void Keeper::Break(Group& group) {
  if (group.last_word) return Part(group);
  End(group, {.cause = broken_, .where = group.kept.self});
}

/// Those that the other end has closed, or has had time to.
void Keeper::EndPartings() {
  std::erase_if(partings_, [](Parting& parting) {
    parting.control.Flush();
    if (!parting.control.has_unsent() && !std::exchange(parting.is_shut, true))
      shutdown(parting.control.fd(), SHUT_WR);
    std::array<std::byte, 4096> scratch;
    const ssize_t got = recv(parting.control.fd(), scratch.data(), scratch.size(), MSG_DONTWAIT);
    const bool is_closed = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    return is_closed || Clock::now() >= parting.due;
  });
}

void Keeper::Wait() {
  if (!broken_.ok()) {
    poll(nullptr, 0, static_cast<int>(tick_.count()));
    return;
  }
  std::vector<pollfd> polls = {{.fd = wake_.fd(), .events = POLLIN, .revents = 0}};
  if (lobby_ != nullptr) lobby_->AddPolls(&polls);
  bool is_crowded = false;  // a member says more than is read
  bool is_forming = (lobby_ != nullptr && lobby_->has_guests()) || !partings_.empty();
  bool is_losing = false;
  for (const auto& [serial, group] : groups_) {
    is_forming |= !group->is_reported || !group->newcomers.empty() ||
                  (group->bootstrap != nullptr && !group->bootstrap->settled());
    is_losing |= group->finding.has_value();
    for (const Newcomer& newcomer : group->newcomers) {
      if (newcomer.introduction == nullptr || !group->suspicions.empty()) continue;
      polls.push_back({.fd = newcomer.socket->fd.get(), .events = POLLIN, .revents = 0});
    }
    if (group->bootstrap != nullptr) group->bootstrap->AddPolls(&polls);
    for (const std::vector<Peer>* peers : {&group->peers, &group->gates}) {
      for (const Peer& peer : *peers) {
        if (!peer.control || peer.control->closed()) continue;
        if (peer.allowance < 1) {
          is_crowded = true;
          continue;
        }
        polls.push_back(PollOf(*peer.control));
      }
    }
  }
  for (const Parting& parting : partings_) polls.push_back(PollOf(parting.control));
  const milliseconds timeout = is_crowded        ? kCrowdedTick
                               : is_losing       ? grace_ / 8
                               : is_forming      ? std::min(kFormingTick, tick_)
                               : groups_.empty() ? kIdleTick
                                                 : tick_ / 2;
  poll(polls.data(), polls.size(), static_cast<int>(timeout.count()));
  // Frozen, as machines are while they move, and programs that are stopped: so was the engine, though
  // it seemed to wait, and so may others have been.
  const Clock::time_point now = Clock::now();
  if (now - awake_at_ > timeout + tick_) awake_since_ = now;
  awake_at_ = now;
  if ((polls.front().revents & POLLIN) != 0) wake_.Take();
  const auto is_closed = [](const pollfd& file) { return (file.revents & POLLNVAL) != 0; };
  if (std::ranges::any_of(polls, is_closed)) broken_ = FileClosedError();
}

void Keeper::Obey(Command command) {
  if (command.kind == Command::Kind::kAdd) return AddGroup(std::move(command.kept));
  const auto found = groups_.find(command.group);
  if (found == groups_.end() || found->second->is_over) return;
  Group& group = *found->second;
  switch (command.kind) {
    case Command::Kind::kAdd:
      return;
    case Command::Kind::kWant:
      for (const NodeId peer : command.peers) group.bootstrap->Want(peer, open_max_);
      return;
    case Command::Kind::kSay:
      return Say(group, command.message);
    case Command::Kind::kTell:
      if (!command.peer) return Broadcast(group, command.message);
      if (Peer& to = group.peers[command.peer->index()]; to.control)
        to.control->Queue(command.message);
      return;
    case Command::Kind::kArrive:
      group.arrived[command.gate] = command.number;
      return CountArrivals(group);
    case Command::Kind::kClose:
      group.is_done = true;
      if (group.is_leader()) Broadcast(group, control::Last{command.number});
      return Say(group, control::Done{group.arrived[Gate::kBarrier]});
    case Command::Kind::kFail:
      return FailPart(group, std::move(command));
  }
}

/// To the leader, which this node may be. What is done comes after all else that this node says, and
/// only once.
void Keeper::Say(Group& group, const ControlMessage& message) {
  if (group.is_leader()) return HearMember(group, group.own(), message);
  BroadcastLatest(group, message);
}

void Keeper::FailPart(Group& group, Command command) {
  // The leader may have said already what this is a consequence of.
  for (Peer& peer : group.peers) {
    Hear(group, peer);
    if (group.is_over) return;
  }
  if (command.peer)
    return Suspect(
        group, {.cause = std::move(command.status), .where = command.peer, .by = group.kept.self});
  if (command.status.code() == StatusCode::kInterrupted && group.is_leader())
    command.status = Rejected(fmt::format("{} was interrupted", Who(group, group.kept.self)));
  Failure failure = {.cause = std::move(command.status), .where = {}};
  if (!command.differs) failure.where = group.kept.self;
  if (group.is_leader() || group.peers.front().control) return End(group, failure);
  ReportFailure(group, failure, /*is_own_finding=*/true);
  group.last_word = std::move(failure);
}

std::string Keeper::Who(const Group& group, NodeId node) const {
  if (!group.kept.names.empty()) return group.kept.names[node.index()];
  return fmt::format("{} {} ({})", group.kept.word, group.kept.members[node.index()],
                     ToString(group.kept.addresses[node.index()]));
}

void Keeper::Serve(Group& group) {
  if (group.is_over) return;
  if (group.last_word) return SayLastWord(group);
  if (group.of_other_terms && !group.is_formed) {
    const NodeId node = *group.of_other_terms;
    const NodeId sealing = group.kept.is_sealed ? group.kept.self : node;
    const NodeId other = group.kept.is_sealed ? node : group.kept.self;
    const std::string what =
        group.is_other_seal
            ? fmt::format("{} seals its connections and {} does not: all members do, or none",
                          Who(group, sealing), Who(group, other))
            : fmt::format("{} creates the group with another root, other options or another plan",
                          Who(group, node));
    return End(group, {.cause = Rejected(what), .where = node});
  }
  for (Peer& peer : group.peers) {
    if (peer.control) peer.control->Flush();
    Hear(group, peer);
    if (group.is_over) return;
  }
  if (!group.is_formed) {
    Connect(group);
  } else if (group.bootstrap != nullptr) {
    ConnectLater(group);
  }
  if (!group.is_over && group.is_formed) Introduce(group);
  if (!group.is_over) ServeGates(group);
  if (!group.is_over) CheckSilence(group);
  // A run waits for a node to come, perhaps again, as long as it may take.
  if (!group.is_over && !group.is_formed && !group.kept.run) CheckLosses(group);
  if (!group.is_over && group.is_leader()) AskAll(group);
  if (!group.is_over && group.is_leader()) CheckProgress(group);
  if (!group.is_over && !group.finding && !group.suspicions.empty() &&
      Clock::now() >= group.suspicion_due) {
    End(group, CauseOf(group.suspicions));
  }
}

void Keeper::AskAll(Group& group) {
  if (Clock::now() < group.next_question) return;
  group.next_question = Clock::now() + tick_;
  Broadcast(group, control::Query{group.generation});
}

control::Progress Keeper::Answer() const {
  control::Progress answer;
  if (options_.describe) answer = options_.describe();
  answer.attention_ms = static_cast<uint64_t>(Attention().count());
  return answer;
}

/// As many messages as it is allowed: the others are not to wait, whatever it says.
void Keeper::Hear(Group& group, Peer& peer) {
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> since = now - std::exchange(peer.allowed_at, now);
  peer.allowance = std::min(peer.allowance + since.count() * kMessagesPerSecond, kMessagesPerVisit);
  for (; peer.control && !group.is_over && peer.allowance >= 1; --peer.allowance) {
    const std::optional<ControlMessage> message = peer.control->Receive();
    if (!message) break;
    peer.heard = now;
    if (!IsNews(group, peer, *message) && RepeatsTooOften(peer, now))
      return End(group, Nonsense(group, peer.node, "messages without pause that say nothing new"));
    if (group.is_leader()) {
      HearMember(group, peer, *message);
    } else if (peer.node == group.kept.leader) {
      HearLeader(group, *message);
    } else {
      HearGate(group, peer, *message);
    }
  }
}

/// Whether `message` reports more than this node knows. One more message to move is checked
/// otherwise.
bool Keeper::IsNews(const Group& group, const Peer& peer, const ControlMessage& message) {
  if (const auto* have = std::get_if<control::Have>(&message)) return have->messages > peer.have;
  if (const auto* arrived = std::get_if<control::Arrived>(&message))
    return arrived->number > peer.arrived[arrived->gate];
  if (const auto* passed = std::get_if<control::Passed>(&message))
    return passed->number > group.passed[passed->gate];
  return std::holds_alternative<control::Next>(message);
}

/// Of a message that reports nothing new, as answers do: it is one too many of these in a second.
bool Keeper::RepeatsTooOften(Peer& peer, Clock::time_point now) {
  if (now - peer.repeats_since >= std::chrono::seconds(1)) {
    peer.repeats_since = now;
    peer.repeats = 0;
  }
  return ++peer.repeats > kRepeatsPerSecondMax;
}

/// At the leader; also of this node itself.
void Keeper::HearMember(Group& group, Peer& peer, const ControlMessage& message) {
  if (TakeRunMessage(group, peer.node, message)) return;
  if (const auto* progress = std::get_if<control::Progress>(&message)) {
    peer.progress = progress->steps;
    peer.waiting = progress->waits_for;
    JudgeStall(group, peer.node, milliseconds(std::min(progress->attention_ms, kAttentionMax)));
  } else if (const auto* arrived = std::get_if<control::Arrived>(&message)) {
    HearArrived(group, peer, *arrived);
  } else if (const auto* have = std::get_if<control::Have>(&message)) {
    peer.have = std::max(peer.have, have->messages);
    const uint64_t delivered = std::ranges::min_element(group.peers, {}, &Peer::have)->have;
    while (group.delivered < delivered) {
      Report({.kind = KeeperEvent::Kind::kDelivered,
              .group = group.kept.serial,
              .number = group.delivered++});
    }
  } else if (const auto* done = std::get_if<control::Done>(&message)) {
    peer.done = true;
    peer.barriers = done->barriers;
    if (!std::ranges::all_of(group.peers, &Peer::done)) return;
    // Those that all have come to have passed, also where the tree has not heard of them yet.
    const uint64_t barriers = std::ranges::min_element(group.peers, {}, &Peer::barriers)->barriers;
    ReportPassed(group, {.gate = Gate::kBarrier, .number = barriers});
    Broadcast(group, control::Release{barriers});
    Finish(group);
  } else if (const auto* claim = std::get_if<control::Waiting>(&message)) {
    RelayClaim(group, peer, *claim);
  } else if (std::holds_alternative<control::Joined>(message)) {
    if (std::exchange(peer.joined, true)) return;
    if (!std::ranges::all_of(group.peers, &Peer::joined)) return;
    Broadcast(group, control::Joined());
    group.introductions_due = Clock::now() + silence_max_;
  } else if (const auto* failed = std::get_if<control::Failed>(&message)) {
    HearFailed(group, peer, *failed);
  } else if (const auto* stalled = std::get_if<control::Stalled>(&message)) {
    if (group.Has(stalled->peer) && stalled->peer != peer.node)
      return NoteStall(group, peer.node, stalled->peer);
    End(group, Nonsense(group, peer.node, "a stall of no other member"));
  } else {
    End(group, Nonsense(group, peer.node, message));
  }
}

void Keeper::HearFailed(Group& group, const Peer& peer, const control::Failed& failed) {
  const bool is_interrupted = failed.code == StatusCode::kInterrupted;
  const bool is_of_machine =
      failed.code == StatusCode::kEnvironment && group.kept.run && group.kept.run->is_one_machine;
  Failure failure = {
      .cause = {is_of_machine ? StatusCode::kEnvironment : StatusCode::kRejected,
                is_interrupted ? fmt::format("{} was interrupted", Who(group, peer.node))
                               : fmt::format("{}: {}", Who(group, peer.node), failed.cause)},
      .where = group.WhereOf(failed.where),
      .by = peer.node};
  return failed.lost_peer ? Suspect(group, std::move(failure)) : End(group, failure);
}

void Keeper::HearLeader(Group& group, const ControlMessage& message) {
  const NodeId leader = group.kept.leader;
  const GroupSerial serial = group.kept.serial;
  if (TakeRunMessage(group, leader, message)) return;
  if (const auto* query = std::get_if<control::Query>(&message)) {
    // Of a group whose connections were there: all members are.
    if (!group.kept.controls.empty() && !group.introductions_due)
      group.introductions_due = Clock::now() + silence_max_;
    if (group.bootstrap != nullptr && group.generation != query->generation) {
      group.generation = query->generation;
      group.bootstrap->set_data_terms(
          {.plan = DataTermsOfGroup(group.kept.terms, query->generation),
           .is_sealed = group.kept.is_sealed});
      lobby_->Reconsider();  // peers may have come before the leader's word
    }
    BroadcastLatest(group, Answer());
  } else if (const auto* passed = std::get_if<control::Passed>(&message)) {
    HearPassed(group, group.peers.front(), *passed);
  } else if (const auto* gone = std::get_if<control::Gone>(&message)) {
    group.also_gone.clear();
    std::ranges::copy_if(gone->nodes, std::back_inserter(group.also_gone),
                         [&group](NodeId node) { return group.Has(node); });
  } else if (const auto* abort = std::get_if<control::Abort>(&message)) {
    ReportFailure(group,
                  {.cause = Rejected(abort->cause),
                   .where = group.WhereOf(abort->where),
                   .is_gone = abort->is_gone,
                   .also_gone = std::move(group.also_gone)},
                  /*is_own_finding=*/false);
    Part(group);
  } else if (std::holds_alternative<control::Joined>(message)) {
    if (!group.introductions_due) group.introductions_due = Clock::now() + silence_max_;
  } else if (const auto* device = std::get_if<control::Device>(&message)) {
    Report({.kind = KeeperEvent::Kind::kPlace, .group = serial, .text = device->place});
  } else if (const auto* claim = std::get_if<control::Waiting>(&message)) {
    if (!group.Has(claim->node)) return End(group, Nonsense(group, leader, "a call of no member"));
    ReportClaim(group, *claim);
  } else if (const auto* next = std::get_if<control::Next>(&message)) {
    if (++group.announced > group.passed[Gate::kMoved] + kAnnouncedMax)
      return End(group, Nonsense(group, leader, "messages announced without end"));
    Report({.kind = KeeperEvent::Kind::kNext, .group = serial, .number = next->bytes});
  } else if (const auto* last = std::get_if<control::Last>(&message)) {
    if (std::exchange(group.has_last, true))
      return End(group, Nonsense(group, leader, "\"last\" out of turn"));
    Report({.kind = KeeperEvent::Kind::kLast, .group = serial, .number = last->messages});
  } else if (const auto* release = std::get_if<control::Release>(&message)) {
    if (!group.is_done) return End(group, Nonsense(group, leader, "\"release\" out of turn"));
    ReportPassed(group, {.gate = Gate::kBarrier,
                         .number = std::min(release->barriers, group.arrived[Gate::kBarrier])});
    Finish(group);
  } else {
    End(group, Nonsense(group, leader, message));
  }
}

/// All have all messages. Its members may end now, and come back when they like.
void Keeper::Finish(Group& group) {
  for (const uint32_t member : group.kept.members) seen_.erase(member);
  Report({.kind = KeeperEvent::Kind::kClosed, .group = group.kept.serial});
  Part(group);
}

/// To all, the first of a call, again after a while, and whatever differs from it; of a member not
/// more often than it has to (Engine::ClaimCall()), nor of all together so often that the others would
/// take it for a flood.
void Keeper::RelayClaim(Group& group, Peer& peer, const control::Waiting& claim) {
  const bool is_known = claim.call == group.claim.call && claim.what == group.claim.what;
  const auto now = Clock::now();
  if (is_known && now - group.claimed_at < options_.failure_max / 2) return;
  if (now - peer.claimed_at < options_.failure_max / 8) return;
  if (now - group.claims_since >= std::chrono::seconds(1)) {
    group.claims_since = now;
    group.claims = 0;
  }
  if (++group.claims > kClaimsPerSecondMax) return;
  peer.claimed_at = group.claimed_at = now;
  group.claim = {.call = claim.call, .node = peer.node, .what = claim.what};
  Broadcast(group, group.claim);
  ReportClaim(group, group.claim);
}

void Keeper::ReportClaim(const Group& group, const control::Waiting& claim) {
  Report({.kind = KeeperEvent::Kind::kClaim,
          .group = group.kept.serial,
          .number = claim.call,
          .node = claim.node,
          .text = claim.what});
}

/// Where one is lost nobody goes on; it may be a consequence of something else.
void Keeper::ServeGates(Group& group) {
  const Clock::time_point now = Clock::now();
  const bool is_sign_due = now >= group.next_sign;
  if (is_sign_due) group.next_sign = now + tick_;
  for (Peer& peer : group.gates) {
    if (is_sign_due) peer.control->QueueLatest(control::Query());
    peer.control->Flush();
    Hear(group, peer);
    if (group.is_over) return;
    if (peer.control->is_authentic() && !peer.control->nonsense().empty())
      return End(group, Nonsense(group, peer.node, peer.control->nonsense()));
    if (!peer.control->is_authentic()) return End(group, NotAuthenticFrom(group, peer.node));
    const bool is_begun = group.introductions_due && now >= *group.introductions_due;
    if (!peer.control->closed() && !(is_begun && is_silent(peer))) continue;
    Suspect(group,
            {.cause = Rejected(fmt::format("{} lost its connection to {}",
                                           Who(group, group.kept.self), Who(group, peer.node))),
             .where = peer.node,
             .by = group.kept.self});
  }
}

/// Over a connection of the GateTree with another member than the leader.
void Keeper::HearGate(Group& group, Peer& peer, const ControlMessage& message) {
  if (std::holds_alternative<control::Query>(message)) return;  // a sign of life
  const auto* arrived = std::get_if<control::Arrived>(&message);
  const bool is_child = std::ranges::count(group.children, peer.node) > 0;
  if (arrived != nullptr && is_child) return HearArrived(group, peer, *arrived);
  if (const auto* passed = std::get_if<control::Passed>(&message))
    return HearPassed(group, peer, *passed);
  End(group, Nonsense(group, peer.node, message));
}

void Keeper::HearArrived(Group& group, Peer& peer, const control::Arrived& arrived) {
  uint64_t& number = peer.arrived[arrived.gate];
  number = std::max(number, arrived.number);
  CountArrivals(group);
}

/// Only a parent says it, of what this node has reported to it.
void Keeper::HearPassed(Group& group, const Peer& peer, const control::Passed& passed) {
  const bool is_parent = group.tree.ParentOf(group.kept.self) == peer.node;
  if (is_parent && passed.number <= group.reported[passed.gate]) return Pass(group, passed);
  End(group, Nonsense(group, peer.node, passed));
}

/// At the other end of an edge of the tree.
Keeper::Peer& Keeper::NeighbourOf(Group& group, NodeId node) {
  if (group.is_leader()) return group.peers[node.index()];
  if (node == group.kept.leader) return group.peers.front();
  const auto gate = std::ranges::find(group.gates, node, &Peer::node);
  PREPOST_CHECK(gate != group.gates.end());  // nobody arrives before the group has formed
  return *gate;
}

/// Of this node and all below it in the tree: reported up, or, at the leader, passed.
void Keeper::CountArrivals(Group& group) {
  for (size_t i = 0; i < kGates; ++i) {
    const auto gate = static_cast<Gate>(i);
    uint64_t arrived = group.arrived[gate];
    for (const NodeId child : group.children)
      arrived = std::min(arrived, NeighbourOf(group, child).arrived[gate]);
    if (arrived <= group.reported[gate]) continue;
    group.reported[gate] = arrived;
    if (group.is_leader()) {
      Pass(group, {.gate = gate, .number = arrived, .start_ns = MonotonicNs()});
      continue;
    }
    Peer& parent = NeighbourOf(group, *group.tree.ParentOf(group.kept.self));
    if (parent.control)
      parent.control->QueueLatest(control::Arrived{.gate = gate, .number = arrived});
  }
}

/// All have come there: those below hear it.
void Keeper::Pass(Group& group, const control::Passed& passed) {
  if (passed.number <= group.passed[passed.gate]) return;
  for (const NodeId child : group.children) {
    Peer& peer = NeighbourOf(group, child);
    if (peer.control) peer.control->QueueLatest(passed);
  }
  ReportPassed(group, passed);
}

void Keeper::ReportPassed(Group& group, const control::Passed& passed) {
  uint64_t& number = group.passed[passed.gate];
  while (number < passed.number) {
    Report({.kind = KeeperEvent::Kind::kPassed,
            .group = group.kept.serial,
            .number = number++,
            .gate = passed.gate,
            .start_ns = passed.start_ns});
  }
}

/// Whether `message` is for those who lead and play a run, and nothing else.
bool Keeper::TakeRunMessage(Group& group, NodeId from, const ControlMessage& message) {
  if (!group.kept.run) return false;
  const bool is_theirs = group.is_leader() ? IsOneOf<control::Report, control::Summed>(message)
                                           : IsOneOf<control::Sum, control::Commit>(message);
  const bool is_for_both = group.is_leader() && IsOneOf<control::Progress>(message);
  if (is_theirs || is_for_both)
    Report({.kind = KeeperEvent::Kind::kRunMessage,
            .group = group.kept.serial,
            .node = from,
            .message = message});
  return is_theirs;
}

/// At the leader of a run, from when all are there.
void Keeper::CheckProgress(Group& group) {
  if (!group.kept.run || !std::ranges::all_of(group.peers, &Peer::joined)) return;
  if (options_.describe) {
    control::Progress own = options_.describe();
    group.own().progress = own.steps;
    group.own().waiting = std::move(own.waits_for);
  }
  uint64_t progress = 0;
  for (const Peer& peer : group.peers) {
    progress += peer.progress;
    for (const uint64_t arrived : peer.arrived.counts) progress += arrived;
    progress += peer.done ? 1 : 0;
  }
  const Clock::time_point now = Clock::now();
  const bool is_first = group.progress_at == Clock::time_point();
  if (is_first || progress != group.progress || now - awake_since_ < tick_) {
    group.progress = progress;
    group.progress_at = now;
    return;
  }
  // Of a member's progress the leader hears two ticks later, at most.
  const std::chrono::milliseconds interval =
      group.kept.run->is_over_device ? DeviceInterval(options_.failure_max) : tick_;
  const std::chrono::milliseconds limit =
      std::max(group.kept.run->no_progress_max, 2 * (interval + tick_));
  if (now - group.progress_at < limit) return;
  std::vector<std::string> reasons;
  for (const Peer& peer : group.peers) {
    if (!peer.waiting.empty() && reasons.size() < kStalledMax) reasons.push_back(peer.waiting);
  }
  if (reasons.empty()) reasons.push_back("no node has said what it waits for");
  End(group, {.cause = Rejected(fmt::format("no progress for {} ms: {}", limit.count(),
                                            fmt::join(reasons, "; "))),
              .where = {}});
}

void Keeper::Broadcast(Group& group, const ControlMessage& message) {
  for (Peer& peer : group.peers) {
    if (peer.control) peer.control->Queue(message);
  }
}

/// `message` says all that those of its type, and gate, before it said.
void Keeper::BroadcastLatest(Group& group, const ControlMessage& message) {
  for (Peer& peer : group.peers) {
    if (peer.control) peer.control->QueueLatest(message);
  }
}

void Keeper::Part(Group& group) {
  group.is_over = true;
  group.bootstrap.reset();
  group.newcomers.clear();
  for (std::vector<Peer>* peers : {&group.peers, &group.gates}) {
    for (Peer& peer : *peers) {
      if (!peer.control) continue;
      Part(*std::move(peer.control));
      peer.control.reset();
    }
  }
}

/// What was said last is still to arrive.
void Keeper::Part(ControlSocket control) {
  partings_.push_back({.control = std::move(control), .due = Clock::now() + kPartingMax});
  EndPartings();
}

}  // namespace prepost
