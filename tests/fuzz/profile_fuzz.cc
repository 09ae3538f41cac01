// SPDX-License-Identifier: Apache-2.0
//
// A profile from anywhere: what is read makes a network for any number of nodes, and a plan runs on
// it, by both executors, or it is said what cannot be modelled; what is refused has a place.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "compiler/compile.h"
#include "sim/cluster/profile.h"
#include "sim/runs/cpu_driven.h"
#include "sim/runs/preposted.h"
#include "tests/support/preposted_alone.h"

namespace {

using prepost::emulated::kNever;

void CheckRun(const prepost::Status& status, prepost::emulated::Picoseconds completion) {
  if (status.ok()) {
    PREPOST_CHECK(completion >= 0 && completion < kNever);
    return;
  }
  const std::string error = status.ToString();
  bool is_known = false;
  for (const char* text : {"can be modelled", "too far apart to be modelled", "cores are away",
                           "the last that the clock can show", "can be divided among"}) {
    is_known = is_known || error.find(text) != std::string::npos;
  }
  PREPOST_CHECK(is_known);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const auto profile = prepost::sim::ReadProfile(in, "profile");
  if (!profile.ok()) {
    PREPOST_CHECK(profile.status().ToString().starts_with("profile:"));
    return 0;
  }
  PREPOST_CHECK(profile->host.cores >= 1 && profile->host.copy_rate > 0);
  for (const uint32_t nodes : {1u, 2u, 33u}) {
    PREPOST_CHECK(CheckNetwork(profile->NetworkOf(nodes), nodes).ok());
  }
  static const prepost::VerifiedPlan plan =
      *prepost::Compile({.nodes = 5, .message_bytes = 70'000, .block_bytes = 10'000});
  const prepost::Network network = profile->NetworkOf(5);
  const auto offload = prepost::sim::RunPrepostedAlone(plan, network, {.costs = profile->nic});
  CheckRun(offload.status(), offload.ok() ? offload->completion : 0);
  const prepost::sim::Group group{.plan = &plan};
  const auto hosts = prepost::sim::RunCpuDriven(
      {&group, 1}, network,
      {.nic = profile->nic, .host = profile->host, .wait = prepost::WaitMode::kHybrid});
  CheckRun(hosts.status(), hosts.ok() ? hosts->groups[0].completion : 0);
  return 0;
}
