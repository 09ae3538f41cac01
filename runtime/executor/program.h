// SPDX-License-Identifier: Apache-2.0
//
// ProgramOf: the program of one node. Programs stand in a plan in any order.
#ifndef PREPOST_RUNTIME_EXECUTOR_PROGRAM_H_
#define PREPOST_RUNTIME_EXECUTOR_PROGRAM_H_

#include <algorithm>

#include "ir/plan.h"

namespace prepost {

/// `plan` must be verified and have the node. Linear in the number of nodes.
inline const Program& ProgramOf(const Plan& plan, NodeId node) {
  const auto found = std::ranges::find(plan.programs(), node, &Program::node);
  PREPOST_CHECK(found != plan.programs().end());
  return *found;
}

}  // namespace prepost

#endif  // PREPOST_RUNTIME_EXECUTOR_PROGRAM_H_
