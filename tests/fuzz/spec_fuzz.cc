// SPDX-License-Identifier: Apache-2.0
//
// A spec from a stranger: read or refused, the same after it is written and read again, what it
// leaves open chosen, and compiled, where it is small, to a plan that the verifier accepts.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "compiler/choice/choice.h"
#include "compiler/compile.h"
#include "compiler/spec_json.h"
#include "ir/verify/verify.h"

namespace {

constexpr uint32_t kNodesMax = 40;
constexpr uint64_t kBlocksMax = 40;

std::string Written(const prepost::Spec& spec) {
  std::ostringstream out;
  prepost::WriteSpec(spec, out);
  return out.str();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const prepost::Result<prepost::Spec> spec = prepost::ReadSpec(in, "spec");
  if (!spec.ok()) {
    PREPOST_CHECK(!spec.status().message().empty());
    return 0;
  }
  const std::string text = Written(*spec);
  std::istringstream again_in(text);
  const prepost::Result<prepost::Spec> again = prepost::ReadSpec(again_in, "written");
  PREPOST_CHECK(again.ok() && Written(*again) == text);

  prepost::Spec chosen = *spec;
  if (chosen.collective != prepost::CollectiveKind::kMulticast) chosen = WithDefaults(chosen);
  if (IsAutomatic(chosen)) {
    if (chosen.nodes > kNodesMax) return 0;
    const prepost::Result<prepost::Choice> choice = Choose(chosen, {});
    if (!choice.ok()) return 0;
    chosen = Resolve(std::move(chosen), *choice);
    PREPOST_CHECK(CheckSpec(chosen).ok());
  }
  const bool is_small = chosen.nodes <= kNodesMax && chosen.block_bytes > 0 &&
                        chosen.message_bytes.has_value() &&
                        *chosen.message_bytes / chosen.block_bytes < kBlocksMax;
  if (!is_small) return 0;
  const prepost::Result<prepost::VerifiedPlan> plan = prepost::Compile(chosen);
  PREPOST_CHECK(!plan.ok() || prepost::Verify(*plan).ok());
  return 0;
}
