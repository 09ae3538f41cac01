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

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <limits>
#include <set>
#include <utility>

#include "ir/base/count.h"
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
using Clock = std::chrono::steady_clock;

constexpr GroupSerial kWakeSerial = 0;
constexpr GroupSerial kTimerSerial = 1;
/// A connection on which nothing moves: when the kernel begins to ask whether its other end is
/// there, how often, and how often in vain.
constexpr milliseconds kIdleMax{30'000};
constexpr milliseconds kQuestionInterval{10'000};
constexpr int kQuestions = 3;
/// After which time a file that would wake the engine, and that the program has closed, is noticed.
constexpr milliseconds kFilesCheck{1000};

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

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
  const Result<std::shared_ptr<Group>> group = Find(number, "ask about");
  if (!group.ok()) return group.status();
  return (*group)->paths;
}

Result<std::vector<PeerSpeed>> Engine::Speeds(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const Result<std::shared_ptr<Group>> group = Find(number, "ask about");
  if (!group.ok()) return group.status();
  return (*group)->speeds;
}

Result<std::vector<std::string>> Engine::Notes(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const Result<std::shared_ptr<Group>> group = Find(number, "ask about");
  if (!group.ok()) return group.status();
  return (*group)->notes;
}

/// From now on whoever turns the engine may wait for its file in between.
int Engine::fd() {
  if (!rests_.exchange(true)) wake_.Signal();
  return epoll_.get();
}

Status Engine::Poll(milliseconds timeout) {
  const uint64_t before = progress_;
  const Clock::time_point begin = Clock::now();
  milliseconds left = timeout;
  while (true) {
    const bool sleeps = pacer_.Timeout(progress_, /*may_rest=*/running_ == 0).count() != 0;
    const Status status = Turn(sleeps ? left : milliseconds(0));
    if (sleeps || !status.ok() || progress_ != before) return status;
    if (timeout.count() < 0) continue;
    left = timeout - std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
    if (left.count() <= 0) return status;
  }
}

Status Engine::Turn(milliseconds timeout) {
  std::unique_lock turn(turn_);
  Status status;
  std::vector<std::shared_ptr<Group>> ready;
  const bool is_tick = Listen(timeout, turn, &ready, &status);
  if (has_work_.exchange(false)) {
    std::vector<Command> commands;
    {
      const std::lock_guard lock(mutex_);
      commands = std::exchange(commands_, {});
    }
    for (Command& command : commands) Obey(std::move(command));
    for (KeeperEvent& event : keeper_->TakeEvents()) Hear(std::move(event));
    HearMovers();
    std::vector<std::shared_ptr<Group>> synced;
    for (const auto& [serial, group] : groups_) {
      if (group->sync != nullptr) synced.push_back(group);
      if (group->waits_for_buffer || !group->sent_at_once.empty()) ready.push_back(group);
    }
    for (const std::shared_ptr<Group>& group : synced) TakeSynced(*group);
    std::erase_if(ending_syncs_, [](const auto& sync) { return sync->is_over(); });
  }
  for (const auto& [serial, group] : in_memory_) {
    if (group->eager != nullptr && group->eager->HasArrivals()) ready.push_back(group);
  }
  // Those that had something left to do, and those that something has come for.
  for (const auto& [serial, group] : groups_) {
    if (group->is_busy) ready.push_back(group);
  }
  for (const std::shared_ptr<Group>& group : ready) Advance(*group);
  if (is_tick) CheckPeers();
  CheckFiles();
  is_busy_ = std::ranges::any_of(groups_, [](const auto& group) { return group.second->is_busy; });
  // Who turns the engine when its file says so sleeps from now on.
  if (rests_ && !FallAsleep()) wake_.Signal();
  return status;
}

/// What has happened to connections, `ready` the groups whose; waits up to `timeout` if there is
/// nothing to do. Whether it is time to look after peers.
bool Engine::Listen(milliseconds timeout, std::unique_lock<TurnLock>& turn,
                    std::vector<std::shared_ptr<Group>>* ready, Status* status) {
  std::array<epoll_event, 64> events;
  const auto timeout_ms = static_cast<int>(
      std::clamp<milliseconds::rep>(timeout.count(), -1, std::numeric_limits<int>::max()));
  const bool is_asleep = timeout_ms != 0 && FallAsleep();
  if (!is_asleep && LooksInMemory()) return false;
  attention_.BeginWait();
  if (is_asleep) turn.unlock();
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                               is_asleep ? timeout_ms : 0);
  const int error = errno;
  if (is_asleep) turn.lock();
  attention_.EndWait();
  WakeUp();
  if (count < 0 && error != EINTR)
    *status = SystemError(StatusCode::kEnvironment, "cannot wait for connections", error);
  bool is_tick = false;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    const bool is_eager = (event.data.u64 & kEagerToken) != 0;
    const GroupSerial serial =
        is_eager ? (event.data.u64 & ~kEagerToken) / kEagerLinksMax : event.data.u64;
    if (serial == kWakeSerial) wake_.Take();
    is_tick |= serial == kTimerSerial;
    const auto found = groups_.find(serial);
    if (found == groups_.end()) continue;
    Group& group = *found->second;
    if (!is_eager) {
      group.has_arrivals = true;
    } else if (group.eager != nullptr) {
      group.eager->Hear(event.data.u64 % kEagerLinksMax, event.events);
    }
    if (ready->empty() || ready->back() != found->second) ready->push_back(found->second);
  }
  return is_tick;
}

