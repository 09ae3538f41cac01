// SPDX-License-Identifier: Apache-2.0
//
// ready: how a sender knows that its target has posted the receive (RDMC's ready_for_block).
//
// * barrier: nothing in the plan; every receive everywhere is posted before any send. Cheapest
//   where all receives fit.
// * channel: one credit per channel, sent at once, grants all of its receives.
// * window=W: one credit per block. A node's block receives in id order are r0, r1, ...; the credit
//   for r_i is sent after r_(i-W) has completed, so that at most W granted receives are open at a
//   node. W = 1 is RDMC.
// * retry: nothing in the plan; a send that finds no receive is tried again by the transport.
//
// A credit travels on its own lane against the data: on the data's channel it would queue behind
// blocks that themselves wait for credits, and two nodes that exchange blocks would wait for each
// other for ever (n = 4, k = 3: 1>3:2 and 3>1:1). The send that a credit lets go names the credit's
// receive in its `after`; in channel mode the first send of a channel does, and the others start
// behind it. A credit has the round of the first transfer that it grants and stands before the
// blocks of that round.
//
// Example, chain of 3 nodes, 2 blocks, window=1, the program of node 1:
//   round 0: op 0 send credit 1>0          op 1 recv 0>1:0
//   round 1: op 2 send credit 1>0 after 1  op 3 recv credit 2>1
//            op 4 recv 0>1:1               op 5 send 1>2:0 after 1,3
//   round 2: op 6 recv credit 2>1          op 7 send 1>2:1 after 4,6
#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>

#include <algorithm>
#include <limits>

#include "compiler/pass.h"
#include "compiler/schedules/fan.h"

namespace prepost {
namespace {

constexpr uint32_t kNoOp = std::numeric_limits<uint32_t>::max();

/// Rewrites a plan without credits into one with them.
class CreditInserter {
 public:
  CreditInserter(const Plan& plan, Ready ready)
      : plan_(plan), ready_(ready), builder_(plan.header()) {
    builder_.header().ready = ready;
  }

  Plan Run() {
    AddChannels();
    for (const Program& program : plan_.programs()) AddProgram(program);
    return std::move(builder_).Build();
  }

 private:
  bool per_channel() const { return ready_.mode == ReadyMode::kChannel; }

  /// The given channels, then a credit channel against each of them.
  void AddChannels() {
    const std::span<const Channel> given = plan_.channels();
    for (const Channel& channel : given) builder_.AddChannel(channel);
    for (const Channel& channel : given) {
      const ChannelId credits =
          builder_.AddChannel({.from = channel.to, .to = channel.from, .lane = Lane::kCredits});
      credit_channel_.push_back(credits);
    }
    receives_.resize(given.size());
    for (const Op& op : plan_.ops()) {
      if (!op.is_send()) ++receives_[op.channel.index()];
    }
    seen_send_.resize(given.size());
    seen_recv_.resize(given.size());
    if (per_channel()) {
      builder_.Reserve(plan_.ops().size() + 2 * given.size(), plan_.after_count() + given.size());
    } else {
      builder_.Reserve(2 * plan_.ops().size(), plan_.after_count() + plan_.ops().size());
    }
  }

  /// Whether the transfer of `op` has a credit of its own.
  bool HasCredit(const Op& op) {
    if (!per_channel()) return true;
    std::vector<bool>& seen = op.is_send() ? seen_send_ : seen_recv_;
    if (seen[op.channel.index()]) return false;
    seen[op.channel.index()] = true;
    return true;
  }

  void AddProgram(const Program& program) {
    builder_.BeginProgram(program.node);
    const std::span<const Op> ops = plan_.ops(program);
    new_id_.assign(ops.size(), OpId(kNoOp));
    credit_of_.assign(ops.size(), kNoOp);
    recvs_.clear();
    for (size_t begin = 0; begin < ops.size();) {
      size_t end = begin;
      while (end < ops.size() && ops[end].round == ops[begin].round) ++end;
      AddCredits(ops, begin, end);
      for (size_t i = begin; i < end; ++i) AddBlock(ops[i], i);
      begin = end;
    }
  }

