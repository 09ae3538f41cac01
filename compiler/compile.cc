// SPDX-License-Identifier: Apache-2.0
//
// A schedule, played for every node, becomes a plan without credits or windows; the passes add
// those.
//
// Ops stand in the plan's one global order of messages: by round, then (from, to, lane, block), so
// that an op's id tells its place in that order at every node. A non-root node's send of a block
// names that block's receive in its `after`. Channels are numbered by (from, to).
#include "prepost/compiler/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "prepost/compiler/node_order.h"
#include "prepost/compiler/pass_manager.h"
#include "prepost/compiler/schedule.h"
#include "prepost/version.h"

namespace prepost {
namespace {

/// Plays `schedule` for all nodes, each at its place in `order`.
class SchedulePlayer {
 public:
  SchedulePlayer(const Schedule& schedule, const PlanHeader& header, NodeOrder order)
      : schedule_(schedule),
        order_(std::move(order)),
        extent_{.nodes = header.nodes, .blocks = header.message.blocks, .racks = order_.rack_begin},
        root_(header.root.value),
        vertex_of_(header.nodes),
        builder_(header),
        received_(extent_.blocks) {
    for (uint32_t vertex = 0; vertex < extent_.nodes; ++vertex)
      vertex_of_[order_.node_at[vertex].value] = vertex;
  }

  Plan Run() {
    AddChannels();
    const size_t transfers = size_t{extent_.blocks} * (extent_.nodes - 1);
    builder_.Reserve(2 * transfers, transfers);
    for (uint32_t node = 0; node < extent_.nodes; ++node) AddProgram(node);
    return std::move(builder_).Build();
  }

 private:
  /// The schedule's node (its root is 0) for the plan's, and back.
  uint32_t ToSchedule(uint32_t node) const { return vertex_of_[node]; }
  uint32_t ToPlan(uint32_t vertex) const { return order_.node_at[vertex].value; }

  /// A channel for every pair that the schedule uses, by sender and then receiver.
  void AddChannels() {
    channel_begin_.push_back(0);
    std::vector<uint32_t> targets;
    for (uint32_t node = 0; node < extent_.nodes; ++node) {
      const std::unique_ptr<NodeSchedule> part = schedule_.ForNode(extent_, ToSchedule(node));
      const RoundRange rounds = part->ActiveRounds();
      targets.clear();
      size_t compact_at = kTargetsCompact;
      for (uint32_t round = rounds.begin; round < rounds.end; ++round) {
        const std::optional<Transfer> out = part->Outgoing(round);
        if (!out) continue;
        const uint32_t target = ToPlan(out->peer);
        // Most schedules come back to the same few peers: keep the list short as it grows.
        if (targets.empty() || targets.back() != target) targets.push_back(target);
        if (targets.size() >= compact_at) {
          Compact(targets);
          compact_at = std::max(compact_at, 2 * targets.size());
        }
      }
      Compact(targets);
      for (uint32_t target : targets) {
        builder_.AddChannel({.from = NodeId(node), .to = NodeId(target), .lane = kBlockLane});
        channel_target_.push_back(target);
      }
      channel_begin_.push_back(static_cast<uint32_t>(channel_target_.size()));
    }
  }
  static void Compact(std::vector<uint32_t>& targets) {
    std::ranges::sort(targets);
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  }

  ChannelId ChannelBetween(uint32_t from, uint32_t to) const {
    const auto begin = channel_target_.begin() + channel_begin_[from];
    const auto end = channel_target_.begin() + channel_begin_[from + 1];
    const auto place = std::lower_bound(begin, end, to);
    PREPOST_CHECK(place != end && *place == to);
    return ChannelId(static_cast<uint32_t>(place - channel_target_.begin()));
  }

  void AddProgram(uint32_t node) {
    builder_.BeginProgram(NodeId(node));
    const std::unique_ptr<NodeSchedule> part = schedule_.ForNode(extent_, ToSchedule(node));
    const RoundRange rounds = part->ActiveRounds();
    for (uint32_t round = rounds.begin; round < rounds.end; ++round) {
      const std::optional<Transfer> in = part->Incoming(round);
      const std::optional<Transfer> out = part->Outgoing(round);
      const bool is_in_first = in && ToPlan(in->peer) < node;  // by (from, to)
      if (in && is_in_first) AddRecv(node, *in, round);
      if (out) AddSend(node, *out, round);
      if (in && !is_in_first) AddRecv(node, *in, round);
    }
  }

  void AddRecv(uint32_t node, const Transfer& transfer, uint32_t round) {
    received_[transfer.block] =
        builder_.AddOp({.channel = ChannelBetween(ToPlan(transfer.peer), node),
                        .block = transfer.block,
                        .round = round,
                        .kind = OpKind::kRecv});
    NoteRound(round);
  }

  void AddSend(uint32_t node, const Transfer& transfer, uint32_t round) {
    const Op send{.channel = ChannelBetween(node, ToPlan(transfer.peer)),
                  .block = transfer.block,
                  .round = round,
                  .kind = OpKind::kSend};
    const size_t causes = node == root_ ? 0 : 1;
    builder_.AddOp(send, std::span(&received_[transfer.block], causes));
    NoteRound(round);
  }

  void NoteRound(uint32_t round) {
    builder_.header().rounds = std::max(builder_.header().rounds, round + 1);
  }

  static constexpr size_t kTargetsCompact = 4096;

  const Schedule& schedule_;
  const NodeOrder order_;
  const Extent extent_;
  const uint32_t root_;
  std::vector<uint32_t> vertex_of_;  // node -> its place in order_
  PlanBuilder builder_;
  std::vector<uint32_t> channel_begin_;   // node -> its first channel
  std::vector<uint32_t> channel_target_;  // channel -> to
  std::vector<OpId> received_;            // block -> its receive, of the node in hand
};

}  // namespace

Result<Plan> Compile(const Spec& spec, const CompileOptions& options) {
  PREPOST_RETURN_IF_ERROR(CheckSpec(spec));
  PlanHeader header{.generator = kGenerator,
                    .collective = "multicast",
                    .algorithm = spec.algorithm,
                    .nodes = spec.nodes,
                    .root = spec.root,
                    .message = *MakeMessage(*spec.message_bytes, spec.block_bytes)};
  PassManager passes(options);
  passes.Add(ReadyPass(spec.ready));
  passes.Add(SendWindowPass(spec.send_window));
  passes.Add(ReducePass());
  return passes.Run(SchedulePlayer(*FindSchedule(spec.algorithm), header, OrderNodes(spec)).Run());
}

}  // namespace prepost
