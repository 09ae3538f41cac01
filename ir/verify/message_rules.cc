// SPDX-License-Identifier: Apache-2.0
//
// match: every send has its receive and carries the block that it names. once: every node gets
// every block once.
#include <fmt/format.h>

#include <algorithm>

#include "ir/count.h"
#include "ir/verify/rules.h"

namespace prepost {

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
    } else if (plan.ops()[send].block != plan.ops()[recv].block) {
      findings->Add(PlaceOf(plan, recv, "block"), Rule::kMatch, [&] {
        return fmt::format("receives block {}, but its send {} sends block {}",
                           plan.ops()[recv].block, PlaceOf(plan, send).Pointer(),
                           plan.ops()[send].block);
      });
    }
  }
}

void CheckOnce(const Plan& plan, Findings* findings) {
  const PlanHeader& header = plan.header();
  const Roles roles = header.roles();
  // Per block: the program that received it last, and its op there.
  std::vector<uint32_t> seen_in(header.payload.blocks, MessageTable::kNone);
  std::vector<uint32_t> seen_at(header.payload.blocks);
  for (uint32_t p = 0; p < plan.programs().size(); ++p) {
    const Program& program = plan.programs()[p];
    uint32_t received = 0;
    for (uint32_t i = 0; i < program.op_count; ++i) {
      const Op& op = plan.ops(program)[i];
      if (op.is_send() || op.is_credit()) continue;
      if (!roles.Lacks(program.node, op.block)) {
        findings->Add(Place::OpAt(p, i), Rule::kOnce, [&] {
          return fmt::format("the root receives block {}, which it has", op.block);
        });
      } else if (seen_in[op.block] == p) {
        findings->Add(Place::OpAt(p, i, "block"), Rule::kOnce, [&] {
          return fmt::format("block {} is received a second time, first by op {}", op.block,
                             seen_at[op.block]);
        });
      } else {
        ++received;
        seen_in[op.block] = p;
        seen_at[op.block] = i;
      }
    }
    if (roles.IsTarget(program.node) && received != header.payload.blocks) {
      findings->Add(Place::ProgramAt(p), Rule::kOnce, [&] {
        const auto missing =
            std::ranges::find_if(seen_in, [&](uint32_t seen) { return seen != p; });
        return fmt::format("node {} receives {} of {}, block {} is missing", program.node.value,
                           received, Count(header.payload.blocks, "block"),
                           missing - seen_in.begin());
      });
    }
  }
}

}  // namespace prepost
