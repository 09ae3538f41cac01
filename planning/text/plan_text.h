// SPDX-License-Identifier: Apache-2.0
//
// PlanText: what a plan is, in one line and in the keys of JSON, for the heads of what commands
// print.
#ifndef PREPOST_PLANNING_TEXT_PLAN_TEXT_H_
#define PREPOST_PLANNING_TEXT_PLAN_TEXT_H_

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ir/plan.h"

namespace prepost {

/// "chain: 4 nodes, root 0; 10 bytes in 3 blocks of 4; ready barrier, send window none".
std::string PlanText(const PlanHeader& plan);
/// What comes after the nodes in it: "10 bytes in 3 blocks of 4; ready barrier, send window none".
std::string MessageText(const PlanHeader& plan);
/// The same by key; no window is null.
nlohmann::ordered_json PlanJson(const PlanHeader& plan);
/// As every command prints JSON: indented, whatever bytes are in names.
void PrintJson(const nlohmann::ordered_json& json, std::ostream& out);

}  // namespace prepost

#endif  // PREPOST_PLANNING_TEXT_PLAN_TEXT_H_
