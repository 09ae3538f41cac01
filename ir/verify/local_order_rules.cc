// SPDX-License-Identifier: Apache-2.0
//
// The rules that are an order at one node: causal, window, and of ready that sends wait for their
// credits and credits for their window. Each collects what it wants ordered; wanted_order.h settles
// it. What op_rules.h makes is checked here from the plan alone, so no code is shared with it.
#include <fmt/format.h>

#include "ir/verify/first_receives.h"
#include "ir/verify/rules.h"
#include "ir/wanted_order.h"

namespace prepost {
namespace {

class LocalOrderRules {
 public:
  LocalOrderRules(const Plan& plan, const MatchedPlan* matched, Findings* findings)
      : plan_(plan),
        header_(plan.header()),
        roles_(plan.header().roles()),
        matched_(matched),
        findings_(findings),
        received_(plan.header().payload.blocks) {}

  void Run() {
    for (uint32_t p = 0; p < plan_.programs().size(); ++p) CheckProgram(p);
  }

 private:
  void CheckProgram(uint32_t p) {
    const Program& program = plan_.programs()[p];
    wanted_.clear();
    WantCausal(p);
    WantWindow(program);
    if (matched_ != nullptr && header_.ready.has_credits()) WantReady(program);
    for (const WantedOrder& order : UnmetOrders(plan_, program, wanted_)) {
      findings_->Add(Place::OpAt(p, order.later.value, "after"), order.rule, [&] {
        return fmt::format("{} does not wait for {}", Describe(plan_, program, order.later),
                           Describe(plan_, program, order.earlier));
      });
    }
  }

  /// A node forwards a block only after its own receive of it.
  void WantCausal(uint32_t p) {
    const Program& program = plan_.programs()[p];
    received_.Begin(plan_.ops(program));
    for (uint32_t i = 0; i < program.op_count; ++i) {
      const Op& op = plan_.ops(program)[i];
      if (!op.is_send() || op.is_credit() || roles_.Contributes(program.node, op.block)) continue;
      const uint32_t recv = received_.Of(op.block);
      if (recv == FirstReceives::kNone) {
        findings_->Add(Place::OpAt(p, i, "block"), Rule::kCausal, [&] {
          return fmt::format("node {} sends block {}, which it never receives", program.node.value,
                             op.block);
        });
      } else {
        wanted_.push_back({OpId(recv), OpId(i), Rule::kCausal});
      }
    }
  }

  /// With send window W the j-th block send comes after the (j - W)-th.
  void WantWindow(const Program& program) {
    if (!header_.send_window) return;
    std::vector<uint32_t> sends;
    for (uint32_t i = 0; i < program.op_count; ++i) {
      const Op& op = plan_.ops(program)[i];
      if (!op.is_send() || op.is_credit()) continue;
      if (sends.size() >= *header_.send_window) {
        wanted_.push_back(
            {OpId(sends[sends.size() - *header_.send_window]), OpId(i), Rule::kWindow});
      }
      sends.push_back(i);
    }
  }

  /// A block's send waits for the credit that grants its receive; in window mode the node's i-th
  /// credit waits for the receive that its (i - W)-th one grants.
  void WantReady(const Program& program) {
    const MessageTable& messages = matched_->messages;
    const CreditTable& credits = matched_->credits;
    const auto local = [&](uint32_t op) { return OpId(op - program.op_begin); };
    granted_recvs_.clear();
    for (uint32_t i = program.op_begin; i < program.op_begin + program.op_count; ++i) {
      const Op& op = plan_.ops()[i];
      if (!op.is_send() || credits.Partner(op.channel) == CreditTable::kNone) continue;
      const ChannelId partner(credits.Partner(op.channel));
      const uint32_t message = messages.MessageOf(i);
      if (!op.is_credit()) {
        const uint32_t credit =
            credits.CreditFor(partner, message - messages.ChannelBegin(op.channel));
        if (credit == CreditTable::kNone) continue;  // too few grants: CheckReady says so
        wanted_.push_back({local(messages.recv(credit)), local(i), Rule::kReady});
      } else if (header_.ready.mode == ReadyMode::kWindow) {
        const uint32_t window = header_.ready.window;
        if (granted_recvs_.size() >= window) {
          const uint32_t earlier = granted_recvs_[granted_recvs_.size() - window];
          if (earlier != kNone) wanted_.push_back({local(earlier), local(i), Rule::kReady});
        }
        const uint64_t position = credits.GrantedUpTo(message) - op.grants;
        const uint32_t begin = messages.ChannelBegin(partner);
        const bool is_there = position < messages.ChannelEnd(partner) - begin;
        granted_recvs_.push_back(is_there ? messages.recv(begin + static_cast<uint32_t>(position))
                                          : kNone);
      }
    }
  }

  static constexpr uint32_t kNone = MessageTable::kNone;

  const Plan& plan_;
  const PlanHeader& header_;
  const Roles roles_;
  const MatchedPlan* matched_;
  Findings* findings_;
  FirstReceives received_;           // of the program in hand
  std::vector<WantedOrder> wanted_;  // of the program in hand
  std::vector<uint32_t>
      granted_recvs_;  // of the program in hand: what its credits grant, in id order, or kNone
};

}  // namespace

void CheckLocalOrders(const Plan& plan, const MatchedPlan* matched, Findings* findings) {
  LocalOrderRules(plan, matched, findings).Run();
}

}  // namespace prepost
