// SPDX-License-Identifier: Apache-2.0
//
// StuckReport: why a run cannot go on, as the wait-for graph in words: who waits for what, what
// would bring it, and what that stands at.
#ifndef PREPOST_BACKENDS_EMULATED_STUCK_REPORT_H_
#define PREPOST_BACKENDS_EMULATED_STUCK_REPORT_H_

#include <span>
#include <string>

#include "prepost/backends/emulated/engine.h"
#include "prepost/backends/nic/armed_node.h"
#include "prepost/ir/plan.h"

namespace prepost::emulated {

/// One line per send queue that cannot go on, at most `lines_max`, those of the plan's ops before
/// those that only wait for everything. `nodes` are in the order of node ids.
std::string StuckReport(const Plan& plan, std::span<const nic::ArmedNode> nodes,
                        std::span<const ParkedQueue> parked, size_t lines_max = 20);

}  // namespace prepost::emulated

#endif  // PREPOST_BACKENDS_EMULATED_STUCK_REPORT_H_
