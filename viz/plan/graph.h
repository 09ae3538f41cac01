// SPDX-License-Identifier: Apache-2.0
//
// The graph picture of a plan: a cluster per node with its sends and receives, `after` as solid
// arrows, each send joined to its receive by a dashed one, credits faint. Laid out by Graphviz.
// Used by `prepost draw`.
#ifndef PREPOST_VIZ_PLAN_GRAPH_H_
#define PREPOST_VIZ_PLAN_GRAPH_H_

#include <cstdint>
#include <string>

#include "ir/analysis/network.h"
#include "ir/plan.h"
#include "viz/selection.h"

namespace prepost::viz {

/// More ops than this make no readable graph; DrawGraph() refuses them.
inline constexpr uint32_t kGraphOpsMax = 500;

enum class GraphFormat : uint8_t { kSvg, kDot };

/// The messages between selected nodes and their peers, of the selected blocks and rounds, and the
/// credits that grant them. Op 7 of node 3 has the id n3o7; a match has the id of its send, '_',
/// the id of its receive. With a `network`, as for DrawSpacetime(), the clusters of a rack's nodes
/// are in one cluster and matches between racks are marked. `plan` must be valid, `selection` from
/// CheckSelection(). Not thread-safe (Graphviz). The same arguments give the same bytes with the
/// same Graphviz. Errors: kRejected above kGraphOpsMax ops, kEnvironment when Graphviz lacks its
/// plugins.
Result<std::string> DrawGraph(const Plan& plan, const Selection& selection, GraphFormat format,
                              const Network* network = nullptr);

}  // namespace prepost::viz

#endif  // PREPOST_VIZ_PLAN_GRAPH_H_
