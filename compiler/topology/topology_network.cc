// SPDX-License-Identifier: Apache-2.0
#include "compiler/topology/topology_network.h"

#include <fmt/format.h>

#include "ir/count.h"

namespace prepost {

Result<Network> NetworkOf(const Topology& topology, uint32_t nodes) {
  if (topology.hosts.size() < nodes) {
    return Rejected(fmt::format("the topology has {}, the plan {}",
                                Count(topology.hosts.size(), "host"), Count(nodes, "node")));
  }
  Network network = {.nodes = {},
                     .racks = {},
                     .core_rate = topology.core_rate,
                     .rack_latency = topology.rack_latency,
                     .core_latency = topology.core_latency};
  for (const TopologyRack& rack : topology.racks) {
    network.racks.push_back(
        {.name = rack.name, .up_rate = rack.up_rate, .down_rate = rack.down_rate});
  }
  for (uint32_t i = 0; i < nodes; ++i) {
    const TopologyHost& host = topology.hosts[i];
    network.nodes.push_back(
        {.rack = host.rack, .out_rate = host.send_rate, .in_rate = host.recv_rate});
  }
  PREPOST_RETURN_IF_ERROR(CheckNetwork(network, nodes));
  return network;
}

}  // namespace prepost
