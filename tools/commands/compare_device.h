// SPDX-License-Identifier: Apache-2.0
//
// A plan both ways over a device that each node has in a process of its own, as groups on several
// machines would: CPU-driven and preposted.
#ifndef PREPOST_TOOLS_COMMANDS_COMPARE_DEVICE_H_
#define PREPOST_TOOLS_COMMANDS_COMPARE_DEVICE_H_

#include <string>

#include "backends/local/comparison.h"
#include "ir/base/status.h"
#include "ir/verify/verify.h"

namespace prepost::tools {

/// As local::Compare(), over `device` of the registry. Of the samples' figures only those are set
/// that a node's process knows: work requests, wake-ups, completions read, latencies, processor
/// time of hosts. Busy threads are processes. Errors: those of OpenPlayerDevice(), of lowering and
/// of RunLocalGroup(). Forks: to be called while the process has one thread.
Result<local::Comparison> CompareOverDevice(const VerifiedPlan& plan, const std::string& device,
                                            const local::CompareOptions& options);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_COMMANDS_COMPARE_DEVICE_H_
