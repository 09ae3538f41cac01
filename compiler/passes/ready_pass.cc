// SPDX-License-Identifier: Apache-2.0
//
// ready: the plan gets the credits of the ready mode (ir/op_rules.cc), or none, and its receives
// the scratch buffers that these grant (scratch.h).
#include <fmt/format.h>

#include "compiler/pass.h"
#include "compiler/passes/scratch.h"
#include "compiler/schedules/fan.h"
#include "ir/op_rules.h"

namespace prepost {
namespace {

Result<Plan> MakeReady(const SpecReady& wanted, const Plan& plan) {
  PlanHeader header = plan.header();
  header.ready = ReadyFor(wanted, FanOf(plan));
  const Ready ready = header.ready;
  if (ready.mode == ReadyMode::kWindow && ready.window < header.ports) {
    return Rejected(
        fmt::format("window={} is too small: a node may receive {} blocks in a round, and all of "
                    "them must be granted",
                    ready.window, header.ports),
        "/ready");
  }
  return AssignScratch(WithRules(plan, std::move(header), ready, {}));
}

}  // namespace

Pass ReadyPass(SpecReady ready) {
  return {.name = "ready", .run = [ready](const Plan& plan) { return MakeReady(ready, plan); }};
}

}  // namespace prepost
