// SPDX-License-Identifier: Apache-2.0
//
// PlanHash: what a plan says, in 32 bytes, so that machines can make sure that they play the same
// one. Files that say the same in another form (spaces, order of keys and of programs, generator,
// x- keys) have the same hash; any other difference makes another.
#ifndef PREPOST_RUNTIME_FILES_PLAN_HASH_H_
#define PREPOST_RUNTIME_FILES_PLAN_HASH_H_

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "ir/json/plan_shard.h"
#include "ir/plan.h"
#include "ir/rolled/rolled_plan.h"

namespace prepost {

using PlanHash = std::array<std::byte, 32>;

/// BLAKE2b-256. Linear in the plan, which must be a verified one.
PlanHash HashPlan(const Plan& plan);
/// Hashes the part of a rolled plan above its programs, so that a file with one node's program has
/// the hash of the whole. Never that of a flat plan.
PlanHash HashRolledPlan(const RolledPlan& plan);

/// The same, in parts: what is said of one node, whose channels are `channels`; and the whole, of
/// its parts by node. `channels` there is how many the plan has.
PlanHash HashPart(const Plan& plan, const Program& program,
                  std::span<const PlacedChannel> channels);
PlanHash HashParts(const PlanHeader& header, size_t channels, std::span<const PlanHash> parts);

/// 64 digits.
std::string ToHex(const PlanHash& hash);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_FILES_PLAN_HASH_H_
