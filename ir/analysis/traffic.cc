// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/traffic.h"

#include <algorithm>
#include <tuple>

namespace prepost {
namespace {

/// Adds the queue pairs: the distinct (node, peer, lane) of channels that carry something.
void CountQueuePairs(const PlanTables& tables, Traffic* traffic) {
  using Pair = std::tuple<NodeId, NodeId, Lane>;  // smaller node, larger node, lane
  std::vector<Pair> pairs;
  for (uint32_t c = 0; c < tables.plan().channels().size(); ++c) {
    const ChannelId id(c);
    if (tables.messages().ChannelBegin(id) == tables.messages().ChannelEnd(id)) continue;
    const Channel& channel = tables.plan().channels()[c];
    pairs.emplace_back(std::min(channel.from, channel.to), std::max(channel.from, channel.to),
                       channel.lane);
  }
  std::ranges::sort(pairs);
  const auto repeated = std::ranges::unique(pairs);
  pairs.erase(repeated.begin(), repeated.end());
  for (const auto& [a, b, lane] : pairs) {
    ++traffic->nodes[a.index()].queue_pairs;
    ++traffic->nodes[b.index()].queue_pairs;
  }
}

/// Adds the peers: the distinct (from, to) of channels that carry blocks.
void CountPeers(const PlanTables& tables, Traffic* traffic) {
  std::vector<std::pair<NodeId, NodeId>> links;
  for (uint32_t c = 0; c < traffic->channel_blocks.size(); ++c) {
    const Channel& channel = tables.plan().channels()[c];
    if (traffic->channel_blocks[c] != 0) links.emplace_back(channel.from, channel.to);
  }
  std::ranges::sort(links);
  const auto repeated = std::ranges::unique(links);
  links.erase(repeated.begin(), repeated.end());
  for (const auto& [from, to] : links) {
    ++traffic->nodes[from.index()].peers_out;
    ++traffic->nodes[to.index()].peers_in;
  }
}

/// How many of `count` blocks from `first` on have no bytes. Of parts that are all the same none
/// counts: one that is empty has one block, which stands for it.
uint64_t EmptyBlocksOf(const Payload& payload, uint32_t first, uint32_t count) {
  if (!payload.is_uneven()) return 0;
  uint64_t empty = 0;
  for (uint32_t i = 0; i < count; ++i) empty += payload.BlockSize(first + i) == 0 ? 1u : 0u;
  return empty;
}

}  // namespace

Traffic MeasureTraffic(const PlanTables& tables) {
  const Plan& plan = tables.plan();
  Traffic traffic;
  traffic.nodes.resize(plan.header().nodes);
  traffic.channel_blocks.assign(plan.channels().size(), 0);
  traffic.channel_bytes.assign(plan.channels().size(), 0);
  for (const Program& program : plan.programs()) {
    traffic.nodes[program.node.index()].ops = program.op_count;
  }
  for (uint32_t m = 0; m < tables.messages().size(); ++m) {
    const Op& send = tables.SendOf(m);
    if (send.is_credit()) {
      ++traffic.credits;
      continue;
    }
    const uint64_t bytes = plan.header().payload.RangeSize(send.block, send.count);
    ++traffic.messages;
    traffic.blocks += send.count;
    traffic.empty_blocks += EmptyBlocksOf(plan.header().payload, send.block, send.count);
    traffic.channel_blocks[send.channel.index()] += send.count;
    traffic.channel_bytes[send.channel.index()] += bytes;
    NodeTraffic& receiver = traffic.nodes[tables.ChannelOf(m).to.index()];
    receiver.last_round = std::max(receiver.last_round.value_or(0), send.round);
    if (!plan.ops()[tables.messages().recv(m)].is_combine()) continue;
    receiver.combined_blocks += send.count;
    receiver.combined_bytes += bytes;
  }
  CountQueuePairs(tables, &traffic);
  CountPeers(tables, &traffic);
  return traffic;
}

}  // namespace prepost
