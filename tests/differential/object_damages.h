// SPDX-License-Identifier: Apache-2.0
//
// Wrong objects: what can be damaged in a program beside its bytes, rings, retries, modes, names of
// ops, by kinds, each with why some of it does no harm, if so. byte_mutation_test.cc goes through
// them.
#ifndef PREPOST_TESTS_DIFFERENTIAL_OBJECT_DAMAGES_H_
#define PREPOST_TESTS_DIFFERENTIAL_OBJECT_DAMAGES_H_

#include <span>
#include <vector>

#include "backends/nic/program/lower.h"
#include "tests/support/random.h"

namespace prepost::test {

/// One entry of a program's table of objects, or of its head.
struct ObjectDamage {
  const char* name;
  /// False: there is nothing of this kind in `node`, one of `program`'s.
  bool (*apply)(nic::QueueProgram& program, nic::NodeProgram& node, Random& random);
  const char* harmless = nullptr;  ///< as of ByteDamage
};

std::span<const ObjectDamage> ObjectDamages();

template <typename T>
T& PickFrom(std::vector<T>& items, Random& random) {
  return items[random.Below(items.size())];
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_DIFFERENTIAL_OBJECT_DAMAGES_H_
