// SPDX-License-Identifier: Apache-2.0
//
// A node's places: block b of its input, which nobody writes; block b of its output; its scratch
// buffers. Which an op reads and writes follows from its program alone, in the order of ids
// (docs/plan.md, "Where a block lies"). An access lasts from an event to an event: a send reads
// from its start to its delivery, a receive writes from its send's start to its delivery, a combine
// reads and writes when it combines. Two accesses to one place, of which one writes, race unless
// one ends before the other begins in every run.
#include "tests/support/value_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace prepost::test {
namespace {

enum class Room : uint8_t { kNone, kInput, kOutput, kScratch };

/// A block's worth of memory of a node.
struct Spot {
  Room room = Room::kNone;
  uint32_t index = 0;  ///< block, or buffer

  friend auto operator<=>(const Spot&, const Spot&) = default;
};
using NodeSpot = std::pair<NodeId, Spot>;

/// What an op does with one of its blocks.
struct Work {
  uint32_t block = 0;
  Spot reads = {};   ///< a send; a combine: the own operand
  Spot lands = {};   ///< a receive: where the bytes come
  Spot writes = {};  ///< a combine: the result
};

struct Access {
  NodeSpot spot;
  bool is_write = false;
  std::vector<Event> begin;  ///< it begins when all of them have happened
  Event end;
  std::pair<uint32_t, uint32_t> op;  ///< (node, id)
};

/// Contributions and the tree of them; empty: rubbish.
struct Value {
  std::map<uint32_t, uint32_t> count;  ///< rank -> how often
  std::string tree;                    ///< operands in order
  std::string shape;                   ///< operands sorted
  std::vector<uint32_t> ranks;         ///< as they stand in the tree

  bool is_rubbish() const { return tree.empty(); }
};

Value Combined(const Value& own, const Value& other) {
  if (own.is_rubbish() || other.is_rubbish()) return {};
  Value value = own;
  for (const auto& [rank, times] : other.count) value.count[rank] += times;
  value.tree = "(" + own.tree + "+" + other.tree + ")";
  const auto [low, high] = std::minmax(own.shape, other.shape);
  value.shape = "(" + low + "+" + high + ")";
  value.ranks.insert(value.ranks.end(), other.ranks.begin(), other.ranks.end());
  return value;
}

class PlannedMemory {
 public:
  explicit PlannedMemory(const Machine& machine)
      : machine_(machine), header_(machine.header()), roles_(header_.roles()) {
    PlanWork();
  }

  /// Not held: some op has nothing to send or to combine with.
  const Judgement& held() const { return held_; }
  const std::vector<Work>& SendWork(uint32_t channel, uint32_t index) const {
    return sends_[channel][index];
  }
  const std::vector<Work>& RecvWork(uint32_t channel, uint32_t index) const {
    return recvs_[channel][index];
  }
  Spot Final(NodeId node, uint32_t block) const {
    const auto found = final_.find({node, block});
    return found == final_.end() ? Spot{Room::kInput, block} : found->second;
  }

  std::vector<Access> Accesses() const {
    std::vector<Access> all;
    for (uint32_t channel = 0; channel < machine_.channel_count(); ++channel) {
      for (uint32_t index = 0; index < machine_.recvs(channel).size(); ++index) {
        const Event post{Step::kPost, channel, index}, start{Step::kStart, channel, index},
            deliver{Step::kDeliver, channel, index}, combine{Step::kCombine, channel, index};
        const Machine::End& send = machine_.sends(channel)[index];
        const Machine::End& recv = machine_.recvs(channel)[index];
        const std::pair from(send.node.value, send.id), to(recv.node.value, recv.id);
        for (const Work& work : sends_[channel][index])
          all.push_back({{send.node, work.reads}, false, {start}, deliver, from});
        for (const Work& work : recvs_[channel][index]) {
          all.push_back({{recv.node, work.lands}, true, {post, start}, deliver, to});
          if (!recv.is_combine) continue;
          all.push_back({{recv.node, work.lands}, false, {combine}, combine, to});
          all.push_back({{recv.node, work.reads}, false, {combine}, combine, to});
          all.push_back({{recv.node, work.writes}, true, {combine}, combine, to});
        }
      }
    }
    std::erase_if(all, [](const Access& it) { return it.spot.second.room == Room::kNone; });
    return all;
  }

