// SPDX-License-Identifier: Apache-2.0
//
// ChoiceRules: what someone who knows better pins by number of nodes and size, before Choose()
// (choice.h) evaluates any model. From a JSON file as compiler/choice/choice_rules.schema.json
// describes it.
#ifndef PREPOST_COMPILER_CHOICE_CHOICE_RULES_H_
#define PREPOST_COMPILER_CHOICE_CHOICE_RULES_H_

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "compiler/spec.h"
#include "ir/base/status.h"

namespace prepost {

inline constexpr size_t kChoiceRulesMax = 1024;

/// From `min` to `max`, both included.
struct NumberRange {
  uint64_t min = 0;
  uint64_t max = UINT64_MAX;

  bool Holds(uint64_t number) const { return min <= number && number <= max; }
  friend bool operator==(const NumberRange&, const NumberRange&) = default;
};

/// For specs in both ranges: at least one of the two it pins.
struct ChoiceRule {
  NumberRange nodes;
  NumberRange bytes;
  std::optional<std::string> algorithm;
  std::optional<uint64_t> block_bytes;

  /// What of it `spec` leaves open; the rest is not used.
  ChoiceRule For(const Spec& spec) const;
  /// "algorithm chain, block_bytes 65536".
  std::string Describe() const;
  friend bool operator==(const ChoiceRule&, const ChoiceRule&) = default;
};

struct ChoiceRules {
  std::string name;  ///< of the file, for messages
  std::vector<ChoiceRule> rules;

  /// Puts what the first rule that matches pins into those of algorithm and block size that `spec`
  /// leaves open. The rule's place; none if none matches or nothing it pins is open.
  std::optional<size_t> Apply(Spec* spec) const;
};

/// Errors: "name:line:col: /rules/3/algorithm: ..."; unknown algorithms, empty ranges, sizes beyond
/// the limits, rules that pin nothing, and rules that can never match as earlier ones take all that
/// they are for.
Result<ChoiceRules> ReadChoiceRules(std::istream& in, const std::string& name,
                                    std::vector<std::string>* warnings = nullptr);

}  // namespace prepost

#endif  // PREPOST_COMPILER_CHOICE_CHOICE_RULES_H_
