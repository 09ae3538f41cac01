// SPDX-License-Identifier: Apache-2.0
#include "ir/planned_transfers.h"

#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "ir/base/count.h"
#include "ir/block_history.h"

namespace prepost {
namespace {

/// The transfers of each node in the plan's order, one node after the other.
struct DealtTransfers {
  std::vector<size_t> begin;  // node -> its first in `all`
  std::vector<uint32_t> all;
};

/// In each round of `node`.
void PutCombinesLast(std::span<const PlannedTransfer> transfers, uint32_t node,
                     DealtTransfers* dealt) {
  const auto begin = dealt->all.begin();
  const auto end = begin + static_cast<ptrdiff_t>(dealt->begin[node + 1]);
  for (auto first = begin + static_cast<ptrdiff_t>(dealt->begin[node]); first != end;) {
    const auto behind = std::find_if(first, end, [&](uint32_t transfer) {
      return transfers[transfer].round != transfers[*first].round;
    });
    std::stable_partition(first, behind, [&](uint32_t transfer) {
      return !transfers[transfer].combines || transfers[transfer].from == node;
    });
    first = behind;
  }
}

DealtTransfers DealToNodes(std::span<const PlannedTransfer> transfers, uint32_t nodes) {
  std::vector<uint32_t> order(transfers.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto place = [&](uint32_t transfer) {
    const PlannedTransfer& it = transfers[transfer];
    return std::tuple(it.round, it.from, it.to, it.block, transfer);
  };
  if (!std::ranges::is_sorted(order, {}, place)) std::ranges::sort(order, {}, place);
  DealtTransfers dealt{.begin = std::vector<size_t>(size_t{nodes} + 1),
                       .all = std::vector<uint32_t>(2 * transfers.size())};
  for (const PlannedTransfer& it : transfers) {
    ++dealt.begin[it.from + 1];
    ++dealt.begin[it.to + 1];
  }
  std::partial_sum(dealt.begin.begin(), dealt.begin.end(), dealt.begin.begin());
  std::vector<size_t> next(dealt.begin.begin(), dealt.begin.end() - 1);
  for (const uint32_t transfer : order) {
    dealt.all[next[transfers[transfer].from]++] = transfer;
    dealt.all[next[transfers[transfer].to]++] = transfer;
  }
  if (std::ranges::any_of(transfers, &PlannedTransfer::combines)) {
    for (uint32_t node = 0; node < nodes; ++node) PutCombinesLast(transfers, node, &dealt);
  }
  return dealt;
}

}  // namespace

Status CheckParts(CollectiveKind kind, uint32_t nodes, const char* node, const std::string& name) {
  const uint64_t parts = PartsOf(kind, nodes);
  if (parts <= kBlocksMax) return {};
  return Rejected(fmt::format("{} between {} has {} parts, and a plan has at most {} blocks",
                              Name(kind), Count(nodes, node), parts, kBlocksMax),
                  name);
}

RoundPorts PortsOf(std::span<const PlannedTransfer> transfers) {
  struct Use {
    uint32_t round = 0;
    uint32_t count = 0;
  };
  std::vector<uint32_t> order(transfers.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto place = [&](uint32_t t) { return std::pair(transfers[t].round, t); };
  if (!std::ranges::is_sorted(order, {}, place)) std::ranges::sort(order, {}, place);
  uint32_t nodes = 0;
  for (const PlannedTransfer& it : transfers) nodes = std::max({nodes, it.from + 1, it.to + 1});
  std::vector<Use> sends(nodes), receives(nodes);
  RoundPorts result;
  for (const uint32_t t : order) {
    const PlannedTransfer& it = transfers[t];
    for (Use* use : {&sends[it.from], &receives[it.to]}) {
      use->count = use->round == it.round ? use->count + 1 : 1;
      use->round = it.round;
      if (use->count <= result.ports) continue;
      result.ports = use->count;
      result.busiest = t;
    }
  }
  return result;
}

void ChannelList::Add(const Channel& channel) {
  if (!channels_.empty() && (channels_.back() <=> channel) == 0) return;
  channels_.push_back(channel);
  // Schedules come back to the same few peers: the list is kept short as it grows.
  if (channels_.size() < compact_at_) return;
  Compact();
  compact_at_ = std::max(compact_at_, 2 * channels_.size());
}

void ChannelList::Compact() {
  std::ranges::sort(channels_);
  const auto is_same = [](const Channel& a, const Channel& b) { return (a <=> b) == 0; };
  channels_.erase(std::unique(channels_.begin(), channels_.end(), is_same), channels_.end());
}

std::vector<Channel> ChannelList::Take() && {
  Compact();
  return std::move(channels_);
}

TransferWriter::TransferWriter(PlanHeader header, std::vector<Channel> channels, size_t transfers)
    : builder_(std::move(header)),
      channels_(std::move(channels)),
      channel_begin_(size_t{builder_.header().nodes} + 1) {
  builder_.header().rounds = 0;
  builder_.header().ready = {};
  builder_.header().send_window.reset();
  builder_.Reserve(2 * transfers, transfers);
  for (const Channel& channel : channels_) {
    builder_.AddChannel(channel);
    ++channel_begin_[channel.from.index() + 1];
  }
  std::partial_sum(channel_begin_.begin(), channel_begin_.end(), channel_begin_.begin());
}

void TransferWriter::BeginProgram(uint32_t node) {
  builder_.BeginProgram(NodeId(node));
  node_ = node;
}

OpId TransferWriter::Add(const PlannedTransfer& transfer, std::span<const OpId> after) {
  const auto begin = channels_.begin() + channel_begin_[transfer.from];
  const auto end = channels_.begin() + channel_begin_[transfer.from + 1];
  const auto place = std::ranges::lower_bound(begin, end, NodeId(transfer.to), {}, &Channel::to);
  auto id = ChannelId::FromIndex(static_cast<size_t>(place - channels_.begin()));
  if (place == end || place->to.value != transfer.to) {
    const Channel channel{.from = NodeId(transfer.from), .to = NodeId(transfer.to)};
    const auto [unlisted, is_new] = unlisted_.try_emplace(channel);
    if (is_new) unlisted->second = builder_.AddChannel(channel);
    id = unlisted->second;
  }
  uint32_t& rounds = builder_.header().rounds;
  rounds = std::max(rounds, transfer.round + 1);
  const OpKind receive = transfer.combines ? OpKind::kCombine : OpKind::kRecv;
  return builder_.AddOp({.channel = id,
                         .block = transfer.block,
                         .count = transfer.count,
                         .round = transfer.round,
                         .kind = transfer.from == node_ ? OpKind::kSend : receive},
                        after);
}

namespace {

std::vector<Channel> ChannelsOf(std::span<const PlannedTransfer> transfers) {
  ChannelList channels;
  for (const PlannedTransfer& it : transfers)
    channels.Add({.from = NodeId(it.from), .to = NodeId(it.to)});
  return std::move(channels).Take();
}

}  // namespace

TransferPlan PlanTransfers(PlanHeader header, std::span<const PlannedTransfer> transfers,
                           const WaitsOfTransfer& waits_of) {
  const uint32_t nodes = header.nodes;
  TransferWriter writer(std::move(header), ChannelsOf(transfers), transfers.size());
  DealtTransfers dealt = DealToNodes(transfers, nodes);
  llvm::DenseMap<uint32_t, OpId> op_of;  // of the node in hand; it has one end of a transfer only
  std::vector<OpId> after;
  for (uint32_t node = 0; node < nodes; ++node) {
    writer.BeginProgram(node);
    op_of.clear();
    for (size_t i = dealt.begin[node]; i < dealt.begin[node + 1]; ++i) {
      const uint32_t transfer = dealt.all[i];
      after.clear();
      if (transfers[transfer].from == node) {
        for (const uint32_t before : waits_of(transfer)) after.push_back(op_of.lookup(before));
        std::ranges::sort(after);
      }
      op_of[transfer] = writer.Add(transfers[transfer], after);
    }
  }
  return {.plan = std::move(writer).Build(), .transfer_of_op = std::move(dealt.all)};
}

TransferPlan PlanInOrder(PlanHeader header, std::span<const PlannedTransfer> transfers,
                         const WaitsOfEnd& waits_of) {
  const uint32_t nodes = header.nodes;
  const bool is_empty = header.payload.bytes == 0;
  BlockHistory history(header.roles(), header.payload.blocks);
  TransferWriter writer(std::move(header), ChannelsOf(transfers), transfers.size());
  DealtTransfers dealt = DealToNodes(transfers, nodes);
  llvm::DenseMap<uint32_t, OpId> op_of;  // of the node in hand, if somebody may ask
  std::vector<OpId> after;
  for (uint32_t node = 0; node < nodes; ++node) {
    writer.BeginProgram(node);
    history.Begin(NodeId(node));
    op_of.clear();
    for (size_t i = dealt.begin[node]; i < dealt.begin[node + 1]; ++i) {
      const uint32_t transfer = dealt.all[i];
      const PlannedTransfer& it = transfers[transfer];
      const OpKind kind = it.from == node ? OpKind::kSend
                          : it.combines   ? OpKind::kCombine
                                          : OpKind::kRecv;
      after.clear();
      for (uint32_t block = it.block; block < it.block + it.count; ++block) {
        const BlockPast& past = history.Of(block);
        if (kind == OpKind::kRecv || past.received == BlockPast::kNone) continue;
        after.push_back(OpId(past.received));
        if (kind == OpKind::kCombine && !is_empty)
          history.ForEachSend(past, [&](uint32_t send) { after.push_back(OpId(send)); });
      }
      if (waits_of && kind != OpKind::kRecv) {
        for (const uint32_t before : waits_of(transfer, kind == OpKind::kSend))
          after.push_back(op_of.lookup(before));
      }
      std::ranges::sort(after);
      after.erase(std::unique(after.begin(), after.end()), after.end());
      const OpId op = writer.Add(it, after);
      if (waits_of) op_of[transfer] = op;
      for (uint32_t block = it.block; block < it.block + it.count; ++block)
        history.Add(block, op.value, kind);
    }
  }
  return {.plan = std::move(writer).Build(), .transfer_of_op = std::move(dealt.all)};
}

}  // namespace prepost
