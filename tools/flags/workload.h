// SPDX-License-Identifier: Apache-2.0
//
// Workload: a workload file with its plans, as RunSimulation() wants it.
#ifndef PREPOST_TOOLS_FLAGS_WORKLOAD_H_
#define PREPOST_TOOLS_FLAGS_WORKLOAD_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "backends/nic/program/lower.h"
#include "ir/plan.h"
#include "ir/status.h"
#include "ir/verify/verify.h"
#include "sim/group.h"

namespace prepost::tools {

/// Move only: groups point to plans.
struct Workload {
  std::string name;  ///< the file's if it does not say one
  uint32_t hosts = 0;
  std::deque<VerifiedPlan> plans;  ///< each once, however many groups have it
  std::vector<sim::Group> groups;

  Workload() = default;
  Workload(Workload&&) = default;
  Workload& operator=(Workload&&) = default;
};

/// Reads the file `path` ("-": stdin), its plans, and compiles its specs; `lower` and `is_quiet` as in
/// CompileForDevice(). Errors: kRejected, with the place in the file.
Result<Workload> LoadWorkload(const std::string& path, const nic::LowerOptions* lower,
                              bool is_quiet);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_WORKLOAD_H_
