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
// send_window=W: the j-th block send of a node comes after its (j - W)-th, so that at most W of its
// blocks are in flight. Sends are counted in id order over all channels of the node; credits are
// exempt, since a credit that waited behind a block could hold up the very transfer that the block
// waits for. With W = 1 a node's uplink carries one block at a time, as the schedule assumes; with
// more, or none, several blocks share it and each arrives later.
//
// Example, chain of 3 nodes, 2 blocks, window=1, send_window=1, the program of node 1:
//   round 0: op 0 send credit 1>0          op 1 recv 0>1:0
//   round 1: op 2 send credit 1>0 after 1  op 3 recv credit 2>1
//            op 4 recv 0>1:1               op 5 send 1>2:0 after 1,3
//   round 2: op 6 recv credit 2>1          op 7 send 1>2:1 after 4,5,6
#include "ir/op_rules.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace prepost {
namespace {

/// Where in its round the credit of a transfer's end stands. Credits go by (from, to) as blocks do,
/// but the other way: those of sends to lower nodes, of receives, of sends to higher nodes.
int TurnOf(const Op& op, std::span<const Channel> channels) {
  if (!op.is_send()) return 1;
  const Channel& channel = channels[op.channel.index()];
  return channel.to < channel.from ? 0 : 2;
}

}  // namespace

void AddChannels(std::span<const Channel> blocks, const Ready& ready, PlanBuilder& builder) {
  for (const Channel& channel : blocks) builder.AddChannel(channel);
  if (!ready.has_credits()) return;
  for (const Channel& channel : blocks)
    builder.AddChannel({.from = channel.to, .to = channel.from, .lane = Lane::kCredits});
}

OpRules::OpRules(std::span<const Channel> channels, const Ready& ready,
                 std::optional<uint32_t> send_window, size_t look_ahead, size_t given_max,
                 Emit emit)
    : channels_(channels),
      ready_(ready),
      send_window_(send_window),
      look_ahead_(look_ahead),
      emit_(std::move(emit)),
      given_(given_max),
      receives_(std::min<size_t>(ready.window, look_ahead)),
      sends_(std::min<size_t>(send_window.value_or(0), look_ahead)) {
  after_.reserve(4);
  credit_of_.reserve(2);
}

void OpRules::BeginProgram() {
  number_ = 0;
  given_.Clear();
  receives_.Clear();
  sends_.Clear();
}

void OpRules::AddRound(std::span<const GivenOp> given) {
  credit_of_.assign(given.size(), std::nullopt);
  if (ready_.has_credits()) AddCredits(given);
  for (size_t i = 0; i < given.size(); ++i) AddGiven(given[i], credit_of_[i]);
}

void OpRules::AddCredits(std::span<const GivenOp> given) {
  uint64_t receive = receives_.size();  // that the next credit grants
  for (const int turn : {0, 1, 2}) {
    for (size_t i = 0; i < given.size(); ++i) {
      const auto& [op, after, ungranted] = given[i];
      if (*ungranted == 0 || TurnOf(op, channels_) != turn) continue;
      const uint32_t grants = GrantsOf(ready_, *ungranted);
      *ungranted -= grants;
      Op credit{.channel = CreditChannelOf(op.channel, channels_.size()), .round = op.round};
      if (op.is_send()) {
        credit.kind = OpKind::kRecv;
        credit_of_[i] = Add(credit);
        continue;
      }
      credit.grants = grants;
      if (ready_.mode == ReadyMode::kWindow) WaitFor(receives_.At(receive++ - ready_.window));
      Add(credit);
    }
  }
}

void OpRules::AddGiven(const GivenOp& given, std::optional<uint64_t> credit) {
  for (const OpId before : given.after) {
    const uint32_t back = static_cast<uint32_t>(given_.size()) - before.value;
    WaitFor(given_.At(given_.size() - back));
  }
  WaitFor(credit);
  RecentNumbers& blocks = given.op.is_send() ? sends_ : receives_;
  const bool is_block = !given.op.is_credit();
  if (is_block && given.op.is_send() && send_window_)
    WaitFor(sends_.At(sends_.size() - *send_window_));
  const uint64_t number = Add(given.op);
  given_.Add(number);
  if (is_block) blocks.Add(number);
}

void OpRules::WaitFor(std::optional<uint64_t> number) {
  if (number && number_ - *number < look_ahead_) after_.push_back(OpId::FromIndex(*number));
}

uint64_t OpRules::Add(const Op& op) {
  if (after_.size() > 1) {
    const auto back = [&](OpId id) { return static_cast<uint32_t>(number_) - id.value; };
    std::ranges::sort(after_, std::greater<>(), back);
    after_.erase(std::unique(after_.begin(), after_.end()), after_.end());
  }
  emit_(op, after_);
  after_.clear();
  return number_++;
}

Plan WithRules(const Plan& plan, PlanHeader header, const Ready& ready,
               std::optional<uint32_t> send_window) {
  if (!ready.has_credits() && !send_window) return plan.WithHeader(std::move(header));
  PlanBuilder builder(std::move(header));
  AddChannels(plan.channels(), ready, builder);
  const size_t ops = plan.ops().size(), channels = plan.channels().size();
  const bool is_channel = ready.mode == ReadyMode::kChannel;
  const size_t credits = !ready.has_credits() ? 0 : is_channel ? 2 * channels : ops;
  builder.Reserve(ops + credits, plan.after_count() + credits + (send_window ? ops / 2 : 0));

  size_t longest = 0;  // program
  for (const Program& program : plan.programs())
    longest = std::max<size_t>(longest, program.op_count);
  const auto place = [](const Op& op) { return 2 * op.channel.index() + (op.is_send() ? 1 : 0); };
  std::vector<uint32_t> ungranted(2 * channels);
  if (ready.has_credits()) {
    for (const Op& op : plan.ops()) ++ungranted[place(op)];
  }
  OpRules rules(
      plan.channels(), ready, send_window, 2 * longest, longest,
      [&builder](const Op& op, std::span<const OpId> after) { builder.AddOp(op, after); });
  std::vector<GivenOp> round;
  for (const Program& program : plan.programs()) {
    builder.BeginProgram(program.node);
    rules.BeginProgram();
    const std::span<const Op> given = plan.ops(program);
    for (auto op = given.begin(); op != given.end();) {
      round.clear();
      const uint32_t number = op->round;
      for (; op != given.end() && op->round == number; ++op)
        round.push_back({*op, plan.after(*op), &ungranted[place(*op)]});
      rules.AddRound(round);
    }
  }
  return std::move(builder).Build();
}

}  // namespace prepost
