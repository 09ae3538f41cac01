// SPDX-License-Identifier: Apache-2.0
//
// Counters only rise and works only add, so whatever has been released stays released: the set of
// works that can start is the same in every order, and grows with what has completed. What a send
// waits for is therefore found by holding back: with all counters of completions at their end but
// one, which rises step by step, the step at which a send is released is what it waits for of that
// one, whatever else happens.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "backends/triggered/deferred_program.h"
#include "ir/credits.h"
#include "ir/messages.h"
#include "ir/plan_graph.h"

namespace prepost::triggered {
namespace {

constexpr uint64_t kNever = UINT64_MAX;

/// Counters and what they have released. A send completes as soon as it has been released, unless
/// its end's completions are held back: no more of them come than that.
class Counters {
 public:
  Counters(const DeferredProgram& program, std::span<const std::vector<uint32_t>> queues)
      : program_(program),
        queues_(queues),
        values_(program.counters),
        heads_(program.counters),
        released_(program.ends.size()),
        completions_max_(program.ends.size(), kNever) {}

  uint64_t value(uint32_t counter) const { return values_[counter]; }
  void HoldBack(uint32_t end) { completions_max_[end] = 0; }

  /// Raises a counter of receives or the start to `value`, or what may complete of sends, and all
  /// that follows. `release`, for each send in its order, may hold it back with all that is queued
  /// behind it at its counter: false.
  template <typename Release>
  void Raise(uint32_t counter, uint64_t value, Release release) {
    if (counter < program_.ends.size() && program_.ends[counter].is_send) {
      completions_max_[counter] = value;
      value = std::min(value, released_[counter]);
    }
    values_[counter] = std::max(values_[counter], value);
    changed_.push_back(counter);
    Advance(release);
  }
  /// After `release` would answer otherwise.
  template <typename Release>
  void AdvanceAll(Release release) {
    for (uint32_t counter = 0; counter < program_.counters; ++counter) changed_.push_back(counter);
    Advance(release);
  }

 private:
  template <typename Release>
  void Advance(Release release) {
    while (!changed_.empty()) {
      const uint32_t at = changed_.back();
      changed_.pop_back();
      const std::vector<uint32_t>& queue = queues_[at];
      for (size_t& head = heads_[at]; head < queue.size(); ++head) {
        const DeferredWork& work = program_.works[queue[head]];
        if (work.trigger.threshold > values_[at]) break;
        if (work.kind != DeferredWork::Kind::kSend) {
          values_[work.counter] += work.value;
          changed_.push_back(work.counter);
        } else {
          if (!release(work)) break;
          if (++released_[work.end] > completions_max_[work.end]) continue;
          values_[work.end] = released_[work.end];
          changed_.push_back(work.end);
        }
      }
    }
  }

  const DeferredProgram& program_;
  const std::span<const std::vector<uint32_t>> queues_;
  std::vector<uint64_t> values_;
  std::vector<size_t> heads_;       // by counter: the first in its queue that is not released
  std::vector<uint64_t> released_;  // by end: sends
  std::vector<uint64_t> completions_max_;  // by end
  std::vector<uint32_t> changed_;
};

class Validation {
 public:
  Validation(const Plan& plan, const DeferredProgram& program, const Program& own)
      : plan_(plan), program_(program), own_(own), ops_(plan.ops(own)) {}

  Status Run() {
    PREPOST_RETURN_IF_ERROR(CheckEnds());
    PREPOST_RETURN_IF_ERROR(CheckWorks());
    for (uint32_t end = 0; end < program_.ends.size(); ++end) {
      PREPOST_RETURN_IF_ERROR(CheckWaits(end, program_.ends[end].ops.size()));
      if (program_.ends[end].is_send) PREPOST_RETURN_IF_ERROR(CheckOrder(end));
    }
    PREPOST_RETURN_IF_ERROR(CheckWaits(program_.start(), 1));
    return CheckProgress();
  }

 private:
  Status Wrong(const std::string& what) const {
    return Rejected(fmt::format("deferred work of node {}: {}", program_.node.value, what));
  }
  std::string NameOf(OpId op) const { return Describe(plan_, own_, op); }
  bool IsSource(uint32_t counter) const {
    return counter < program_.ends.size() || counter == program_.start();
  }
  /// What a counter of completions, or start, has in the end.
  uint64_t EndOf(uint32_t counter) const {
    return counter == program_.start() ? 1 : program_.ends[counter].ops.size();
  }

