// SPDX-License-Identifier: Apache-2.0
//
// Round by round the stream gives its node's transfers to OpRules, by (from, to) as the plan has
// them; a send comes after its node's receive of the block.
//
// What an op comes after may be any number of ops back: a node of a binomial tree sends a block
// only when it has all of them, and a window may be as large as the message. The stream remembers
// only the last look_ahead receives and sends. That loses nothing: whoever plays it holds
// look_ahead ops at once, and takes op i when all up to i - look_ahead have completed. What is not
// remembered is further back than that, because a receive or send is an op, so it has completed.
//
// Receives are looked up by block: `head_` has, by the block's last bits, the newest receive, and
// each receive the one before with the same bits.
//
// That a player takes ops in the order of their ids and only so far ahead adds an order, "op i
// after op i - look_ahead", to the plan's. It keeps the plan free of cycles: ids follow the one
// global order of messages (round, credits first, from, to), in which every other edge goes forward
// too.
//
// Chain of 3 nodes, window=1, node 1, the first two rounds (look_ahead 4):
//     round 0: op 0 send credit 1>0            op 1 recv 0>1:0
//     round 1: op 2 send credit 1>0 after 1    op 3 recv credit 2>1
//              op 4 recv 0>1:1                 op 5 send 1>2:0 after 3
// The flat plan has "after 1,3": op 1 is 4 ops back.
#include "ir/rolled/rolled_play.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "ir/op_rules.h"
#include "ir/planned_transfers.h"

namespace prepost {
namespace {

/// The receives among the last `capacity` given ops, by block.
class RecentReceives {
 public:
  explicit RecentReceives(size_t capacity) : entries_(capacity), head_(capacity, kNever) {}

  void Add(uint32_t block, uint64_t number) {
    uint64_t& head = head_[block & mask()];
    entries_[number & mask()] = {.block = block, .before = std::exchange(head, number)};
  }
  /// The last receive of `block`, if it is less than `capacity` before op `number`.
  std::optional<uint64_t> Find(uint32_t block, uint64_t number) const {
    uint64_t found = head_[block & mask()];
    while (found != kNever && number - found < entries_.size()) {
      const Entry& entry = entries_[found & mask()];
      if (entry.block == block) return found;
      found = entry.before;
    }
    return std::nullopt;
  }

 private:
  static constexpr uint64_t kNever = UINT64_MAX;
  struct Entry {
    uint32_t block = 0;
    uint64_t before = kNever;  // the receive before with the same bits
  };
  uint64_t mask() const { return entries_.size() - 1; }

  std::vector<Entry> entries_;
  std::vector<uint64_t> head_;
};

/// Block channels of an outline; each one's credit channel is as far behind the last of them.
std::span<const Channel> BlockChannels(const Plan& outline) {
  const std::span<const Channel> all = outline.channels();
  return outline.header().ready.has_credits() ? all.first(all.size() / 2) : all;
}

Channel ChannelTo(const PeerTransfers& peer, NodeId node) {
  return peer.outgoing ? Channel{.from = node, .to = peer.peer}
                       : Channel{.from = peer.peer, .to = node};
}

ChannelId FindChannelTo(const PeerTransfers& peer, NodeId node, const Plan& outline) {
  const std::span<const Channel> channels = BlockChannels(outline);
  const Channel wanted = ChannelTo(peer, node);
  const auto found = std::ranges::lower_bound(channels, wanted);
  PREPOST_CHECK(found != channels.end() && (*found <=> wanted) == 0);
  return ChannelId::FromIndex(static_cast<size_t>(found - channels.begin()));
}

class RolledOpStream final : public OpStream {
 public:
  RolledOpStream(const RolledProgram& program, const Plan& outline, size_t look_ahead)
      : OpStream(look_ahead, look_ahead * kAfterMax),
        node_(program.node),
        roles_(outline.header().roles()),
        rounds_(program, outline.header().payload.blocks),
        round_(rounds_.begin()),
        receives_(look_ahead),
        rules_(BlockChannels(outline), outline.header().ready, outline.header().send_window,
               look_ahead, look_ahead,
               [this](const Op& op, std::span<const OpId> after) { Add(op, after); }) {
    made_.reserve(kOpsMax);
    made_after_.reserve(kOpsMax * kAfterMax);
    for (const PeerTransfers& total : rounds_.Totals()) {
      peers_.push_back({.key = {total.peer, total.outgoing},
                        .channel = FindChannelTo(total, node_, outline),
                        .ungranted = static_cast<uint32_t>(total.blocks)});
    }
  }

  bool Next() override {
    while (taken_ == made_.size()) {
      round_ = rounds_.Next(round_);
      if (round_ >= rounds_.end()) return false;
      Make(round_++);
    }
    op_ = made_[taken_++];
    after_ = std::span(made_after_).subspan(op_.after_begin, op_.after_count);
    return true;
  }

 private:
  static constexpr size_t kAfterMax = 3;  // the block, its credit, the send window
  static constexpr size_t kOpsMax = 4;    // of a round: a send, a receive, and their credits

  /// A peer's channel in one direction.
  struct Peer {
    std::pair<NodeId, bool> key;  // peer, outgoing
    ChannelId channel;
    uint32_t ungranted = 0;
  };

