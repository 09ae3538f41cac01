// SPDX-License-Identifier: Apache-2.0
//
// The space-time picture of a plan: a row per node, a column per round, and in each cell the block
// that the node receives and the block that it sends. Used by `prepost draw`; it knows nothing of
// executors or queues. Credits are not drawn.
#ifndef PREPOST_VIZ_PLAN_SPACETIME_H_
#define PREPOST_VIZ_PLAN_SPACETIME_H_

#include <cstdint>
#include <string>

#include "ir/analysis/network.h"
#include "ir/plan.h"
#include "viz/selection.h"

namespace prepost::viz {

/// The most rows and columns that are drawn cell by cell; 64 blocks to 64 nodes take about 70
/// rounds.
inline constexpr uint32_t kDetailedNodesMax = 64;
inline constexpr uint32_t kDetailedRoundsMax = 80;

/// An SVG file: every transfer where the selected nodes and rounds are few enough, else a summary
/// that says so, with the share of the selected blocks that ranges of nodes hold after ranges of
/// rounds. With a `network`, the plan's, rows of a rack stand together and transfers between racks
/// are marked. `selection` must come from CheckSelection(); `plan` and `network` must be valid.
/// Time is linear in ops; the picture's size is bounded. The same arguments give the same bytes.
std::string DrawSpacetime(const Plan& plan, const Selection& selection,
                          const Network* network = nullptr);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_PLAN_SPACETIME_H_
