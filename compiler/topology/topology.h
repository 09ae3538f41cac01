// SPDX-License-Identifier: Apache-2.0
//
// CheckTopology: what a network must have besides its rates to be written down in a topology file,
// or to come from one.
#ifndef PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_H_
#define PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_H_

#include "ir/analysis/network.h"
#include "ir/base/status.h"

namespace prepost {

/// CheckNetwork() and: at most kNodesMax hosts, every rack has one, all have names, and no name is
/// there twice; `where` in the Status is a JSON pointer into the file form.
Status CheckTopology(const Network& topology);

}  // namespace prepost

#endif  // PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_H_
