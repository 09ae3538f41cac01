// SPDX-License-Identifier: Apache-2.0
//
// Checkpoint: how long work on a file (reserving, summing) stays answerable. The work calls it
// every few megabytes; an error that it returns (interrupted, the launcher died) ends the work.
#ifndef PREPOST_RUNTIME_BASE_CHECKPOINT_H_
#define PREPOST_RUNTIME_BASE_CHECKPOINT_H_

#include <functional>

#include "ir/base/status.h"

namespace prepost {

/// May be empty: never stop.
using Checkpoint = std::function<Status()>;

inline Status Check(const Checkpoint& checkpoint) { return checkpoint ? checkpoint() : Status(); }

}  // namespace prepost

#endif  // PREPOST_RUNTIME_BASE_CHECKPOINT_H_
