// SPDX-License-Identifier: Apache-2.0
//
// What `prepost stats --json` prints.
#ifndef PREPOST_TOOLS_REPORT_STATS_JSON_H_
#define PREPOST_TOOLS_REPORT_STATS_JSON_H_

#include <nlohmann/json_fwd.hpp>

#include "tools/report/stats_figures.h"

namespace prepost::tools {

/// All of it: every node, channel and rack.
nlohmann::ordered_json StatsJson(const PlanStats& stats);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_REPORT_STATS_JSON_H_
