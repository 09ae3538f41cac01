// SPDX-License-Identifier: Apache-2.0
//
// A group's life at one member:
//
//     connecting --> idle <--> running --> ...       broken: an endpoint's error was passed on
//                      |                             to the keeper, whose kFailed ends the group
//                      +--> closing --> gone
//
// Of a call that uses connections that are not there yet it is opening before it is running.
//
// All that happens to a group happens on the turning thread, in the order in which commands and
// events come. Callbacks are called without the lock, after the group is in the state that they
// report, so that they may call anything.
#include "runtime/session/engine.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "ir/base/utf8.h"
#include "runtime/base/clock.h"
#include "runtime/session/engine_group.h"
#include "runtime/session/group_terms.h"
#include "runtime/session/member_words.h"
#include "runtime/session/memory_pool.h"
#include "runtime/transport/tcp/path_notes.h"
#include "runtime/transport/tcp/tcp_address.h"
#include "runtime/transport/tcp/tcp_endpoint.h"
#include "runtime/transport/tcp/tcp_links.h"
#include "runtime/transport/tcp/tcp_watch.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;

/// A connection on which nothing moves: when the kernel begins to ask whether its other end is
/// there, how often, and how often in vain.
constexpr milliseconds kIdleMax{30'000};
constexpr milliseconds kQuestionInterval{10'000};
constexpr int kQuestions = 3;

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Make(KeeperOptions options, const WaitPolicy& wait,
                                             TcpHook* hook) {
  std::unique_ptr<Engine> engine(new Engine(wait, options.failure_max));
  engine->hook_ = hook;
  PREPOST_RETURN_IF_ERROR(engine->Open());
  options.notify = [raw = engine.get()] { raw->Alert(); };
  options.attention = [raw = engine.get()] { return raw->attention_.Get(); };
  Result<std::unique_ptr<Keeper>> keeper = Keeper::Start(std::move(options));
  if (!keeper.ok()) return keeper.status();
  engine->keeper_ = std::move(*keeper);
  return engine;
}

Engine::Engine(const WaitPolicy& wait, milliseconds failure_max)
    : pacer_(wait),
      attention_(failure_max / 8),
      idle_max_(wait.idle_max),
      failure_max_(failure_max),
      tick_(failure_max / 8),
      silence_max_(PeerSilenceMax(failure_max)),
      answer_max_(PeerAnswerMax(failure_max)),
      claim_after_(failure_max / 4),
      keep_alive_{kIdleMax, std::max(kQuestionInterval, failure_max / 2), kQuestions} {}

// First the threads and pools end that signal wake_.
Engine::~Engine() {
  for (const auto& [serial, group] : groups_) {
    if (group->mover != nullptr) group->mover->Stop();
  }
  keeper_.reset();
  for (const auto& [serial, group] : groups_) {
    group->endpoint.reset();  // before memory of the executor's that peers copy from
    group->executor.reset();
    ReturnBuffers(*group);
    group->sync.reset();
  }
}

Status Engine::Open() {
  Result<EventFd> wake = EventFd::Make();
  if (!wake.ok()) return wake.status();
  wake_ = std::move(*wake);
  timer_ = FileDescriptor::Open(
      [] { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); });
  epoll_ = FileDescriptor::Open([] { return epoll_create1(EPOLL_CLOEXEC); });
  const auto watch = [this](int file, GroupSerial serial) {
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = serial}};
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, file, &event) == 0;
  };
  if (timer_.valid() && epoll_.valid() && watch(wake_.fd(), kWakeSerial) &&
      watch(timer_.get(), kTimerSerial)) {
    return {};
  }
  return SystemError(StatusCode::kEnvironment, "cannot watch the connections of a session", errno);
}

Status Engine::Create(const EngineGroupOptions& options, std::unique_ptr<GroupPlans> plans,
                      GroupCallbacks callbacks, std::unique_ptr<MessageMover> mover) {
  if (callbacks.pool != nullptr && callbacks.pool->impl_->is_inherited())
    return UsageError(
        fmt::format("cannot create group {}: its pool was made before this process "
                    "was forked, and is its parent's",
                    options.number));
  auto group = std::make_shared<Group>();
  group->options = options;
  group->plans = std::move(plans);
  group->callbacks = std::move(callbacks);
  group->mover = std::move(mover);
  group->terms = TermsOfGroup(options.number, options.members, options.collective.root,
                              group->plans->Hash(), options.terms);
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Group>& listed = by_number_[options.number];
    if (listed != nullptr && listed->failure.ok())
      return UsageError(fmt::format("group {} exists already", options.number));
    listed = group;
    group->serial = next_serial_++;
    commands_.push_back({.kind = Command::Kind::kCreate, .group = std::move(group)});
  }
  Alert();
  return {};
}