 private:
  struct Site {
    bool is_send;
    uint32_t channel;
    uint32_t index;
  };

  void PlanWork() {
    std::map<NodeId, std::map<uint32_t, Site>> programs;
    sends_.resize(machine_.channel_count());
    recvs_.resize(machine_.channel_count());
    for (uint32_t channel = 0; channel < machine_.channel_count(); ++channel) {
      sends_[channel].resize(machine_.sends(channel).size());
      recvs_[channel].resize(machine_.recvs(channel).size());
      for (const bool is_send : {true, false}) {
        const auto& ends = is_send ? machine_.sends(channel) : machine_.recvs(channel);
        for (uint32_t index = 0; index < ends.size(); ++index) {
          if (ends[index].block != kNoBlock)
            programs[ends[index].node][ends[index].id] = {is_send, channel, index};
        }
      }
    }
    const bool combines = !header_.combine.is_none();
    for (const auto& [node, program] : programs) {
      std::map<uint32_t, Spot> place;  // block
      std::vector<Site> sites;
      for (const auto& [id, site] : program) sites.push_back(site);
      // Without combining a block has one place at a node, wherever the receive stands.
      if (!combines)
        std::ranges::stable_partition(sites, [](const Site& it) { return !it.is_send; });
      for (const Site& site : sites) {
        const auto& ends =
            site.is_send ? machine_.sends(site.channel) : machine_.recvs(site.channel);
        const Machine::End& end = ends[site.index];
        std::vector<Work>& all = (site.is_send ? sends_ : recvs_)[site.channel][site.index];
        for (uint32_t j = 0; j < end.count; ++j) {
          if (header_.payload.bytes == 0) continue;
          // An empty block among others is held like them, and no byte of it is torn.
          const Work work = WorkOf(node, end, site.is_send, j, &place);
          if (header_.payload.BlockSize(end.block + j) != 0) all.push_back(work);
        }
      }
      for (const auto& [block, spot] : place) final_[{node, block}] = spot;
    }
  }

  Work WorkOf(NodeId node, const Machine::End& end, bool is_send, uint32_t j,
              std::map<uint32_t, Spot>* place) {
    const uint32_t block = end.block + j;
    const auto [found, is_new] = place->try_emplace(block);
    Spot& now = found->second;
    if (is_new && roles_.Contributes(node, block)) now = {Room::kInput, block};
    const Spot buffer{Room::kScratch, end.scratch + j};
    const bool is_wanted = roles_.Wants(node, block);
    const bool is_first = now.room == Room::kNone || now.room == Room::kInput;
    Work work{.block = block, .reads = now};
    if (is_send || end.is_combine) {
      if (now.room == Room::kNone && !held_.harmful())
        held_ = {Harm::kNotHeld, fmt::format("node {} block {}", node.value, block)};
    }
    if (is_send) return work;
    const Spot next = is_wanted ? Spot{Room::kOutput, block} : is_first ? buffer : now;
    if (end.is_combine) {
      work.lands = buffer;
      work.writes = next;
    } else {
      work.reads = {};
      work.lands = next;
    }
    now = next;
    return work;
  }

  const Machine& machine_;
  const PlanHeader& header_;
  const Roles roles_;
  Judgement held_;
  std::vector<std::vector<std::vector<Work>>> sends_, recvs_;  // [channel][index]
  std::map<std::pair<NodeId, uint32_t>, Spot> final_;
};

/// Which events have happened in the largest run without one.
class Precedence {
 public:
  explicit Precedence(const Machine& machine) : machine_(machine) {}

  /// Whether `a` is over before `b` begins in every run.
  bool Before(const Access& a, const Access& b) {
    return std::ranges::any_of(b.begin, [&](const Event& begin) {
      return begin != a.end && Without(a.end).count(begin.channel, begin.step) <= begin.index;
    });
  }

