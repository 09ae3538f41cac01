// SPDX-License-Identifier: Apache-2.0
//
// Internal to viz: the times of a run in a page's columns.
//
// Times repeat nowhere, but what they say beyond the plan is little: how long after the last thing
// that it waited for a send started, and how long its block was on the wire. So each time is
// written as its difference to another:
//
//   a send's start      to the last completion of what it waits for at its node (its `after`, and
//                       the arrival of its block), or to the start of the transfer
//   a receive's start, a receive's completion    to the start of its send
//   a send's completion     to its receive's
//   a posting of a host     of a send to its start, of a receive to the posting of the credit that
//                           grants it
//   any other posting       to the one before it of these in its node's program
//
// A time that is not known counts as the start of the transfer where another is written as a
// difference to it. 0: not known; d + 1 or, below 0, d: the difference d.
#ifndef PREPOST_VIZ_PAGE_DATA_PAGE_RUN_H_
#define PREPOST_VIZ_PAGE_DATA_PAGE_RUN_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "ir/plan_tables.h"
#include "viz/page_data/page.h"
#include "viz/page_data/page_columns.h"

namespace prepost::viz {

/// Adds the columns `prefix`run.posted, .started and .completed, by op, and .wakeups, the times
/// since the start of the transfer that are known of the hosts in `run.info`, one host after the
/// other. Returns their unit, ns: 1, or as many as it takes for them to fit `bytes_max` when they
/// are packed. Times are rounded down.
uint64_t AddPageRun(const PlanTables& tables, const PageRun& run, const std::string& prefix,
                    size_t bytes_max, PageColumns* columns);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_PAGE_DATA_PAGE_RUN_H_
