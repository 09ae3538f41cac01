// SPDX-License-Identifier: Apache-2.0
//
// match: every send has its receive and carries the blocks that it names. value, where nothing is
// combined: every node gets every block that it lacks, and none twice or that it has. As a block
// has one source and only what has come is sent on (causal), what comes is then right.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/count.h"
#include "ir/verify/rules.h"

namespace prepost {
namespace {

/// "block 3", "blocks 3 to 5".
std::string BlocksOf(const Op& op) {
  if (op.count == 1) return fmt::format("block {}", op.block);
  return fmt::format("blocks {} to {}", op.block, op.block + op.count - 1);
}

class ReceiptRule {
 public:
  ReceiptRule(const Plan& plan, Findings* findings)
      : plan_(plan),
        roles_(plan.header().roles()),
        findings_(findings),
        seen_in_(plan.header().payload.blocks, MessageTable::kNone),
        seen_at_(plan.header().payload.blocks) {}

  void Run() {
    for (uint32_t p = 0; p < plan_.programs().size(); ++p) {
      const Program& program = plan_.programs()[p];
      wanted_count_ = 0;
      for (uint32_t i = 0; i < program.op_count; ++i) {
        const Op& op = plan_.ops(program)[i];
        if (op.is_send() || op.is_credit()) continue;
        for (uint32_t block = op.block; block < op.block + op.count; ++block)
          CheckReceipt(p, i, block);
      }
      CheckAllCame(p);
    }
  }

 private:
  void CheckReceipt(uint32_t p, uint32_t i, uint32_t block) {
    const NodeId node = plan_.programs()[p].node;
    if (roles_.Contributes(node, block)) {
      findings_->Add(Place::OpAt(p, i), Rule::kValue, [&] {
        return fmt::format("node {} receives block {}, which it has", node.value, block);
      });
    } else if (seen_in_[block] == p) {
      findings_->Add(Place::OpAt(p, i, "block"), Rule::kValue, [&] {
        return fmt::format("block {} is received a second time, first by op {}", block,
                           seen_at_[block]);
      });
    } else {
      if (roles_.Wants(node, block)) ++wanted_count_;
      seen_in_[block] = p;
      seen_at_[block] = i;
    }
  }

  void CheckAllCame(uint32_t p) {
    const NodeId node = plan_.programs()[p].node;
    const PartRow wanted = roles_.Wanted(node), own = roles_.Contributed(node);
    const uint32_t size = roles_.blocks_per_part();
    // Of most collectives a node wants all parts or has all, and has or wants few.
    const bool is_own_fewer = own.count < wanted.count;
    const PartRow& fewer = is_own_fewer ? own : wanted;
    const PartRow& more = is_own_fewer ? wanted : own;
    uint64_t common = 0;
    for (uint32_t i = 0; i < fewer.count; ++i) {
      if (more.Has(fewer.At(i))) ++common;
    }
    const uint64_t lacked = (wanted.count - common) * size;
    if (wanted_count_ == lacked) return;
    findings_->Add(Place::ProgramAt(p), Rule::kValue, [&] {
      return fmt::format("node {} receives {} of {}, block {} is missing", node.value,
                         wanted_count_, Count(lacked, "block"), FirstMissing(p, wanted, own));
    });
  }

  uint32_t FirstMissing(uint32_t p, const PartRow& wanted, const PartRow& own) const {
    const uint32_t size = roles_.blocks_per_part();
    for (uint32_t i = 0; i < wanted.count; ++i) {
      if (own.Has(wanted.At(i))) continue;
      for (uint32_t block = wanted.At(i) * size; block < (wanted.At(i) + 1) * size; ++block) {
        if (seen_in_[block] != p) return block;
      }
    }
    PREPOST_CHECK(false);
    return 0;
  }

  const Plan& plan_;
  const Roles roles_;
  Findings* findings_;
  std::vector<uint32_t> seen_in_;  // block -> the program that received it last
  std::vector<uint32_t> seen_at_;  // block -> its op there
  uint64_t wanted_count_ = 0;      // blocks that the program in hand wants and receives
};

}  // namespace

void CheckMatch(const Plan& plan, const MessageTable& messages, Findings* findings) {
  for (uint32_t m = 0; m < messages.size(); ++m) {
    const uint32_t send = messages.send(m);
    const uint32_t recv = messages.recv(m);
    if (send == MessageTable::kNone || recv == MessageTable::kNone) {
      const Op& op = plan.ops()[send == MessageTable::kNone ? recv : send];
      const Channel& channel = plan.channels()[op.channel.index()];
      findings->Add(PlaceOf(plan, send == MessageTable::kNone ? recv : send), Rule::kMatch, [&] {
        return fmt::format("{} number {} on {}>{} lane {} has no {}", Name(op.kind),
                           m - messages.ChannelBegin(op.channel), channel.from.value,
                           channel.to.value, NumberOf(channel.lane),
                           send == MessageTable::kNone ? "send" : "recv");
      });
      continue;
    }
    const Op& sent = plan.ops()[send];
    const Op& received = plan.ops()[recv];
    if (sent.block == received.block && sent.count == received.count) continue;
    findings->Add(PlaceOf(plan, recv, "block"), Rule::kMatch, [&] {
      return fmt::format("receives {}, but its send {} sends {}", BlocksOf(received),
                         PlaceOf(plan, send).Pointer(), BlocksOf(sent));
    });
  }
}

void CheckReceipts(const Plan& plan, Findings* findings) { ReceiptRule(plan, findings).Run(); }

}  // namespace prepost