/// Needs the lock.
Result<std::shared_ptr<Engine::Group>> Engine::Find(uint64_t number, const char* what) {
  const auto found = by_number_.find(number);
  if (found == by_number_.end()) {
    return UsageError(fmt::format(
        "cannot {} group {}: there is none of this number, or it has failed", what, number));
  }
  if (!found->second->failure.ok()) {
    return Rejected(fmt::format("cannot {} group {}, which has failed: {}", what, number,
                                found->second->failure.message()));
  }
  if (found->second->is_destroyed)
    return UsageError(fmt::format("cannot {} group {}: it is being destroyed", what, number));
  return found->second;
}

/// Needs the lock. Also while it is being destroyed.
Result<std::shared_ptr<Engine::Group>> Engine::FindToAsk(uint64_t number) {
  const auto found = by_number_.find(number);
  const bool is_ending = found != by_number_.end() && found->second->is_destroyed;
  if (is_ending && found->second->failure.ok()) return found->second;
  return Find(number, "ask about");
}

Result<uint64_t> Engine::Send(uint64_t number, std::span<const MessagePart> parts) {
  std::unique_lock turn(turn_, std::try_to_lock);
  std::shared_ptr<Group> at_once;
  uint64_t message = 0;
  {
    const std::lock_guard lock(mutex_);
    Result<std::shared_ptr<Group>> found = Find(number, "send to");
    if (!found.ok()) return found.status();
    std::shared_ptr<Group>& group = *found;
    PREPOST_RETURN_IF_ERROR(CheckSend(*group, parts));
    message = std::exchange(group->sent, group->sent + parts.size());
    if (turn.owns_lock() && commands_.empty() && CanSendAtOnce(*group, parts)) {
      at_once = std::move(group);
    } else {
      for (const MessagePart& part : parts) {
        commands_.push_back(
            {.kind = Command::Kind::kSend, .group = group, .data = part.data, .bytes = part.bytes});
      }
    }
  }
  if (at_once == nullptr || SendAtOnce(*at_once, parts)) Alert();
  return message;
}

/// Whether the program may send these.
Status Engine::CheckSend(const Group& group, std::span<const MessagePart> parts) {
  const uint64_t number = group.options.number;
  if (group.options.is_for_calls)
    return UsageError(fmt::format("cannot send to group {}: it is for calls", number));
  if (!group.is_source()) {
    return UsageError(fmt::format("cannot send to group {}: member {} is its root", number,
                                  group.options.members[group.options.collective.root.index()]));
  }
  for (const MessagePart& part : parts) {
    Status size = group.plans->CheckSize(part.bytes);
    if (part.bytes > kGroupMessageBytesMax) size = UsageError("a message has 256 TiB at most");
    if (!size.ok())
      return UsageError(fmt::format("cannot send to group {}: {}", number, size.message()));
  }
  return {};
}

Status Engine::Barrier(uint64_t number, std::function<void()> passed) {
  {
    const std::lock_guard lock(mutex_);
    Result<std::shared_ptr<Group>> group = Find(number, "hold a barrier of");
    if (!group.ok()) return group.status();
    commands_.push_back(
        {.kind = Command::Kind::kBarrier, .group = *std::move(group), .passed = std::move(passed)});
  }
  Alert();
  return {};
}

Status Engine::Destroy(uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    Result<std::shared_ptr<Group>> group = Find(number, "destroy");
    if (!group.ok()) return group.status();
    (*group)->is_destroyed = true;
    commands_.push_back({.kind = Command::Kind::kDestroy, .group = *std::move(group)});
  }
  Alert();
  return {};
}

Status Engine::Abort(uint64_t number, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_number_.find(number);
    const bool is_ending = found != by_number_.end() && found->second->is_destroyed;
    if (!is_ending || !found->second->failure.ok())
      PREPOST_RETURN_IF_ERROR(Find(number, "abort").status());
    commands_.push_back(
        {.kind = Command::Kind::kAbort, .group = found->second, .why = Printable(why)});
  }
  Alert();
  return {};
}

