// SPDX-License-Identifier: Apache-2.0
//
// send_window=W: the j-th block send of a node comes after its (j - W)-th, so that at most W of its
// blocks are in flight.
//
// Sends are counted in id order over all channels of the node; credits are exempt, since a credit
// that waited behind a block could hold up the very transfer that the block waits for. With W = 1 a
// node's uplink carries one block at a time, as the schedule assumes; with more, or none, several
// blocks share it and each arrives later.
//
// Example: the root of a binomial pipeline for 4 nodes sends 0>1:0, 0>2:1, 0>1:2: with W = 1 each
// is after the one before.
#include <llvm/ADT/SmallVector.h>

#include <algorithm>

#include "compiler/pass.h"
#include "compiler/schedules/fan.h"

namespace prepost {
namespace {

Result<Plan> LimitSends(const SpecSendWindow& wanted, const Plan& plan) {
  PlanBuilder builder(plan.header());
  const std::optional<uint32_t> window = SendWindowFor(wanted, FanOf(plan));
  builder.header().send_window = window;
  builder.Reserve(plan.ops().size(), plan.after_count() + (window ? plan.ops().size() / 2 : 0));
  for (const Channel& channel : plan.channels()) builder.AddChannel(channel);

  std::vector<OpId> sends;  // block sends of the node so far
  llvm::SmallVector<OpId, 8> after;
  for (const Program& program : plan.programs()) {
    builder.BeginProgram(program.node);
    sends.clear();
    for (size_t i = 0; i < program.op_count; ++i) {
      const Op& op = plan.ops(program)[i];
      const std::span<const OpId> given = plan.after(op);
      after.assign(given.begin(), given.end());
      if (op.is_send() && !op.is_credit()) {
        if (window && sends.size() >= *window) {
          const OpId earlier = sends[sends.size() - *window];
          const auto place = std::ranges::lower_bound(after, earlier);
          if (place == after.end() || *place != earlier) after.insert(place, earlier);
        }
        sends.push_back(OpId::FromIndex(i));
      }
      builder.AddOp(op, {after.data(), after.size()});
    }
  }
  return std::move(builder).Build();
}

}  // namespace

Pass SendWindowPass(SpecSendWindow send_window) {
  return {.name = "send_window",
          .run = [send_window](const Plan& plan) { return LimitSends(send_window, plan); }};
}

}  // namespace prepost
