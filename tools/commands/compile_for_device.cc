// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/compile_for_device.h"

#include <fmt/format.h>

#include "backends/nic/program/fit.h"
#include "compiler/compile.h"
#include "tools/flags/message.h"

namespace prepost::tools {

Result<VerifiedPlan> CompileForDevice(const Spec& spec, const nic::LowerOptions* lower,
                                      bool is_quiet) {
  Result<VerifiedPlan> plan = Compile(spec);
  if (!plan.ok() || lower == nullptr || !spec.ready.automatic) return plan;
  const PlanHeader& header = plan->header();
  if (header.ready.mode != ReadyMode::kBarrier && header.ready.mode != ReadyMode::kChannel) {
    return plan;
  }
  const uint32_t at_once = lower->profile.rq_at_once();
  if (header.message.blocks <= at_once || nic::CheckFit(*plan, *lower).ok()) return plan;
  Spec windowed = spec;
  windowed.ready = {.automatic = false, .ready = {.mode = ReadyMode::kWindow, .window = 1}};
  Result<VerifiedPlan> other = Compile(windowed);
  if (!other.ok() || !nic::CheckFit(*other, *lower).ok()) return plan;
  if (is_quiet) return other;
  PrintNote(
      fmt::format("compiled with --ready window=1: with {}, as auto has it here, more than the "
                  "{} "
                  "receives that device profile {} holds must be posted at once",
                  ToString(header.ready), at_once, lower->profile.name));
  return other;
}

}  // namespace prepost::tools
