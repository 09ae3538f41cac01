// SPDX-License-Identifier: Apache-2.0
//
// LabelOps: which op of the plan each entry of a queue program carries out. No byte of a queue says
// so; lowering knows it, and for a program that was read from somewhere else it is found here.
#ifndef PREPOST_BACKENDS_NIC_PROGRAM_OP_LABELS_H_
#define PREPOST_BACKENDS_NIC_PROGRAM_OP_LABELS_H_

#include "backends/nic/program/queue_program.h"
#include "ir/plan.h"

namespace prepost::nic {

/// Sets `op` of every entry, whatever it was: what Lower() sets, of a program that it made. Needs
/// one that ValidateProgram() accepts for `plan`. Linear, and per node in the plan's channels.
void LabelOps(const Plan& plan, QueueProgram* program);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_PROGRAM_OP_LABELS_H_
