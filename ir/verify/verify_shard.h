// SPDX-License-Identifier: Apache-2.0
//
// VerifyShard: what can be decided of one node's part of a plan without the others.
#ifndef PREPOST_IR_VERIFY_VERIFY_SHARD_H_
#define PREPOST_IR_VERIFY_VERIFY_SHARD_H_

#include "ir/json/plan_shard.h"
#include "ir/verify/verify.h"

namespace prepost {

/// Checks of the rules what one node can break by itself: shape, causal, combine, scratch, window,
/// rounds and ready, and value where nothing is combined; not match, value and replace of what is,
/// agree, acyclic and order. Every valid plan's shards pass. For a shard that passed
/// CheckShard(). Places are those of the whole plan's programs, and channels counted in the shard.
Verdict VerifyShard(const PlanIndex& index, const PlanShard& shard);

}  // namespace prepost

#endif  // PREPOST_IR_VERIFY_VERIFY_SHARD_H_
