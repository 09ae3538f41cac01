// SPDX-License-Identifier: Apache-2.0
//
// What members of a group say in their handshakes to find out whether they mean the same group:
// which it is in the first half, what they must agree on in the second.
#ifndef PREPOST_RUNTIME_SESSION_GROUP_TERMS_H_
#define PREPOST_RUNTIME_SESSION_GROUP_TERMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ids.h"
#include "runtime/files/plan_hash.h"
#include "runtime/group/hello.h"

namespace prepost {

/// The first half says which group it is: `number` and `members`, in whatever order. The second is
/// over their order, the root, and all else.
PlanHash TermsOfGroup(uint64_t number, const std::vector<uint32_t>& members, NodeId root,
                      const PlanHash& plans, const std::string& options);

/// A session may have several groups with the same first half, one after the other, and a member
/// may not have heard yet that one is over when others form the next. So the root gives each a
/// random `generation`, which it tells members first of all, and connections for data have these
/// terms.
PlanHash DataTermsOfGroup(const PlanHash& terms, uint64_t generation);

/// Whether both are of one group, whatever else its members say of it.
bool SameGroup(const PlanHash& a, const PlanHash& b);

/// Of two terms of one group: what `other` has, kOtherRoot; kNone if they are equal.
Refusal TermsDifference(const PlanHash& own, const PlanHash& other);

/// Of terms of one group: the same where nodes have the same numbers.
uint32_t OrderOf(const PlanHash& terms);

/// By the order of who says it.
NodeId RootOf(const PlanHash& terms);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_GROUP_TERMS_H_
