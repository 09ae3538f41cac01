// SPDX-License-Identifier: Apache-2.0
//
// Simulations of prepost simulate that run several at a time: rows of a sweep, and their seeds.
#ifndef PREPOST_TOOLS_COMMANDS_SIMULATE_POOL_H_
#define PREPOST_TOOLS_COMMANDS_SIMULATE_POOL_H_

#include <cstddef>
#include <functional>

#include "ir/base/status.h"

namespace prepost::tools {

/// Calls `run` with every index below `count`, on `jobs` threads (1 or more) or as many as there
/// can be. Progress goes to a terminal. Errors: that of the lowest index that has one; the first to
/// come ends all, those that run to their end.
Status RunEach(size_t count, unsigned jobs, const std::function<Status(size_t)>& run);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_COMMANDS_SIMULATE_POOL_H_
