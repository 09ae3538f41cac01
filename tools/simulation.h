// SPDX-License-Identifier: Apache-2.0
//
// Simulation: what prepost simulate has found out, and its text and JSON. Every figure is modelled,
// and both say so.
#ifndef PREPOST_TOOLS_SIMULATION_H_
#define PREPOST_TOOLS_SIMULATION_H_

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "prepost/backends/emulated/profile.h"
#include "prepost/backends/emulated/time_trail.h"
#include "prepost/backends/emulated/virtual_hosts.h"
#include "prepost/backends/emulated/virtual_offload.h"
#include "prepost/ir/network.h"
#include "prepost/ir/plan.h"

namespace prepost::tools {

struct Simulation {
  const Plan& plan;
  const emulated::Profile& profile;
  std::string profile_path;
  std::string command;  ///< that makes it
  Network network;
  std::string mode = {};  ///< of the lowering: "inline"
  std::string wait = {};  ///< of CPU-driven hosts: "hybrid"
  uint64_t seed = 0;
  double detection_seconds = 0;  ///< of a preposted node's end, by its host; after the run
  std::optional<emulated::VirtualOffload> offload = {};
  std::optional<emulated::VirtualHosts> cpu = {};  ///< of one group
  /// What time went to; null where it is not asked for.
  std::unique_ptr<emulated::TimeTrail> offload_trail = {};
  std::unique_ptr<emulated::TimeTrail> cpu_trail = {};

  /// What the longest cut of the network takes, seconds; 0 of one node.
  double bound() const;
};

/// What hosts of preposted queues do: one, or all together.
struct PrepostedWork {
  uint64_t posts_before = 0;  ///< WQEs that stand in the first rings
  uint64_t posts = 0;         ///< into rings that are written again
  uint64_t doorbells = 0;     ///< from the start on
  uint64_t rearms = 0;
  uint64_t completions = 0;  ///< CQEs read
  uint64_t wakeups = 0;
  double arming_seconds = 0;    ///< before the start
  double rearming_seconds = 0;  ///< on the way
  /// From the start on: looks, CQEs and rearming. Only the last takes time in the run.
  double busy_seconds = 0;
};
PrepostedWork PrepostedWorkOf(const Simulation& it, const emulated::VirtualOffload::Node& node);
PrepostedWork PrepostedWorkOf(const Simulation& it);

/// "3 paths from one node to another are slow; ...": of a network that has such.
std::string SlowPaths(const Network& network);

void PrintSimulation(const Simulation& simulation, bool per_node, std::ostream& out);
/// `has_lists`: with what is there of each node and link.
nlohmann::ordered_json SimulationJson(const Simulation& simulation, bool has_lists);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_SIMULATION_H_
