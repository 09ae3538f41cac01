// SPDX-License-Identifier: Apache-2.0
//
// Roll and Unroll: between specs, plans for every message size, and the plan for one.
#ifndef PREPOST_COMPILER_ROLL_H_
#define PREPOST_COMPILER_ROLL_H_

#include <cstdint>
#include <optional>

#include "compiler/compile.h"
#include "compiler/spec.h"
#include "ir/rolled/rolled_plan.h"
#include "ir/verify/verify.h"

namespace prepost {

/// Windows of rolled plans are at most this. Whoever plays one holds 256 ops at once
/// (rolled_play.h), so that a larger window changes nothing there; and the numbers of blocks that
/// verification checks grow with twice the windows.
inline constexpr uint32_t kRolledWindowMax = 1024;

/// Whether collectives of `kind` have plans for every message size; at /collective.
Status CheckRolledKind(CollectiveKind kind);

/// The plan of `spec` for every message size; its own size is ignored. With `only`, that
/// node's program alone, in time and memory O(log n) apart from the order of nodes; else all
/// nodes'. Errors: a spec that is wrong, a schedule that has no such form, windows above
/// kRolledWindowMax. `where` in the Status is a JSON pointer into the spec.
Result<RolledPlan> Roll(const Spec& spec, std::optional<NodeId> only = {});

/// The flat plan for `bytes`: the very plan that Compile() makes of the spec with that size,
/// verified after each pass. Errors: sizes beyond the limits, a plan that lacks some node's
/// program, one that is not valid.
Result<VerifiedPlan> Unroll(const RolledPlan& plan, uint64_t bytes,
                            const CompileOptions& options = {});

}  // namespace prepost

#endif  // PREPOST_COMPILER_ROLL_H_
