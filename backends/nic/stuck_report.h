// SPDX-License-Identifier: Apache-2.0
//
// StuckReport: why a run does not go on, from what any device can tell: the programs, the rings, and
// the counters of QUERY_QP and QUERY_CQ.
#ifndef PREPOST_BACKENDS_NIC_STUCK_REPORT_H_
#define PREPOST_BACKENDS_NIC_STUCK_REPORT_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "prepost/backends/nic/armed_node.h"
#include "prepost/ir/plan.h"

namespace prepost::nic {

/// A first line, "stuck: WHY and N send queues wait; first culprit: ...", then one line per send
/// queue that waits for it, the nearest first, then what waits for anything else: at most
/// `lines_max`. `nodes` are all of the plan's or those that are at hand, after CheckSoFar(); what
/// waits for another node ends there. Queues of a device that cannot be asked are left out, and it
/// is named.
std::string StuckReport(const Plan& plan, std::span<const ArmedNode> nodes, std::string_view why,
                        size_t lines_max = 20);
/// The same in one line, without why: "N send queues wait; first culprit: ...; ...".
std::string StuckLine(const Plan& plan, std::span<const ArmedNode> nodes, size_t queues_max);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_STUCK_REPORT_H_
