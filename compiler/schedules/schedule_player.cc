// SPDX-License-Identifier: Apache-2.0
//
// Ops stand in the plan's one global order of messages: by round, then (from, to, lane, block), so
// that an op's id gives its place in that order at every node. A non-root node's send of a block
// names that block's receive in its `after`. Channels are numbered by (from, to).
//
// A schedule of ours is right; a rolled program from a file may be anything. What it says is then
// written down as it is, for the verifier to judge: a send of a block that has not come has nothing
// in its `after`, a receive that nobody sends gets a channel of its own behind the others.
#include "compiler/schedules/schedule_player.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace prepost {
namespace {

constexpr OpId kNotReceived = OpId(0xffffffff);

class SchedulePlayer {
 public:
  SchedulePlayer(PlanHeader header, const NodeSource& source)
      : source_(source),
        nodes_(header.nodes),
        blocks_(header.payload.blocks),
        collective_(header.collective),
        builder_(std::move(header)) {
    builder_.header().ready = {};
    builder_.header().send_window.reset();
    builder_.header().rounds = 0;
  }

  Result<Plan> Run() {
    AddChannels();
    const size_t transfers = size_t{blocks_} * (nodes_ - 1);
    builder_.Reserve(2 * transfers, transfers);
    // A right plan has 2 * transfers; one that has far more is not written down to its end.
    ops_left_ = 4 * transfers + nodes_;
    for (uint32_t node = 0; node < nodes_; ++node) {
      if (!AddProgram(NodeId(node))) {
        return Rejected(
            fmt::format("node {} is the first with which there are more than {} ops "
                        "for {} blocks to {} nodes",
                        node, 4 * transfers + nodes_, blocks_, nodes_ - 1));
      }
    }
    return std::move(builder_).Build();
  }

 private:
  /// A channel for every pair that the schedule uses, by sender and then receiver.
  void AddChannels() {
    channel_begin_.push_back(0);
    std::vector<uint32_t> targets;
    for (uint32_t node = 0; node < nodes_; ++node) {
      const std::unique_ptr<NodeSchedule> part = source_(NodeId(node));
      const RoundRange rounds = part->ActiveRounds();
      targets.clear();
      size_t compact_at = kTargetsCompact;
      for (uint32_t round = rounds.begin; round < rounds.end; ++round) {
        const std::optional<Transfer> out = part->Outgoing(round);
        if (!out) continue;
        // Most schedules come back to the same few peers: keep the list short as it grows.
        if (targets.empty() || targets.back() != out->peer) targets.push_back(out->peer);
        if (targets.size() >= compact_at) {
          Compact(targets);
          compact_at = std::max(compact_at, 2 * targets.size());
        }
      }
      Compact(targets);
      for (uint32_t target : targets) {
        builder_.AddChannel({.from = NodeId(node), .to = NodeId(target), .lane = Lane::kBlocks});
        channel_target_.push_back(target);
      }
      channel_begin_.push_back(static_cast<uint32_t>(channel_target_.size()));
    }
  }
  static void Compact(std::vector<uint32_t>& targets) {
    std::ranges::sort(targets);
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  }

  ChannelId ChannelBetween(NodeId from, NodeId to) {
    const auto begin = channel_target_.begin() + channel_begin_[from.index()];
    const auto end = channel_target_.begin() + channel_begin_[from.index() + 1];
    const auto place = std::lower_bound(begin, end, to.value);
    if (place != end && *place == to.value) {
      return ChannelId(static_cast<uint32_t>(place - channel_target_.begin()));
    }
    const auto [unsent, is_new] = unsent_.try_emplace({from, to});
    if (is_new) {
      unsent->second = builder_.AddChannel({.from = from, .to = to, .lane = Lane::kBlocks});
    }
    return unsent->second;
  }

  /// False when there are too many ops.
  bool AddProgram(NodeId node) {
    builder_.BeginProgram(node);
    received_.assign(blocks_, kNotReceived);
    const std::unique_ptr<NodeSchedule> part = source_(node);
    const RoundRange rounds = part->ActiveRounds();
    for (uint32_t round = rounds.begin; round < rounds.end; ++round) {
      const std::optional<Transfer> in = part->Incoming(round);
      const std::optional<Transfer> out = part->Outgoing(round);
      const size_t ops = (in ? 1 : 0) + (out ? 1 : 0);
      if (ops == 0) continue;
      if (ops > ops_left_) return false;
      ops_left_ -= ops;
      builder_.header().rounds = std::max(builder_.header().rounds, round + 1);
      const bool is_in_first = in && in->peer < node.value;  // by (from, to)
      if (in && is_in_first) AddRecv(node, *in, round);
      if (out) AddSend(node, *out, round);
      if (in && !is_in_first) AddRecv(node, *in, round);
    }
    return true;
  }

  void AddRecv(NodeId node, const Transfer& transfer, uint32_t round) {
    received_[transfer.block] =
        builder_.AddOp({.channel = ChannelBetween(NodeId(transfer.peer), node),
                        .block = transfer.block,
                        .round = round,
                        .kind = OpKind::kRecv});
  }

  void AddSend(NodeId node, const Transfer& transfer, uint32_t round) {
    const Op send{.channel = ChannelBetween(node, NodeId(transfer.peer)),
                  .block = transfer.block,
                  .round = round,
                  .kind = OpKind::kSend};
    const OpId& received = received_[transfer.block];
    const bool waits = !collective_.Contributes(node, transfer.block) && received != kNotReceived;
    builder_.AddOp(send, std::span(&received, waits ? 1 : 0));
  }

  static constexpr size_t kTargetsCompact = 4096;

  const NodeSource& source_;
  const uint32_t nodes_;
  const uint32_t blocks_;
  const Collective collective_;
  PlanBuilder builder_;
  size_t ops_left_ = 0;
  std::vector<uint32_t> channel_begin_;                    // node -> its first channel
  std::vector<uint32_t> channel_target_;                   // channel -> to
  std::map<std::pair<NodeId, NodeId>, ChannelId> unsent_;  // channels that nobody sends on
  std::vector<OpId> received_;  // block -> its receive, of the node in hand
};

}  // namespace

Result<Plan> PlaySchedule(PlanHeader header, const NodeSource& source) {
  return SchedulePlayer(std::move(header), source).Run();
}

}  // namespace prepost
