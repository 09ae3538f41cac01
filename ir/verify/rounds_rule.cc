// SPDX-License-Identifier: Apache-2.0
//
// rounds: the rounds that the ops declare are those of a one-port schedule (or a `ports`-port one).
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "ir/base/count.h"
#include "ir/block_history.h"
#include "ir/verify/first_receives.h"
#include "ir/verify/rules.h"

namespace prepost {
namespace {

constexpr uint32_t kAbsent = MessageTable::kNone;

class RoundsRule {
 public:
  RoundsRule(const MatchedPlan& matched, Findings* findings)
      : plan_(matched.plan),
        header_(matched.plan.header()),
        roles_(matched.plan.header().roles()),
        messages_(matched.messages),
        credits_(matched.credits),
        findings_(findings),
        combines_(Combines(header_.collective.kind)),
        received_(combines_ ? 0 : header_.payload.blocks),
        history_(roles_, combines_ ? header_.payload.blocks : 0) {}

  void Run() {
    uint64_t rounds = 0;
    for (const Op& op : plan_.ops()) rounds = std::max(rounds, uint64_t{op.round} + 1);
    if (header_.rounds != rounds) {
      RoundsFinding(
          Place::Header("rounds"), "{}, but {}", Count(header_.rounds, "round"),
          rounds == 0 ? "there are no ops" : fmt::format("the last op is in round {}", rounds - 1));
    }
    for (uint32_t c = 0; c < plan_.channels().size(); ++c) CheckChannelRounds(ChannelId(c));
    for (uint32_t p = 0; p < plan_.programs().size(); ++p) {
      CheckForwardRounds(p);
      CheckPorts(p, /*sends=*/true);
      CheckPorts(p, /*sends=*/false);
    }
  }

 private:
  template <typename... Arguments>
  void RoundsFinding(const Place& place, fmt::format_string<Arguments...> format,
                     Arguments&&... arguments) {
    findings_->Add(place, Rule::kRounds,
                   [&] { return fmt::format(format, std::forward<Arguments>(arguments)...); });
  }

  void CheckChannelRounds(ChannelId channel) {
    const uint32_t begin = messages_.ChannelBegin(channel);
    for (uint32_t m = begin; m < messages_.ChannelEnd(channel); ++m) {
      const uint32_t send_round = plan_.ops()[messages_.send(m)].round;
      const uint32_t recv_round = plan_.ops()[messages_.recv(m)].round;
      if (send_round != recv_round) {
        RoundsFinding(PlaceOf(plan_, messages_.recv(m), "round"),
                      "round {}, but its send {} is in round {}", recv_round,
                      PlaceOf(plan_, messages_.send(m)).Pointer(), send_round);
      }
      for (const auto& [op, before] :
           {std::pair(messages_.send(m), m == begin ? kAbsent : messages_.send(m - 1)),
            std::pair(messages_.recv(m), m == begin ? kAbsent : messages_.recv(m - 1))}) {
        if (before == kAbsent || plan_.ops()[before].round <= plan_.ops()[op].round) continue;
        RoundsFinding(PlaceOf(plan_, op, "round"), "round {} after round {} on the same channel",
                      plan_.ops()[op].round, plan_.ops()[before].round);
      }
      CheckCreditRound(channel, m);
    }
  }

  /// A credit has the round of the first receive that it grants.
  void CheckCreditRound(ChannelId channel, uint32_t m) {
    const Op& send = plan_.ops()[messages_.send(m)];
    if (!send.is_credit() || credits_.Partner(channel) == CreditTable::kNone) return;
    const ChannelId blocks(credits_.Partner(channel));
    const uint64_t first = credits_.GrantedUpTo(m) - send.grants;
    if (first >= messages_.ChannelEnd(blocks) - messages_.ChannelBegin(blocks)) return;
    const uint32_t recv =
        messages_.recv(messages_.ChannelBegin(blocks) + static_cast<uint32_t>(first));
    if (plan_.ops()[recv].round != send.round) {
      RoundsFinding(PlaceOf(plan_, messages_.send(m), "round"),
                    "credit in round {}, but the receive {} that it grants is in {}", send.round,
                    PlaceOf(plan_, recv).Pointer(), plan_.ops()[recv].round);
    }
  }

  /// A block leaves a node in a later round than it came; where blocks are combined, than what it
  /// carries came.
  void CheckForwardRounds(uint32_t p) {
    const Program& program = plan_.programs()[p];
    const std::span<const Op> ops = plan_.ops(program);
    combines_ ? history_.Begin(program.node) : received_.Begin(ops);
    for (uint32_t i = 0; i < program.op_count; ++i) {
      const Op& op = ops[i];
      if (op.is_credit() || (!combines_ && !op.is_send())) continue;
      for (uint32_t block = op.block; block < op.block + op.count; ++block) {
        const uint32_t recv = combines_ ? history_.Of(block).received : ReceiptOf(program, block);
        if (combines_) history_.Add(block, i, op.kind);
        if (!op.is_send() || recv == FirstReceives::kNone || op.round > ops[recv].round) continue;
        RoundsFinding(Place::OpAt(p, i, "round"),
                      "sends block {} in round {}, but receives it in round {}", block, op.round,
                      ops[recv].round);
      }
    }
  }

  /// The first receive of a block that its node does not contribute to, or kNone.
  uint32_t ReceiptOf(const Program& program, uint32_t block) const {
    return roles_.Contributes(program.node, block) ? FirstReceives::kNone : received_.Of(block);
  }

  /// No more than `ports` block sends (or receives) of a node in one round of one fabric.
  void CheckPorts(uint32_t p, bool sends) {
    const Program& program = plan_.programs()[p];
    std::vector<std::tuple<uint32_t, uint32_t, uint32_t>> by_round;  // (fabric, round, op)
    for (uint32_t i = 0; i < program.op_count; ++i) {
      const Op& op = plan_.ops(program)[i];
      if (op.is_send() == sends && !op.is_credit())
        by_round.emplace_back(plan_.channels()[op.channel.index()].fabric, op.round, i);
    }
    if (!std::ranges::is_sorted(by_round)) std::ranges::sort(by_round);
    for (size_t j = header_.ports; j < by_round.size(); ++j) {
      const auto [fabric, round, op] = by_round[j];
      const auto& [fabric_before, round_before, _] = by_round[j - header_.ports];
      if (fabric_before != fabric || round_before != round) continue;
      RoundsFinding(Place::OpAt(p, op, "round"), "more than {} block {}s of node {} in round {}",
                    header_.ports, sends ? "send" : "recv", program.node.value, round);
    }
  }

  const Plan& plan_;
  const PlanHeader& header_;
  const Roles roles_;
  const MessageTable& messages_;
  const CreditTable& credits_;
  Findings* findings_;
  const bool combines_;
  FirstReceives received_;  // of the program in hand, where nothing is combined
  BlockHistory history_;    // of the program in hand, where blocks are combined
};

}  // namespace

void CheckRounds(const MatchedPlan& matched, Findings* findings) {
  RoundsRule(matched, findings).Run();
}

}  // namespace prepost
