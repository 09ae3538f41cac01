// SPDX-License-Identifier: Apache-2.0
//
// SlurmTree: what Slurm's topology.conf(5) and topology.yaml(5) say of switches, and what becomes
// of it.
#ifndef PREPOST_COMPILER_TOPOLOGY_SLURM_TREE_H_
#define PREPOST_COMPILER_TOPOLOGY_SLURM_TREE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/topology/topology_import.h"
#include "ir/base/status.h"

namespace prepost {

/// As the file has it, and what is found out about it.
struct SlurmSwitch {
  std::string name;
  std::vector<std::string> nodes, switches;
  std::optional<double> link_speed;
  bool has_default_speed = false;  ///< a bare 1
  size_t line = 0;
  bool has_parent = false;
  size_t number = 0, size = 0;  ///< those below it follow, and of how many it is the first
  bool repeats_nodes = false;   ///< it lists those of the switches below it, too
};

class SlurmTree {
 public:
  /// `kind`: of the file, for notes. `name`, for places, must outlive it.
  SlurmTree(std::string kind, const std::string& name) : kind_(std::move(kind)), name_(name) {}

  /// A host list of `value`, at most kNodesMax names in all. The Status needs a place.
  Status ReadNames(std::string_view value, std::vector<std::string>* out);
  /// The Status needs a place.
  static Status ReadSpeed(std::string_view value, SlurmSwitch* out);
  /// Errors: one of its name is there already.
  Status Add(SlurmSwitch one);
  /// Of all that were added. Errors: "name:line: ...".
  Result<TopologyImport> Make(const SlurmRates& rates) &&;

 private:
  std::string WhereOf(size_t line) const;
  Status CheckTree();
  Status PlaceNodes();
  void NumberSwitches();
  static bool IsBelow(const SlurmSwitch& low, const SlurmSwitch& high);
  Result<TopologyImport> MakeRacks(const SlurmRates& rates) const;

  const std::string kind_;
  const std::string& name_;
  std::vector<SlurmSwitch> switches_;
  std::unordered_map<std::string, size_t> index_;  ///< switch -> its place
  std::vector<size_t> from_top_;                   ///< places, each behind that of the one above it
  size_t tops_ = 0;                                ///< that have none above them
  size_t names_ = 0;                               ///< expanded so far
};

}  // namespace prepost

#endif  // PREPOST_COMPILER_TOPOLOGY_SLURM_TREE_H_