 private:
  const Machine::State& Without(const Event& event) {
    const std::tuple key(static_cast<int>(event.step), event.channel, event.index);
    const auto found = runs_.find(key);
    if (found != runs_.end()) return found->second;
    return runs_.emplace(key, LargestRun(machine_, [&](const Event& it) { return it == event; }))
        .first->second;
  }

  const Machine& machine_;
  std::map<std::tuple<int, uint32_t, uint32_t>, Machine::State> runs_;
};

Judgement FindRace(const Machine& machine, const PlannedMemory& memory) {
  std::map<NodeSpot, std::vector<Access>> by_spot;
  for (const Access& access : memory.Accesses()) by_spot[access.spot].push_back(access);
  Precedence precedence(machine);
  for (const auto& [spot, accesses] : by_spot) {
    if (spot.second.room == Room::kInput) continue;
    for (size_t i = 0; i < accesses.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const Access &a = accesses[i], &b = accesses[j];
        // An op's own accesses are in order, by its events.
        if ((!a.is_write && !b.is_write) || a.op == b.op) continue;
        if (precedence.Before(a, b) || precedence.Before(b, a)) continue;
        return {Harm::kRace, fmt::format("ops {} and {} of node {}", b.op.second, a.op.second,
                                         spot.first.value)};
      }
    }
  }
  return {};
}

class ValueRun {
 public:
  /// `random`: memory does its worst; null: it does not matter.
  ValueRun(const Machine& machine, const PlannedMemory& memory, Random* random)
      : machine_(machine),
        header_(machine.header()),
        roles_(header_.roles()),
        memory_(memory),
        random_(random),
        carried_(machine.channel_count()) {}

  void Take(const Event& event) {
    const uint32_t channel = event.channel, index = event.index;
    const NodeId from = machine_.sends(channel)[index].node;
    const NodeId to = machine_.recvs(channel)[index].node;
    const std::vector<Work>& sent = memory_.SendWork(channel, index);
    const std::vector<Work>& received = memory_.RecvWork(channel, index);
    std::vector<std::vector<Value>>& carried = carried_[channel];
    carried.resize(std::max<size_t>(carried.size(), index + size_t{1}));
    switch (event.step) {
      case Step::kPost:
        Tear(event);
        return;
      case Step::kStart:
        for (const Work& work : sent) carried[index].push_back(At(from, work.reads));
        Tear(event);
        return;
      case Step::kDeliver: {
        const bool is_late = random_ != nullptr && random_->Coin();
        for (size_t i = 0; i < received.size() && i < sent.size(); ++i) {
          values_[{to, received[i].lands}] = is_late ? At(from, sent[i].reads) : carried[index][i];
        }
        return;
      }
      case Step::kCombine:
        if (!machine_.recvs(channel)[index].is_combine) return;
        for (const Work& work : received)
          values_[{to, work.writes}] = Combined(At(to, work.reads), At(to, work.lands));
        return;
    }
  }

  Judgement Result() {
    std::map<uint32_t, Value> first;  // block -> that of the first node that wants it
    for (uint32_t node = 0; node < roles_.members(); ++node) {
      for (uint32_t block = 0; block < header_.payload.blocks; ++block) {
        if (!roles_.Wants(NodeId(node), block) || header_.payload.BlockSize(block) == 0) continue;
        const Value& value = At(NodeId(node), memory_.Final(NodeId(node), block));
        const std::string place = fmt::format("node {} block {}: {}", node, block, value.tree);
        if (!IsWhole(value, block)) return {Harm::kWrongValue, place};
        const Value& other = first.try_emplace(block, value).first->second;
        if (header_.combine.is_none() || header_.combine.is_exact()) continue;
        if (other.shape != value.shape) return {Harm::kDisagree, place};
        if (header_.combine.is_ordered() &&
            (!std::ranges::is_sorted(value.ranks) || other.tree != value.tree))
          return {Harm::kDisagree, place};
      }
    }
    return {};
  }

