// SPDX-License-Identifier: Apache-2.0
//
// VerifyRolled: proves that a rolled plan is valid for every number of blocks. verify_rolled.cc
// explains why checking a few sizes is enough.
#ifndef PREPOST_COMPILER_VERIFY_ROLLED_H_
#define PREPOST_COMPILER_VERIFY_ROLLED_H_

#include <cstdint>
#include <functional>

#include "ir/rolled/rolled_plan.h"

namespace prepost {

/// The number of blocks up to which every number is checked: all larger ones follow. Errors: what
/// keeps the argument from holding, or more work than is allowed; `where` is a JSON pointer.
Result<uint32_t> BlocksThatSettle(const RolledPlan& plan);

/// Called when so many of all numbers of blocks have been checked; may be empty.
using RolledProgress = std::function<void(uint32_t checked, uint32_t all)>;

/// BlocksThatSettle(), once `plan` is valid for every number of blocks. Else what is wrong with the
/// smallest that is not. Time: that of verifying the flat plans of all k up to there.
Result<uint32_t> VerifyRolled(const RolledPlan& plan, const RolledProgress& progress = {});

/// What can be said of the programs of `plan` without the other nodes', for every number of blocks:
/// each node but the root receives every block once, in an earlier round than it sends it; no peer
/// gets a block too many; nothing is behind the plan's last round. BlocksThatSettle(), or what is
/// wrong. Time: that of going through the rounds of these programs for all k up to there, at most
/// kActiveRoundsMax.
Result<uint32_t> VerifyRolledPrograms(const RolledPlan& plan, const RolledProgress& progress = {});

/// Proves that `plan` is valid for `blocks` blocks, or of some programs what VerifyRolledPrograms()
/// says; checks one number of blocks, at most the one that BlocksThatSettle() would give. Errors:
/// also more than 2^25 transfers to check.
Status VerifyRolledFor(const RolledPlan& plan, uint32_t blocks);

}  // namespace prepost

#endif  // PREPOST_COMPILER_VERIFY_ROLLED_H_
