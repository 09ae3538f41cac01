// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/played_plan.h"

#include <fmt/format.h>

#include <utility>

#include "compiler/roll.h"
#include "compiler/verify_rolled.h"
#include "tools/flags/message.h"
#include "tools/report/ticker.h"

namespace prepost::tools {

Status CheckSize(const RolledPlan& rolled, uint64_t bytes, const std::string& what) {
  const Status status = rolled.HeaderFor(bytes).status();
  if (status.ok()) return {};
  const bool needs_larger_blocks = bytes <= kMessageBytesMax;
  const std::string hint = needs_larger_blocks
                               ? fmt::format("; compile the plan with --block-bytes {} or more",
                                             (bytes - 1) / kBlocksMax + 1)
                               : "";
  return Rejected(status.message() + hint, what);
}

Result<PlayedPlan> PlayedPlan::Rolled(RolledPlan rolled, uint64_t bytes, const std::string& path) {
  const Result<PlanHeader> header = rolled.HeaderFor(bytes);
  if (!header.ok()) return Rejected(header.status().ToString(), path);
  const Status verified = [&] {
    const Ticker ticker("verifying " + path);
    return VerifyRolledFor(rolled, header->message.blocks);
  }();
  if (!verified.ok()) {
    return Rejected("the plan fails verification: " + verified.ToString(), path);
  }
  PlayedPlan plan;
  plan.rolled_ = std::make_unique<RolledPlan>(std::move(rolled));
  Result<RolledPlay> play = RolledPlay::Make(*plan.rolled_, bytes);
  if (!play.ok()) return Rejected(play.status().ToString(), path);
  plan.play_ = std::make_unique<RolledPlay>(std::move(*play));
  return plan;
}

Result<PlayedPlan> PlayedPlan::Unrolled(const RolledPlan& rolled, uint64_t bytes,
                                        const std::string& path, const std::string& what) {
  Result<VerifiedPlan> plan = [&] {
    const Ticker ticker("unrolling");
    return Unroll(rolled, bytes);
  }();
  if (!plan.ok()) return Rejected(plan.status().ToString(), path);
  PrintNote(fmt::format("{} has all ops of a plan: the rolled plan is unrolled", what));
  PlayedPlan played(std::move(*plan));
  played.whole_ = HashRolledPlan(rolled);
  return played;
}

}  // namespace prepost::tools
