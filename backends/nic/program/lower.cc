// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/program/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "backends/nic/program/fit.h"
#include "backends/nic/program/node_lowering.h"
#include "ir/verify/verify.h"
#include "runtime/executor/executor_choice.h"

namespace prepost::nic {

Result<QueueProgram> Lower(const VerifiedPlan& plan, const LowerOptions& options) {
  if (const std::optional<std::string> why = WhyNotPreposted(plan)) return Rejected(*why);
  const PlanHeader& header = plan.header();
  if (options.node && options.node->value >= header.nodes) {
    return Rejected(fmt::format("no node {}: the plan has nodes 0 to {}", options.node->value,
                                header.nodes - 1));
  }
  FitCheck check(header, options);
  PREPOST_RETURN_IF_ERROR(check.status());
  QueueProgram out{.payload = header.payload, .mode = options.mode};
  out.rnr_retry = RnrRetryOf(header);
  for (size_t i = 0; i < plan.programs().size(); ++i) {
    const Program& program = plan.programs()[i];
    if (options.node && program.node != *options.node) continue;
    NodeProgram lowered = LowerNode(plan, program, options);
    check.Add(lowered, i);
    PREPOST_RETURN_IF_ERROR(check.status());
    out.nodes.push_back(std::move(lowered));
  }
  std::ranges::sort(out.nodes, {}, &NodeProgram::node);
  return out;
}

}  // namespace prepost::nic
