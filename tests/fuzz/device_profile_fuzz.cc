// SPDX-License-Identifier: Apache-2.0
//
// A device profile from anywhere: what is read is within its ranges, and a plan that is lowered for
// it keeps to it, in both modes; what is refused has a place.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "backends/nic/program/device_profile.h"
#include "backends/nic/program/lower.h"
#include "compiler/compile.h"

namespace {

using prepost::nic::DeviceProfile;

const prepost::VerifiedPlan& SomePlan() {
  static const prepost::VerifiedPlan plan = [] {
    prepost::Spec spec;
    spec.nodes = 5;
    spec.message_bytes = 3950;
    spec.block_bytes = 100;
    return prepost::Compile(spec).value();
  }();
  return plan;
}

void CheckRings(const prepost::nic::NodeProgram& node, const DeviceProfile& profile) {
  PREPOST_CHECK(node.qps.size() <= profile.qps && node.cqs.size() <= profile.cqs);
  for (const prepost::nic::QueuePair& qp : node.qps) {
    PREPOST_CHECK(qp.sq_wqebbs <= profile.sq_wqebbs && qp.rq_wqes <= profile.rq_wqes);
    PREPOST_CHECK(!qp.sends_in_parts() || qp.sq_wqebbs <= profile.wq_ahead);
    PREPOST_CHECK(!qp.receives_in_parts() || qp.rq_wqes <= profile.wq_ahead);
  }
  for (const prepost::nic::CompletionQueue& cq : node.cqs) {
    PREPOST_CHECK(cq.entries <= profile.cq_entries && cq.completions <= profile.cq_ahead);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const auto profile = prepost::nic::ReadDeviceProfile(in, "device");
  if (!profile.ok()) {
    PREPOST_CHECK(profile.status().ToString().starts_with("device:"));
    return 0;
  }
  PREPOST_CHECK(profile->sq_at_once() >= prepost::nic::kRingEntriesMin &&
                profile->rq_at_once() >= prepost::nic::kRingEntriesMin);
  for (const auto mode :
       {prepost::nic::LoweringMode::kInline, prepost::nic::LoweringMode::kManaged}) {
    const auto program = prepost::nic::Lower(SomePlan(), {.mode = mode, .profile = *profile});
    if (!program.ok()) {
      PREPOST_CHECK(!program.status().message().empty());
      continue;
    }
    for (const auto& node : program->nodes) CheckRings(node, *profile);
  }
  return 0;
}