/// Whether it is enough, this time, to look for what needs no system call.
bool Engine::LooksInMemory() {
  constexpr uint32_t kTurns = 8;
  const int looks = pacer_.is_crowded() ? 1 : 32;
  if (in_memory_.empty() || ++looks_ % kTurns == 0) return false;
  for (int i = 0; i < looks && !is_busy_ && !has_work_.load(std::memory_order_relaxed); ++i) {
    if (HasArrivals()) break;
  }
  return true;
}

/// Of what comes through memory.
bool Engine::HasArrivals() const {
  return std::ranges::any_of(in_memory_, [](const auto& it) {
    return it.second->eager != nullptr && it.second->eager->HasArrivals();
  });
}

/// Whatever comes signals wake_ or another file from now on. False: something is there already.
bool Engine::FallAsleep() {
  if (is_busy_) return false;
  sleeps_.store(true);
  for (const auto& [serial, group] : in_memory_) {
    if (group->eager != nullptr) group->eager->Arm();
  }
  return !has_work_.load() && !HasArrivals();
}

void Engine::WakeUp() {
  if (!sleeps_.load(std::memory_order_relaxed)) return;
  sleeps_.store(false);
  for (const auto& [serial, group] : in_memory_) {
    if (group->eager != nullptr) group->eager->Disarm();
  }
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
                    .sites = group.options.sites,
                    .paths = group.options.paths,
                    .terms = group.terms,
                    .is_sealed = group.options.is_sealed,
                    .leader_connects = group.options.root_connects,
                    .created = group.created});
      return;
    case Command::Kind::kSend:
      group.queue.push_back({command.data, command.bytes});
      return Advance(group);
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
      Retire(*group);
      FailCalls(*group, {});
      Unlist(*group);
      if (group->callbacks.closed) group->callbacks.closed();
      return;
    case KeeperEvent::Kind::kFailed:
      Retire(*group);
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
    const bool is_near = std::ranges::all_of(
        sockets, [](const TcpSocket& it) { return IsOfThisMachine(PeerAddressOf(it.fd)); });
    group->reach = group->paths.network == 0 ? GroupReach::kMemory
                   : is_near                 ? GroupReach::kMachine
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
  if (group->HasEager()) PREPOST_RETURN_IF_ERROR(OpenEager(*group, std::move(event.eager)));
  Opened(*group);
  return {};
}

/// Which a call has wanted, here or at the peer.
Status Engine::AddConnections(Group& group, std::vector<TcpSocket> sockets) {
  NotePeers(group, sockets, /*round_trips=*/{});
  PREPOST_RETURN_IF_ERROR(group.endpoint->Add(std::move(sockets)));
  Advance(group);
  return {};
}

