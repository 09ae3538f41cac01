// SPDX-License-Identifier: Apache-2.0
//
// Topologies from files, for all subcommands that take --topology.
#ifndef PREPOST_TOOLS_FLAGS_TOPOLOGY_FILE_H_
#define PREPOST_TOOLS_FLAGS_TOPOLOGY_FILE_H_

#include <cstdint>
#include <string>

#include "compiler/topology/topology.h"
#include "ir/analysis/network.h"
#include "ir/status.h"

namespace prepost::tools {

/// Reads and checks a topology file ("-": stdin); prints warnings to stderr.
Result<Topology> LoadTopology(const std::string& path);
/// The network of `topology`, from the file `path`, under a plan of `nodes` nodes; errors name the
/// file.
Result<Network> NetworkOfFile(const Topology& topology, const std::string& path, uint32_t nodes);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_TOPOLOGY_FILE_H_
