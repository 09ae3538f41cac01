// SPDX-License-Identifier: Apache-2.0
//
// The plans of a group for calls of collectives, compiled as they are called and kept.
#ifndef PREPOST_LIBRARY_CALL_PLANS_H_
#define PREPOST_LIBRARY_CALL_PLANS_H_

#include <cstdint>
#include <memory>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "runtime/session/group_plans.h"

namespace prepost {

struct CallPlanSpec {
  uint32_t nodes = 1;
  NodeId self;
  bool is_deterministic = false;  ///< sums do not depend on the size
};

/// Members of such a group: a ring over more has a plan that is too large to compile while others
/// wait.
inline constexpr uint32_t kCallMembersMax = 1024;

/// Which schedule a call takes is decided by its shape and the number of members alone
/// (collective_choice.h), as all members must choose the same. Errors (kUsage): too many members.
Result<std::unique_ptr<GroupPlans>> MakeCallPlans(const CallPlanSpec& spec);

}  // namespace prepost

#endif  // PREPOST_LIBRARY_CALL_PLANS_H_
