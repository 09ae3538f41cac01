// SPDX-License-Identifier: Apache-2.0
//
// Diagnostic: one finding about a plan. The verifier reports them sorted; the command prints them;
// tests compare them.
#ifndef PREPOST_IR_DIAGNOSTIC_H_
#define PREPOST_IR_DIAGNOSTIC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/place.h"

namespace prepost {

/// The rules of a valid plan (docs/plan.md). Each has one id, the word in Name().
enum class Rule : uint8_t {
  kShape,
  kMatch,
  kValue,
  kCausal,
  kCombine,
  kReplace,
  kScratch,
  kAgree,
  kAcyclic,
  kOrder,
  kReady,
  kWindow,
  kRounds
};
inline constexpr Rule kRules[] = {Rule::kShape,   Rule::kMatch,   Rule::kValue,   Rule::kCausal,
                                  Rule::kCombine, Rule::kReplace, Rule::kScratch, Rule::kAgree,
                                  Rule::kAcyclic, Rule::kOrder,   Rule::kReady,   Rule::kWindow,
                                  Rule::kRounds};
const char* Name(Rule rule);

struct Diagnostic {
  Rule rule = Rule::kShape;
  Place place;
  std::string where;    ///< its JSON pointer, e.g. /programs/3/ops/7/after/0
  std::string message;  ///< lower case, no final period, found and expected with numbers
  std::vector<std::string> notes;

  /// "where: rule: message", and a further line per note.
  std::string ToString() const;
};

}  // namespace prepost

#endif  // PREPOST_IR_DIAGNOSTIC_H_
