// SPDX-License-Identifier: Apache-2.0
#include "sim/causes/time_by_cause.h"

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/trace/trace_file.h"

namespace prepost::sim {
namespace {

constexpr size_t kPeriodMax = 64;  ///< of what repeats on a path, in links

struct Interval {
  Picoseconds begin = 0;
  Picoseconds end = 0;
};

/// How much of time they cover together.
Picoseconds Cover(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, {}, &Interval::begin);
  Picoseconds sum = 0, until = 0;
  for (const Interval& it : intervals) {
    sum += std::max<Picoseconds>(0, it.end - std::max(it.begin, until));
    until = std::max(until, it.end);
  }
  return sum;
}

/// Collects what lies within.
class Window {
 public:
  Window(Picoseconds begin, Picoseconds end) : begin_(begin), end_(end) {}
  void Add(Picoseconds begin, Picoseconds end) {
    const Interval it = {std::max(begin, begin_), std::min(end, end_)};
    if (it.begin < it.end) intervals_.push_back(it);
  }
  Picoseconds cover() const { return Cover(intervals_); }

 private:
  Picoseconds begin_;
  Picoseconds end_;
  std::vector<Interval> intervals_;
};

bool IsOnWire(TimeCause cause) {
  return cause == TimeCause::kWire || cause == TimeCause::kSharing || cause == TimeCause::kLatency;
}

/// Of the chain that ends with `id`, from `start` on: how long blocks were on the wire.
Picoseconds BlocksOnWire(const TimeTrail& trail, StepId id, Picoseconds start) {
  Picoseconds sum = 0;
  for (; id != kFirstStep && trail.step(id).at > start; id = trail.step(id).before) {
    const TimeStep& step = trail.step(id);
    const bool is_block =
        step.message != kNoMessage && trail.messages()[step.message].block != kNoBlock;
    const Picoseconds begin = std::max(start, trail.step(step.before).at);
    if (is_block && IsOnWire(step.cause)) sum += std::max<Picoseconds>(0, step.at - begin);
  }
  return sum;
}

/// The node's block that was there first; kNoMessage: it receives none.
MessageId FirstBlock(const TimeTrail& trail, uint32_t group, NodeId node) {
  MessageId first = kNoMessage;
  for (const MessageId id : trail.MessagesOf(group, node)) {
    const TimedMessage& it = trail.messages()[id];
    if (it.to != node || it.block == kNoBlock || it.landed == kNotSeen) continue;
    if (first == kNoMessage || it.landed < trail.messages()[first].landed) first = id;
  }
  return first;
}

void Add(TimeCause cause, Picoseconds time, PathLink* link) {
  if (time == 0) return;
  const auto part = std::ranges::find(link->parts, cause, &PathPart::cause);
  if (part != link->parts.end()) {
    part->time += time;
  } else {
    link->parts.push_back({cause, time});
  }
}

/// Alike but for nodes and blocks, and for when a host polled, which goes by the time of day.
bool IsAlike(const TimeTrail& trail, const PathLink& a, const PathLink& b) {
  const auto same = [](const PathPart& x, const PathPart& y) {
    return x.cause == y.cause && (x.time == y.time || x.cause == TimeCause::kDetect);
  };
  if (!std::ranges::equal(a.parts, b.parts, same) ||
      (a.message == kNoMessage) != (b.message == kNoMessage))
    return false;
  if (a.message == kNoMessage) return true;
  const auto is_credit = [&](const PathLink& link) {
    return trail.messages()[link.message].block == kNoBlock;
  };
  return is_credit(a) == is_credit(b);
}

}  // namespace

NodeTimes TimesOf(const TimeTrail& trail, uint32_t group, NodeId node, Picoseconds start) {
  const Picoseconds end = std::max(start, trail.step(trail.EndOf(group, node)).at);
  NodeTimes times;
  Picoseconds local = start;
  if (const MessageId first = FirstBlock(trail, group, node); first != kNoMessage) {
    local = std::min(trail.messages()[first].landed, end);
    times.remote_transfers = BlocksOnWire(trail, trail.messages()[first].landed_step, start);
    times.remote_setup = local - start - times.remote_transfers;
  }
  // Each adds to those before it, so that no moment counts twice.
  Window covered(local, end);
  for (const MessageId id : trail.MessagesOf(group, node)) {
    const TimedMessage& it = trail.messages()[id];
    if (it.block == kNoBlock || it.departed == kNotSeen) continue;
    covered.Add(it.departed, it.arrived == kNotSeen ? end : it.arrived);
  }
  times.transfers = covered.cover();
  const auto add = [&](TimeCause cause) {
    const Picoseconds before = covered.cover();
    for (const StepId id : trail.OnceOf(group, node)) {
      const TimeStep& step = trail.step(id);
      if (step.cause == cause) covered.Add(trail.step(step.before).at, step.at);
    }
    return covered.cover() - before;
  };
  times.copy = add(TimeCause::kCopy);
  times.local_setup = add(TimeCause::kSetUp);
  times.waiting = end - local - covered.cover();
  return times;
}

