// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/executor_choice.h"

#include <fmt/format.h>

#include "ir/collective.h"

namespace prepost {

std::optional<std::string> WhyNotPreposted(const Plan& plan) {
  if (IsPlainMulticast(plan)) return std::nullopt;
  const CollectiveKind kind = plan.header().collective.kind;
  if (kind == CollectiveKind::kMulticast) return ExpectPlainMulticast(plan).message();
  const char* const collective = Name(kind);
  if (plan.header().combine.is_none())
    return fmt::format("a plan of {}: queues of NICs carry multicasts", collective);
  return fmt::format("a plan of {}, which combines: a NIC does not, CPUs do", collective);
}

}  // namespace prepost