 private:
  /// When a message has been posted and started, its bytes are on their way to their place.
  void Tear(const Event& event) {
    if (random_ == nullptr || begun_.insert({event.channel, event.index}).second) return;
    const NodeId to = machine_.recvs(event.channel)[event.index].node;
    for (const Work& work : memory_.RecvWork(event.channel, event.index))
      values_[{to, work.lands}] = Value{};
  }

  Value At(NodeId node, const Spot& spot) {
    if (spot.room == Room::kInput) {
      const uint32_t rank = node.value;
      const std::string name = fmt::format("x{}.{};", rank, spot.index);
      return {.count = {{rank, 1}}, .tree = name, .shape = name, .ranks = {rank}};
    }
    return values_[{node, spot}];
  }

  bool IsWhole(const Value& value, uint32_t block) const {
    if (value.is_rubbish()) return false;
    uint32_t contributors = 0;
    for (uint32_t node = 0; node < roles_.members(); ++node) {
      if (!roles_.Contributes(NodeId(node), block)) continue;
      ++contributors;
      const auto found = value.count.find(node);
      if (found == value.count.end()) return false;
      if (found->second != 1 && !header_.combine.is_idempotent()) return false;
    }
    // Nothing of another block has come to its place.
    return value.count.size() == contributors &&
           value.tree.find(fmt::format(".{};", block)) != std::string::npos;
  }

  const Machine& machine_;
  const PlanHeader& header_;
  const Roles roles_;
  const PlannedMemory& memory_;
  Random* const random_;
  std::vector<std::vector<std::vector<Value>>> carried_;  // [channel][index][block of the message]
  std::set<std::pair<uint32_t, uint32_t>> begun_;  // messages of which one of the two has happened
  std::map<NodeSpot, Value> values_;
};

/// Where nothing has bytes, nothing is moved, and what counts is who has heard of whom: whether a
/// node that wants something can be through without one that has not begun.
Judgement HeardOf(const Machine& machine) {
  const Roles roles = machine.header().roles();
  for (uint32_t late = 0; late < roles.members(); ++late) {
    const Machine::State state = LargestRun(machine, [&](const Event& event) {
      return event.step == Step::kStart &&
             machine.sends(event.channel)[event.index].node == NodeId(late);
    });
    for (uint32_t node = 0; node < roles.members(); ++node) {
      if (node == late || !roles.Wants(NodeId(node), 0)) continue;
      bool is_through = true;
      for (uint32_t channel = 0; channel < machine.channel_count(); ++channel) {
        const auto& sends = machine.sends(channel);
        const auto& recvs = machine.recvs(channel);
        if (!sends.empty() && sends.front().node == NodeId(node))
          is_through &= state.count(channel, Step::kDeliver) == sends.size();
        if (!recvs.empty() && recvs.front().node == NodeId(node))
          is_through &= state.count(channel, Step::kCombine) == recvs.size();
      }
      if (is_through)
        return {Harm::kWrongValue, fmt::format("node {} is through before {} begins", node, late)};
    }
  }
  return {};
}

}  // namespace

Judgement JudgeValues(const Machine& machine) {
  if (machine.header().combine.is_none() && machine.header().scratch == 0) return {};
  const PlannedMemory memory(machine);
  if (memory.held().harmful()) return memory.held();
  if (const Judgement race = FindRace(machine, memory); race.harmful()) return race;
  if (machine.header().payload.bytes == 0)
    return machine.header().combine.is_none() ? Judgement{} : HeardOf(machine);
  ValueRun run(machine, memory, nullptr);
  Machine::State state = machine.Initial();
  for (std::vector<Event> events = machine.Allowed(state); !events.empty();
       events = machine.Allowed(state)) {
    machine.Take(&state, events.front());
    run.Take(events.front());
  }
  return run.Result();
}

Judgement PlayValues(const Machine& machine, std::span<const Event> taken, Random& random) {
  const PlannedMemory memory(machine);
  if (memory.held().harmful()) return memory.held();
  if (machine.header().payload.bytes == 0) return {};  // there is nothing to be torn
  ValueRun run(machine, memory, &random);
  for (const Event& event : taken) run.Take(event);
  return run.Result();
}

}  // namespace prepost::test
