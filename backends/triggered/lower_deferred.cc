// SPDX-License-Identifier: Apache-2.0
//
// How conditions are joined. A channel whose sends wait for one counter alone, not their own, needs
// no more: what that releases starts in order. On any other channel a send is released behind the
// one before it, which a pulse says that is queued right behind that one or, where sends wait for
// sends of the channel, comes with its completion. Where it waits for something new of another
// counter X, too, a counter of this pair joins both: the pulse's counter adds a large number to it,
// and X adds 1 at the threshold. The large number never comes ahead of its time, because the next
// send's follows this one's start, and X's additions come in the order of their thresholds; so
// (large) * (sends joined so far) + (additions so far) is reached exactly when both are there.
// Large is more than all of X's additions together. With new conditions on several counters the
// joins stand one behind the other, always in the order of counters. So no counter is raised, and
// no send of an endpoint started, in the midst of what its own raise or another send of that
// endpoint does, which providers need not allow: the provider sockets would wait for itself.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "backends/triggered/deferred_program.h"
#include "runtime/executor/executor_choice.h"

namespace prepost::triggered {
namespace {

/// While a program is made, "large" of all joins; a channel has fewer ops.
constexpr uint64_t kLarge = uint64_t{1} << 32;

class Lowering {
 public:
  Lowering(const Plan& plan, const Program& program) : plan_(plan), ops_(plan.ops(program)) {
    program_.node = program.node;
    program_.ends = EndsOf(plan, program);
  }

  DeferredProgram Lower() && {
    FindEnds();
    CountSources();
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].is_send()) AddSend(OpId(i));
    }
    SettleJoins();
    for (uint32_t end = 0; end < program_.ends.size(); ++end)
      Add({end, program_.ends[end].ops.size()}, program_.complete(), 1);
    // Of a node alone the start is all.
    const Trigger all = program_.ends.empty() ? Trigger{program_.start(), 1}
                                              : Trigger{program_.complete(), program_.ends.size()};
    Add(all, program_.done(), 1);
    return std::move(program_);
  }

 private:
  /// Of a channel of sends.
  struct SendState {
    std::map<uint32_t, uint64_t> waited_for;  ///< by counter: the highest threshold so far
    std::map<uint32_t, uint32_t> joins;       ///< by counter: the counter that joins it
    std::optional<Trigger> released;          ///< when the last send so far starts
    uint32_t pulses = 0;                      ///< the counter of its pulses, if is_serial
    uint64_t sends = 0;
    bool waits_for_own = false;  ///< for sends of the channel itself
    bool is_serial = false;
  };

  uint32_t AddCounter() { return program_.counters++; }
  void Add(Trigger trigger, uint32_t counter, uint64_t value) {
    program_.works.push_back(
        {.kind = DeferredWork::Kind::kAdd, .trigger = trigger, .counter = counter, .value = value});
  }

  void FindEnds() {
    completion_.resize(ops_.size());
    for (uint32_t end = 0; end < program_.ends.size(); ++end) {
      const std::vector<OpId>& ops = program_.ends[end].ops;
      for (uint32_t i = 0; i < ops.size(); ++i) completion_[ops[i].index()] = {end, i + 1};
    }
    states_.resize(program_.ends.size());
    program_.counters =
        static_cast<uint32_t>(program_.ends.size()) + DeferredProgram::kFixedCounters;
  }

  /// What the send waits for that the sends before it on its channel do not, by counter.
  std::map<uint32_t, uint64_t> NewConditions(OpId id, SendState& state) const {
    const Op& op = ops_[id.index()];
    std::map<uint32_t, uint64_t> conditions;
    for (const OpId before : plan_.after(op)) {
      const Trigger completion = completion_[before.index()];
      uint64_t& threshold = conditions[completion.counter];
      threshold = std::max(threshold, completion.threshold);
    }
    if (conditions.empty() && state.sends == 0) conditions[program_.start()] = 1;
    if (conditions.erase(completion_[id.index()].counter) != 0) state.waits_for_own = true;
    ++state.sends;
    std::erase_if(conditions, [&](const auto& it) {
      uint64_t& waited_for = state.waited_for[it.first];
      const bool is_new = it.second > waited_for;
      waited_for = std::max(waited_for, it.second);
      return !is_new;
    });
    return conditions;
  }
  SendState& StateOf(OpId id) { return states_[completion_[id.index()].counter]; }

  void CountSources() {
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].is_send()) NewConditions(OpId(i), StateOf(OpId(i)));
    }
    for (SendState& state : states_) {
      state = {.waits_for_own = state.waits_for_own,
               .is_serial = state.waited_for.size() > 1 || state.waits_for_own};
      if (!state.is_serial) continue;
      state.pulses = AddCounter();
      ++program_.pulse_counters;
    }
  }

  void AddSend(OpId id) {
    SendState& state = StateOf(id);
    const Trigger completion = completion_[id.index()];
    const std::map<uint32_t, uint64_t> conditions = NewConditions(id, state);
    std::optional<Trigger> released;
    if (!state.is_serial) released = state.released;
    if (state.is_serial && completion.threshold > 1)
      released = {state.pulses, completion.threshold - 1};
    for (const auto& [counter, threshold] : conditions) {
      const Trigger condition = {counter, threshold};
      released = released && state.is_serial ? Joined(state, *released, condition) : condition;
    }
    state.released = released;
    program_.works.push_back({.kind = DeferredWork::Kind::kSend,
                              .trigger = *released,
                              .end = completion.counter,
                              .op = id,
                              .block = ops_[id.index()].block});
    const bool is_last = completion.threshold == program_.ends[completion.counter].ops.size();
    if (!state.is_serial || is_last) return;
    program_.works.push_back({.kind = DeferredWork::Kind::kPulse,
                              .trigger = state.waits_for_own ? completion : *released,
                              .counter = state.pulses,
                              .value = 1});
  }

  /// When both are there.
  Trigger Joined(SendState& state, Trigger released, Trigger condition) {
    const auto [at, is_new] = state.joins.try_emplace(condition.counter, program_.counters);
    if (is_new) AddCounter();
    uint64_t& joined = joins_[at->second];
    ++joined;
    Add(released, at->second, kLarge);
    Add(condition, at->second, 1);
    return {at->second, joined * kLarge + joined};
  }

  /// Each join's own large number: counters of some providers have 31 bits.
  void SettleJoins() {
    const auto settle = [](uint64_t value, uint64_t joined) {
      return (value >> 32) * (joined + 1) + (value & 0xffffffff);
    };
    for (DeferredWork& work : program_.works) {
      if (const auto join = joins_.find(work.trigger.counter); join != joins_.end())
        work.trigger.threshold = settle(work.trigger.threshold, join->second);
      if (const auto join = joins_.find(work.counter);
          work.kind == DeferredWork::Kind::kAdd && join != joins_.end()) {
        work.value = settle(work.value, join->second);
      }
    }
  }

  const Plan& plan_;
  const std::span<const Op> ops_;
  DeferredProgram program_;
  std::vector<Trigger> completion_;     // by op
  std::vector<SendState> states_;       // by end
  std::map<uint32_t, uint64_t> joins_;  // by counter: how many sends it joins conditions for
};

