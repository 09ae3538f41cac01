// SPDX-License-Identifier: Apache-2.0
//
// The stream does, round by round, what the compiler does pass by pass: a round's credits, then its
// blocks, each in the plan's order by (from, to); a send after its node's receive of the block,
// after the receive of its credit, and after the send-window's send; a window's credit after the
// receive W before.
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

namespace prepost {
namespace {

/// The last `capacity` of a row of op numbers.
class RecentOps {
 public:
  explicit RecentOps(size_t capacity) : numbers_(capacity) {}

  uint64_t size() const { return size_; }
  void Add(uint64_t number) { numbers_[size_++ & (numbers_.size() - 1)] = number; }
  /// The one with `index` in the whole row, if it is among the last.
  std::optional<uint64_t> At(uint64_t index) const {
    if (index >= size_ || size_ - index > numbers_.size()) return std::nullopt;
    return numbers_[index & (numbers_.size() - 1)];
  }

 private:
  std::vector<uint64_t> numbers_;  // a power of two
  uint64_t size_ = 0;
};

/// The last `capacity` receives of blocks, also by block.
class RecentReceives {
 public:
  explicit RecentReceives(size_t capacity)
      : ops_(capacity), entries_(capacity), head_(capacity, kNever) {}

  const RecentOps& ops() const { return ops_; }
  void Add(uint32_t block, uint64_t number) {
    uint64_t& head = head_[block & mask()];
    entries_[ops_.size() & mask()] = {.block = block, .before = std::exchange(head, ops_.size())};
    ops_.Add(number);
  }
  /// The last receive of `block`.
  std::optional<uint64_t> Find(uint32_t block) const {
    uint64_t index = head_[block & mask()];
    for (std::optional<uint64_t> number; (number = ops_.At(index));
         index = entries_[index & mask()].before) {
      if (entries_[index & mask()].block == block) return number;
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

  RecentOps ops_;
  std::vector<Entry> entries_;
  std::vector<uint64_t> head_;
};

/// Block channels of an outline; each one's credit channel is as far behind the last of them.
std::span<const Channel> BlockChannels(const Plan& outline) {
  const std::span<const Channel> all = outline.channels();
  return outline.header().ready.has_credits() ? all.first(all.size() / 2) : all;
}

ChannelId FindBlockChannel(const Plan& outline, NodeId from, NodeId to) {
  const std::span<const Channel> channels = BlockChannels(outline);
  const Channel wanted{.from = from, .to = to};
  const auto found = std::ranges::lower_bound(channels, wanted);
  PREPOST_CHECK(found != channels.end() && *found == wanted);
  return ChannelId::FromIndex(static_cast<size_t>(found - channels.begin()));
}

ChannelId CreditChannelOf(const Plan& outline, ChannelId blocks) {
  return ChannelId::FromIndex(blocks.index() + BlockChannels(outline).size());
}

class RolledOpStream final : public OpStream {
 public:
  RolledOpStream(const RolledProgram& program, const Plan& outline, size_t look_ahead)
      : OpStream(look_ahead, look_ahead * kAfterMax),
        outline_(outline),
        node_(program.node),
        rounds_(program, outline.header().payload.blocks),
        round_(rounds_.begin()),
        receives_(look_ahead),
        sends_(look_ahead) {
    for (const PeerTransfers& total : rounds_.Totals()) {
      const auto [from, to] =
          total.outgoing ? std::pair(node_, total.peer) : std::pair(total.peer, node_);
      peers_.push_back({.transfers = total, .channel = FindBlockChannel(outline, from, to)});
    }
  }

  bool Next() override {
    while (taken_ == made_) {
      round_ = rounds_.Next(round_);
      if (round_ >= rounds_.end()) return false;
      Make(round_++);
    }
    const Made& next = row_[taken_++];
    op_ = next.op;
    after_ = std::span(next.after).first(next.after_count);
    return true;
  }

 private:
  static constexpr size_t kAfterMax = 3;  // the block, its credit, the send window
  static constexpr size_t kOpsMax = 4;    // of a round: a send, a receive, and their credits

  /// A peer's channel in one direction.
  struct Peer {
    PeerTransfers transfers;
    ChannelId channel;
    bool has_credit = false;  // mode channel: its one credit has been made
  };
  struct Made {
    Op op;
    std::array<OpId, kAfterMax> after;
    size_t after_count = 0;
  };

  /// The ops of `round` into row_.
  void Make(uint32_t round) {
    taken_ = made_ = 0;
    const std::optional<RoundTransfer> out = rounds_.Outgoing(round);
    const std::optional<RoundTransfer> in = rounds_.Incoming(round);
    Peer* const to = out ? &Find(out->peer, true) : nullptr;
    Peer* const from = in ? &Find(in->peer, false) : nullptr;
    std::optional<uint64_t> credit;
    // By (from, to): of the blocks (in, node) and (node, out), of the credits (node, in) and
    // (out, node).
    const bool is_out_credit_first = out && out->peer < node_;
    if (to != nullptr && is_out_credit_first) credit = MakeCreditRecv(*to, round);
    if (from != nullptr) MakeCreditSend(*from, round);
    if (to != nullptr && !is_out_credit_first) credit = MakeCreditRecv(*to, round);
    const bool is_in_first = in && in->peer < node_;
    if (in && is_in_first) MakeRecv(*from, in->block, round);
    if (out) MakeSend(*to, out->block, round, credit);
    if (in && !is_in_first) MakeRecv(*from, in->block, round);
  }

  Peer& Find(NodeId peer, bool outgoing) {
    const auto found = std::ranges::lower_bound(
        peers_, std::pair(peer, outgoing), {},
        [](const Peer& it) { return std::pair(it.transfers.peer, it.transfers.outgoing); });
    PREPOST_CHECK(found != peers_.end() && found->transfers.peer == peer &&
                  found->transfers.outgoing == outgoing);
    return *found;
  }

  /// Whether the next transfer over `peer` has a credit of its own.
  bool HasCredit(Peer& peer) const {
    const ReadyMode mode = outline_.header().ready.mode;
    if (mode == ReadyMode::kWindow) return true;
    return mode == ReadyMode::kChannel && !std::exchange(peer.has_credit, true);
  }

  std::optional<uint64_t> MakeCreditRecv(Peer& peer, uint32_t round) {
    if (!HasCredit(peer)) return std::nullopt;
    return Add(
        {.channel = CreditChannelOf(outline_, peer.channel), .round = round, .kind = OpKind::kRecv},
        {});
  }

  void MakeCreditSend(Peer& peer, uint32_t round) {
    if (!HasCredit(peer)) return;
    const Ready& ready = outline_.header().ready;
    const bool is_window = ready.mode == ReadyMode::kWindow;
    const uint64_t count = receives_.ops().size();
    Add({.channel = CreditChannelOf(outline_, peer.channel),
         .round = round,
         .grants = is_window ? 1 : static_cast<uint32_t>(peer.transfers.blocks),
         .kind = OpKind::kSend},
        {is_window && count >= ready.window ? receives_.ops().At(count - ready.window)
                                            : std::nullopt});
  }

  void MakeRecv(const Peer& peer, uint32_t block, uint32_t round) {
    receives_.Add(
        block,
        Add({.channel = peer.channel, .block = block, .round = round, .kind = OpKind::kRecv}, {}));
  }

  void MakeSend(const Peer& peer, uint32_t block, uint32_t round, std::optional<uint64_t> credit) {
    const std::optional<uint32_t>& window = outline_.header().send_window;
    const std::optional<uint64_t> received = outline_.header().collective.Contributes(node_, block)
                                                 ? std::nullopt
                                                 : receives_.Find(block);
    const std::optional<uint64_t> earlier =
        window && sends_.size() >= *window ? sends_.At(sends_.size() - *window) : std::nullopt;
    sends_.Add(Add({.channel = peer.channel, .block = block, .round = round, .kind = OpKind::kSend},
                   {received, credit, earlier}));
  }

  /// `after` in any order. The op's number.
  uint64_t Add(const Op& op, std::array<std::optional<uint64_t>, kAfterMax> after) {
    std::ranges::sort(after);
    Made& made = row_[made_++];
    made.op = op;
    made.after_count = 0;
    for (const std::optional<uint64_t>& before : after) {
      if (!before || number_ - *before >= look_ahead()) continue;
      made.after[made.after_count++] = OpId::FromIndex(*before);
    }
    return number_++;
  }

  const Plan& outline_;
  const NodeId node_;
  const RolledRounds rounds_;
  uint32_t round_;
  std::vector<Peer> peers_;  // by (peer, outgoing)
  RecentReceives receives_;
  RecentOps sends_;
  uint64_t number_ = 0;            // of the next op
  std::array<Made, kOpsMax> row_;  // of the round in hand
  size_t taken_ = 0;
  size_t made_ = 0;
};

/// The channels of `program` in a plan with `header`.
Status AddChannels(const RolledProgram& program, const PlanHeader& header,
                   std::vector<Channel>& channels) {
  const RolledRounds rounds(program, header.payload.blocks);
  PREPOST_RETURN_IF_ERROR(rounds.Check(header.rounds));
  if (rounds.active() > kActiveRoundsMax) {
    return Rejected(fmt::format("node {} has {} rounds to go through, the limit is {}",
                                program.node.value, rounds.active(), kActiveRoundsMax));
  }
  for (const PeerTransfers& total : rounds.Totals()) {
    const auto [from, to] =
        total.outgoing ? std::pair(program.node, total.peer) : std::pair(total.peer, program.node);
    channels.push_back({.from = from, .to = to});
  }
  return {};
}

}  // namespace

Result<RolledPlay> RolledPlay::Make(const RolledPlan& plan, uint64_t bytes) {
  Result<PlanHeader> header = plan.HeaderFor(bytes);
  if (!header.ok()) return header.status();
  std::vector<Channel> channels;
  for (const RolledProgram& program : plan.programs) {
    PREPOST_RETURN_IF_ERROR(AddChannels(program, *header, channels));
  }
  std::ranges::sort(channels);
  channels.erase(std::unique(channels.begin(), channels.end()), channels.end());
  PlanBuilder builder(*header);
  for (const Channel& channel : channels) builder.AddChannel(channel);
  if (header->ready.has_credits()) {
    for (const Channel& channel : channels) {
      builder.AddChannel({.from = channel.to, .to = channel.from, .lane = Lane::kCredits});
    }
  }
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
    const auto [from, to] =
        total.outgoing ? std::pair(node, total.peer) : std::pair(total.peer, node);
    const auto blocks = static_cast<uint32_t>(total.blocks);
    const ChannelId channel = FindBlockChannel(outline_, from, to);
    all.push_back({.channel = channel, .outgoing = total.outgoing, .ops = blocks});
    if (!header.ready.has_credits()) continue;
    all.push_back({.channel = CreditChannelOf(outline_, channel),
                   .outgoing = !total.outgoing,
                   .ops = header.ready.mode == ReadyMode::kChannel ? 1 : blocks});
  }
  std::ranges::sort(all, {}, &ChannelOps::channel);
  return all;
}

std::unique_ptr<OpStream> RolledPlay::OpsOf(NodeId node, size_t look_ahead) const {
  PREPOST_CHECK(std::has_single_bit(look_ahead));
  return std::make_unique<RolledOpStream>(ProgramOf(node), outline_, look_ahead);
}

}  // namespace prepost
