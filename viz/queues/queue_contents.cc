// SPDX-License-Identifier: Apache-2.0
#include "viz/queues/queue_contents.h"

#include <fmt/format.h>

#include "runtime/executor/program.h"

namespace prepost::viz {

ShownOps::ShownOps(const Plan& plan, NodeId node, const Selection& selection)
    : plan_(plan), selection_(selection), ops_(plan.ops(ProgramOf(plan, node))) {}

bool ShownOps::Has(OpId id) const {
  if (all()) return true;
  if (id == nic::kNoOp) return false;
  const Op& op = ops_[id.index()];
  return selection_.HasBlock(op.block) && selection_.HasRound(op.round);
}

std::string ShownOps::Name(OpId id) const {
  if (id == nic::kNoOp) return "the end";
  const Op& op = ops_[id.index()];
  const Channel& channel = plan_.channels()[op.channel.index()];
  return fmt::format("{} {} {} {}", prepost::Name(op.kind),
                     op.is_credit() ? "credit" : fmt::format("b{}", op.block),
                     op.is_send() ? "to" : "from",
                     op.is_send() ? channel.to.value : channel.from.value);
}

}  // namespace prepost::viz