/// Of connections that are there. Those of a mover are only kept alive.
void Engine::NotePeers(Group& group, std::span<const TcpSocket> sockets,
                       std::vector<std::chrono::microseconds> round_trips) {
  for (const TcpSocket& socket : sockets) KeepAlive(socket.fd.get(), keep_alive_);
  if (group.mover != nullptr) return;
  const std::lock_guard lock(mutex_);
  for (const TcpSocket& socket : sockets) {
    group.peers.insert(socket.peer);
    if (socket.lane == Lane::kCredits || socket.stream > 0) continue;
    ++(socket.local.can_read ? group.paths.memory : group.paths.network);
    if (socket.local.is_forbidden) ++group.paths.forbidden;
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
    if (event.kind == MessageMover::Event::Kind::kFailed) {
      Break(*group, event.status, event.lost_peer);
    } else if (group->state == Group::State::kConnecting) {
      Opened(*group);
    }
  }
}

/// Reports to the keeper that this member has all messages.
void Engine::CloseIfDone(Group& group) {
  if (!group.is_closing || group.is_done || !group.with_mover.empty()) return;
  const bool is_leader = group.options.self == group.options.collective.root;
  if (group.options.is_for_calls && (!group.calls.empty() || (!is_leader && !group.last))) return;
  if (group.options.is_for_calls && !is_leader && group.last != group.message) {
    return BreakDiffering(
        group, Rejected(fmt::format("node {} has destroyed the group after {}, and node {} after "
                                    "{}: one of them has called what the other has not",
                                    group.options.collective.root.value, Count(*group.last, "call"),
                                    group.options.self.value, Count(group.message, "call"))));
  }
  if (group.is_target() && (group.last != group.message || !group.syncing.empty())) return;
  group.is_done = true;
  keeper_->Close(group.serial, group.message);
}

/// Of what the root of `group` said that no root says then.
void Engine::BreakNonsense(Group& group, const char* what) {
  Break(group,
        Rejected(fmt::format("member {}, the root, {} out of turn",
                             group.options.members[group.options.collective.root.index()], what)),
        std::nullopt);
}

/// Members have called different things.
void Engine::BreakDiffering(Group& group, const Status& status) {
  Fail(group, InMemberWords(status, group.options.members), std::nullopt, /*differs=*/true);
}

/// `status`, with what this node has called where that is over already.
Status Engine::NameBothCalls(const Group& group, const Status& status) {
  if (!group.endpoint->late_call()) return status;
  const auto& [peer, start] = *group.endpoint->late_call();
  for (const auto& [number, shape] : group.called) {
    if (static_cast<uint32_t>(number) != start.number) continue;
    return Rejected(fmt::format("call {} is {} at node {}, and {} at node {}", number,
                                Describe(start), peer.value, Describe(shape),
                                group.options.self.value));
  }
  return status;
}

/// `status` speaks of nodes.
void Engine::Break(Group& group, const Status& status, std::optional<NodeId> lost_peer) {
  if (group.endpoint != nullptr && group.endpoint->differs())
    return BreakDiffering(group, NameBothCalls(group, status));
  Status cause = InMemberWords(status, group.options.members);
  if (lost_peer) {
    cause = Rejected(fmt::format("member {} lost its connection to member {}",
                                 group.options.members[group.options.self.index()],
                                 group.options.members[lost_peer->index()]));
  }
  Fail(group, std::move(cause), lost_peer);
}

void Engine::Fail(Group& group, Status cause, std::optional<NodeId> lost_peer, bool differs) {
  if (group.is_running()) CountRunning(-1);
  group.state = Group::State::kBroken;
  group.endpoint.reset();  // closes its connections, so that peers notice at once
  group.eager.reset();
  group.executor.reset();  // has memory that they might have copied from
  if (group.mover != nullptr) group.mover->Stop();
  ReturnBuffers(group);
  keeper_->Fail(group.serial, std::move(cause), lost_peer, differs);
}

/// The group is over; what it has is freed when its last callback has returned.
void Engine::Retire(Group& group) {
  if (group.is_running()) CountRunning(-1);
  group.state = Group::State::kGone;
  group.endpoint.reset();  // before memory of the executor's that peers copy from
  group.eager.reset();
  group.executor.reset();
  if (group.mover != nullptr) group.mover->Stop();
  ReturnBuffers(group);
  if (group.sync != nullptr) {
    group.sync->End();
    ending_syncs_.push_back(std::move(group.sync));
  }
  group.barriers.clear();
  in_memory_.erase(group.serial);
  groups_.erase(group.serial);
}

/// Its number is free.
void Engine::Unlist(const Group& group) {
  const std::lock_guard lock(mutex_);
  const auto found = by_number_.find(group.options.number);
  if (found != by_number_.end() && found->second.get() == &group) by_number_.erase(found);
}

