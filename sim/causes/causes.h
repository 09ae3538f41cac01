// SPDX-License-Identifier: Apache-2.0
//
// What the time of a simulation went to, for one executor: what planning/simulation/causes_report.h
// prints. All of it is in picoseconds and adds up exactly: critical paths to when the last node has
// its message, and what comes after them until the last host knows.
#ifndef PREPOST_SIM_CAUSES_CAUSES_H_
#define PREPOST_SIM_CAUSES_CAUSES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ids.h"
#include "sim/causes/time_by_cause.h"
#include "sim/causes/time_trail.h"
#include "sim/nics/time.h"
#include "sim/simulation.h"

namespace prepost::sim {

/// Of a group.
struct GroupCauses {
  Picoseconds start = 0;
  NodeId last;            ///< to be through, but for the root
  NodeTimes times;        ///< its, from the group's start on
  CauseTimes path = {};   ///< from the group's start until all nodes have the message
  CauseTimes after = {};  ///< from then until all its hosts know
};

/// Of an executor.
struct RunCauses {
  std::string name;  ///< "preposted"
  const TimeTrail* trail = nullptr;
  std::vector<GroupCauses> groups;
  uint32_t last_group = 0;     ///< to have its message everywhere
  std::vector<PathLink> path;  ///< from the start of the run until then
  CauseTimes causes = {};      ///< along it
  CauseTimes after = {};       ///< from then until the last host of all groups knows
};

/// Of a simulation that has a trail for `is_offload`, or else for CPU-driven hosts.
RunCauses CausesOf(const Simulation& simulation, bool is_offload);

/// Each part by itself, over all groups; `last` is the last group's.
GroupCauses SumOf(const RunCauses& run);
Picoseconds SumOf(const CauseTimes& times);

}  // namespace prepost::sim

#endif  // PREPOST_SIM_CAUSES_CAUSES_H_
