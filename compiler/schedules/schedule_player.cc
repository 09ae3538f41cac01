// SPDX-License-Identifier: Apache-2.0
//
// A non-root node's send of a block names that block's receive in its `after`.
//
// A schedule of ours is right; a rolled program from a file may be anything. What it says is then
// written down as it is, for the verifier to judge: a send of a block that has not come has nothing
// in its `after`, a receive that nobody sends gets a channel of its own behind the others.
#include "compiler/schedules/schedule_player.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "ir/planned_transfers.h"

namespace prepost {
namespace {

constexpr OpId kNotReceived = OpId(0xffffffff);

/// A channel for every pair that the schedule uses.
std::vector<Channel> SentOn(uint32_t nodes, const NodeSource& source) {
  ChannelList channels;
  for (uint32_t node = 0; node < nodes; ++node) {
    const std::unique_ptr<NodeSchedule> part = source(NodeId(node));
    const RoundRange rounds = part->ActiveRounds();
    for (uint32_t round = rounds.begin; round < rounds.end; ++round) {
      if (const std::optional<Transfer> out = part->Outgoing(round))
        channels.Add({.from = NodeId(node), .to = NodeId(out->peer)});
    }
  }
  return std::move(channels).Take();
}

}  // namespace

Result<Plan> PlaySchedule(PlanHeader header, const NodeSource& source) {
  const uint32_t nodes = header.nodes, blocks = header.payload.blocks;
  const Roles roles = header.roles();
  const size_t transfers = size_t{blocks} * (nodes - 1);
  // A right plan has 2 * transfers; one that has far more is not written down to its end.
  const size_t ops_max = 4 * transfers + nodes;
  TransferWriter writer(std::move(header), SentOn(nodes, source), transfers);
  size_t ops = 0;
  std::vector<OpId> received;  // block -> its receive, of the node in hand
  for (uint32_t node = 0; node < nodes; ++node) {
    writer.BeginProgram(node);
    received.assign(blocks, kNotReceived);
    const std::unique_ptr<NodeSchedule> part = source(NodeId(node));
    const RoundRange rounds = part->ActiveRounds();
    for (uint32_t round = rounds.begin; round < rounds.end; ++round) {
      const std::optional<Transfer> in = part->Incoming(round);
      const std::optional<Transfer> out = part->Outgoing(round);
      ops += (in ? 1u : 0u) + (out ? 1u : 0u);
      if (ops > ops_max) {
        return Rejected(
            fmt::format("node {} is the first with which there are more than {} ops "
                        "for {} blocks to {} nodes",
                        node, ops_max, blocks, nodes - 1));
      }
      const auto add_recv = [&] {
        received[in->block] =
            writer.Add({.round = round, .from = in->peer, .to = node, .block = in->block});
      };
      const bool is_in_first = in && in->peer < node;  // by (from, to)
      if (is_in_first) add_recv();
      if (out) {
        const OpId& before = received[out->block];
        const bool has_it = roles.Contributes(NodeId(node), out->block);
        const bool waits = !has_it && before != kNotReceived;
        writer.Add({.round = round, .from = node, .to = out->peer, .block = out->block},
                   std::span(&before, waits ? 1 : 0));
      }
      if (in && !is_in_first) add_recv();
    }
  }
  return std::move(writer).Build();
}

}  // namespace prepost
