// SPDX-License-Identifier: Apache-2.0
//
// The space-time picture of a run: a row per node and an axis of measured time, with a bar for each
// block that the node receives and sends, over the rounds of the plan, scaled to the run's length.
#ifndef PREPOST_VIZ_PLAN_TRACE_PICTURE_H_
#define PREPOST_VIZ_PLAN_TRACE_PICTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/analysis/network.h"
#include "ir/plan.h"
#include "runtime/trace/op_times.h"
#include "viz/selection.h"

namespace prepost::viz {

/// The most bars that are drawn one by one, at at most kDetailedNodesMax nodes (spacetime.h).
inline constexpr uint32_t kTraceBarsMax = 10000;

/// An SVG file: every transfer where few enough are selected, else a summary that says so, with the
/// share of the selected blocks that ranges of nodes hold over time. Nodes and ops of which `trace`
/// knows nothing are empty, and the title names such nodes. `plan` must be valid, `trace` of it,
/// `selection` from CheckSelection(). Late is what ends after its round's share of the time to the
/// last receive of the whole trace. `network` as for DrawSpacetime(). Time is ops x log ops; the
/// picture's size is bounded. The same arguments give the same bytes.
std::string DrawTrace(const Plan& plan, const RunTrace& trace, const Selection& selection,
                      const Network* network = nullptr);

/// From the start to the last receive of the whole `trace` of `plan`, in ns; 0 without any. Where
/// `trace` knows nothing of a node, the end of a send to it stands for its receive.
int64_t RunDuration(const Plan& plan, const RunTrace& trace);

/// By node, whether `trace` knows nothing of it although it has ops: of several machines' traces
/// its own is missing. All false where `trace` knows nothing at all.
std::vector<bool> NodesWithoutTrace(const Plan& plan, const RunTrace& trace);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_PLAN_TRACE_PICTURE_H_
