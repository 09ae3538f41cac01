// SPDX-License-Identifier: Apache-2.0
//
// Topologies from files, for all subcommands that take --topology.
#ifndef PREPOST_TOOLS_TOPOLOGY_FILE_H_
#define PREPOST_TOOLS_TOPOLOGY_FILE_H_

#include <string>

#include "prepost/compiler/topology.h"
#include "prepost/ir/status.h"

namespace prepost::tools {

/// Reads and checks a topology file ("-": stdin); prints warnings to stderr.
Result<Topology> LoadTopology(const std::string& path);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_TOPOLOGY_FILE_H_
