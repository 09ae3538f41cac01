// SPDX-License-Identifier: Apache-2.0
//
// KillTable: per kind of mutation, what the interpreter and the verifier said of its mutants.
#ifndef PREPOST_TESTS_MUTATION_KILL_TABLE_H_
#define PREPOST_TESTS_MUTATION_KILL_TABLE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/diagnostic.h"

namespace prepost::test {

struct KillRow {
  uint32_t mutants = 0;
  uint32_t harmful = 0;
  uint32_t harmful_rejected = 0;
  uint32_t harmless_accepted = 0;
  uint32_t harmless_rejected = 0;
  std::map<Rule, uint32_t>
      policies;  ///< rules that rejected harmless mutants; one may meet several
};

class KillTable {
 public:
  void Add(const std::string& kind, bool is_harmful, const std::set<Rule>& broken);

  /// The row of a kind, empty when it had no mutants.
  KillRow Row(const std::string& kind) const;
  KillRow Total() const;
  /// For people: a line per kind in the order of `kinds`, and the total.
  std::string ToString(const std::vector<std::string>& kinds) const;

 private:
  std::map<std::string, KillRow> rows_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_MUTATION_KILL_TABLE_H_
