// SPDX-License-Identifier: Apache-2.0
//
// What auto chooses for a spec, and what that was compared with, for people and as JSON.
#ifndef PREPOST_PLANNING_REPORT_CHOICE_REPORT_H_
#define PREPOST_PLANNING_REPORT_CHOICE_REPORT_H_

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "compiler/choice/choice.h"
#include "compiler/choice/collective_choice.h"
#include "compiler/spec.h"

namespace prepost {

/// Of a multicast.
void Print(const Choice& choice, std::ostream& out);
nlohmann::ordered_json ToJson(const Choice& choice);

/// Of another collective: `candidates` of `spec`, with what it implies, the choice first.
void Print(const Spec& spec, const std::vector<CollectiveChoice>& candidates, std::ostream& out);
nlohmann::ordered_json ToJson(const Spec& spec, const std::vector<CollectiveChoice>& candidates);

}  // namespace prepost

#endif  // PREPOST_PLANNING_REPORT_CHOICE_REPORT_H_
