// SPDX-License-Identifier: Apache-2.0
//
// Simulate: one run of prepost simulate: of the command, or a row of its sweep.
#ifndef PREPOST_PLANNING_SIMULATION_SIMULATE_H_
#define PREPOST_PLANNING_SIMULATION_SIMULATE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "planning/flags/profile_settings.h"
#include "planning/flags/simulation_flags.h"
#include "planning/flags/simulation_input.h"
#include "sim/cluster/profile.h"
#include "sim/simulation.h"

namespace prepost {

/// What the rows of a sweep share. Used by several threads.
struct SimulateContext {
  std::map<std::string, ProfileText> profiles = {};  ///< by the path that flags have for it
  PlanCache plans = {};
  std::shared_ptr<const SimulatedPlan> plan = nullptr;  ///< in place of what flags name
  bool is_quiet = false;
  bool has_trail = false;  ///< also without flags that need it: what took when, for a trace
};

/// A simulation and what it refers to.
struct Simulated {
  std::shared_ptr<const SimulatedPlan> plan;  ///< null: there is a workload
  std::unique_ptr<const sim::Profile> profile;
  std::unique_ptr<Workload> workload;
  std::unique_ptr<sim::Simulation> simulation;
};

/// The profile with what flags say; of a sweep's row, `swept` are its keys of the profile. Errors:
/// those of ProfileWith(), kUsage.
Result<sim::Profile> ProfileFor(const SimulationFlags& flags, const ProfileText& text,
                                const std::vector<std::string>& swept = {});

/// What flags change in the cluster of the profile: "--slow 3=0.5".
std::vector<std::string> FixedDeviationsOf(const CommandLine& given);
/// "seed 1", where something is drawn at random.
std::optional<std::string> SeedDeviationOf(const SimulationFlags& flags,
                                           const sim::Profile& profile);
/// Whether TCP loses packets by chance there.
bool DrawsLosses(const sim::Simulation& it);

/// Errors: of flags, input and runs.
Result<Simulated> Simulate(const SimulationFlags& flags, SimulateContext* context);

}  // namespace prepost

#endif  // PREPOST_PLANNING_SIMULATION_SIMULATE_H_
