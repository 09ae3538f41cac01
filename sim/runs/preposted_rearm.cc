// SPDX-License-Identifier: Apache-2.0
//
// Hosts that re-arm rings, in a preposted run (docs/simulate.md): a CQE shows that there is
// room, the host's thread polls when it sees that and has its core, and what it writes is in the
// rings when it is through.
#include <algorithm>
#include <utility>

#include "sim/runs/preposted_run.h"

namespace prepost::sim {

HostCore& PrepostedRun::CoreFor(size_t host, size_t index) {
  std::deque<HostCore>& cores = cores_[host];
  while (cores.size() <= index) {
    cores.emplace_back(
        CoreOf(options_.host, NoiseOf(options_), NodeId::FromIndex(host), cores.size()));
  }
  return cores[index];
}

void PrepostedRun::ScheduleHost(Picoseconds at, const Member& member) {
  cluster_.clock.Schedule(
      at, *this, {.value = uint64_t{member.node.value} << 32 | member.group, .what = kHostDue});
}

void PrepostedRun::StayAwake(Picoseconds until, HostCore* core) const {
  core->StayAwake(options_.wait == WaitMode::kHybrid ? After(until, polling_) : until);
}

bool PrepostedRun::NotePoll(const Member& member) {
  Rearming& it = RearmingOf(member);
  PrepostedResult::Node& node = result_.groups[member.group].nodes[member.node.index()];
  const Picoseconds now = cluster_.now();
  if (it.polled_at == now && node.polls != 0) return false;
  node.ends_asleep = now - std::max(it.polled_at, it.until) > polling_;
  node.polls += 1;
  it.polled_at = now;
  if (!node.ends_asleep) return false;
  ++node.wakeups;
  if (options_.trail != nullptr) {
    options_.trail->NoteWakeup(member.group, member.node, After(now, options_.host.interrupt));
  }
  return true;
}

Status PrepostedRun::BeginPoll(const Member& member) {
  Rearming& it = RearmingOf(member);
  PREPOST_CHECK(it.core != nullptr);
  if (it.state != Rearming::State::kIdle) return {};  // it will find this as well
  const Picoseconds at = After(cluster_.now(), NotePoll(member) ? options_.host.interrupt : 0);
  if (TimeTrail* const trail = options_.trail; trail != nullptr && at != kNever)
    it.step = trail->Push(at, trail->host_step(), TimeCause::kInterrupt);
  it.state = Rearming::State::kDue;
  if (at == cluster_.now()) return PollWhenFree(member);
  ScheduleHost(at, member);
  return {};
}

Status PrepostedRun::PollWhenFree(const Member& member) {
  Rearming& it = RearmingOf(member);
  HostCore& core = *it.core;
  const Picoseconds now = cluster_.now();
  const bool is_at_work = core.busy_until > now;
  const Picoseconds free_at = core.FreeAt(now);
  if (!is_at_work && free_at != kNever) {
    result_.groups[member.group].nodes[member.node.index()].delayed += free_at - now;
  }
  if (free_at > now) {
    const bool is_away = free_at == core.away_until;
    if (TimeTrail* const trail = options_.trail; trail != nullptr && free_at != kNever) {
      it.step = trail->Push(free_at, it.step,
                            is_away ? TimeCause::kStopped : TimeCause::kOtherGroupsCore);
    }
    ScheduleHost(free_at, member);
    return {};
  }
  it.count = {};
  return Work(member, options_.host.poll);
}

Status PrepostedRun::Work(const Member& member, Picoseconds cost) {
  Rearming& it = RearmingOf(member);
  HostCore& core = *it.core;
  PrepostedResult::Node& found = result_.groups[member.group].nodes[member.node.index()];
  const nic::QueueFeed::Count before = std::exchange(it.count, NodeOf(member).Refillable());
  const uint64_t cqes_before = std::exchange(it.cqes, NodeOf(member).cqes_read());
  const HostCosts& host = options_.host;
  const Picoseconds writing =
      static_cast<Picoseconds>(it.count.sends - before.sends) * host.post_send +
      static_cast<Picoseconds>(it.count.receives - before.receives) * host.post_receive;
  cost += writing + static_cast<Picoseconds>(it.cqes - cqes_before) * host.completion;
  found.rearming += writing;
  const Picoseconds delayed_before = core.cpu.delayed();
  it.until = core.busy_until = core.cpu.WorkEnd(cluster_.now(), cost);
  if (it.until == kNever) {
    cluster_.clock.NoteMissed();
    return Stuck();
  }
  found.delayed += core.cpu.delayed() - delayed_before;
  StayAwake(it.until, &core);
  if (TimeTrail* const trail = options_.trail) {
    it.step = trail->Push(it.until - cost, it.step, TimeCause::kStopped);
    it.step = trail->Push(it.until, it.step, TimeCause::kRearm);
  }
  if (it.until == cluster_.now()) return EndWork(member);
  it.state = Rearming::State::kWorking;
  ScheduleHost(it.until, member);
  return {};
}

Status PrepostedRun::EndWork(const Member& member) {
  Rearming& it = RearmingOf(member);
  it.state = Rearming::State::kIdle;
  if (options_.trail != nullptr) options_.trail->BeginHost(it.step);
  return TakeEvents(member, {});
}

Status PrepostedRun::GoOn(const Member& member) {
  if (HostOf(member).done()) return {};
  const Rearming& it = RearmingOf(member);
  if (it.state == Rearming::State::kDue) return PollWhenFree(member);
  const nic::QueueFeed::Count count = NodeOf(member).Refillable();
  const bool has_more = count.sends != it.count.sends || count.receives != it.count.receives;
  return has_more ? Work(member, 0) : EndWork(member);
}

void PrepostedRun::LeaveCore(const PrepostedResult::Node& node, HostCore* core) const {
  if (options_.wait != WaitMode::kPolling) return;
  --core->pollers;
  StayAwake(node.known, core);
}

}  // namespace prepost::sim
