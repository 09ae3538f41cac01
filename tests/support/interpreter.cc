// SPDX-License-Identifier: Apache-2.0
//
// Harm comes in two kinds. What a plan delivers does not depend on time, since the i-th send of a
// channel meets its i-th receive: Contents() reads it off. When it does so depends on the
// interleaving: Judge, Explore and Play each look for a start that comes too early, and for a state
// in which nothing more can happen before all is done.
//
// Example, n = 3, node 1 relays: its send to 2 lacks the `after` that names its receive. The
// largest run without that delivery still contains the send's start, so some executor sends what is
// not there: kNotHeld.
#include "tests/support/interpreter.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tests/support/machine.h"
#include "tests/support/value_judge.h"

namespace prepost::test {
namespace {

Judgement Contents(const Machine& machine) {
  const PlanHeader& header = machine.header();
  // Blocks are at most 2^24, but a wrong block size can overflow the product.
  const uint64_t blocks = header.payload.blocks / header.payload.parts;  // of a part
  if (header.payload.bytes / blocks > header.payload.block_bytes ||
      header.payload.block_bytes * blocks < header.payload.bytes) {
    return {Harm::kBytes, fmt::format("{} blocks of {} bytes are less than {}", blocks,
                                      header.payload.block_bytes, header.payload.bytes)};
  }
  const Roles roles = header.roles();
  std::set<std::pair<NodeId, uint32_t>> received;
  for (uint32_t channel = 0; channel < machine.channel_count(); ++channel) {
    const auto& sends = machine.sends(channel);
    const auto& recvs = machine.recvs(channel);
    if (sends.size() != recvs.size()) {
      return {Harm::kDeadlock, fmt::format("channel {} has {} sends and {} receives", channel,
                                           sends.size(), recvs.size())};
    }
    for (size_t index = 0; index < sends.size(); ++index) {
      const uint32_t first = recvs[index].block;
      const NodeId node = recvs[index].node;
      const std::string place = fmt::format("node {} block {}", node.value, first);
      if (sends[index].block != first || sends[index].count != recvs[index].count)
        return {Harm::kWrongBlock, place};
      if (first == kNoBlock || !header.combine.is_none()) continue;
      for (uint32_t block = first; block < first + recvs[index].count; ++block) {
        if (roles.Contributes(node, block) || !received.insert({node, block}).second)
          return {Harm::kTwice, place};
      }
    }
  }
  if (!header.combine.is_none()) return {};
  for (uint32_t node = 0; node < header.nodes; ++node) {
    for (uint32_t block = 0; block < header.payload.blocks; ++block) {
      if (roles.Lacks(NodeId(node), block) && !received.contains({NodeId(node), block}))
        return {Harm::kMissing, fmt::format("node {} block {}", node, block)};
    }
  }
  return {};
}

/// What is wrong with taking `event` in `state`.
Judgement HarmOfStart(const Machine& machine, const Machine::State& state, Event event) {
  const Machine::End& send = machine.sends(event.channel)[event.index];
  if (event.step != Step::kStart || send.block == kNoBlock) return {};
  const std::string place = fmt::format("node {} sends block {} as message {} of channel {}",
                                        send.node.value, send.block, event.index, event.channel);
  // Where empty blocks are combined, who has heard of whom is all: JudgeValues().
  const bool has_values = machine.header().combine.is_none() || machine.header().payload.bytes != 0;
  if (has_values && !machine.HoldsBlock(state, event)) return {Harm::kNotHeld, place};
  if (machine.header().ready.mode != ReadyMode::kRetry &&
      state.count(event.channel, Step::kPost) <= event.index) {
    return {Harm::kNotPosted, place};
  }
  return {};
}

Machine::State Run(const Machine& machine, std::optional<Event> withheld) {
  return LargestRun(machine, [&](const Event& event) { return event == withheld; });
}

/// Whether a send that needs the index-th message of `channel` can start without it: its delivery,
/// or its post.
Judgement HarmWithout(const Machine& machine, uint32_t channel, uint32_t index) {
  const Machine::End& recv = machine.recvs(channel)[index];
  const std::string place = fmt::format("node {} block {}", recv.node.value, recv.block);
  const bool combines = !machine.header().combine.is_none();
  const Machine::State undelivered = Run(machine, Event{Step::kDeliver, channel, index});
  for (uint32_t other = 0; other < machine.channel_count() && !combines; ++other) {
    for (uint32_t send = 0; send < undelivered.count(other, Step::kStart); ++send) {
      const Machine::End& it = machine.sends(other)[send];
      const bool needs_it = it.node == recv.node && it.block != kNoBlock &&
                            it.block < recv.block + recv.count && recv.block < it.block + it.count;
      if (needs_it) return {Harm::kNotHeld, place};
    }
  }
  if (machine.header().ready.mode == ReadyMode::kRetry) return {};
  const Machine::State unposted = Run(machine, Event{Step::kPost, channel, index});
  if (unposted.count(channel, Step::kStart) > index) return {Harm::kNotPosted, place};
  return {};
}

/// Posts that no harm depends on: to delay them cannot reveal anything.
bool IsPostOfNoConcern(const Machine& machine, Event event) {
  if (event.step != Step::kPost) return false;
  const ReadyMode mode = machine.header().ready.mode;
  return mode == ReadyMode::kBarrier || mode == ReadyMode::kRetry ||
         machine.recvs(event.channel)[event.index].block == kNoBlock;
}

void TakePostsOfNoConcern(const Machine& machine, Machine::State* state) {
  for (uint32_t channel = 0; channel < machine.channel_count(); ++channel) {
    while (const auto event = machine.Next(*state, Step::kPost, channel)) {
      if (!IsPostOfNoConcern(machine, *event)) break;
      machine.Take(state, *event);
    }
  }
}

std::string KeyOf(const Machine::State& state) {
  return {reinterpret_cast<const char*>(state.counts.data()),
          state.counts.size() * sizeof(uint32_t)};
}

}  // namespace

const char* Name(Harm harm) {
  switch (harm) {
    case Harm::kNone:
      return "none";
    case Harm::kUnplayable:
      return "unplayable";
    case Harm::kBytes:
      return "bytes";
    case Harm::kWrongBlock:
      return "wrong block";
    case Harm::kMissing:
      return "missing";
    case Harm::kTwice:
      return "twice";
    case Harm::kDeadlock:
      return "deadlock";
    case Harm::kNotHeld:
      return "not held";
    case Harm::kNotPosted:
      return "not posted";
    case Harm::kRace:
      return "race";
    case Harm::kWrongValue:
      return "wrong value";
    case Harm::kDisagree:
      return "disagree";
  }
  PREPOST_CHECK(false);
  return "";
}

Judgement Judge(const Plan& plan, Depths depths) {
  const Result<Machine> machine = Machine::Make(plan, depths);
  if (!machine.ok()) return {Harm::kUnplayable, machine.status().message()};
  if (const Judgement contents = Contents(*machine); contents.harmful()) return contents;
  if (!machine->IsComplete(Run(*machine, std::nullopt))) return {Harm::kDeadlock, ""};
  for (uint32_t channel = 0; channel < machine->channel_count(); ++channel) {
    for (uint32_t index = 0; index < machine->recvs(channel).size(); ++index) {
      if (machine->recvs(channel)[index].block == kNoBlock) continue;
      const Judgement judgement = HarmWithout(*machine, channel, index);
      if (judgement.harmful()) return judgement;
    }
  }
  // Values and buffers: where nothing is combined, buffers may still be used again.
  return JudgeValues(*machine);
}

std::optional<Judgement> Explore(const Plan& plan, size_t states_max, Depths depths) {
  const Result<Machine> machine = Machine::Make(plan, depths);
  if (!machine.ok()) return Judgement{Harm::kUnplayable, machine.status().message()};
  if (const Judgement contents = Contents(*machine); contents.harmful()) return contents;
  std::vector<Machine::State> open = {machine->Initial()};
  TakePostsOfNoConcern(*machine, &open.back());
  std::unordered_set<std::string> seen = {KeyOf(open.back())};
  while (!open.empty()) {
    const Machine::State state = std::move(open.back());
    open.pop_back();
    const std::vector<Event> events = machine->Allowed(state);
    if (events.empty() && !machine->IsComplete(state)) return Judgement{Harm::kDeadlock, ""};
    for (const Event event : events) {
      const Judgement judgement = HarmOfStart(*machine, state, event);
      if (judgement.harmful()) return judgement;
      Machine::State next = state;
      machine->Take(&next, event);
      TakePostsOfNoConcern(*machine, &next);
      if (!seen.insert(KeyOf(next)).second) continue;
      if (seen.size() > states_max) return std::nullopt;
      open.push_back(std::move(next));
    }
  }
  return Judgement{};
}

Judgement Play(const Plan& plan, Random& random, Depths depths) {
  const Result<Machine> machine = Machine::Make(plan, depths);
  if (!machine.ok()) return {Harm::kUnplayable, machine.status().message()};
  if (const Judgement contents = Contents(*machine); contents.harmful()) return contents;
  // A starved kind of event on a channel waits until nothing else is allowed.
  std::vector<bool> starved(4 * machine->channel_count());
  for (size_t event = 0; event < starved.size(); ++event) starved[event] = random.Below(4) == 0;
  std::vector<Event> taken;
  Machine::State state = machine->Initial();
  for (;;) {
    std::vector<Event> events = machine->Allowed(state);
    if (events.empty()) break;
    std::vector<Event> fed;
    for (const Event event : events) {
      if (!starved[4 * event.channel + static_cast<uint32_t>(event.step)]) fed.push_back(event);
    }
    const Event event = random.Pick(fed.empty() ? events : fed);
    const Judgement judgement = HarmOfStart(*machine, state, event);
    if (judgement.harmful()) return judgement;
    machine->Take(&state, event);
    taken.push_back(event);
  }
  if (!machine->IsComplete(state)) return {Harm::kDeadlock, ""};
  return PlayValues(*machine, taken, random);
}

}  // namespace prepost::test
