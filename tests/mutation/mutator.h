// SPDX-License-Identifier: Apache-2.0
//
// Mutators: one way each to change a plan. Damages() are slips that a compiler, a pass or a hand
// may make; most of their mutants are wrong, which the interpreter settles. HarmlessChanges() keep
// what the plan does, though they may break a rule of policy.
#ifndef PREPOST_TESTS_MUTATION_MUTATOR_H_
#define PREPOST_TESTS_MUTATION_MUTATOR_H_

#include <optional>
#include <span>
#include <vector>

#include "tests/support/draft.h"
#include "tests/support/random.h"

namespace prepost::test {

struct Mutator {
  const char* name;
  /// Changes the draft of a valid plan at random; false where this plan has nothing to change.
  bool (*apply)(Draft& draft, Random& random);
};

std::span<const Mutator> Damages();
/// To what plans of multicasts do not have.
std::span<const Mutator> CollectiveDamages();
std::span<const Mutator> HarmlessChanges();

/// A random op for which `wanted` holds, if there is one.
inline std::optional<DraftSite> PickOp(const Draft& draft, Random& random,
                                       bool (*wanted)(const DraftOp&)) {
  const std::vector<DraftSite> sites = draft.Where(wanted);
  if (sites.empty()) return std::nullopt;
  return random.Pick(sites);
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_MUTATION_MUTATOR_H_
