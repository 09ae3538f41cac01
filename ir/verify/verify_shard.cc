// SPDX-License-Identifier: Apache-2.0
//
// The shard is checked as a plan in which all peers do just what the node expects of them: to each
// of its ops there is the other half, of the same block and round, in the same order. Then sends
// and receives match, and the rules that Verify() applies can be applied; what they find at the
// peers is left out, since nothing is known of what those do besides. A credit that the node
// receives grants what its mode says: one receive, or all.
//
// Example: node 1 of a chain 0, 1, 2 has [recv 0>1:0, send 1>2:0 after 0]; checked is the plan with
// [send 0>1:0] at node 0 and [recv 1>2:0] at node 2. Cost: that of Verify() for twice the ops.
#include "ir/verify/verify_shard.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "ir/op_rules.h"
#include "ir/verify/rules.h"

namespace prepost {
namespace {

class ExpectedPlan {
 public:
  ExpectedPlan(const PlanIndex& index, const PlanShard& shard)
      : shard_(shard), ready_(index.header.ready), builder_(index.header) {
    // As if the last round were the node's; the caller compares it with the plan's.
    uint32_t& rounds = builder_.header().rounds;
    rounds = 0;
    for (const Op& op : shard.part.ops()) rounds = std::max(rounds, op.round + 1);
  }

  Plan Make() && {
    for (const PlacedChannel& placed : shard_.channels) builder_.AddChannel(placed.channel);
    FindPeers();
    auto next = peer_ops_.begin();
    for (uint32_t node = 0; node < builder_.header().nodes; ++node) {
      builder_.BeginProgram(NodeId(node));
      if (NodeId(node) == shard_.node) AddOwn();
      for (; next != peer_ops_.end() && next->first == NodeId(node); ++next)
        AddExpected(shard_.part.ops()[next->second]);
    }
    return std::move(builder_).Build();
  }

 private:
  ChannelId Local(const Op& op) const { return LocalChannel(shard_, op.channel); }
  const Channel& ChannelOf(const Op& op) const {
    return shard_.channels[Local(op).index()].channel;
  }

  void FindPeers() {
    const std::span<const Op> ops = shard_.part.ops();
    for (uint32_t i = 0; i < ops.size(); ++i) {
      const Channel& channel = ChannelOf(ops[i]);
      peer_ops_.emplace_back(channel.from == shard_.node ? channel.to : channel.from, i);
      if (ops[i].is_send() && !ops[i].is_credit()) ++block_sends_[channel.to];
    }
    std::ranges::sort(peer_ops_);
  }

  void AddOwn() {
    for (const Op& op : shard_.part.ops()) {
      Op own = op;
      own.channel = Local(op);
      builder_.AddOp(own, shard_.part.after(op));
    }
  }

  /// The other half of the node's `op`.
  void AddExpected(const Op& op) {
    const bool is_send = !op.is_send();
    builder_.AddOp({.channel = Local(op),
                    .block = op.block,
                    .count = op.count,
                    .round = op.round,
                    .grants = is_send && op.is_credit() ? GrantsOf(ChannelOf(op)) : 0,
                    .kind = is_send ? OpKind::kSend : OpKind::kRecv});
  }

  /// What a credit on `credits` to the node grants: receives of what the node sends.
  uint32_t GrantsOf(const Channel& credits) const {
    const auto sends = block_sends_.find(credits.from);
    return sends == block_sends_.end() ? 1 : prepost::GrantsOf(ready_, sends->second);
  }

  const PlanShard& shard_;
  const Ready ready_;
  PlanBuilder builder_;
  std::vector<std::pair<NodeId, uint32_t>> peer_ops_;  // peer, own op
  std::map<NodeId, uint32_t> block_sends_;             // peer, of the node to it
};

}  // namespace

Verdict VerifyShard(const PlanIndex& index, const PlanShard& shard) {
  const VerifyOptions options;
  const Plan plan = ExpectedPlan(index, shard).Make();
  Findings findings(options.diagnostics_max, shard.node.value);
  if (plan.header().rounds > index.header.rounds) {
    findings.Add(Place::Header("rounds"), Rule::kRounds, [&] {
      return "round " + std::to_string(plan.header().rounds - 1) + " of node " +
             std::to_string(shard.node.value) + " is behind the last";
    });
  }
  CheckShape(plan, &findings);
  if (findings.count() != 0) return std::move(findings).Take();
  const MessageTable messages(plan);
  const CreditTable credits(plan, messages);
  const MatchedPlan matched{
      .plan = plan, .messages = messages, .credits = credits, .options = options};
  if (!Combines(plan.header().collective.kind)) CheckReceipts(plan, &findings);
  CheckReady(matched, &findings);
  CheckRounds(matched, &findings);
  CheckLocalOrders(plan, &matched, &findings);
  return std::move(findings).Take();
}

}  // namespace prepost
