// SPDX-License-Identifier: Apache-2.0
//
// Internal to viz: what a page has of a plan that is not a plain multicast, beside its arrays: who
// has what at first and must have what at the end, which receives combine, and sizes of blocks. A
// plain multicast has none of it: all comes from the root, and each receive brings what its node
// lacks.
#ifndef PREPOST_VIZ_PAGE_DATA_PAGE_COLLECTIVE_H_
#define PREPOST_VIZ_PAGE_DATA_PAGE_COLLECTIVE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ir/analysis/event_times.h"
#include "ir/plan_tables.h"
#include "viz/page_data/page_columns.h"

namespace prepost::viz {

/// Null of a plain multicast. Else: kind, root (null: it has none), members, parts,
/// blocks_per_part, combine (its op, and the text "sum:float32"; null: nothing is combined), and
/// at_first and at_end: who has, and who must have, what.
nlohmann::ordered_json CollectiveJson(const Plan& plan);

/// Adds, unless `tables` are of a plain multicast, the columns `prefix`node.has.first, .step and
/// .count and node.wants.first, .step and .count (rows of parts, by node), and block.bytes (by
/// block). Where the plan combines, also op.combine (1: it is one) and send.combined (by send, as
/// send.delivery: when what it brought had been combined, or was in place).
void AddCollective(const PlanTables& tables, const EventTimes& times, const std::string& prefix,
                   PageColumns* columns);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_PAGE_DATA_PAGE_COLLECTIVE_H_
