// SPDX-License-Identifier: Apache-2.0
#include "tests/support/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace prepost::test {
namespace {

/// Why nobody could play `op` at `node`, or ok.
Status CheckOp(const Plan& plan, NodeId node, const Op& op) {
  if (op.channel.index() >= plan.channels().size()) return Rejected("an op has no channel");
  const Channel& channel = plan.channels()[op.channel.index()];
  if ((op.is_send() ? channel.from : channel.to) != node) {
    return Rejected("an op is not at its end of its channel");
  }
  const PlanHeader& header = plan.header();
  const bool is_in = op.block < header.payload.blocks && op.count >= 1 &&
                     op.count <= header.payload.blocks - op.block;
  if (op.is_credit() ? op.count != 1 : !is_in)
    return Rejected("an op is of a block that the message lacks");
  if (op.is_combine() && (op.is_credit() || header.combine.is_none()))
    return Rejected("an op combines without an operation");
  if (op.is_send() || op.is_credit()) return {};
  const Roles roles = header.roles();
  bool needs_scratch = op.is_combine();
  for (uint32_t block = op.block; block < op.block + op.count; ++block)
    needs_scratch |= !roles.Wants(node, block);
  const bool has_scratch = op.scratch != kNoScratch && op.scratch + op.count <= header.scratch;
  if (needs_scratch && !has_scratch && header.payload.bytes != 0)
    return Rejected("an op needs a scratch buffer");
  return {};
}

Status CheckNodes(const Plan& plan) {
  const PlanHeader& header = plan.header();
  if (header.collective.helpers >= header.nodes ||
      header.collective.root.value >= header.nodes - header.collective.helpers)
    return Rejected("the root is no member");
  if (header.payload.blocks == 0 || header.payload.block_bytes == 0) {
    return Rejected("the message has no blocks, or they have no bytes");
  }
  const uint32_t members = header.nodes - header.collective.helpers;
  if (header.payload.parts != PartsOf(header.collective.kind, members) ||
      header.payload.blocks % header.payload.parts != 0)
    return Rejected("parts are not those of the collective");
  const std::vector<uint64_t>& sizes = header.payload.part_bytes;
  if (!sizes.empty() && (sizes.size() != header.payload.parts ||
                         *std::ranges::max_element(sizes) != header.payload.bytes))
    return Rejected("sizes are not those of the parts");
  if (Combines(header.collective.kind) == header.combine.is_none() ||
      !CheckCombine(header.combine).ok())
    return Rejected("there is no operation, or one too many");
  const uint64_t element = SizeOf(header.combine.type);
  if (element != 0 &&
      (header.payload.bytes % element != 0 || (header.payload.bytes > header.payload.block_bytes &&
                                               header.payload.block_bytes % element != 0)))
    return Rejected("elements are cut");
  if (element != 0 && std::ranges::any_of(sizes, [&](uint64_t it) { return it % element != 0; }))
    return Rejected("elements of a part are cut");
  std::vector<uint32_t> programs(header.nodes);
  for (const Program& program : plan.programs()) {
    if (program.node.value >= header.nodes) return Rejected("a program is of no node");
    ++programs[program.node.index()];
  }
  if (std::ranges::any_of(programs, [](uint32_t count) { return count != 1; })) {
    return Rejected("a node has no program, or two");
  }
  return {};
}

}  // namespace

Result<Machine> Machine::Make(const Plan& plan, Depths depths) {
  PREPOST_RETURN_IF_ERROR(CheckNodes(plan));
  Machine machine;
  machine.header_ = plan.header();
  machine.depths_ = depths;
  machine.sends_.resize(plan.channels().size());
  machine.recvs_.resize(plan.channels().size());
  PREPOST_RETURN_IF_ERROR(machine.AddOps(plan));
  machine.AddGrants(plan);
  machine.AddSources();
  return machine;
}

Status Machine::AddOps(const Plan& plan) {
  for (const Program& program : plan.programs()) {
    std::vector<Place> places;  // of the program's ops
    for (const Op& op : plan.ops(program)) {
      PREPOST_RETURN_IF_ERROR(CheckOp(plan, program.node, op));
      std::vector<End>& ends = (op.is_send() ? sends_ : recvs_)[op.channel.index()];
      const auto id = static_cast<uint32_t>(places.size());
      places.push_back({.channel = op.channel.value,
                        .index = static_cast<uint32_t>(ends.size()),
                        .is_combine = op.is_combine()});
      End& end = ends.emplace_back();
      end.node = program.node;
      end.block = op.block;
      end.count = op.count;
      end.is_combine = op.is_combine();
      end.scratch = op.scratch;
      end.id = id;
      if (!op.is_send()) ++recv_count_;
    }
    for (size_t id = 0; id < places.size(); ++id) {
      const Op& op = plan.ops(program)[id];
      End& end = (op.is_send() ? sends_ : recvs_)[places[id].channel][places[id].index];
      for (OpId before : plan.after(op)) {
        if (before.index() >= places.size()) return Rejected("an after entry names no op");
        end.after.push_back(places[before.index()]);
      }
    }
  }
  return {};
}

