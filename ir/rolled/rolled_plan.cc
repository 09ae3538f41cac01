// SPDX-License-Identifier: Apache-2.0
#include "ir/rolled/rolled_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace prepost {
namespace {

/// Rounded down, for a divisor > 0.
int64_t FloorDivide(int64_t value, int64_t divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}
int64_t Modulo(int64_t value, int64_t divisor) {
  return value - FloorDivide(value, divisor) * divisor;
}

Status CheckLinear(const LinearInBlocks& linear, const std::string& where) {
  const auto fits = [](int64_t number) { return number >= -kLinearMax && number <= kLinearMax; };
  if (!fits(linear.per_block) || !fits(linear.constant)) {
    return Rejected(fmt::format("numbers are within -{0} and {0}", kLinearMax), where);
  }
  if (linear.divisor < 1 || linear.divisor > kLinearMax) {
    return Rejected(fmt::format("a divisor is from 1 to {}", kLinearMax), where);
  }
  return {};
}

/// " send to 3 block t - 2".
std::string DumpTransfer(const char* what, const std::optional<RolledTransfer>& transfer,
                         const Segment& segment) {
  if (!transfer) return "";
  const std::string offset = ToString(transfer->offset);
  std::string block = offset == "0"             ? "t"
                      : offset.starts_with('-') ? "t - " + offset.substr(1)
                                                : "t + " + offset;
  if (segment.rounds_per_block != 1)
    block = fmt::format("({}) / {}", block, segment.rounds_per_block);
  return fmt::format(" {} {} block {}", what, transfer->peer.value, block);
}

std::string DumpSegment(const Segment& segment) {
  const size_t period = segment.slots.size();
  std::string text =
      fmt::format("  rounds {} .. {} - 1", ToString(segment.from), ToString(segment.to));
  if (segment.blocks_min != 1) text += fmt::format(", k >= {}", segment.blocks_min);
  if (segment.blocks_max != kBlocksMax) text += fmt::format(", k <= {}", segment.blocks_max);
  text += fmt::format(", blocks above k - 1 {}:\n", segment.clamps ? "are k - 1" : "skipped");
  const std::string phase = ToString(segment.phase);
  for (size_t slot = 0; slot < period; ++slot) {
    text += fmt::format("    (t{}) mod {} = {}:", phase == "0" ? "" : " + " + phase, period, slot) +
            DumpTransfer("send to", segment.slots[slot].send, segment) +
            DumpTransfer("recv from", segment.slots[slot].recv, segment) + "\n";
  }
  return text;
}

/// Finds what is wrong with the form of one node's program.
class ProgramCheck {
 public:
  ProgramCheck(const RolledPlan& plan, const RolledProgram& program, std::string where)
      : plan_(plan), program_(program), where_(std::move(where)) {}

  Status Run() const {
    if (program_.segments.size() > kSegmentsMax) {
      return Rejected(fmt::format("more than {} segments", kSegmentsMax), where_ + "/segments");
    }
    for (size_t i = 0; i < program_.segments.size(); ++i) {
      PREPOST_RETURN_IF_ERROR(
          CheckSegment(program_.segments[i], fmt::format("{}/segments/{}", where_, i)));
    }
    return {};
  }

 private:
  Status CheckSegment(const Segment& segment, const std::string& where) const {
    PREPOST_RETURN_IF_ERROR(CheckLinear(segment.from, where + "/from"));
    PREPOST_RETURN_IF_ERROR(CheckLinear(segment.to, where + "/to"));
    PREPOST_RETURN_IF_ERROR(CheckLinear(segment.phase, where + "/phase"));
    if (segment.slots.empty() || segment.slots.size() > kPeriodMax) {
      return Rejected(
          fmt::format("a period has 1 to {} slots, found {}", kPeriodMax, segment.slots.size()),
          where + "/slots");
    }
    if (segment.rounds_per_block == 0 || segment.slots.size() % segment.rounds_per_block != 0) {
      return Rejected(fmt::format("{} rounds per block do not divide a period of {} slots",
                                  segment.rounds_per_block, segment.slots.size()),
                      where + "/rounds_per_block");
    }
    if (segment.blocks_min < 1 || segment.blocks_min > segment.blocks_max ||
        segment.blocks_max > kBlocksMax) {
      return Rejected(
          fmt::format("{} to {} is no range of blocks", segment.blocks_min, segment.blocks_max),
          where + "/when");
    }
    for (size_t slot = 0; slot < segment.slots.size(); ++slot) {
      const std::string place = fmt::format("{}/slots/{}", where, slot);
      PREPOST_RETURN_IF_ERROR(CheckTransfer(segment.slots[slot].send, place + "/send"));
      PREPOST_RETURN_IF_ERROR(CheckTransfer(segment.slots[slot].recv, place + "/recv"));
    }
    return {};
  }

