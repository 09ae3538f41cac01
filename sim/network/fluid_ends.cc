// SPDX-License-Identifier: Apache-2.0
//
// When flows end. All flows that a link holds up have one rate, its share. So each link counts its
// `work`, what such a flow has got so far; a flow that comes to it with w left ends when the work
// has grown by w, whatever the share is until then. Flows stand in a heap by that, and the link
// alone has an entry in the queue of times, for the first of them. When a share changes, however
// many flows have it, one entry does.
//
// Example: port of 10, flows of 100 and 150 from 0 on. Share 5, they finish at work 100 and 150;
// the link's entry is at 20. A third comes at 10, at work 50, and has 100: it finishes at work 150.
// Share 10/3 from then on: the entry moves to 25.
//
// A flow at its limit, which no link holds up, has an entry of its own. All sums are exact, so a
// flow may go from one link to another at any time and ends when it would have.
#include <algorithm>

#include "sim/network/fluid_network.h"

namespace prepost::sim {

size_t FluidNetwork::TakeEnded(Picoseconds now, std::span<void*> owners) {
  PREPOST_CHECK(next_end() >= now);
  if (next_end() != now) return 0;
  if (ended_taken_ == ended_.size()) FindEnded(now);
  const size_t count = std::min(owners.size(), ended_.size() - ended_taken_);
  for (size_t i = 0; i < count; ++i) {
    const FlowIndex index = ended_[ended_taken_++];
    owners[i] = flows_[index].owner;
    Leave(index);
    free_flows_.push_back(index);
  }
  return count;
}

/// All flows that end now, into ended_, in the order in which they have started.
void FluidNetwork::FindEnded(Picoseconds now) {
  ended_.clear();
  ended_taken_ = 0;
  ended_at_ = now;
  while (ends_.next_at() == now) {
    const End end = ends_.Pop();
    if (!end.is_link) {
      if (flows_[end.index].generation == end.generation) ended_.push_back(end.index);
      continue;
    }
    Level& level = levels_[end.index];
    if (level.generation != end.generation) continue;
    level.scheduled = -1;
    const Work work = level.WorkAt(now);
    while (!level.endings.empty() && level.endings.front().finish <= work) {
      ended_.push_back(level.endings.front().flow);
      RemoveEnding(level, 0);
    }
  }
  const auto started = [&](FlowIndex index) { return flows_[index].number; };
  if (!std::ranges::is_sorted(ended_, {}, started)) std::ranges::sort(ended_, {}, started);
  for (const FlowIndex index : ended_) ++flows_[index].generation;
}

/// kNever: beyond what the clock can show.
Picoseconds FluidNetwork::EndOf(Work left, Rate rate, Picoseconds now) const {
  PREPOST_CHECK(rate > 0);
  const Work time = (left + rate - 1) / rate;
  return time < kNever - now ? now + static_cast<Picoseconds>(time) : kNever;
}

/// Takes it from where it has its rate. Needs all shares as they have been up to now.
void FluidNetwork::SetApart(FlowIndex index, Picoseconds now) {
  Flow& flow = flows_[index];
  if (flow.bottleneck == kAtLimit) {
    flow.finish -= static_cast<Work>(flow.limit) * (now - flow.since);
    ++flow.generation;
  } else if (flow.bottleneck != kUnsettled) {
    Level& level = levels_[flow.bottleneck];
    RemoveEnding(level, flow.ending_position);
    flow.finish -= level.WorkAt(now);
  }
  flow.bottleneck = kUnsettled;
}

/// The flow, which is set apart, has the link's share from now on, or its limit.
void FluidNetwork::HoldUp(FlowIndex index, LinkIndex link, Picoseconds now) {
  Flow& flow = flows_[index];
  flow.bottleneck = link;
  if (link != kAtLimit) {
    flow.finish += levels_[link].WorkAt(now);
    return AddEnding(levels_[link], {flow.finish, index});
  }
  flow.since = now;
  const Picoseconds at = EndOf(flow.finish, flow.limit, now);
  ++flow.generation;
  if (at != kNever) ends_.Push(at, {.index = index, .generation = flow.generation});
}

void FluidNetwork::SetShare(Level& level, Rate share, Picoseconds now) {
  if (level.share == share) return;
  level.work = level.WorkAt(now);
  level.since = now;
  level.share = share;
  level.scheduled = -1;
}

/// When its first flow ends, if that has changed.
void FluidNetwork::ScheduleLink(LinkIndex index, Picoseconds now) {
  Level& level = levels_[index];
  if (level.endings.empty()) {
    level.scheduled = -1;
    ++level.generation;
    return;
  }
  const Work finish = level.endings.front().finish;
  if (level.scheduled == finish) return;
  level.scheduled = finish;
  ++level.generation;
  const Picoseconds at = EndOf(finish - level.WorkAt(now), level.share, now);
  if (at == kNever) return;
  ends_.Push(at, {.index = index, .generation = level.generation, .is_link = true});
}

void FluidNetwork::PutEnding(Level& level, size_t position, const Ending& ending) {
  level.endings[position] = ending;
  flows_[ending.flow].ending_position = static_cast<uint32_t>(position);
}

void FluidNetwork::AddEnding(Level& level, const Ending& ending) {
  level.endings.push_back(ending);
  SiftUp(level, level.endings.size() - 1);
}

void FluidNetwork::RemoveEnding(Level& level, uint32_t position) {
  const Ending last = level.endings.back();
  level.endings.pop_back();
  if (position == level.endings.size()) return;
  PutEnding(level, position, last);
  SiftUp(level, position);
  SiftDown(level, flows_[last.flow].ending_position);
}

void FluidNetwork::SiftUp(Level& level, size_t position) {
  const Ending ending = level.endings[position];
  while (position != 0) {
    const size_t parent = (position - 1) / 2;
    if (level.endings[parent] <= ending) break;
    PutEnding(level, position, level.endings[parent]);
    position = parent;
  }
  PutEnding(level, position, ending);
}

void FluidNetwork::SiftDown(Level& level, size_t position) {
  const Ending ending = level.endings[position];
  const size_t size = level.endings.size();
  for (size_t child = 2 * position + 1; child < size; child = 2 * position + 1) {
    if (child + 1 < size && level.endings[child + 1] < level.endings[child]) ++child;
    if (ending <= level.endings[child]) break;
    PutEnding(level, position, level.endings[child]);
    position = child;
  }
  PutEnding(level, position, ending);
}

}  // namespace prepost::sim
