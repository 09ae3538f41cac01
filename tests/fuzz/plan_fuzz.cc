// SPDX-License-Identifier: Apache-2.0
//
// A plan file from a stranger: read or refused, the same after it is written and read again, and
// the verifier's verdict on it is that of the independent checker.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "ir/json/plan_json.h"
#include "ir/verify/verify.h"
#include "tests/support/checker.h"

namespace {

/// The independent checker is slow on purpose: it follows the text of the rules.
constexpr size_t kCheckedOpsMax = 100;
constexpr uint32_t kCheckedNodesMax = 64;

std::string Written(const prepost::Plan& plan, prepost::PlanEncoding encoding) {
  std::ostringstream out;
  prepost::WritePlan(plan, out, encoding);
  return out.str();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const prepost::Result<prepost::Plan> plan = prepost::ReadPlan(in, "plan");
  if (!plan.ok()) {
    PREPOST_CHECK(!plan.status().message().empty());
    return 0;
  }
  for (const auto encoding : {prepost::PlanEncoding::kRows, prepost::PlanEncoding::kColumns}) {
    const std::string text = Written(*plan, encoding);
    std::istringstream again_in(text);
    const prepost::Result<prepost::Plan> again = prepost::ReadPlan(again_in, "written");
    PREPOST_CHECK(again.ok() && *again == *plan && Written(*again, encoding) == text);
  }

  const prepost::Verdict verdict = prepost::Verify(*plan);
  if (plan->ops().size() > kCheckedOpsMax || plan->header().nodes > kCheckedNodesMax) return 0;
  PREPOST_CHECK(verdict.ok() == prepost::test::IndependentCheck(*plan).empty());
  return 0;
}