  Status CheckTransfer(const std::optional<RolledTransfer>& transfer,
                       const std::string& where) const {
    if (!transfer) return {};
    if (transfer->peer.value >= plan_.header.nodes) {
      return Rejected(fmt::format("node {} is out of range, the nodes are 0 to {}",
                                  transfer->peer.value, plan_.header.nodes - 1),
                      where);
    }
    if (transfer->peer == program_.node) {
      return Rejected(fmt::format("node {} is this node itself", transfer->peer.value), where);
    }
    return CheckLinear(transfer->offset, where + "/offset");
  }

  const RolledPlan& plan_;
  const RolledProgram& program_;
  std::string where_;
};

}  // namespace

int64_t LinearInBlocks::At(uint32_t blocks) const {
  return FloorDivide(per_block * blocks + constant, divisor);
}

std::string ToString(const LinearInBlocks& linear) {
  std::string text;
  if (linear.per_block == 0) {
    text = fmt::to_string(linear.constant);
  } else {
    text = linear.per_block == 1    ? "k"
           : linear.per_block == -1 ? "-k"
                                    : fmt::format("{}k", linear.per_block);
    if (linear.constant > 0) text += fmt::format(" + {}", linear.constant);
    if (linear.constant < 0) text += fmt::format(" - {}", -linear.constant);
  }
  return linear.divisor == 1 ? text : fmt::format("({}) / {}", text, linear.divisor);
}

uint32_t RolledPlan::RoundsFor(uint32_t blocks) const {
  return static_cast<uint32_t>(std::clamp<int64_t>(rounds.At(blocks), 0, UINT32_MAX));
}

Result<PlanHeader> RolledPlan::HeaderFor(uint64_t bytes) const {
  const Result<Payload> payload = MakePayload(bytes, header.payload.block_bytes);
  if (!payload.ok()) return Rejected(payload.status().message());
  PlanHeader flat = header;
  flat.payload = *payload;
  if (payload->blocks < ready_blocks_min) flat.ready = {};
  if (payload->blocks < send_window_blocks_min) flat.send_window.reset();
  flat.rounds = RoundsFor(payload->blocks);
  return flat;
}

std::string Dump(const RolledPlan& plan) {
  std::string text = fmt::format(
      "{}, {} nodes, root {}, {} rounds of k blocks, ready {}{}\n", plan.header.algorithm,
      plan.header.nodes, plan.header.collective.root.value, ToString(plan.rounds),
      ToString(plan.header.ready),
      plan.ready_blocks_min == 1 ? "" : fmt::format(" from {} blocks on", plan.ready_blocks_min));
  for (const RolledProgram& program : plan.programs) {
    text += fmt::format("node {}\n", program.node.value);
    for (const Segment& segment : program.segments) text += DumpSegment(segment);
  }
  return text;
}

Status CheckRolled(const RolledPlan& plan) {
  if (plan.header.nodes == 0 || plan.header.nodes > kNodesMax) {
    return Rejected(fmt::format("a plan has 1 to {} nodes, found {}", kNodesMax, plan.header.nodes),
                    "/nodes");
  }
  if (plan.header.collective.kind != CollectiveKind::kMulticast ||
      plan.header.collective.helpers != 0)
    return Rejected("rolled plans are of multicasts without helpers", "/collective");
  if (plan.header.collective.root.value >= plan.header.nodes) {
    return Rejected(fmt::format("root {} is out of range, the nodes are 0 to {}",
                                plan.header.collective.root.value, plan.header.nodes - 1),
                    "/root");
  }
  if (const Status status = MakePayload(0, plan.header.payload.block_bytes).status(); !status.ok())
    return Rejected(status.message(), "/message" + status.where());
  if ((plan.header.ready.mode == ReadyMode::kWindow) != (plan.header.ready.window != 0)) {
    return Rejected("mode window has a window of at least 1, other modes have none",
                    "/ready/window");
  }
  if (plan.header.send_window == 0u) {
    return Rejected("a send window is at least 1, found 0", "/send_window");
  }
  PREPOST_RETURN_IF_ERROR(CheckLinear(plan.rounds, "/rounds"));
  if (plan.programs.empty()) return Rejected("there is no program", "/programs");
  std::set<NodeId> seen;
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    const RolledProgram& program = plan.programs[i];
    const std::string where = fmt::format("/programs/{}", i);
    if (program.node.value >= plan.header.nodes) {
      return Rejected(fmt::format("node {} is out of range, the nodes are 0 to {}",
                                  program.node.value, plan.header.nodes - 1),
                      where + "/node");
    }
    if (!seen.insert(program.node).second) {
      return Rejected(fmt::format("node {} is there twice", program.node.value), where + "/node");
    }
    PREPOST_RETURN_IF_ERROR(ProgramCheck(plan, program, where).Run());
  }
  return {};
}

