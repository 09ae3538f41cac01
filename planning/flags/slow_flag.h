// SPDX-License-Identifier: Apache-2.0
//
// --slow of prepost simulate: paths and nodes of a network that are slower than the rest of it.
#ifndef PREPOST_PLANNING_FLAGS_SLOW_FLAG_H_
#define PREPOST_PLANNING_FLAGS_SLOW_FLAG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/analysis/network.h"
#include "ir/base/status.h"

namespace prepost {

/// Slows parts of `network`, all by the rates that it comes with: "2->5=0.5" what node 2 sends to
/// node 5, "3=0.5" the port of node 3 both ways, "hosts=4,factor=0.5" and "share=0.1,factor=0.5"
/// those of nodes that are drawn (HostChoice), "random=0.05,factor=0.5" each pair with that
/// probability, drawn from `seed` and the pair's numbers alone, so that the same pairs are slow
/// with more nodes. Of a pair or node that is named and drawn the slower counts. Errors: kUsage;
/// kRejected: too many pairs to draw for, what needs more nodes.
Status SlowNetwork(const std::vector<std::string>& texts, uint64_t seed, Network* network);

}  // namespace prepost

#endif  // PREPOST_PLANNING_FLAGS_SLOW_FLAG_H_
