// SPDX-License-Identifier: Apache-2.0
//
// send_window=W: the j-th block send of a node comes after its (j - W)-th (ir/op_rules.cc).
//
// Example: the root of a binomial pipeline for 4 nodes sends 0>1:0, 0>2:1, 0>1:2: with W = 1 each
// is after the one before.
#include "compiler/pass.h"
#include "compiler/schedules/fan.h"
#include "ir/op_rules.h"

namespace prepost {

Pass SendWindowPass(SpecSendWindow send_window) {
  return {.name = "send_window", .run = [send_window](const Plan& plan) -> Result<Plan> {
            PlanHeader header = plan.header();
            header.send_window = SendWindowFor(send_window, FanOf(plan));
            const std::optional<uint32_t> window = header.send_window;
            return WithRules(plan, std::move(header), {}, window);
          }};
}

}  // namespace prepost
