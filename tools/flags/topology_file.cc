// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/topology_file.h"

#include "compiler/topology/topology_json.h"
#include "compiler/topology/topology_network.h"
#include "tools/flags/read_with.h"

namespace prepost::tools {

Result<Topology> LoadTopology(const std::string& path) { return ReadWith(ReadTopology, path); }

Result<Network> NetworkOfFile(const Topology& topology, const std::string& path, uint32_t nodes) {
  Result<Network> network = NetworkOf(topology, nodes);
  if (!network.ok()) return Rejected(network.status().message(), path);
  return network;
}

}  // namespace prepost::tools
