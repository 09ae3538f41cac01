// SPDX-License-Identifier: Apache-2.0
//
// The fields of a rolled plan's header: those of a plan's (plan_fields.h) that are the same for all
// sizes, with from how many blocks on they hold, and the rounds as a function of the blocks.
#ifndef PREPOST_IR_ROLLED_ROLLED_FIELDS_H_
#define PREPOST_IR_ROLLED_ROLLED_FIELDS_H_

#include <type_traits>

#include "ir/plan_fields.h"
#include "ir/rolled/rolled_plan.h"

namespace prepost {

/// What a rolled plan has of Part, Payload or Ready: parts of it, as objects in files.
template <typename Plan, typename Part>
struct RolledPart {
  Plan& plan;
  Part& part;
};

template <typename Plan, typename Part, typename Visit>
void VisitFields(const RolledPart<Plan, Part>& it, Visit&& visit) {
  VisitFields(it.part, [&](const PlanField& field, auto& value) {
    if (!field.is_of_size) visit(field, value);
  });
  if constexpr (Maybe<Part, Ready>) {
    visit(PlanField{.key = "blocks_min",
                    .min = 1,
                    .max = kBlocksMax,
                    .if_absent = 1,
                    .is_always_hashed = true},
          it.plan.ready_blocks_min);
  }
}

template <typename Plan, typename Part>
bool IsAbsent(const PlanField& field, const RolledPart<Plan, Part>& it) {
  return IsAbsent(field, it.part);
}

template <Maybe<RolledPlan> It, typename Visit>
void VisitFields(It& plan, Visit&& visit) {
  VisitFields(plan.header, [&](const PlanField& field, auto& value) {
    using Value = std::remove_reference_t<decltype(value)>;
    if constexpr (HasFields<Value>) {
      const RolledPart<It, Value> part{plan, value};
      visit(field, part);
    } else if (!field.is_of_size) {
      visit(field, value);
    }
  });
  visit(PlanField{.key = "send_window_blocks_min",
                  .min = 1,
                  .max = kBlocksMax,
                  .if_absent = 1,
                  .is_always_hashed = true},
        plan.send_window_blocks_min);
  visit(PlanField{.key = "rounds", .starts_line = true}, plan.rounds);
}

}  // namespace prepost

#endif  // PREPOST_IR_ROLLED_ROLLED_FIELDS_H_