RolledRounds::RolledRounds(const RolledProgram& program, uint32_t blocks)
    : program_(&program), last_block_(int64_t{blocks} - 1) {
  for (const Segment& segment : program.segments) {
    if (blocks < segment.blocks_min || blocks > segment.blocks_max) continue;
    // Rounds fit 32 bits (Extent); a segment that says otherwise is cut, and the verifier sees it.
    const int64_t from = std::clamp<int64_t>(segment.from.At(blocks), 0, UINT32_MAX);
    const int64_t to = std::clamp<int64_t>(segment.to.At(blocks), 0, UINT32_MAX);
    if (from >= to) continue;
    Live live{.from = from,
              .to = to,
              .phase = Modulo(segment.phase.At(blocks), static_cast<int64_t>(segment.slots.size())),
              .segment = &segment,
              .send_offset = {},
              .recv_offset = {}};
    for (const RolledSlot& slot : segment.slots) {
      live.send_offset.push_back(slot.send ? slot.send->offset.At(blocks) : 0);
      live.recv_offset.push_back(slot.recv ? slot.recv->offset.At(blocks) : 0);
    }
    live_.push_back(std::move(live));
  }
  std::ranges::stable_sort(live_, {}, &Live::from);
  int64_t end = 0;
  for (const Live& live : live_) {
    overlaps_ |= live.from < end;
    end = std::max(end, live.to);
  }
  FindStretches();
}

void RolledRounds::FindStretches() {
  std::vector<Stretch> all;
  for (const Live& live : live_) {
    const size_t period = live.segment->slots.size();
    const auto add = [&](const Turns& turns) {
      if (turns.count == 0) return;
      const auto steps = static_cast<int64_t>((turns.count - 1) * period);
      all.push_back({.from = turns.first, .to = turns.first + steps + 1});
    };
    for (size_t slot = 0; slot < period; ++slot) {
      const auto& [send, recv] = live.segment->slots[slot];
      if (send) add(TurnsOf(live, slot, live.send_offset[slot]));
      if (recv) add(TurnsOf(live, slot, live.recv_offset[slot]));
    }
  }
  std::ranges::sort(all, {}, &Stretch::from);
  for (const Stretch& stretch : all) {
    if (stretches_.empty() || stretch.from > stretches_.back().to) {
      stretches_.push_back(stretch);
    } else {
      stretches_.back().to = std::max(stretches_.back().to, stretch.to);
    }
  }
  if (stretches_.empty()) return;
  begin_ = static_cast<uint32_t>(stretches_.front().from);
  end_ = static_cast<uint32_t>(stretches_.back().to);
  for (const Stretch& stretch : stretches_)
    active_ += static_cast<uint64_t>(stretch.to - stretch.from);
}

uint32_t RolledRounds::Next(uint32_t round) const {
  for (auto stretch = std::ranges::upper_bound(stretches_, int64_t{round}, {}, &Stretch::to);
       stretch != stretches_.end(); ++stretch) {
    round = std::max(round, static_cast<uint32_t>(stretch->from));
    while (round < stretch->to) {
      const Live* const live = At(round);
      if (live == nullptr) {
        ++round;
        continue;
      }
      const std::vector<RolledSlot>& slots = live->segment->slots;
      const int64_t end = std::min(stretch->to, live->to);
      for (size_t slot = SlotOf(*live, round); round < end; ++round) {
        if (slots[slot].send || slots[slot].recv) return round;
        slot = slot + 1 == slots.size() ? 0 : slot + 1;
      }
    }
  }
  return end_;
}

