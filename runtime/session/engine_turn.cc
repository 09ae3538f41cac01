// SPDX-License-Identifier: Apache-2.0
//
// One turn of the engine: what has come is heard, groups that have something to do advance, and,
// with nothing to do, whoever turns it sleeps. And what is looked at from time to time: peers that
// are silent, and files that are gone.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include "runtime/session/engine.h"
#include "runtime/session/engine_group.h"
#include "runtime/transport/tcp/tcp_endpoint.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// After which time a file that would wake the engine, and that the program has closed, is noticed.
constexpr milliseconds kFilesCheck{1000};

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

}  // namespace

Status Engine::Poll(milliseconds timeout) {
  const uint64_t before = progress_;
  const Clock::time_point begin = Clock::now();
  milliseconds left = timeout;
  while (true) {
    const bool sleeps = pacer_.Timeout(progress_, /*may_rest=*/running_ == 0).count() != 0;
    const Status status = Turn(sleeps ? left : milliseconds(0));
    // A turn before the one that would have slept may have taken the signal.
    const bool is_called = is_called_.exchange(false);
    if (sleeps || is_called || !status.ok() || progress_ != before) return status;
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
  LookForArrivals(&ready);
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
  if (awake_.empty() || ++looks_ % kTurns == 0) return false;
  for (int i = 0; i < looks && !is_busy_ && !has_work_.load(std::memory_order_relaxed); ++i) {
    if (HasArrivals()) break;
  }
  return true;
}

/// Of groups that are awake.
bool Engine::HasArrivals() const {
  return std::ranges::any_of(awake_, [](const auto& it) { return it.second->HasArrivals(); });
}

/// Whatever comes for `group` through memory rings no bell, and is looked for, until nothing has
/// come for a while.
void Engine::KeepAwake(Group& group) {
  group.quiet_turns = 0;
  const bool has_memory = (group.endpoint != nullptr && group.endpoint->has_memory()) ||
                          (group.eager != nullptr && group.eager->has_memory());
  if (group.is_awake || !has_memory) return;
  group.is_awake = true;
  group.Disarm();
  awake_.emplace(group.serial, groups_.at(group.serial));
}

/// In all that are awake. Where nothing has come for as long as polling goes on, bells say it from
/// then on.
void Engine::LookForArrivals(std::vector<std::shared_ptr<Group>>* ready) {
  for (auto it = awake_.begin(); it != awake_.end();) {
    const std::shared_ptr<Group>& group = it->second;
    bool has_arrivals = group->HasArrivals();
    const bool is_quiet = !has_arrivals && !group->is_running() && IsQuiet(*group);
    if (is_quiet) {
      group->Arm();
      has_arrivals = group->HasArrivals();  // which may not have rung
      if (has_arrivals) group->Disarm();
    }
    if (has_arrivals) {
      group->has_arrivals = true;
      ready->push_back(group);
    }
    if (!is_quiet || has_arrivals) {
      ++it;
      continue;
    }
    group->is_awake = false;
    it = awake_.erase(it);
  }
}

/// Whether nothing has come for it for idle_max, or a little longer: the clock is seldom looked at.
bool Engine::IsQuiet(Group& group) const {
  constexpr uint32_t kTurns = 256;
  if (++group.quiet_turns % kTurns != 0) return false;
  const Clock::time_point now = Clock::now();
  if (group.quiet_turns == kTurns) group.quiet_since = now;
  return now - group.quiet_since >= idle_max_;
}

/// Whatever comes signals wake_ or another file from now on. False: something is there already.
bool Engine::FallAsleep() {
  if (is_busy_) return false;
  sleeps_.store(true);
  for (const auto& [serial, group] : awake_) group->Arm();
  if (has_work_.load() || HasArrivals()) {
    for (const auto& [serial, group] : awake_) group->Disarm();
    return false;
  }
  for (const auto& [serial, group] : awake_) group->is_awake = false;
  awake_.clear();
  return true;
}

void Engine::WakeUp() {
  if (sleeps_.load(std::memory_order_relaxed)) sleeps_.store(false);
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
