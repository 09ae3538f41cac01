// SPDX-License-Identifier: Apache-2.0
//
// The rules that are an order at one node: causal, combine, scratch, window, of replace that what
// is there was sent, and of ready that sends wait for their credits and credits for their window.
// Each collects what it wants ordered; wanted_order.h settles it. What op_rules.h makes is checked
// here from the plan alone, so no code is shared with it.
#include <fmt/format.h>

#include <optional>
#include <vector>

#include "ir/base/count.h"
#include "ir/block_history.h"
#include "ir/verify/first_receives.h"
#include "ir/verify/rules.h"
#include "ir/verify/scratch_uses.h"
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
        combines_(Combines(header_.collective.kind)),
        received_(combines_ ? 0 : header_.payload.blocks),
        history_(roles_, combines_ ? header_.payload.blocks : 0),
        scratch_(roles_, header_) {}

  void Run() {
    for (uint32_t p = 0; p < plan_.programs().size(); ++p) CheckProgram(p);
  }

 private:
  void CheckProgram(uint32_t p) {
    const Program& program = plan_.programs()[p];
    wanted_.clear();
    combines_ ? WantInIdOrder(p) : WantCausal(p);
    if (header_.scratch != 0) WantScratch(p);
    WantWindow(program);
    if (matched_ != nullptr && header_.ready.has_credits()) WantReady(program);
    for (const WantedOrder& order : UnmetOrders(plan_, program, wanted_)) {
      findings_->Add(Place::OpAt(p, order.later.value, "after"), order.rule, [&] {
        return fmt::format("{} does not wait for {}", Describe(plan_, program, order.later),
                           Describe(plan_, program, order.earlier));
      });
    }
  }

  void Want(uint32_t earlier, uint32_t later, Rule rule) {
    wanted_.push_back({OpId(earlier), OpId(later), rule});
  }

  /// A node forwards a block only after its own receive of it.
  void WantCausal(uint32_t p) {
    const Program& program = plan_.programs()[p];
    received_.Begin(plan_.ops(program));
    for (uint32_t i = 0; i < program.op_count; ++i) {
      const Op& op = plan_.ops(program)[i];
      if (!op.is_send() || op.is_credit()) continue;
      for (uint32_t block = op.block; block < op.block + op.count; ++block) {
        if (roles_.Contributes(program.node, block)) continue;
        const uint32_t recv = received_.Of(block);
        if (recv == FirstReceives::kNone) {
          findings_->Add(Place::OpAt(p, i, "block"), Rule::kCausal, [&] {
            return fmt::format("node {} sends block {}, which it never receives",
                               program.node.value, block);
          });
        } else {
          Want(recv, i, Rule::kCausal);
        }
      }
    }
  }

  /// Where blocks are combined, what an op does to a block is what its place among the ids says: a
  /// send carries what the last receive has left; a combine changes it when nobody needs the old
  /// bytes; a receive replaces it when they were sent, once and whole (what comes shows that they
  /// have left: CheckValues()). Before the first receive the bytes lie in the input, which nobody
  /// writes.
  void WantInIdOrder(uint32_t p) {
    const Program& program = plan_.programs()[p];
    history_.Begin(program.node);
    for (uint32_t i = 0; i < program.op_count; ++i) {
      const Op& op = plan_.ops(program)[i];
      if (op.is_credit()) continue;
      for (uint32_t block = op.block; block < op.block + op.count; ++block) {
        WantInIdOrder(p, i, block, history_.Of(block));
        history_.Add(block, i, op.kind);
      }
    }
  }

  void WantInIdOrder(uint32_t p, uint32_t i, uint32_t block, const BlockPast& past) {
    const Program& program = plan_.programs()[p];
    switch (plan_.ops(program)[i].kind) {
      case OpKind::kSend:
        if (!past.is_there) {
          findings_->Add(Place::OpAt(p, i, "block"), Rule::kCausal, [&] {
            return fmt::format("node {} sends block {}, which has not come before",
                               program.node.value, block);
          });
        } else if (past.received != kNone) {
          Want(past.received, i, Rule::kCausal);
        }
        return;
      case OpKind::kCombine:
        if (!past.is_there) {
          findings_->Add(Place::OpAt(p, i, "block"), Rule::kCombine, [&] {
            return fmt::format("node {} has nothing of block {} to combine with",
                               program.node.value, block);
          });
        } else if (past.received != kNone) {
          Want(past.received, i, Rule::kCombine);
          if (header_.payload.BlockSize(block) == 0) return;  // nobody reads it
          history_.ForEachSend(past, [&](uint32_t send) { Want(send, i, Rule::kCombine); });
        }
        return;
      case OpKind::kRecv:
        if (past.received == kNone || (past.sends == 1 && past.sends_since == 1)) return;
        findings_->Add(Place::OpAt(p, i, "block"), Rule::kReplace, [&] {
          return fmt::format(
              "block {} replaces what node {} has, which it has sent {} before, {} of them since "
              "it "
              "changed, expected once",
              block, program.node.value, Count(past.sends, "time"), past.sends_since);
        });
        return;
    }
  }

  /// A receive into a used buffer is granted when nobody needs what it held.
  void WantScratch(uint32_t p) {
    const Program& program = plan_.programs()[p];
    const bool may_reuse = header_.ready.mode == ReadyMode::kWindow;
    scratch_.Begin(program.node, plan_.ops(program));
    for (const ScratchReuse& reuse : scratch_.reuses()) {
      if (!may_reuse) {
        findings_->Add(Place::OpAt(p, reuse.op, "scratch"), Rule::kScratch, [&] {
          return fmt::format(
              "buffer {} serves op {} already, and ready mode {} has no credits that "
              "say when it is free",
              reuse.buffer, reuse.holder, Name(header_.ready.mode));
        });
      } else if (matched_ != nullptr) {
        const std::optional<uint32_t> credit = CreditOf(program, reuse.op);
        if (!credit) continue;  // CheckReady says so
        scratch_.ForEachUse(reuse, [&](uint32_t use) { Want(use, *credit, Rule::kScratch); });
      }
    }
  }

  /// The credit that grants receive `op`, both by their ids.
  std::optional<uint32_t> CreditOf(const Program& program, uint32_t op) const {
    const uint32_t index = program.op_begin + op;
    const ChannelId channel = plan_.ops()[index].channel;
    const uint32_t partner = matched_->credits.Partner(channel);
    if (partner == CreditTable::kNone) return std::nullopt;
    const MessageTable& messages = matched_->messages;
    const uint32_t credit = matched_->credits.CreditFor(
        ChannelId(partner), messages.MessageOf(index) - messages.ChannelBegin(channel));
    if (credit == CreditTable::kNone) return std::nullopt;
    return messages.send(credit) - program.op_begin;
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
  const bool combines_;
  FirstReceives received_;           // of the program in hand, where nothing is combined
  BlockHistory history_;             // of the program in hand, where blocks are combined
  ScratchUses scratch_;              // of the program in hand
  std::vector<WantedOrder> wanted_;  // of the program in hand
  std::vector<uint32_t>
      granted_recvs_;  // of the program in hand: what its credits grant, in id order, or kNone
};

}  // namespace

void CheckLocalOrders(const Plan& plan, const MatchedPlan* matched, Findings* findings) {
  LocalOrderRules(plan, matched, findings).Run();
}

}  // namespace prepost