Status RolledRounds::Check(uint32_t rounds) const {
  const std::string node = fmt::format("node {}", program_->node.value);
  if (overlaps_) return Rejected(node + " has segments that overlap");
  const auto blocks = static_cast<uint64_t>(last_block_ + 1);
  for (const PeerTransfers& total : Totals()) {
    if (total.blocks <= blocks) continue;
    return Rejected(fmt::format("{} {} node {} {} blocks of {}", node,
                                total.outgoing ? "sends to" : "receives from", total.peer.value,
                                total.blocks, blocks));
  }
  if (end_ <= rounds) return {};
  return Rejected(
      fmt::format("{} has a transfer in round {}, the plan has {} rounds", node, end_ - 1, rounds));
}

const RolledRounds::Live* RolledRounds::At(uint32_t round) const {
  if (live_.empty()) return nullptr;
  auto after = std::ranges::upper_bound(live_, int64_t{round}, {}, &Live::from);
  if (after == live_.begin()) return nullptr;
  const Live& live = *--after;
  return round < live.to ? &live : nullptr;
}

size_t RolledRounds::SlotOf(const Live& live, uint32_t round) const {
  return static_cast<size_t>((round + live.phase) %
                             static_cast<int64_t>(live.segment->slots.size()));
}

std::optional<RoundTransfer> RolledRounds::Resolve(const Live& live,
                                                   const std::optional<RolledTransfer>& transfer,
                                                   int64_t offset, uint32_t round) const {
  if (!transfer) return std::nullopt;
  int64_t block = round + offset;
  if (live.segment->rounds_per_block != 1) {
    block = FloorDivide(block, live.segment->rounds_per_block);
  }
  if (block < 0 || (block > last_block_ && !live.segment->clamps)) return std::nullopt;
  return RoundTransfer{.peer = transfer->peer,
                       .block = static_cast<uint32_t>(std::min(block, last_block_))};
}

std::optional<RoundTransfer> RolledRounds::Outgoing(uint32_t round) const {
  const Live* live = At(round);
  if (live == nullptr) return std::nullopt;
  const size_t slot = SlotOf(*live, round);
  return Resolve(*live, live->segment->slots[slot].send, live->send_offset[slot], round);
}

std::optional<RoundTransfer> RolledRounds::Incoming(uint32_t round) const {
  const Live* live = At(round);
  if (live == nullptr) return std::nullopt;
  const size_t slot = SlotOf(*live, round);
  return Resolve(*live, live->segment->slots[slot].recv, live->recv_offset[slot], round);
}

std::string RolledRounds::PlaceOf(uint32_t round, bool outgoing) const {
  const Live* live = At(round);
  if (live == nullptr) return "";
  return fmt::format("/segments/{}/slots/{}/{}", live->segment - program_->segments.data(),
                     SlotOf(*live, round), outgoing ? "send" : "recv");
}

/// When `slot` plays a block, of a transfer with `offset`. Blocks rise with the rounds, so that
/// those that count are rounds in a row.
RolledRounds::Turns RolledRounds::TurnsOf(const Live& live, size_t slot, int64_t offset) const {
  const auto period = static_cast<int64_t>(live.segment->slots.size());
  const int64_t from = std::max(live.from, -offset);
  const int64_t to =
      live.segment->clamps
          ? live.to
          : std::min(live.to, (last_block_ + 1) * live.segment->rounds_per_block - offset);
  const int64_t first = from + Modulo(static_cast<int64_t>(slot) - live.phase - from, period);
  if (first >= to) return {};
  return {.first = first, .count = static_cast<uint64_t>((to - 1 - first) / period + 1)};
}

std::vector<PeerTransfers> RolledRounds::Totals() const {
  std::map<std::pair<NodeId, bool>, uint64_t> blocks;
  for (const Live& live : live_) {
    for (size_t slot = 0; slot < live.segment->slots.size(); ++slot) {
      const auto& [send, recv] = live.segment->slots[slot];
      if (recv) blocks[{recv->peer, false}] += TurnsOf(live, slot, live.recv_offset[slot]).count;
      if (send) blocks[{send->peer, true}] += TurnsOf(live, slot, live.send_offset[slot]).count;
    }
  }
  std::vector<PeerTransfers> totals;
  for (const auto& [key, count] : blocks) {
    if (count != 0) totals.push_back({.peer = key.first, .outgoing = key.second, .blocks = count});
  }
  return totals;
}

}  // namespace prepost