void Engine::Resume() { Alert(); }

/// There are commands or events. Who turns the engine looks for them before it sleeps, once it has
/// said so; one signal is enough for all that come before it hears it.
void Engine::Alert() {
  if (!has_work_.exchange(true) && sleeps_.load()) wake_.Signal();
}

Result<std::vector<uint32_t>> Engine::MembersOf(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const Result<std::shared_ptr<Group>> group = Find(number, "call in");
  if (!group.ok()) return group.status();
  return (*group)->options.members;
}

Result<bool> Engine::IsForCalls(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const Result<std::shared_ptr<Group>> group = Find(number, "ask about");
  if (!group.ok()) return group.status();
  return (*group)->options.is_for_calls;
}

Result<PeerPaths> Engine::Paths(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const Result<std::shared_ptr<Group>> group = FindToAsk(number);
  if (!group.ok()) return group.status();
  return (*group)->paths;
}

Result<std::vector<PeerSpeed>> Engine::Speeds(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const Result<std::shared_ptr<Group>> group = FindToAsk(number);
  if (!group.ok()) return group.status();
  return (*group)->speeds;
}

Result<std::vector<std::string>> Engine::Notes(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const Result<std::shared_ptr<Group>> group = FindToAsk(number);
  if (!group.ok()) return group.status();
  return (*group)->notes;
}

/// From now on whoever turns the engine may wait for its file in between.
int Engine::fd() {
  if (!rests_.exchange(true)) wake_.Signal();
  return epoll_.get();
}

void Engine::Obey(Command command) {
  Group& group = *command.group;
  ++progress_;
  switch (command.kind) {
    case Command::Kind::kCreate:
      groups_.emplace(group.serial, command.group);
      keeper_->Add({.serial = group.serial,
                    .number = group.options.number,
                    .members = group.options.members,
                    .addresses = group.options.addresses,
                    .self = group.options.self,
                    .leader = group.options.collective.root,
                    .connections = group.plans->connections(),
                    .opens_later = group.options.is_for_calls,
                    .has_eager_tree = group.HasEager(),
                    .shares_memory = group.mover == nullptr,
                    .rings_blocks = group.MayCopy(),
                    .stages_blocks = group.StagesBlocks(),
                    .sites = group.options.sites,
                    .paths = group.options.paths,
                    .terms = group.terms,
                    .is_sealed = group.options.is_sealed,
                    .leader_connects = group.options.root_connects,
                    .created = group.created});
      return;
    case Command::Kind::kSend:
      group.queue.push_back({command.data, command.bytes});
      group.is_busy = true;  // with all that the turn brings, so that many go together
      return;
    case Command::Kind::kCall:
      if (group.state == Group::State::kGone || group.state == Group::State::kBroken) {
        group.calls.push_back(std::move(command.call));
        if (group.state == Group::State::kGone) FailCalls(group, group.failure);
        return;
      }
      group.calls.push_back(std::move(command.call));
      return Advance(group);
    case Command::Kind::kBarrier:
      if (group.state == Group::State::kGone) return;
      group.barriers.push_back(std::move(command.passed));
      // Before that nobody could be told; see kConnected.
      if (group.state != Group::State::kConnecting)
        keeper_->Arrive(group.serial, Gate::kBarrier, group.arrived++);
      return;
    case Command::Kind::kDestroy:
      group.is_closing = true;
      return Advance(group);
    case Command::Kind::kAbort:
      if (group.state == Group::State::kBroken || group.state == Group::State::kGone) return;
      return Fail(group,
                  Rejected(fmt::format("member {} has aborted the group{}{}",
                                       group.options.members[group.options.self.index()],
                                       command.why.empty() ? "" : ": ", command.why)),
                  std::nullopt);
  }
}