  Status CheckEnds() {
    completion_.assign(ops_.size(), {});
    size_t count = 0;
    for (uint32_t end = 0; end < program_.ends.size(); ++end) {
      const ChannelEnd& it = program_.ends[end];
      for (size_t i = 0; i < it.ops.size(); ++i) {
        const OpId op = it.ops[i];
        const bool is_next = op.index() < ops_.size() && (i == 0 || it.ops[i - 1] < op);
        if (!is_next || ops_[op.index()].channel != it.channel ||
            ops_[op.index()].is_send() != it.is_send) {
          return Wrong(fmt::format("op {} is not the next of its channel", op.value));
        }
        completion_[op.index()] = {end, i + 1};
        ++count;
      }
      const Channel& channel = plan_.channels()[it.channel.index()];
      if (it.peer != (it.is_send ? channel.to : channel.from) || it.lane != channel.lane)
        return Wrong(fmt::format("endpoint {} has another peer than its channel", end));
    }
    if (count == ops_.size()) return {};
    return Wrong(fmt::format("its endpoints have {} ops, its program {}", count, ops_.size()));
  }

  Status CheckWorks() {
    const uint32_t counters = program_.counters;
    if (program_.first_pulse() + program_.pulse_counters > counters)
      return Wrong("counters are missing");
    queues_.resize(counters);
    std::vector<bool> has_send(ops_.size());
    std::vector<uint64_t> last(program_.ends.size());  // threshold, by end
    std::vector<uint32_t> last_counter(program_.ends.size(), counters);
    for (uint32_t i = 0; i < program_.works.size(); ++i) {
      const DeferredWork& work = program_.works[i];
      if (work.trigger.counter >= counters)
        return Wrong(fmt::format("work {}: no such counter", i));
      // A provider releases it when it is queued, or when the counter next changes.
      if (work.trigger.threshold == 0) return Wrong(fmt::format("work {} waits for nothing", i));
      queues_[work.trigger.counter].push_back(i);
      if (work.kind != DeferredWork::Kind::kSend) {
        const bool is_pulse = work.kind == DeferredWork::Kind::kPulse;
        if (work.counter >= counters || IsSource(work.counter))
          return Wrong(fmt::format("work {} adds to what counts completions", i));
        if (program_.IsPulse(work.counter) != is_pulse || (is_pulse && work.value != 1))
          return Wrong(fmt::format("work {} adds to what counts pulses, or is one", i));
        continue;
      }
      if (work.op.index() >= ops_.size() || !ops_[work.op.index()].is_send() ||
          completion_[work.op.index()].counter != work.end ||
          ops_[work.op.index()].block != work.block) {
        return Wrong(fmt::format("work {} is not a send of its endpoint's channel", i));
      }
      if (has_send[work.op.index()]) return Wrong(NameOf(work.op) + " stands twice");
      has_send[work.op.index()] = true;
      // One counter may pass several thresholds at once: then the provider's order is the queue's.
      if (last_counter[work.end] == work.trigger.counter && work.trigger.threshold < last[work.end])
        return Wrong(NameOf(work.op) + " is queued before one that its counter releases earlier");
      last_counter[work.end] = work.trigger.counter;
      last[work.end] = work.trigger.threshold;
    }
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].is_send() && !has_send[i]) return Wrong(NameOf(OpId(i)) + " is missing");
    }
    for (std::vector<uint32_t>& queue : queues_) {
      std::ranges::stable_sort(queue, {},
                               [this](uint32_t i) { return program_.works[i].trigger.threshold; });
    }
    return {};
  }

  /// All receives and the start, except `held`.
  template <typename Release>
  void RaiseAllBut(uint32_t held, Counters& counters, Release release) const {
    if (held < program_.ends.size()) counters.HoldBack(held);
    for (uint32_t end = 0; end < program_.ends.size(); ++end) {
      if (end != held && !program_.ends[end].is_send) counters.Raise(end, EndOf(end), release);
    }
    if (program_.start() != held) counters.Raise(program_.start(), 1, release);
  }

  /// No send goes before what it waits for of `source`, nor the end before all of it.
  Status CheckWaits(uint32_t source, uint64_t last) {
    std::vector<uint64_t> released_at(ops_.size(), kNever);
    uint64_t step = 0;
    const auto note = [&](const DeferredWork& work) {
      released_at[work.op.index()] = step;
      return true;
    };
    Counters counters(program_, queues_);
    const auto is_done = [&] { return counters.value(program_.done()) != 0; };
    RaiseAllBut(source, counters, note);
    for (;; ++step) {
      counters.Raise(source, step, note);
      if (step == last) break;
      if (source != program_.start() && is_done()) {
        return Wrong(fmt::format("it counts as done when counter \"{}\" is at {} of {}",
                                 program_.CounterName(source), step, last));
      }
    }
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      if (!ops_[i].is_send()) continue;
      for (const OpId before : plan_.after(ops_[i])) {
        const Trigger& completion = completion_[before.index()];
        if (completion.counter == source && released_at[i] < completion.threshold)
          return Wrong(
              fmt::format("{} can start before {} has completed", NameOf(OpId(i)), NameOf(before)));
      }
      const bool is_first = completion_[i].threshold == 1 && plan_.after(ops_[i]).empty();
      if (source == program_.start() && is_first && released_at[i] == 0)
        return Wrong(NameOf(OpId(i)) + " can start before the start");
    }
    return {};
  }

  /// Sends of one channel start in order.
  Status CheckOrder(uint32_t end) {
    uint64_t released = 0, allowed = 0;
    std::optional<OpId> early;
    const auto release = [&](const DeferredWork& work) {
      if (work.end != end) return true;
      const uint64_t position = completion_[work.op.index()].threshold;
      if (position > released + 1 && !early) early = work.op;
      if (position > allowed) return false;
      released = std::max(released, position);
      return true;
    };
    Counters counters(program_, queues_);
    RaiseAllBut(program_.counters, counters, release);
    for (; allowed < program_.ends[end].ops.size() && !early; ++allowed) {
      counters.AdvanceAll(release);
    }
    if (!early) return {};
    return Wrong(NameOf(*early) + " can start before the send before it on its channel");
  }

  /// Along one order of the whole plan, in which a send also waits for the completion of the one
  /// before it on its channel, which receives that are all posted do not hold up: each send has
  /// been released when its turn comes.
  Status CheckProgress() {
    const MessageTable messages(plan_);
    const CreditTable credits(plan_, messages);
    const PlanGraph graph(plan_, messages, credits, {.send_depth = 1});
    const auto op_here = [&](uint32_t op) -> std::optional<OpId> {
      if (op < own_.op_begin || op >= own_.op_begin + own_.op_count) return std::nullopt;
      return OpId(op - own_.op_begin);
    };
    std::vector<bool> is_released(ops_.size());
    const auto release = [&](const DeferredWork& work) {
      is_released[work.op.index()] = true;
      return true;
    };
    Counters counters(program_, queues_);
    for (uint32_t end = 0; end < program_.ends.size(); ++end) counters.HoldBack(end);
    counters.Raise(program_.start(), 1, release);
    for (const PlanGraph::Vertex vertex : graph.TopologicalOrder()) {
      if (vertex == graph.barrier()) continue;
      const uint32_t message = graph.MessageOf(vertex);
      const std::optional<OpId> send = op_here(messages.send(message));
      if (graph.EventOf(vertex) == PlanGraph::Event::kStart && send && !is_released[send->index()])
        return Wrong(NameOf(*send) + " does not start when all that it waits for has completed");
      if (graph.EventOf(vertex) != PlanGraph::Event::kDeliver) continue;
      for (const std::optional<OpId> op : {send, op_here(messages.recv(message))}) {
        if (op)
          counters.Raise(completion_[op->index()].counter, completion_[op->index()].threshold,
                         release);
      }
    }
    if (counters.value(program_.done()) == 1) return {};
    return Wrong("it does not count as done when all has completed");
  }

  const Plan& plan_;
  const DeferredProgram& program_;
  const Program& own_;
  const std::span<const Op> ops_;
  std::vector<Trigger> completion_;            // by op: its end's counter when it has completed
  std::vector<std::vector<uint32_t>> queues_;  // by counter: works, in the order of their release
};

}  // namespace

Status ValidateDeferred(const VerifiedPlan& plan, const DeferredProgram& program) {
  const Plan& flat = plan;
  const auto own = std::ranges::find(flat.programs(), program.node, &Program::node);
  if (own == flat.programs().end())
    return Rejected(fmt::format("node {} has no program", program.node.value));
  return Validation(flat, program, *own).Run();
}

}  // namespace prepost::triggered
