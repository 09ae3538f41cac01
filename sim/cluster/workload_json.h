// SPDX-License-Identifier: Apache-2.0
//
// The workload file: groups of multicasts among the hosts of a modelled cluster, each with its plan
// or spec and when it starts, as sim/cluster/workload.schema.json describes it (docs/simulate.md).
#ifndef PREPOST_SIM_CLUSTER_WORKLOAD_JSON_H_
#define PREPOST_SIM_CLUSTER_WORKLOAD_JSON_H_

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "compiler/spec.h"
#include "ir/base/status.h"
#include "ir/ids.h"

namespace prepost::sim {

struct WorkloadFile {
  struct Group {
    std::string plan_path;          ///< relative to the file; empty: see `spec`
    Spec spec;                      ///< with the file's defaults, and a number of nodes
    std::vector<NodeId> hosts;      ///< by node; empty: node i is host i
    double start = 0;               ///< seconds
    std::optional<uint32_t> after;  ///< position of an earlier group
  };
  std::string name;  ///< empty: not said
  uint32_t hosts = 0;
  std::vector<Group> groups;
};

/// Limits of what a file may say.
inline constexpr uint32_t kWorkloadGroupsMax = 65536;
inline constexpr double kWorkloadSecondsMax = 1e6;

/// Reads one workload. Errors (kRejected): "name:line:col: /pointer: ...", also for hosts and
/// groups that there are not. Specs are not checked by themselves.
Result<WorkloadFile> ReadWorkload(std::istream& in, const std::string& name,
                                  std::vector<std::string>* warnings = nullptr);

}  // namespace prepost::sim

#endif  // PREPOST_SIM_CLUSTER_WORKLOAD_JSON_H_
