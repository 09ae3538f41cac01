// SPDX-License-Identifier: Apache-2.0
//
// The plan of a group from a file, as `prepost compile -o` writes it: rolled, for messages of any
// size, or flat, for those of its own size.
#ifndef PREPOST_LIBRARY_GROUP_PLAN_FILE_H_
#define PREPOST_LIBRARY_GROUP_PLAN_FILE_H_

#include <memory>

#include "ir/base/status.h"
#include "library/group_plans.h"
#include "runtime/session/group_plans.h"

namespace prepost {

/// Reads and verifies `spec.plan_path`: a flat plan, also in shards, or a rolled one, of which this
/// node's program is enough. Errors (kUsage) name the file: it cannot be read, is not valid, or is
/// for other nodes or another root.
Result<std::unique_ptr<GroupPlans>> ReadGroupPlans(const GroupPlanSpec& spec);

}  // namespace prepost

#endif  // PREPOST_LIBRARY_GROUP_PLAN_FILE_H_