  /// The ops of `round` into made_.
  void Make(uint32_t round) {
    taken_ = 0;
    made_.clear();
    made_after_.clear();
    const std::optional<RoundTransfer> out = rounds_.Outgoing(round);
    const std::optional<RoundTransfer> in = rounds_.Incoming(round);
    std::array<GivenOp, 2> given;
    size_t count = 0;
    const bool is_in_first = in && in->peer < node_;
    if (in && is_in_first) given[count++] = Give(*in, OpKind::kRecv, round);
    if (out) given[count++] = Give(*out, OpKind::kSend, round);
    if (in && !is_in_first) given[count++] = Give(*in, OpKind::kRecv, round);
    rules_.AddRound(std::span(given).first(count));
  }

  GivenOp Give(const RoundTransfer& it, OpKind kind, uint32_t round) {
    const std::pair key(it.peer, kind == OpKind::kSend);
    const auto peer = std::ranges::lower_bound(peers_, key, {}, &Peer::key);
    PREPOST_CHECK(peer != peers_.end() && peer->key == key);
    GivenOp given{.op = {.channel = peer->channel, .block = it.block, .round = round, .kind = kind},
                  .ungranted = &peer->ungranted};
    if (kind == OpKind::kRecv) {
      receives_.Add(it.block, given_);
    } else if (!roles_.Contributes(node_, it.block)) {
      const std::optional<uint64_t> received = receives_.Find(it.block, given_);
      received_ = OpId::FromIndex(received.value_or(0));
      given.after = std::span(&received_, received ? 1 : 0);
    }
    ++given_;
    return given;
  }

  void Add(Op op, std::span<const OpId> after) {
    op.after_begin = static_cast<uint32_t>(made_after_.size());
    op.after_count = static_cast<uint32_t>(after.size());
    made_after_.insert(made_after_.end(), after.begin(), after.end());
    made_.push_back(op);
  }

  const NodeId node_;
  const Roles roles_;
  const RolledRounds rounds_;
  uint32_t round_;
  std::vector<Peer> peers_;       // by key
  uint64_t given_ = 0;            // transfers given to rules_
  RecentReceives receives_;       // as given
  OpId received_;                 // of the send in hand: its block's receive, as given
  std::vector<Op> made_;          // the ops of the round in hand
  std::vector<OpId> made_after_;  // what they come after
  size_t taken_ = 0;              // of made_
  OpRules rules_;
};

/// The channels of `program` in a plan with `header`.
Status FindChannels(const RolledProgram& program, const PlanHeader& header, ChannelList& channels) {
  const RolledRounds rounds(program, header.payload.blocks);
  PREPOST_RETURN_IF_ERROR(rounds.Check(header.rounds));
  if (rounds.active() > kActiveRoundsMax) {
    return Rejected(fmt::format("node {} has {} rounds to go through, the limit is {}",
                                program.node.value, rounds.active(), kActiveRoundsMax));
  }
  for (const PeerTransfers& total : rounds.Totals()) channels.Add(ChannelTo(total, program.node));
  return {};
}

}  // namespace

Result<RolledPlay> RolledPlay::Make(const RolledPlan& plan, uint64_t bytes) {
  Result<PlanHeader> header = plan.HeaderFor(bytes);
  if (!header.ok()) return header.status();
  ChannelList channels;
  for (const RolledProgram& program : plan.programs)
    PREPOST_RETURN_IF_ERROR(FindChannels(program, *header, channels));
  PlanBuilder builder(*header);
  AddChannels(std::move(channels).Take(), header->ready, builder);
  return RolledPlay(plan, std::move(builder).Build());
}

bool RolledPlay::Has(NodeId node) const {
  return std::ranges::find(plan_->programs, node, &RolledProgram::node) != plan_->programs.end();
}

const RolledProgram& RolledPlay::ProgramOf(NodeId node) const {
  const auto found = std::ranges::find(plan_->programs, node, &RolledProgram::node);
  PREPOST_CHECK(found != plan_->programs.end());
  return *found;
}

std::vector<ChannelOps> RolledPlay::ChannelOpsOf(NodeId node) const {
  const PlanHeader& header = outline_.header();
  std::vector<ChannelOps> all;
  for (const PeerTransfers& total : RolledRounds(ProgramOf(node), header.payload.blocks).Totals()) {
    const auto blocks = static_cast<uint32_t>(total.blocks);
    const ChannelId channel = FindChannelTo(total, node, outline_);
    all.push_back({.channel = channel, .outgoing = total.outgoing, .ops = blocks});
    if (!header.ready.has_credits()) continue;
    all.push_back({.channel = CreditChannelOf(channel, BlockChannels(outline_).size()),
                   .outgoing = !total.outgoing,
                   .ops = blocks / GrantsOf(header.ready, blocks)});
  }
  std::ranges::sort(all, {}, &ChannelOps::channel);
  return all;
}

std::unique_ptr<OpStream> RolledPlay::OpsOf(NodeId node, size_t look_ahead) const {
  PREPOST_CHECK(std::has_single_bit(look_ahead));
  return std::make_unique<RolledOpStream>(ProgramOf(node), outline_, look_ahead);
}

}  // namespace prepost
