// SPDX-License-Identifier: Apache-2.0
//
// LowerNode: one node's part of Lower(). It assumes a verified plan and checks no limits.
#ifndef PREPOST_BACKENDS_NIC_PROGRAM_NODE_LOWERING_H_
#define PREPOST_BACKENDS_NIC_PROGRAM_NODE_LOWERING_H_

#include "backends/nic/program/lower.h"
#include "backends/nic/program/queue_program.h"
#include "ir/plan.h"

namespace prepost::nic {

/// The queues of `program`, a node of `plan`. Rings are as large as needed and allowed. Linear.
NodeProgram LowerNode(const Plan& plan, const Program& program, const LowerOptions& options);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_PROGRAM_NODE_LOWERING_H_
