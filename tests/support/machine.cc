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
  if (!op.is_credit() && op.block >= plan.header().payload.blocks) {
    return Rejected("an op is of a block that the message lacks");
  }
  return {};
}

Status CheckNodes(const Plan& plan) {
  const PlanHeader& header = plan.header();
  if (header.collective.root.value >= header.nodes) return Rejected("the root is no node");
  if (header.payload.blocks == 0 || header.payload.block_bytes == 0) {
    return Rejected("the message has no blocks, or they have no bytes");
  }
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
      places.push_back({op.channel.value, static_cast<uint32_t>(ends.size())});
      End& end = ends.emplace_back();
      end.node = program.node;
      end.block = op.block;
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
      if (end.block != kNoBlock) received[{end.node, end.block}].push_back({channel, index});
    }
  }
  for (std::vector<End>& ends : sends_) {
    for (End& end : ends) {
      const auto found = received.find({end.node, end.block});
      if (found != received.end()) end.sources = found->second;
    }
  }
}

Machine::State Machine::Initial() const {
  State state;
  state.counts.resize(3 * sends_.size());
  return state;
}

bool Machine::AllCompleted(const State& state, const std::vector<Place>& places) const {
  return std::ranges::all_of(places, [&](Place place) {
    return state.count(place.channel, Step::kDeliver) > place.index;
  });
}

std::optional<Event> Machine::Next(const State& state, Step step, uint32_t channel) const {
  const uint32_t index = state.count(channel, step);
  const uint32_t delivered = state.count(channel, Step::kDeliver);
  const Event event{step, channel, index};
  switch (step) {
    case Step::kPost: {
      if (index == recvs_[channel].size()) return std::nullopt;
      if (depths_.recv && index - delivered >= *depths_.recv) return std::nullopt;
      if (!AllCompleted(state, recvs_[channel][index].after)) return std::nullopt;
      return event;
    }
    case Step::kStart: {
      if (index == sends_[channel].size()) return std::nullopt;
      const End& send = sends_[channel][index];
      if (depths_.send && index - delivered >= *depths_.send) return std::nullopt;
      if (header_.ready.mode == ReadyMode::kBarrier && state.posts < recv_count_) {
        return std::nullopt;
      }
      if (state.counts[3 * send.grant_channel] < send.grant_count) return std::nullopt;
      if (!AllCompleted(state, send.after)) return std::nullopt;
      return event;
    }
    case Step::kDeliver: {
      const bool ready =
          index < state.count(channel, Step::kPost) && index < state.count(channel, Step::kStart);
      return ready ? std::optional(event) : std::nullopt;
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
  ++state->counts[3 * event.channel + static_cast<uint32_t>(event.step)];
  if (event.step == Step::kPost) ++state->posts;
}

bool Machine::IsComplete(const State& state) const {
  for (uint32_t channel = 0; channel < channel_count(); ++channel) {
    const size_t delivered = state.count(channel, Step::kDeliver);
    if (delivered < sends_[channel].size() || delivered < recvs_[channel].size()) return false;
  }
  return true;
}

bool Machine::HoldsBlock(const State& state, Event event) const {
  const End& send = sends_[event.channel][event.index];
  return send.node == header_.collective.root ||
         std::ranges::any_of(send.sources, [&](Place place) {
           return state.count(place.channel, Step::kDeliver) > place.index;
         });
}

}  // namespace prepost::test
