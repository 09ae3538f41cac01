// SPDX-License-Identifier: Apache-2.0
//
// Slurm's topology.yaml(5), of Slurm 25.05 and later: several topologies, of which a tree is read.
#ifndef PREPOST_COMPILER_TOPOLOGY_SLURM_YAML_H_
#define PREPOST_COMPILER_TOPOLOGY_SLURM_YAML_H_

#include <string>
#include <string_view>

#include "compiler/topology/topology_import.h"

namespace prepost {

/// The first tree with `cluster_default: true`, or the first tree; a note names it if there are
/// others. Errors: "name:line: ...".
Result<TopologyImport> ReadSlurmYaml(std::string_view text, const std::string& name,
                                     const SlurmRates& rates);

}  // namespace prepost

#endif  // PREPOST_COMPILER_TOPOLOGY_SLURM_YAML_H_
