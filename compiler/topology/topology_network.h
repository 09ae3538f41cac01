// SPDX-License-Identifier: Apache-2.0
//
// NetworkOf: the network under a plan, from a topology: for what measures or predicts plans on it.
#ifndef PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_NETWORK_H_
#define PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_NETWORK_H_

#include <cstdint>

#include "compiler/topology/topology.h"
#include "ir/analysis/network.h"

namespace prepost {

/// Node i is host i of the checked `topology`; hosts above are left out. Errors: kRejected, when
/// there are fewer.
Result<Network> NetworkOf(const Topology& topology, uint32_t nodes);

}  // namespace prepost

#endif  // PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_NETWORK_H_