const Program* FindProgram(const Plan& plan, NodeId node) {
  const auto found = std::ranges::find(plan.programs(), node, &Program::node);
  return found == plan.programs().end() ? nullptr : &*found;
}

}  // namespace

Result<DeferredProgram> LowerDeferred(const VerifiedPlan& plan, NodeId node,
                                      const DeferredLimits& limits) {
  if (const std::optional<std::string> why = WhyNotPreposted(plan)) return Rejected(*why);
  const Plan& flat = plan;
  const Program* const own = FindProgram(flat, node);
  if (own == nullptr) return Rejected(fmt::format("node {} has no program", node.value));
  DeferredProgram program = Lowering(flat, *own).Lower();
  const auto highest = std::ranges::max_element(
      program.works, {}, [](const DeferredWork& work) { return work.trigger.threshold; });
  if (highest != program.works.end() && highest->trigger.threshold > limits.value_max) {
    return Rejected(fmt::format(
        "node {} needs counters up to {}, those of this provider count to {}; larger blocks are "
        "fewer",
        node.value, highest->trigger.threshold, limits.value_max));
  }
  if (program.counters > limits.counters_max) {
    return Rejected(fmt::format(
        "node {} needs {} counters, {} for its ends of channels, {} for start and end, {} for "
        "pulses and {} to join conditions; a domain of this provider has {}",
        node.value, program.counters, program.ends.size(), DeferredProgram::kFixedCounters,
        program.pulse_counters, program.counters - program.first_pulse() - program.pulse_counters,
        limits.counters_max));
  }
  return program;
}

uint64_t DeferredProgram::receives() const {
  uint64_t count = static_cast<uint64_t>(
      std::ranges::count(works, DeferredWork::Kind::kPulse, &DeferredWork::kind));
  for (const ChannelEnd& end : ends) count += end.is_send ? 0 : end.ops.size();
  return count;
}

std::string DeferredProgram::CounterName(uint32_t counter) const {
  if (counter < ends.size()) {
    const ChannelEnd& end = ends[counter];
    return end.is_send
               ? fmt::format("sent to {} lane {}", end.peer.value, NumberOf(end.lane))
               : fmt::format("received from {} lane {}", end.peer.value, NumberOf(end.lane));
  }
  if (counter == start()) return "start";
  if (counter == complete()) return "complete";
  if (counter == done()) return "done";
  if (counter == thrown()) return "thrown";
  if (IsPulse(counter)) return fmt::format("pulse {}", counter - first_pulse());
  return fmt::format("join {}", counter - first_pulse() - pulse_counters);
}

std::string ListDeferred(const Plan& plan, const DeferredProgram& program) {
  std::string text =
      fmt::format("node {}: {} endpoints, {} counters, {} deferred works\n", program.node.value,
                  program.ends.size(), program.counters, program.works.size());
  for (const ChannelEnd& end : program.ends) {
    const Channel& channel = plan.channels()[end.channel.index()];
    text += fmt::format("  endpoint {}>{}{}: {} {}\n", channel.from.value, channel.to.value,
                        channel.carries_credits() ? " credits" : "", end.ops.size(),
                        end.is_send ? "sends" : "receives, posted before the start");
  }
  for (const DeferredWork& work : program.works) {
    const std::string when =
        fmt::format("{} >= {}", program.CounterName(work.trigger.counter), work.trigger.threshold);
    if (work.kind == DeferredWork::Kind::kSend) {
      const ChannelEnd& end = program.ends[work.end];
      text += fmt::format("  {}: send {} to {} (op {})\n", when,
                          work.block == kNoBlock ? "a credit" : fmt::format("block {}", work.block),
                          end.peer.value, work.op.value);
    } else if (work.kind == DeferredWork::Kind::kPulse) {
      text += fmt::format("  {}: {}\n", when, program.CounterName(work.counter));
    } else {
      text += fmt::format("  {}: {} += {}\n", when, program.CounterName(work.counter), work.value);
    }
  }
  return text;
}

}  // namespace prepost::triggered
