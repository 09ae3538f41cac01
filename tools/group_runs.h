// SPDX-License-Identifier: Apache-2.0
//
// GroupRuns: several multicasts at once on a modelled cluster, preposted, CPU-driven or both; and the
// text and JSON of what came out. For --groups and --workload of prepost simulate. Every figure is
// modelled, and both say so.
#ifndef PREPOST_TOOLS_GROUP_RUNS_H_
#define PREPOST_TOOLS_GROUP_RUNS_H_

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "prepost/backends/emulated/profile.h"
#include "prepost/backends/emulated/virtual_group.h"
#include "prepost/backends/emulated/virtual_hosts.h"
#include "prepost/backends/emulated/virtual_offload.h"
#include "prepost/ir/network.h"
#include "prepost/ir/plan.h"
#include "prepost/ir/status.h"
#include "tools/simulation_run.h"

namespace prepost::tools {

/// Of all groups together: blocks and credits on their way to a node, as many as one plan may have
/// (CheckTransfers()). All of their queues are in memory at once.
inline constexpr uint64_t kGroupTransfersMax = uint64_t{1} << 27;

/// The same plan `count` times: node i of group g is host (i + g) mod n (RDMC's figure 10).
std::vector<emulated::VirtualGroup> RotatedGroups(const Plan& plan, uint32_t count);

struct GroupRuns {
  std::vector<emulated::VirtualGroup> groups;
  const Plan* plan = nullptr;  ///< of all groups, if it is one
  std::string workload = {};   ///< its name, else
  const emulated::Profile& profile;
  std::string profile_path;
  std::string command;
  Network network;
  uint64_t seed = 0;
  std::string mode = {};  ///< of the lowering: "inline"
  std::string wait = {};  ///< of CPU-driven hosts: "hybrid"
  std::optional<emulated::VirtualOffloads> offload = {};
  std::optional<emulated::VirtualHosts> cpu = {};
};

/// Fills in what ran. Errors: those of the runs.
Status RunGroups(const SimulationOptions& options, GroupRuns* runs);

/// Seconds that all groups together need at least: each by itself, and of each port the bytes that it
/// must carry; 0 without any.
double BoundOf(const GroupRuns& runs);

/// `per_group`: a line for each group also where they are many.
void PrintGroupRuns(const GroupRuns& runs, bool per_group, std::ostream& out);
/// `has_lists`: with what is there of each group and link.
nlohmann::ordered_json GroupRunsJson(const GroupRuns& runs, bool has_lists);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_GROUP_RUNS_H_