void Engine::Hear(KeeperEvent event) {
  const auto found = groups_.find(event.group);
  if (found == groups_.end()) return;
  const std::shared_ptr<Group> group = found->second;
  ++progress_;
  switch (event.kind) {
    case KeeperEvent::Kind::kConnected: {
      if (group->state == Group::State::kBroken) return;
      const Status status = group->state == Group::State::kConnecting
                                ? Connect(group, std::move(event))
                                : AddConnections(*group, std::move(event.sockets));
      if (!status.ok()) Break(*group, status, std::nullopt);
      return;
    }
    case KeeperEvent::Kind::kPlace:
      if (group->mover == nullptr || std::exchange(group->has_place, true))
        return BreakNonsense(*group, "says where its NICs are");
      if (group->is_connected) return group->mover->Join(std::move(event.text));
      group->place = std::move(event.text);
      return;
    case KeeperEvent::Kind::kNext:
      if (group->mover == nullptr) return BreakNonsense(*group, "announces a message");
      group->announced.push_back(event.number);
      return Advance(*group);
    case KeeperEvent::Kind::kDelivered:
      return Delivered(*group, event.number);
    case KeeperEvent::Kind::kPassed:
      return Pass(*group, event.gate, event.number);
    case KeeperEvent::Kind::kLast:
      group->last = event.number;
      return Advance(*group);
    case KeeperEvent::Kind::kLetIn:
    case KeeperEvent::Kind::kRunMessage:
      return;  // of runs
    case KeeperEvent::Kind::kClaim:
      return HearClaim(*group, event.number, event.node, event.text);
    case KeeperEvent::Kind::kClosed:
      // All have all messages, whatever has said so until now.
      if (group->is_source() && group->options.notify_delivered) {
        group->have_all = group->message;
        TellDelivered(*group);
      }
      Retire(*group);
      FailCalls(*group, {});
      Unlist(*group);
      if (group->callbacks.closed) group->callbacks.closed();
      return;
    case KeeperEvent::Kind::kFailed:
      Retire(*group);
      group->sent_at_once.clear();  // nothing is called after `failed`
      {
        const std::lock_guard lock(mutex_);
        group->failure = event.status;
      }
      FailCalls(*group, event.status);
      if (group->callbacks.failed)
        group->callbacks.failed(event.status,
                                {.members = std::move(event.members),
                                 .messages = group->have,
                                 .unreached = event.failure == FailureKind::kUnreached});
      return Unlist(*group);
  }
}

Status Engine::Connect(const std::shared_ptr<Group>& group, KeeperEvent event) {
  std::vector<TcpSocket>& sockets = event.sockets;
  NotePeers(*group, sockets, std::move(event.round_trips));
  if (group->mover != nullptr) {
    const std::shared_ptr<MemoryPool>& pool = group->callbacks.pool;
    group->mover->Open(std::make_unique<TcpLinks>(std::move(sockets)),
                       pool == nullptr ? std::span<std::byte>() : pool->impl_->memory(),
                       [this, serial = group->serial](MessageMover::Event event) {
                         Report(serial, std::move(event));
                       });
    group->is_connected = true;
    if (group->place) group->mover->Join(*std::move(group->place));
    return {};
  }
  {
    const std::lock_guard lock(mutex_);
    const auto is_here = [](const TcpSocket& it) { return IsOfThisMachine(PeerAddressOf(it.fd)); };
    // Whoever sets a pace means a network.
    const bool is_near = group->options.paths.pace == 0 && std::ranges::all_of(sockets, is_here) &&
                         std::ranges::all_of(event.eager, is_here);
    group->reach = group->copies_all ? GroupReach::kMemory
                   : is_near         ? GroupReach::kMachine
                                     : GroupReach::kNetwork;
    for (std::string& note : group->plans->Notes()) group->notes.push_back(std::move(note));
  }
  // Short messages go another way, any number between two long ones.
  const uint32_t ahead_max = group->options.is_for_calls || group->HasEager()
                                 ? std::numeric_limits<int32_t>::max()
                                 : 2 * static_cast<uint32_t>(group->options.members.size());
  auto endpoint =
      TcpEndpoint::Make(group->options.self, std::move(sockets), /*wake_fd=*/-1, ahead_max);
  if (!endpoint.ok()) return endpoint.status();
  (*endpoint)->set_hook(hook_);
  (*endpoint)->set_rest_times(keep_alive_);
  group->endpoint = std::move(*endpoint);
  epoll_event watched = {.events = EPOLLIN, .data = {.u64 = group->serial}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, group->endpoint->wait_fd(), &watched) != 0)
    return SystemError(StatusCode::kEnvironment, "cannot watch a group", errno);
  KeepAwake(*group);
  if (group->HasEager()) PREPOST_RETURN_IF_ERROR(OpenEager(*group, std::move(event.eager)));
  Opened(*group);
  return {};
}

