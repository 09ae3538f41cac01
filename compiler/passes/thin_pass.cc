// SPDX-License-Identifier: Apache-2.0
//
// thin: the transitive reduction of every `after` list.
//
// An entry goes when it follows from the other entries and from the channel's own order
// (local_order.h). The order that remains is the same, entry for entry fewer counters for the CPU
// executor and fewer WAITs for a NIC. Reductions of a partial order are unique, so all redundant
// entries can go at once.
//
// Example, node 1 of a chain with send_window=1: send b1 after {recv b1, send b0}. Neither implies
// the other: both stay. In a tree's inner node, "send b0 to the second child after {recv b0, send
// b2 to the first child}" loses recv b0, since send b2 started only after recv b2, and receives of
// one channel complete in order.
//
// Cost: LocalOrder's.
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>

#include "compiler/pass.h"
#include "ir/local_order.h"

namespace prepost {
namespace {

/// Whether no entry of the program can follow from others, seen without a walk: no op waits for
/// two ops, or for what its channel's previous send, or combine, has waited for or is.
bool IsPlainlyThin(const Plan& plan, const Program& program) {
  llvm::DenseMap<uint32_t, uint32_t> last_of_channel;  // op; a channel has sends or combines
  const std::span<const Op> ops = plan.ops(program);
  for (uint32_t i = 0; i < ops.size(); ++i) {
    if (!ops[i].may_wait()) continue;
    const auto [previous, is_first] = last_of_channel.try_emplace(ops[i].channel.value, i);
    if (ops[i].after_count > 1) return false;
    if (ops[i].after_count == 1 && !is_first && plan.after(ops[i])[0].value <= previous->second)
      return false;
    previous->second = i;
  }
  return true;
}

Result<Plan> Thin(const Plan& plan) {
  PlanBuilder builder(plan.header());
  builder.Reserve(plan.ops().size(), plan.after_count());
  for (const Channel& channel : plan.channels()) builder.AddChannel(channel);
  llvm::SmallVector<OpId, 8> kept;
  for (const Program& program : plan.programs()) {
    builder.BeginProgram(program.node);
    if (IsPlainlyThin(plan, program)) {
      for (const Op& op : plan.ops(program)) builder.AddOp(op, plan.after(op));
      continue;
    }
    LocalOrder order(plan, program);
    for (const Op& op : plan.ops(program)) {
      order.Advance();
      kept.clear();
      const std::span<const OpId> after = plan.after(op);
      for (size_t i = 0; i < after.size(); ++i) {
        if (!order.IsImplied(i)) kept.push_back(after[i]);
      }
      builder.AddOp(op, {kept.data(), kept.size()});
    }
  }
  return std::move(builder).Build();
}

}  // namespace

Pass ThinPass() { return {.name = "thin", .run = Thin}; }

}  // namespace prepost
