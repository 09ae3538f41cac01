// SPDX-License-Identifier: Apache-2.0
#include "ir/planned_transfers.h"

#include <llvm/ADT/DenseMap.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace prepost {
namespace {

/// The transfers of each node in the plan's order, one node after the other.
struct DealtTransfers {
  std::vector<size_t> begin;  // node -> its first in `all`
  std::vector<uint32_t> all;
};

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
  return dealt;
}

}  // namespace

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
  return builder_.AddOp({.channel = id,
                         .block = transfer.block,
                         .round = transfer.round,
                         .kind = transfer.from == node_ ? OpKind::kSend : OpKind::kRecv},
                        after);
}

TransferPlan PlanTransfers(PlanHeader header, std::span<const PlannedTransfer> transfers,
                           const WaitsOfTransfer& waits_of) {
  const uint32_t nodes = header.nodes;
  ChannelList channels;
  for (const PlannedTransfer& it : transfers)
    channels.Add({.from = NodeId(it.from), .to = NodeId(it.to)});
  TransferWriter writer(std::move(header), std::move(channels).Take(), transfers.size());
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

}  // namespace prepost
