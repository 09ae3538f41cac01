// SPDX-License-Identifier: Apache-2.0
//
// AssignScratch: which scratch buffer each receive fills whose block has no other place at its
// node.
#ifndef PREPOST_COMPILER_PASSES_SCRATCH_H_
#define PREPOST_COMPILER_PASSES_SCRATCH_H_

#include "ir/plan.h"

namespace prepost {

/// `plan`, with its credits, and with buffers where receives need them. In window mode, where each
/// credit grants one receive, buffers are used again by lifetime in rounds: by a receive in a later
/// round than all that need what the buffer held, for which its credit then waits. Every edge so
/// leads to a later round, and none of them can close a circle; in any other order they can (with
/// two buffers in turn, a reversed circulant of 5 nodes waits for itself). In the other modes every
/// receive has its own. Errors (kRejected): more than a plan may have, or than can be counted
/// (CheckMemory()); `plan` is as it was.
Result<Plan> AssignScratch(Plan&& plan);

}  // namespace prepost

#endif  // PREPOST_COMPILER_PASSES_SCRATCH_H_
