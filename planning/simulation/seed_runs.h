// SPDX-License-Identifier: Apache-2.0
//
// SeedRuns: what a simulation gives with one seed after the other (simulate --seeds): the figures
// of each run, and their statistics as text and as JSON (docs/simulate.md). All of it is modelled.
#ifndef PREPOST_PLANNING_SIMULATION_SEED_RUNS_H_
#define PREPOST_PLANNING_SIMULATION_SEED_RUNS_H_

#include <cstdint>
#include <iosfwd>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/simulation.h"

namespace prepost {

/// What a plot can show of an executor's run; NaN where there is none.
struct RunFigures {
  double completion = std::numeric_limits<double>::quiet_NaN();
  double known = std::numeric_limits<double>::quiet_NaN();
  double skew = std::numeric_limits<double>::quiet_NaN();
  double of_bound = std::numeric_limits<double>::quiet_NaN();
  double bandwidth = std::numeric_limits<double>::quiet_NaN();  ///< bytes/s, of all messages
};

/// The run with one seed.
struct SeedRun {
  uint64_t seed = 0;
  double bound = 0;
  std::optional<RunFigures> offload = {};
  std::optional<RunFigures> cpu = {};
  sim::Gain gain = {};  ///< as GainOf() has it

  static SeedRun Of(const sim::Simulation& simulation);
};

struct SeedRuns {
  /// What all runs have in common, of the first: its plan, command and deviations. `runs` has one
  /// for each of `count` seeds, in their order, all still that of `first`.
  SeedRuns(const sim::Simulation& first, uint32_t count);

  /// Whether no run differs from another in any figure.
  bool AllAreTheSame() const;

  std::vector<SeedRun> runs;
  nlohmann::ordered_json common;  ///< the keys of ToJson() that are of all
  std::string head;               ///< PrintHead()
  std::string completion_head;    ///< over the columns: "all nodes have it"
  bool is_of_groups = false;
};

void Print(const SeedRuns& it, std::ostream& out);
nlohmann::ordered_json ToJson(const SeedRuns& it);

}  // namespace prepost

#endif  // PREPOST_PLANNING_SIMULATION_SEED_RUNS_H_
