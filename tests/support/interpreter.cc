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

namespace prepost::test {
namespace {

Judgement Contents(const Machine& machine) {
  const PlanHeader& header = machine.header();
  // Blocks are at most 2^24, but a wrong block size can overflow the product.
  if (header.payload.bytes / header.payload.blocks > header.payload.block_bytes ||
      header.payload.block_bytes * header.payload.blocks < header.payload.bytes) {
    return {Harm::kBytes,
            fmt::format("{} blocks of {} bytes are less than {}", header.payload.blocks,
                        header.payload.block_bytes, header.payload.bytes)};
  }
  std::set<std::pair<NodeId, uint32_t>> received;
  for (uint32_t channel = 0; channel < machine.channel_count(); ++channel) {
    const auto& sends = machine.sends(channel);
    const auto& recvs = machine.recvs(channel);
    if (sends.size() != recvs.size()) {
      return {Harm::kDeadlock, fmt::format("channel {} has {} sends and {} receives", channel,
                                           sends.size(), recvs.size())};
    }
    for (size_t index = 0; index < sends.size(); ++index) {
      const uint32_t block = recvs[index].block;
      const NodeId node = recvs[index].node;
      const std::string place = fmt::format("node {} block {}", node.value, block);
      if (sends[index].block != block) return {Harm::kWrongBlock, place};
      if (block == kNoBlock) continue;
      if (node == header.collective.root || !received.insert({node, block}).second)
        return {Harm::kTwice, place};
    }
  }
  const uint64_t wanted = uint64_t{header.nodes - 1} * header.payload.blocks;
  if (received.size() < wanted) {
    return {Harm::kMissing, fmt::format("{} of {} blocks arrive", received.size(), wanted)};
  }
  return {};
}

/// What is wrong with taking `event` in `state`.
Judgement HarmOfStart(const Machine& machine, const Machine::State& state, Event event) {
  const Machine::End& send = machine.sends(event.channel)[event.index];
  if (event.step != Step::kStart || send.block == kNoBlock) return {};
  const std::string place = fmt::format("node {} sends block {} as message {} of channel {}",
                                        send.node.value, send.block, event.index, event.channel);
  if (!machine.HoldsBlock(state, event)) return {Harm::kNotHeld, place};
  if (machine.header().ready.mode != ReadyMode::kRetry &&
      state.count(event.channel, Step::kPost) <= event.index) {
    return {Harm::kNotPosted, place};
  }
  return {};
}

/// The largest state that is reachable without `withheld`.
Machine::State Run(const Machine& machine, std::optional<Event> withheld) {
  Machine::State state = machine.Initial();
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t channel = 0; channel < machine.channel_count(); ++channel) {
      for (const Step step : kSteps) {
        while (const auto event = machine.Next(state, step, channel)) {
          if (event == withheld) break;
          machine.Take(&state, *event);
          changed = true;
        }
      }
    }
  }
  return state;
}

/// Whether a send that needs the index-th message of `channel` can start without it: its delivery,
/// or its post.
Judgement HarmWithout(const Machine& machine, uint32_t channel, uint32_t index) {
  const Machine::End& recv = machine.recvs(channel)[index];
  const std::string place = fmt::format("node {} block {}", recv.node.value, recv.block);
  const Machine::State undelivered = Run(machine, Event{Step::kDeliver, channel, index});
  for (uint32_t other = 0; other < machine.channel_count(); ++other) {
    for (uint32_t send = 0; send < undelivered.count(other, Step::kStart); ++send) {
      const Machine::End& it = machine.sends(other)[send];
      if (it.node == recv.node && it.block == recv.block) return {Harm::kNotHeld, place};
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
  return {};
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
  std::vector<bool> starved(3 * machine->channel_count());
  for (size_t event = 0; event < starved.size(); ++event) starved[event] = random.Below(4) == 0;
  Machine::State state = machine->Initial();
  for (;;) {
    std::vector<Event> events = machine->Allowed(state);
    if (events.empty()) break;
    std::vector<Event> fed;
    for (const Event event : events) {
      if (!starved[3 * event.channel + static_cast<uint32_t>(event.step)]) fed.push_back(event);
    }
    const Event event = random.Pick(fed.empty() ? events : fed);
    const Judgement judgement = HarmOfStart(*machine, state, event);
    if (judgement.harmful()) return judgement;
    machine->Take(&state, event);
  }
  if (!machine->IsComplete(state)) return {Harm::kDeadlock, ""};
  return {};
}

}  // namespace prepost::test
