// SPDX-License-Identifier: Apache-2.0
//
// Topologies out of what other systems know of their network: Slurm's topology.conf and the output
// of ibnetdiscover. Leaf switches become racks, everything above them the core.
#ifndef PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_IMPORT_H_
#define PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_IMPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/topology/topology.h"

namespace prepost {

enum class TopologySource : uint8_t { kJson, kSlurm, kIbnetdiscover };

/// Which of them `text` looks like; none: neither.
std::optional<TopologySource> GuessTopologySource(std::string_view text);

struct TopologyImport {
  Network topology;
  std::vector<std::string> notes;  ///< what was assumed or left out, a line each
};

/// What a topology.conf does not say.
struct SlurmRates {
  double host_rate = 12.5e9;      ///< of every host's NIC, bytes/s
  std::optional<double> up_rate;  ///< of every rack; none: by LinkSpeed, or its hosts' together
};

/// Reads the tree form of topology.conf (SwitchName, Nodes, Switches, LinkSpeed): switches with
/// nodes are racks. Slurm leaves LinkSpeed's unit open: a rate with a unit is taken as such, a bare
/// number as Gbit/s, and 1, its default, as none. Errors: "name:line: ...".
Result<TopologyImport> ReadSlurmTopology(std::string_view text, const std::string& name,
                                         const SlurmRates& rates = {});

/// Reads what `ibnetdiscover` prints: switches with channel adapters are racks, in the file's
/// order; a rack's rate up and down is that of all its links to switches. A host is known by the
/// first word of its node description, and has the rate of its first port; further ports are left
/// out and noted. Errors: "name:line: ...".
Result<TopologyImport> ReadIbnetdiscover(std::string_view text, const std::string& name);

}  // namespace prepost

#endif  // PREPOST_COMPILER_TOPOLOGY_TOPOLOGY_IMPORT_H_
