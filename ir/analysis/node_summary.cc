// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/node_summary.h"

#include <algorithm>
#include <limits>
#include <map>

namespace prepost {
namespace {

std::vector<PeerBlocks> Sorted(const std::map<NodeId, uint32_t>& blocks) {
  std::vector<PeerBlocks> peers;
  for (const auto& [peer, count] : blocks) peers.push_back({.peer = peer, .blocks = count});
  std::ranges::stable_sort(peers, std::greater(), &PeerBlocks::blocks);
  return peers;
}

}  // namespace

NodeSummary Summarise(const PlanTables& tables, const EventTimes& times, NodeId node) {
  const Program& program = tables.ProgramOf(node);
  NodeSummary summary = {.node = node, .ops = program.op_count};
  std::map<NodeId, uint32_t> from, to;
  uint64_t slack_min = std::numeric_limits<uint64_t>::max();
  for (uint32_t i = 0; i < program.op_count; ++i) {
    const Op& op = tables.plan().ops(program)[i];
    if (op.is_credit()) {
      ++(op.is_send() ? summary.credits_out : summary.credits_in);
      continue;
    }
    const uint32_t message = tables.messages().MessageOf(program.op_begin + i);
    const Channel& channel = tables.ChannelOf(message);
    ++(op.is_send() ? summary.blocks_out : summary.blocks_in);
    ++(op.is_send() ? to[channel.to] : from[channel.from]);
    const uint64_t slack = times.SlackOf(message);
    slack_min = std::min(slack_min, slack);
    summary.slack_max = std::max(summary.slack_max, slack);
    if (slack == 0) summary.critical.push_back(OpId(i));
    if (op.is_send()) continue;
    const uint64_t delivery = times.DeliveryOf(message);
    std::optional<uint32_t>& first = summary.first_message;
    std::optional<uint32_t>& last = summary.last_message;
    if (!first || delivery < times.DeliveryOf(*first)) first = message;
    if (!last || delivery >= times.DeliveryOf(*last)) last = message;
  }
  if (!from.empty() || !to.empty()) summary.slack_min = slack_min;
  summary.from = Sorted(from);
  summary.to = Sorted(to);
  return summary;
}

}  // namespace prepost