/// Which a call has wanted, here or at the peer.
Status Engine::AddConnections(Group& group, std::vector<TcpSocket> sockets) {
  NotePeers(group, sockets, /*round_trips=*/{});
  KeepAwake(group);
  PREPOST_RETURN_IF_ERROR(group.endpoint->Add(std::move(sockets)));
  Advance(group);
  return {};
}

/// Of connections that are there. Those of a mover are only kept alive.
void Engine::NotePeers(Group& group, std::span<const TcpSocket> sockets,
                       std::vector<std::chrono::microseconds> round_trips) {
  for (const TcpSocket& socket : sockets) {
    KeepAlive(socket.fd.get(), keep_alive_);
    BoundRetries(socket.fd.get(), failure_max_);
  }
  if (group.mover != nullptr) return;
  const std::lock_guard lock(mutex_);
  for (const TcpSocket& socket : sockets) {
    group.peers.insert(socket.peer);
    if (socket.lane == Lane::kCredits || socket.stream > 0) continue;
    const bool has_stages = socket.stage != nullptr && socket.peer_stage != nullptr;
    const bool is_memory = socket.local.can_read || has_stages || socket.memory != nullptr;
    if (!socket.local.can_read && !has_stages) group.copies_all = false;
    ++(is_memory ? group.paths.memory : group.paths.network);
    if (!is_memory && socket.local.is_forbidden) ++group.paths.forbidden;
  }
  const GroupPaths paths = {.members = group.options.members,
                            .self = group.options.self,
                            .sites = group.options.sites,
                            .round_trips = std::move(round_trips),
                            .options = group.options.paths};
  for (std::string& note : PathNotes(paths, sockets)) group.notes.push_back(std::move(note));
}

void Engine::Opened(Group& group) {
  group.state = Group::State::kIdle;
  for (size_t i = 0; i < group.barriers.size(); ++i)
    keeper_->Arrive(group.serial, Gate::kBarrier, group.arrived++);
  if (group.callbacks.opened) group.callbacks.opened();
  Advance(group);
}

/// All members have come to `number` of `gate`.
void Engine::Pass(Group& group, Gate gate, uint64_t number) {
  const bool is_with_mover = group.state == Group::State::kIdle && !group.with_mover.empty();
  if (gate != Gate::kBarrier && !is_with_mover) return;  // it has failed here
  switch (gate) {
    case Gate::kBarrier: {
      const std::function<void()> passed = std::move(group.barriers.front());
      group.barriers.pop_front();
      if (passed) passed();
      return;
    }
    case Gate::kMemory:
      return group.mover->Arm(number);
    case Gate::kArmed:
      return group.mover->Start(number);
    case Gate::kMoved: {
      group.mover->Complete(number);
      const Message message = group.with_mover.front();
      group.with_mover.pop_front();
      Received(group, message);
      return Advance(group);
    }
  }
}

/// By the mover's thread.
void Engine::Report(GroupSerial serial, MessageMover::Event event) {
  switch (event.kind) {
    case MessageMover::Event::Kind::kPlace:
      return keeper_->Place(serial, std::move(event.text));
    case MessageMover::Event::Kind::kArmed:
      return keeper_->Arrive(serial, Gate::kArmed, event.number);
    case MessageMover::Event::Kind::kMoved:
      return keeper_->Arrive(serial, Gate::kMoved, event.number);
    case MessageMover::Event::Kind::kNoted:
    case MessageMover::Event::Kind::kOpened:
    case MessageMover::Event::Kind::kFailed: {
      {
        const std::lock_guard lock(mutex_);
        mover_events_.emplace_back(serial, std::move(event));
      }
      Alert();
    }
  }
}

void Engine::HearMovers() {
  std::vector<std::pair<GroupSerial, MessageMover::Event>> events;
  {
    const std::lock_guard lock(mutex_);
    events = std::exchange(mover_events_, {});
  }
  for (const auto& [serial, event] : events) {
    const auto found = groups_.find(serial);
    if (found == groups_.end()) continue;
    const std::shared_ptr<Group> group = found->second;
    if (group->state == Group::State::kBroken) continue;
    if (event.kind == MessageMover::Event::Kind::kNoted) {
      const std::lock_guard lock(mutex_);
      group->notes.push_back(event.text);
    } else if (event.kind == MessageMover::Event::Kind::kFailed) {
      Break(*group, event.status, event.lost_peer);
    } else if (group->state == Group::State::kConnecting) {
      Opened(*group);
    }
  }
}

}  // namespace prepost
