// SPDX-License-Identifier: Apache-2.0
//
// CompileForDevice: the plan of a spec that is to be preposted, where the spec leaves open how
// senders know of receives.
#ifndef PREPOST_TOOLS_COMMANDS_COMPILE_FOR_DEVICE_H_
#define PREPOST_TOOLS_COMMANDS_COMPILE_FOR_DEVICE_H_

#include "backends/nic/program/lower.h"
#include "compiler/spec.h"
#include "ir/plan.h"
#include "ir/status.h"
#include "ir/verify/verify.h"

namespace prepost::tools {

/// Compile(). Where `ready` is auto and the plan so made does not fit the device of `lower`, as
/// more receives must be posted at once than a ring holds, but one with ready window=1 does, that
/// one, with a note on stderr unless `is_quiet`. Another plan that does not fit is returned, to be
/// refused as any. `lower`: null if nothing is to be preposted.
Result<VerifiedPlan> CompileForDevice(const Spec& spec, const nic::LowerOptions* lower,
                                      bool is_quiet = false);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_COMMANDS_COMPILE_FOR_DEVICE_H_
