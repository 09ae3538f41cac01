// SPDX-License-Identifier: Apache-2.0
#include "ir/wanted_order.h"

#include <algorithm>

#include "ir/local_order.h"

namespace prepost {

std::vector<WantedOrder> UnmetOrders(const Plan& plan, const Program& program,
                                     std::vector<WantedOrder> wanted) {
  const std::span<const Op> ops = plan.ops(program);
  std::erase_if(wanted, [&](const WantedOrder& order) {
    return std::ranges::binary_search(plan.after(ops[order.later.index()]), order.earlier);
  });
  if (wanted.empty()) return wanted;

  std::ranges::stable_sort(wanted, {}, &WantedOrder::later);
  LocalOrder local(plan, program);
  uint32_t walked = 0;  // ops that the walk has entered
  std::erase_if(wanted, [&](const WantedOrder& order) {
    if (order.earlier >= order.later) return false;
    for (; walked <= order.later.value; ++walked) local.Advance();
    return local.Precedes(order.earlier);
  });
  return wanted;
}

}  // namespace prepost
