// SPDX-License-Identifier: Apache-2.0
#include "tools/topology_file.h"

#include <vector>

#include "prepost/compiler/topology_json.h"
#include "prepost/compiler/topology_network.h"
#include "tools/message.h"
#include "tools/named_file.h"

namespace prepost::tools {

Result<Topology> LoadTopology(const std::string& path) {
  Topology topology;
  PREPOST_RETURN_IF_ERROR(WithInput(path, [&](std::istream& in, const std::string& name) -> Status {
    std::vector<std::string> warnings;
    Result<Topology> read = ReadTopology(in, name, &warnings);
    PrintWarnings(name, warnings);
    if (!read.ok()) return read.status();
    topology = *std::move(read);
    return {};
  }));
  return topology;
}

Result<Network> NetworkOf(const Topology& topology, const std::string& path, uint32_t nodes) {
  Result<Network> network = prepost::NetworkOf(topology, nodes);
  if (!network.ok()) return Rejected(network.status().message(), path);
  return network;
}

}  // namespace prepost::tools