  /// The credits, sent and received, of the transfers [begin, end) of one round, in the plan's
  /// order.
  void AddCredits(std::span<const Op> ops, size_t begin, size_t end) {
    llvm::SmallVector<size_t, 8> owners;
    for (size_t i = begin; i < end; ++i) {
      if (HasCredit(ops[i])) owners.push_back(i);
    }
    // (from, to) of a credit is (to, from) of its transfer; the lane is the same for all.
    std::ranges::stable_sort(owners, {}, [&](size_t i) {
      const Channel& channel = plan_.channels()[ops[i].channel.index()];
      return std::pair(channel.to, channel.from);
    });
    // A receive's place among the node's receives counts in id order, whatever the order of this
    // round's credits.
    uint32_t first_recv = static_cast<uint32_t>(recvs_.size());
    llvm::DenseMap<size_t, uint32_t> recv_index;
    for (size_t i = begin; i < end; ++i) {
      if (!ops[i].is_send()) recv_index[i] = first_recv++;
    }
    for (size_t i : owners) AddCredit(ops[i], i, recv_index.lookup(i));
  }

  void AddCredit(const Op& transfer, size_t index, uint32_t recv_index) {
    Op credit{.channel = credit_channel_[transfer.channel.index()], .round = transfer.round};
    if (transfer.is_send()) {
      credit.kind = OpKind::kRecv;
      credit_of_[index] = builder_.AddOp(credit).value;
      return;
    }
    credit.kind = OpKind::kSend;
    if (per_channel()) {
      credit.grants = receives_[transfer.channel.index()];
      builder_.AddOp(credit);
      return;
    }
    credit.grants = 1;
    if (recv_index < ready_.window) {
      builder_.AddOp(credit);
    } else {
      const OpId earlier = recvs_[recv_index - ready_.window];
      builder_.AddOp(credit, {&earlier, 1});
    }
  }

  void AddBlock(const Op& op, size_t index) {
    llvm::SmallVector<OpId, 8> after;
    for (OpId before : plan_.after(op)) after.push_back(new_id_[before.index()]);
    if (credit_of_[index] != kNoOp) after.push_back(OpId(credit_of_[index]));
    std::ranges::sort(after);
    new_id_[index] = builder_.AddOp(op, {after.data(), after.size()});
    if (!op.is_send()) recvs_.push_back(new_id_[index]);
  }

  const Plan& plan_;
  const Ready ready_;
  PlanBuilder builder_;
  std::vector<ChannelId> credit_channel_;  // block channel -> its credit channel
  std::vector<uint32_t> receives_;         // block channel -> receives on it
  std::vector<bool> seen_send_,
      seen_recv_;                    // block channel -> its credit is there already (channel mode)
  std::vector<OpId> new_id_;         // of this program: old op -> new op
  std::vector<uint32_t> credit_of_;  // of this program: old send -> its credit's receive, or kNoOp
  std::vector<OpId> recvs_;          // of this program: block receives so far, new ids
};

Result<Plan> MakeReady(const SpecReady& wanted, const Plan& plan) {
  const Ready ready = ReadyFor(wanted, FanOf(plan));
  if (ready.mode == ReadyMode::kWindow && ready.window < plan.header().ports) {
    return Rejected(
        fmt::format("window={} is too small: a node may receive {} blocks in a round, and all of "
                    "them must be granted",
                    ready.window, plan.header().ports),
        "/ready");
  }
  if (ready.has_credits()) {
    return CreditInserter(plan, ready).Run();
  }
  PlanHeader header = plan.header();
  header.ready = ready;
  return plan.WithHeader(std::move(header));
}

}  // namespace

Pass ReadyPass(SpecReady ready) {
  return {.name = "ready", .run = [ready](const Plan& plan) { return MakeReady(ready, plan); }};
}

}  // namespace prepost
