// SPDX-License-Identifier: Apache-2.0
#include "ir/planned_transfers.h"

#include <llvm/ADT/DenseMap.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace prepost {
namespace {

class TransferPlanner {
 public:
  TransferPlanner(PlanHeader header, std::span<const PlannedTransfer> transfers,
                  const WaitsOfTransfer& waits_of)
      : transfers_(transfers),
        waits_of_(waits_of),
        nodes_(header.nodes),
        builder_(std::move(header)) {
    builder_.header().rounds = 0;
    for (const PlannedTransfer& it : transfers_)
      builder_.header().rounds = std::max(builder_.header().rounds, it.round + 1);
  }

  TransferPlan Run() {
    AddChannels();
    DealToNodes();
    builder_.Reserve(2 * transfers_.size(), transfers_.size());
    transfer_of_op_.reserve(2 * transfers_.size());
    for (uint32_t node = 0; node < nodes_; ++node) AddProgram(node);
    return {.plan = std::move(builder_).Build(), .transfer_of_op = std::move(transfer_of_op_)};
  }

 private:
  using Ends = std::pair<uint32_t, uint32_t>;  // from, to

  Ends EndsOf(uint32_t transfer) const {
    return {transfers_[transfer].from, transfers_[transfer].to};
  }

  void AddChannels() {
    for (const PlannedTransfer& it : transfers_) {
      const Ends ends(it.from, it.to);
      if (channels_.empty() || channels_.back() != ends) channels_.push_back(ends);
      // Schedules come back to the same few peers: the list is kept short as it grows.
      if (channels_.size() >= compact_at_) {
        Compact();
        compact_at_ = std::max(compact_at_, 2 * channels_.size());
      }
    }
    Compact();
    for (const auto& [from, to] : channels_)
      builder_.AddChannel({.from = NodeId(from), .to = NodeId(to), .lane = Lane::kBlocks});
  }
  void Compact() {
    std::ranges::sort(channels_);
    channels_.erase(std::unique(channels_.begin(), channels_.end()), channels_.end());
  }

  /// The transfers of each node in the plan's order, one node after the other.
  void DealToNodes() {
    std::vector<uint32_t> order(transfers_.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto place = [&](uint32_t transfer) {
      const PlannedTransfer& it = transfers_[transfer];
      return std::tuple(it.round, it.from, it.to, it.block, transfer);
    };
    if (!std::ranges::is_sorted(order, {}, place)) std::ranges::sort(order, {}, place);
    node_begin_.assign(size_t{nodes_} + 1, 0);
    for (const PlannedTransfer& it : transfers_) {
      ++node_begin_[it.from + 1];
      ++node_begin_[it.to + 1];
    }
    std::partial_sum(node_begin_.begin(), node_begin_.end(), node_begin_.begin());
    of_node_.resize(2 * transfers_.size());
    std::vector<size_t> next(node_begin_.begin(), node_begin_.end() - 1);
    for (const uint32_t transfer : order) {
      of_node_[next[transfers_[transfer].from]++] = transfer;
      of_node_[next[transfers_[transfer].to]++] = transfer;
    }
  }

  void AddProgram(uint32_t node) {
    builder_.BeginProgram(NodeId(node));
    op_of_.clear();
    for (size_t i = node_begin_[node]; i < node_begin_[node + 1]; ++i) {
      const uint32_t transfer = of_node_[i];
      const PlannedTransfer& it = transfers_[transfer];
      const bool is_send = it.from == node;
      after_.clear();
      if (is_send) {
        for (const uint32_t before : waits_of_(transfer)) after_.push_back(op_of_.lookup(before));
        std::ranges::sort(after_);
      }
      const auto channel = std::ranges::lower_bound(channels_, EndsOf(transfer));
      op_of_[transfer] = builder_.AddOp(
          {.channel = ChannelId::FromIndex(static_cast<size_t>(channel - channels_.begin())),
           .block = it.block,
           .round = it.round,
           .kind = is_send ? OpKind::kSend : OpKind::kRecv},
          after_);
      transfer_of_op_.push_back(transfer);
    }
  }

  const std::span<const PlannedTransfer> transfers_;
  const WaitsOfTransfer& waits_of_;
  const uint32_t nodes_;
  PlanBuilder builder_;
  std::vector<Ends> channels_;  // channel -> its ends
  size_t compact_at_ = 4096;
  std::vector<size_t> node_begin_;  // node -> its first in of_node_
  std::vector<uint32_t> of_node_;   // transfers
  std::vector<uint32_t> transfer_of_op_;
  llvm::DenseMap<uint32_t, OpId> op_of_;  // of the node in hand; it has one end of a transfer only
  std::vector<OpId> after_;
};

}  // namespace

TransferPlan PlanTransfers(PlanHeader header, std::span<const PlannedTransfer> transfers,
                           const WaitsOfTransfer& waits_of) {
  return TransferPlanner(std::move(header), transfers, waits_of).Run();
}

}  // namespace prepost
