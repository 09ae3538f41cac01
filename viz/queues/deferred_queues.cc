// SPDX-License-Identifier: Apache-2.0
//
// Endpoints that receive come first, then counters that are added to, then endpoints that send,
// last what tells the host. A work's arrow comes from the completion or the addition with which its
// counter reaches its threshold.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "viz/queues/queue_contents.h"

namespace prepost::viz {
namespace {

using triggered::DeferredProgram;
using triggered::DeferredWork;
using triggered::Trigger;

class DeferredQueues {
 public:
  DeferredQueues(const Plan& plan, const Selection& selection, const DeferredProgram& program)
      : plan_(plan), program_(program), shown_ops_(plan, program.node, selection) {}

  std::vector<DrawnQueue> Make() {
    AddReceives();
    AddHost();
    AddCounters();
    AddSends();
    AddEnd();
    for (const DeferredWork& work : program_.works) AddWork(work);
    for (const auto& [place, trigger] : triggers_)
      queues_[place.queue].entries[place.index].waits_for = SourceOf(trigger);
    if (!shown_ops_.all()) ShowNeeded();
    return std::move(queues_);
  }

 private:
  std::string TitleOf(const ChannelEnd& end) const {
    const Channel& channel = plan_.channels()[end.channel.index()];
    return fmt::format("{}>{} {}", channel.from.value, channel.to.value, Name(channel.lane));
  }

  void AddReceives() {
    for (uint32_t i = 0; i < program_.ends.size(); ++i) {
      const ChannelEnd& end = program_.ends[i];
      if (end.is_send) continue;
      DrawnQueue& queue = Add(i, {.title = "endpoint " + TitleOf(end),
                                  .detail = "receives",
                                  .stack = DrawnQueue::Stack::kReceives});
      for (size_t at = 0; at < end.ops.size(); ++at) {
        queue.entries.push_back(
            {.css_class = "recv",
             .what = fmt::format("{} (op {})", shown_ops_.Name(end.ops[at]), end.ops[at].value),
             .detail = fmt::format("its counter becomes {}", at + 1),
             .shown = shown_ops_.Has(end.ops[at]),
             .op = end.ops[at]});
      }
    }
  }
  void AddHost() {
    Add(program_.start(),
        {.title = "the host", .detail = "counter start", .stack = DrawnQueue::Stack::kReceives})
        .entries.push_back({.css_class = "host",
                            .what = "+= 1",
                            .detail = "its only post",
                            .shown = shown_ops_.all()});
  }
  void AddCounters() {
    for (uint32_t i = program_.first_pulse(); i < program_.counters; ++i) {
      Add(i, {.title = "counter " + program_.CounterName(i),
              .detail = program_.IsPulse(i) ? "a send has started" : "joins conditions",
              .stack = DrawnQueue::Stack::kCounters});
    }
  }
  void AddSends() {
    for (uint32_t i = 0; i < program_.ends.size(); ++i) {
      if (!program_.ends[i].is_send) continue;
      Add(i, {.title = "endpoint " + TitleOf(program_.ends[i]),
              .detail = "deferred sends",
              .stack = DrawnQueue::Stack::kSends});
    }
  }
  void AddEnd() {
    Add(program_.complete(), {.title = "counter complete", .detail = "ends that are complete"});
    Add(program_.done(), {.title = "counter done", .detail = "what wakes the host"});
  }
  DrawnQueue& Add(uint32_t counter, DrawnQueue queue) {
    queue_of_[counter] = queues_.size();
    return queues_.emplace_back(std::move(queue));
  }

  void AddWork(const DeferredWork& work) {
    const bool is_send = work.kind == DeferredWork::Kind::kSend;
    const uint32_t counter = is_send ? work.end : work.counter;
    const auto found = queue_of_.find(counter);
    if (found == queue_of_.end()) return;
    DrawnQueue& queue = queues_[found->second];
    const std::string when =
        fmt::format("{} >= {}", program_.CounterName(work.trigger.counter), work.trigger.threshold);
    DrawnEntry entry{
        .css_class = "enable",
        .what = fmt::format("{}+= {}", work.kind == DeferredWork::Kind::kPulse ? "pulse: " : "",
                            work.value),
        .detail = "when " + when,
        .shown = shown_ops_.all()};
    if (is_send) {
      entry.css_class = "send";
      entry.what = fmt::format("{} (op {})", shown_ops_.Name(work.op), work.op.value);
      entry.shown = shown_ops_.Has(work.op);
      entry.op = work.op;
    } else {
      sums_[counter].push_back((sums_[counter].empty() ? 0 : sums_[counter].back()) + work.value);
      if (counter == program_.done()) entry.css_class = "nop";
    }
    // Those of the end would hide the others.
    if (counter != program_.complete() && counter != program_.done())
      triggers_[{.queue = found->second, .index = queue.entries.size()}] = work.trigger;
    queue.entries.push_back(std::move(entry));
  }

  /// The completion or addition with which the counter has come so far.
  std::optional<QueuePlace> SourceOf(const Trigger& trigger) const {
    const auto queue = queue_of_.find(trigger.counter);
    if (queue == queue_of_.end()) return std::nullopt;
    QueuePlace place{.queue = queue->second, .index = trigger.threshold - 1};
    if (const auto sums = sums_.find(trigger.counter); sums != sums_.end()) {
      const auto reached = std::ranges::lower_bound(sums->second, trigger.threshold);
      place.index = static_cast<size_t>(reached - sums->second.begin());
    }
    if (place.index >= queues_[place.queue].entries.size()) return std::nullopt;
    return place;
  }

  /// Additions on the way to sends that are shown: those that bring a counter to a threshold, from
  /// the threshold before on.
  void ShowNeeded() {
    std::set<QueuePlace> reached;
    std::vector<QueuePlace> left;
    for (const auto& [place, trigger] : triggers_) {
      const DrawnEntry& entry = queues_[place.queue].entries[place.index];
      if (entry.waits_for) reached.insert(*entry.waits_for);
      if (entry.shown) left.push_back(place);
    }
    while (!left.empty()) {
      const QueuePlace place = left.back();
      left.pop_back();
      const std::optional<QueuePlace> last = queues_[place.queue].entries[place.index].waits_for;
      if (!last) continue;
      for (QueuePlace at = *last; at == *last || !reached.contains(at); --at.index) {
        DrawnEntry& entry = queues_[at.queue].entries[at.index];
        if (entry.shown || entry.css_class != "enable") break;
        entry.shown = true;
        left.push_back(at);
        if (at.index == 0) break;
      }
    }
  }

  const Plan& plan_;
  const DeferredProgram& program_;
  const ShownOps shown_ops_;
  std::vector<DrawnQueue> queues_;
  std::map<uint32_t, size_t> queue_of_;             // by counter
  std::map<uint32_t, std::vector<uint64_t>> sums_;  // by counter that is added to: after each
  std::map<QueuePlace, Trigger> triggers_;
};

}  // namespace

std::vector<DrawnQueue> QueuesOfDeferredWork(const Plan& plan, const Selection& selection,
                                             const DeferredProgram& program) {
  return DeferredQueues(plan, selection, program).Make();
}

}  // namespace prepost::viz