/// Those of messages under way, to their pool.
void Engine::ReturnBuffers(Group& group) {
  const std::deque<Message> with_mover = std::exchange(group.with_mover, {});
  if (group.callbacks.pool == nullptr) return;
  MemoryPool& pool = *group.callbacks.pool;
  pool.impl_->Forget(&group);
  group.waits_for_buffer = false;
  if (!group.is_target()) return;
  PREPOST_CHECK(pool.Give(std::exchange(group.memory, nullptr)).ok());
  for (const Message& message : with_mover) PREPOST_CHECK(pool.Give(message.memory).ok());
}

void Engine::CountRunning(int change) {
  running_ += change;
  if (running_ > 0 && !is_ticking_) SetTicking(true);
}

void Engine::SetTicking(bool is_ticking) {
  is_ticking_ = is_ticking;
  itimerspec times = {};
  if (is_ticking) {
    const auto ns = std::chrono::nanoseconds(tick_).count();
    times.it_value =
        times.it_interval = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  }
  timerfd_settime(timer_.get(), 0, &times, nullptr);
}

/// What wakes the engine, which the program may have closed: its groups fail then.
void Engine::CheckFiles() {
  if (Clock::now() < check_files_at_) return;
  check_files_at_ = Clock::now() + kFilesCheck;
  const bool are_open = IsOpen(wake_.fd()) && IsOpen(timer_.get()) && IsOpen(epoll_.get());
  std::vector<std::shared_ptr<Group>> closed;
  for (const auto& [serial, group] : groups_) {
    if (group->state == Group::State::kBroken) continue;
    const bool is_open = (group->endpoint == nullptr || IsOpen(group->endpoint->wait_fd())) &&
                         (group->eager == nullptr || group->eager->AreOpen());
    if (!are_open || !is_open) closed.push_back(group);
  }
  for (const std::shared_ptr<Group>& group : closed) Break(*group, FileClosedError(), std::nullopt);
}

/// Connections that are cut without a word: the keeper sees only those to the root. Also between
/// messages, until the peers have acknowledged what was sent of the one before.
void Engine::CheckPeers() {
  uint64_t ticks = 0;
  if (read(timer_.get(), &ticks, sizeof(ticks)) != ssize_t{sizeof(ticks)}) return;
  std::vector<std::shared_ptr<Group>> connected;
  for (const auto& [serial, group] : groups_) {
    if (group->endpoint != nullptr) connected.push_back(group);
  }
  bool is_acknowledged = true;
  bool is_engaged = running_ > 0;
  for (const std::shared_ptr<Group>& group : connected) {
    if (!CheckEager(*group)) continue;
    NoteSpeeds(*group);
    is_engaged |= group->eager != nullptr && group->eager->is_engaged();
    const Status status = group->endpoint->CheckPeers(silence_max_);
    is_acknowledged = is_acknowledged && group->endpoint->IsAcknowledged();
    if (!status.ok()) {
      Break(*group, status, group->endpoint->lost_peer());
      continue;
    }
    const bool has_message = group->is_running() || group->endpoint->announced();
    is_engaged |= has_message;
    if (!has_message) continue;
    // Whether it polls is for the keepers to find out.
    if (group->options.is_for_calls) ClaimCall(*group);
    const std::optional<NodeId> silent = group->endpoint->AskPeers(answer_max_);
    if (silent) keeper_->Stalled(group->serial, *silent);
    Advance(*group);  // writes the questions
  }
  if (is_engaged || !is_acknowledged) return;
  SetTicking(false);
  for (const auto& [serial, group] : groups_) {
    if (group->endpoint != nullptr) group->endpoint->RestPeers();
  }
}

void Engine::NoteSpeeds(Group& group) {
  std::vector<PeerSpeed> speeds;
  for (const auto& [node, use] : group.endpoint->Uses()) {
    if (use.acknowledged_bytes == 0) continue;
    speeds.push_back({.member = group.options.members[node.index()],
                      .bytes = use.acknowledged_bytes,
                      .busy_seconds = std::chrono::duration<double>(use.busy).count()});
  }
  const std::lock_guard lock(mutex_);
  group.speeds = std::move(speeds);
}

}  // namespace prepost
