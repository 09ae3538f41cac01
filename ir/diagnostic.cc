// SPDX-License-Identifier: Apache-2.0
#include "ir/diagnostic.h"

#include "ir/base/status.h"

namespace prepost {

const char* Name(Rule rule) {
  switch (rule) {
    case Rule::kShape:
      return "shape";
    case Rule::kMatch:
      return "match";
    case Rule::kValue:
      return "value";
    case Rule::kCausal:
      return "causal";
    case Rule::kCombine:
      return "combine";
    case Rule::kReplace:
      return "replace";
    case Rule::kScratch:
      return "scratch";
    case Rule::kAgree:
      return "agree";
    case Rule::kAcyclic:
      return "acyclic";
    case Rule::kOrder:
      return "order";
    case Rule::kReady:
      return "ready";
    case Rule::kWindow:
      return "window";
    case Rule::kRounds:
      return "rounds";
  }
  PREPOST_CHECK(false);
  return "";
}

std::string Diagnostic::ToString() const {
  std::string text = where + ": " + Name(rule) + ": " + message;
  for (const std::string& note : notes) text += "\n  note: " + note;
  return text;
}

}  // namespace prepost
