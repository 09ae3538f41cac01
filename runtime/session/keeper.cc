// SPDX-License-Identifier: Apache-2.0
//
// What the leader says last is still under way when the group is gone here: such connections
// (Parting) are shut down one way and kept until the other end has closed them, as closing them
// with anything unread would take back the words.
#include "runtime/session/keeper.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/base/thread.h"
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
      open_max_(std::min(options_.connect_max, 5 * options_.failure_max)),
      join_max_(options_.connect_max + options_.failure_max) {}

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
  Result<std::thread> thread =
      StartThread("the thread of a session", [raw = keeper.get()] { raw->Run(); });
  if (!thread.ok()) return thread.status();
  keeper->thread_ = *std::move(thread);
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
void Keeper::Fail(GroupSerial group, Status status, std::optional<NodeId> lost_peer, bool differs,
                  std::optional<NodeId> where) {
  Push({.kind = Command::Kind::kFail,
        .group = group,
        .status = std::move(status),
        .peer = lost_peer,
        .where = where,
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
    ServeFormers();
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
  // Frozen, as machines are while they move, and programs that are stopped: so was the engine,
  // though it seemed to wait, and so may others have been.
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
      PREPOST_CHECK(group.is_leader());  // others have one peer
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

/// To the leader, which this node may be. What is done comes after all else that this node says,
/// and only once.
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
  if (!command.differs) failure.where = command.where.value_or(group.kept.self);
  EndForming(group, std::move(failure));
}

/// If the leader is not there yet, it is still to hear why. Over terms it is told when it asks
/// (JudgeByFormer()): a call with these might end the next group.
void Keeper::EndForming(Group& group, Failure failure) {
  const bool is_told = failure.kind == FailureKind::kTerms;
  if (group.is_leader() || is_told || group.peers.front().control) return End(group, failure);
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
  if (group.other_terms && !group.is_formed) return EndOverTerms(group);
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
  if (!group.is_over) CheckJoined(group);
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
  partings_.push_back({.control = std::move(control),
                       .due = Clock::now() + std::min(kPartingMax, options_.failure_max / 2)});
  EndPartings();
}

}  // namespace prepost
