// SPDX-License-Identifier: Apache-2.0
//
// The tree picture: the way of one block from the root to every node, by rounds from left to right
// and, with a trace, with the times at which it arrived.
#ifndef PREPOST_VIZ_PLAN_TREE_H_
#define PREPOST_VIZ_PLAN_TREE_H_

#include <cstdint>
#include <string>

#include "ir/analysis/network.h"
#include "ir/plan.h"
#include "runtime/trace/op_times.h"
#include "viz/selection.h"

namespace prepost::viz {

/// The most nodes that are drawn; what hangs below them is counted at them.
inline constexpr uint32_t kTreeNodesMax = 256;

/// An SVG file. `selection` must come from CheckSelection(): at most one block (none: block 0), no
/// rounds; with nodes, only the ways to these are drawn. `plan` must be valid, `trace` of it or
/// null; with a `network`, as for DrawSpacetime(), nodes have their racks' names and lines between
/// racks are marked. The nodes that are reached first are drawn first. Time is linear in ops; the
/// picture's size is bounded. The same arguments give the same bytes. Errors: kUsage for another
/// selection.
Result<std::string> DrawTree(const Plan& plan, const Selection& selection, const RunTrace* trace,
                             const Network* network = nullptr);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_PLAN_TREE_H_