std::vector<PathLink> CriticalPath(const TimeTrail& trail, StepId end, Picoseconds from,
                                   const LinkTraffic* traffic) {
  std::vector<StepId> chain;
  for (StepId id = end; id != kFirstStep && trail.step(id).at > from; id = trail.step(id).before)
    chain.push_back(id);
  std::vector<PathLink> path;
  bool is_open = false;
  for (size_t i = chain.size(); i-- > 0;) {
    const TimeStep& step = trail.step(chain[i]);
    if (!std::exchange(is_open, true)) path.emplace_back();
    PathLink& link = path.back();
    link.until = step.at;
    const Picoseconds time = step.at - std::max(from, trail.step(step.before).at);
    const bool is_shared = step.cause == TimeCause::kSharing && traffic != nullptr;
    const Picoseconds others = is_shared ? traffic->OfOtherGroups(step.message, time) : 0;
    Add(step.cause, time - others, &link);
    Add(TimeCause::kOtherGroupsSharing, others, &link);
    if (step.message == kNoMessage) continue;
    if (trail.messages()[step.message].landed_step != chain[i]) continue;
    link.message = step.message;
    is_open = false;
  }
  return path;
}

StepId CompletionOf(const TimeTrail& trail, uint32_t group) {
  StepId last = trail.StartOf(group);
  for (const Program& program : trail.plan(group).programs()) {
    for (const MessageId id : trail.MessagesOf(group, program.node)) {
      const TimedMessage& it = trail.messages()[id];
      if (it.block == kNoBlock || it.to != program.node) continue;
      if (it.landed > trail.step(last).at) last = it.landed_step;
    }
    const StepId result = trail.ResultOf(group, program.node);
    if (trail.step(result).at > trail.step(last).at) last = result;
  }
  return last;
}

StepId KnownOf(const TimeTrail& trail, uint32_t group) {
  StepId last = trail.StartOf(group);
  for (uint32_t i = 0; i < trail.plan(group).header().nodes; ++i) {
    const StepId known = trail.KnownOf(group, NodeId(i));
    if (trail.step(known).at > trail.step(last).at) last = known;
  }
  return last;
}

void FillTrace(const TimeTrail& trail, RunTrace* trace) {
  trace->start_ns = kTraceOriginNs;
  const auto time_of = [&](Picoseconds at) {
    return kTraceOriginNs + static_cast<uint64_t>(at / kPicosecondsPerNanosecond);
  };
  for (const TimedMessage& it : trail.messages()) {
    if (it.departed == kNotSeen || it.landed == kNotSeen) continue;
    trace->times(it.from)[it.send.index()] = {
        .posted_ns = time_of(std::max<Picoseconds>(0, it.send_posted)),
        .started_ns = time_of(it.departed),
        .completed_ns = time_of(it.acknowledged == kNotSeen ? it.landed : it.acknowledged)};
    // Its first byte takes as long to come as its last.
    const Picoseconds first_byte = it.departed + (it.arrived - it.left);
    trace->times(it.to)[it.receive.index()] = {
        .posted_ns = time_of(std::max<Picoseconds>(0, it.receive_posted)),
        .started_ns = it.block == kNoBlock ? 0 : time_of(first_byte),
        .completed_ns = time_of(it.landed)};
  }
  for (const Program& program : trail.plan(0).programs()) {
    for (const Picoseconds at : trail.WakeupsOf(0, program.node)) {
      trace->Record({.node = program.node, .op = {}, .kind = OpEvent::Kind::kWakeup}, time_of(at));
    }
  }
}

CauseTimes SumOf(const std::vector<PathLink>& path) {
  CauseTimes times = {};
  for (const PathLink& link : path) {
    for (const PathPart& part : link.parts) times[static_cast<size_t>(part.cause)] += part.time;
  }
  return times;
}

std::vector<PathRun> Fold(const TimeTrail& trail, const std::vector<PathLink>& path) {
  std::vector<PathRun> runs;
  // How often the `count` links from `first` on are there one after the other.
  const auto times_of = [&](size_t first, size_t count) {
    size_t length = count;
    while (first + length < path.size() &&
           IsAlike(trail, path[first + length], path[first + length - count])) {
      ++length;
    }
    return length / count;
  };
  for (size_t first = 0; first < path.size();) {
    PathRun best = {.first = first};
    for (size_t count = 1; count <= kPeriodMax && first + 2 * count <= path.size(); ++count) {
      const size_t times = times_of(first, count);
      if (times >= 2 && (times - 1) * count > (best.times - 1) * best.count)
        best = {first, count, times};
    }
    runs.push_back(best);
    first += best.count * best.times;
  }
  return runs;
}

}  // namespace prepost::sim
