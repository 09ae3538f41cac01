// SPDX-License-Identifier: Apache-2.0
//
// ObjectTable: linked queue programs as translation validation wants them.
#ifndef PREPOST_BACKENDS_NIC_VALIDATE_OBJECT_TABLE_H_
#define PREPOST_BACKENDS_NIC_VALIDATE_OBJECT_TABLE_H_

#include <cstdint>

#include "backends/nic/host/armed_node.h"
#include "backends/nic/host/queue_objects.h"
#include "backends/nic/program/link.h"
#include "backends/nic/program/queue_program.h"
#include "backends/nic/validate/validate.h"
#include "ir/base/status.h"
#include "ir/plan.h"

namespace prepost::nic {

/// Numbers for when there are no objects: QPN kExampleQpn + position and so on, the same at every
/// node, and counters that are about to wrap, so that nothing is right by chance.
inline constexpr uint32_t kExampleQpn = 0x1000;
inline constexpr uint32_t kExampleCqn = 0x400;
Bindings ExampleBindings(const NodeProgram& program);

/// `program` linked with `bindings`. The peers' QPNs are left 0. Errors: those of Link().
Result<QueueObjects> MakeQueueObjects(const NodeProgram& program, const Bindings& bindings);

/// What the NIC is about to read, after Arm() and before Start(): the bytes as they stand in the
/// rings, of queues in parts also those to come, and the device's own numbers. The peers' QPNs are
/// left 0.
QueueObjects ObjectsOf(const ArmedNode& node);

/// Validates one armed node by itself: everything but `acyclic`, and no bell is rung. Errors
/// (kRejected): its findings.
Status ValidateArmed(const Plan& plan, const ArmedNode& node);

/// Validates `program` linked with ExampleBindings(), node by node. Which op an entry says that it
/// carries out is not checked (LabelOps). Errors: those of Link(); kRejected, if the message, the
/// mode or RNR retries are not the plan's.
Result<ValidationReport> ValidateProgram(const Plan& plan, const QueueProgram& program);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_VALIDATE_OBJECT_TABLE_H_
