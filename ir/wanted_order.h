// SPDX-License-Identifier: Apache-2.0
//
// WantedOrders: "this op must come locally after that one", collected for one program and settled
// together: at once where the earlier op stands in the later one's `after`, by one LocalOrder walk
// for the rest. Internal to ir/.
#ifndef PREPOST_IR_WANTED_ORDER_H_
#define PREPOST_IR_WANTED_ORDER_H_

#include <cstdint>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/plan.h"

namespace prepost {

/// Send `later` may start only when `earlier` has completed; both of one program.
struct WantedOrder {
  OpId earlier;
  OpId later;
  Rule rule = Rule::kCausal;
};

/// Those of `wanted` that do not hold, in order of `later`. Needs a plan without `shape` findings.
std::vector<WantedOrder> UnmetOrders(const Plan& plan, const Program& program,
                                     std::vector<WantedOrder> wanted);

}  // namespace prepost

#endif  // PREPOST_IR_WANTED_ORDER_H_
