// SPDX-License-Identifier: Apache-2.0
//
// StuckReport: why a run does not go on, from what any device can report: the programs, the rings,
// and the counters of QUERY_QP and QUERY_CQ.
#ifndef PREPOST_BACKENDS_NIC_HOST_STUCK_REPORT_H_
#define PREPOST_BACKENDS_NIC_HOST_STUCK_REPORT_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "backends/nic/host/armed_node.h"
#include "ir/plan.h"

namespace prepost::nic {

/// A first line, "stuck: WHY and N send queues wait; first culprit: ...", then one line per send
/// queue that waits for it, the nearest first, then what waits for anything else: at most
/// `lines_max`. `nodes` are all nodes', in the order of ids, after CheckSoFar(). Queues of a device
/// that cannot be asked are left out, and it is named.
std::string StuckReport(const Plan& plan, std::span<const ArmedNode> nodes, std::string_view why,
                        size_t lines_max = 20);

/// The first culprit as far as one node alone can tell, whose peers are on other machines: "node 1
/// op 8 (recv credit 2>1) has not come from node 2". "" when no send queue waits. Asks the device
/// about every queue.
std::string StuckAt(const Plan& plan, const ArmedNode& node);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_STUCK_REPORT_H_