void Machine::AddGrants(const Plan& plan) {
  std::vector<std::vector<uint32_t>> grants(plan.channels().size());  // [channel][send index]
  for (const Program& program : plan.programs()) {
    for (const Op& op : plan.ops(program)) {
      if (op.is_send()) grants[op.channel.index()].push_back(op.is_credit() ? op.grants : 0);
    }
  }
  for (uint32_t channel = 0; channel < channel_count(); ++channel) {
    const Channel& credits = plan.channels()[channel];
    const Channel granted{.from = credits.to, .to = credits.from, .lane = Lane::kBlocks};
    const auto found = std::ranges::find(plan.channels(), granted);
    if (found == plan.channels().end()) continue;
    const auto reverse = static_cast<uint32_t>(found - plan.channels().begin());
    uint64_t total = 0;
    for (size_t index = 0; index < sends_[channel].size(); ++index) {
      total += grants[channel][index];
      if (grants[channel][index] == 0) continue;
      sends_[channel][index].grant_channel = reverse;
      sends_[channel][index].grant_count =
          static_cast<uint32_t>(std::min<uint64_t>(total, recvs_[reverse].size()));
    }
  }
}

void Machine::AddSources() {
  std::map<std::pair<NodeId, uint32_t>, std::vector<Place>> received;
  for (uint32_t channel = 0; channel < channel_count(); ++channel) {
    for (uint32_t index = 0; index < recvs_[channel].size(); ++index) {
      const End& end = recvs_[channel][index];
      if (end.block == kNoBlock) continue;
      for (uint32_t block = end.block; block < end.block + end.count; ++block) {
        received[{end.node, block}].push_back(
            {.channel = channel, .index = index, .is_combine = end.is_combine});
      }
    }
  }
  for (std::vector<End>& ends : sends_) {
    for (End& end : ends) {
      if (end.block == kNoBlock) continue;
      for (uint32_t block = end.block; block < end.block + end.count; ++block) {
        if (header_.roles().Contributes(end.node, block)) continue;
        end.sources.push_back(received[{end.node, block}]);
      }
    }
  }
}

Machine::State Machine::Initial() const {
  State state;
  state.counts.resize(4 * sends_.size());
  return state;
}

bool Machine::AllCompleted(const State& state, const std::vector<Place>& places) const {
  return std::ranges::all_of(places, [&](Place place) { return IsCompleted(state, place); });
}

std::optional<Event> Machine::Next(const State& state, Step step, uint32_t channel) const {
  const uint32_t index = state.count(channel, step);
  const uint32_t delivered = state.count(channel, Step::kDeliver);
  const Event event{step, channel, index};
  switch (step) {
    case Step::kPost: {
      if (index == recvs_[channel].size()) return std::nullopt;
      const End& recv = recvs_[channel][index];
      if (depths_.recv && index >= *depths_.recv) {
        const uint32_t earlier = index - *depths_.recv;
        const bool is_combine = recvs_[channel][earlier].is_combine;
        if (!IsCompleted(state, {.channel = channel, .index = earlier, .is_combine = is_combine}))
          return std::nullopt;
      }
      if (!recv.is_combine && !AllCompleted(state, recv.after)) return std::nullopt;
      return event;
    }
    case Step::kStart: {
      if (index == sends_[channel].size()) return std::nullopt;
      const End& send = sends_[channel][index];
      if (depths_.send && index - delivered >= *depths_.send) return std::nullopt;
      if (header_.ready.mode == ReadyMode::kBarrier && state.posts < recv_count_) {
        return std::nullopt;
      }
      if (state.counts[4 * send.grant_channel] < send.grant_count) return std::nullopt;
      if (!AllCompleted(state, send.after)) return std::nullopt;
      return event;
    }
    case Step::kDeliver: {
      const bool ready =
          index < state.count(channel, Step::kPost) && index < state.count(channel, Step::kStart);
      return ready ? std::optional(event) : std::nullopt;
    }
    case Step::kCombine: {
      if (index >= delivered || index == recvs_[channel].size()) return std::nullopt;
      const End& recv = recvs_[channel][index];
      if (recv.is_combine && !AllCompleted(state, recv.after)) return std::nullopt;
      return event;
    }
  }
  PREPOST_CHECK(false);
  return std::nullopt;
}

std::vector<Event> Machine::Allowed(const State& state) const {
  std::vector<Event> events;
  for (uint32_t channel = 0; channel < channel_count(); ++channel) {
    for (const Step step : kSteps) {
      if (const auto event = Next(state, step, channel)) events.push_back(*event);
    }
  }
  return events;
}

void Machine::Take(State* state, Event event) const {
  ++state->counts[4 * event.channel + static_cast<uint32_t>(event.step)];
  if (event.step == Step::kPost) ++state->posts;
}

bool Machine::IsComplete(const State& state) const {
  for (uint32_t channel = 0; channel < channel_count(); ++channel) {
    const size_t delivered = state.count(channel, Step::kDeliver);
    if (delivered < sends_[channel].size() || delivered < recvs_[channel].size()) return false;
    if (state.count(channel, Step::kCombine) < recvs_[channel].size()) return false;
  }
  return true;
}

bool Machine::HoldsBlock(const State& state, Event event) const {
  const End& send = sends_[event.channel][event.index];
  return std::ranges::all_of(send.sources, [&](const std::vector<Place>& places) {
    return std::ranges::any_of(places, [&](Place place) { return IsCompleted(state, place); });
  });
}

Machine::State LargestRun(const Machine& machine,
                          const std::function<bool(const Event& event)>& is_withheld) {
  Machine::State state = machine.Initial();
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t channel = 0; channel < machine.channel_count(); ++channel) {
      for (const Step step : kSteps) {
        while (const auto event = machine.Next(state, step, channel)) {
          if (is_withheld(*event)) break;
          machine.Take(&state, *event);
          changed = true;
        }
      }
    }
  }
  return state;
}

}  // namespace prepost::test
