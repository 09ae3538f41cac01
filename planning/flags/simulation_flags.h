// SPDX-License-Identifier: Apache-2.0
//
// SimulationFlags: what one simulated run is told, by the arguments of prepost simulate or by a
// call of the Python package, which gives the same words.
#ifndef PREPOST_PLANNING_FLAGS_SIMULATION_FLAGS_H_
#define PREPOST_PLANNING_FLAGS_SIMULATION_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "planning/flags/command_line.h"
#include "planning/flags/lowering_flags.h"
#include "planning/flags/noise_flags.h"
#include "planning/flags/simulation_input.h"
#include "planning/flags/values.h"

namespace prepost {

struct SimulationFlags {
  SimulationInput input;
  std::string profile;
  std::vector<std::string> settings;
  std::string executor = "both";
  std::string wait;  ///< empty: kModelledWait
  NoiseFlags noise;
  uint64_t seed = 1;
  std::optional<uint32_t> groups;
  std::string workload;  ///< empty: none
  LoweringFlags lowering;
  bool copies_first_block = false;
  bool causes = false;
  CommandLine given;

  /// All of it but `input`, which a command adds last.
  void AddTo(CLI::App& command);
  /// Errors: kUsage: flags that do not go together, unknown words.
  Status Check() const;
  /// Several multicasts, or one that is reported per group.
  bool has_groups() const { return groups.has_value() || !workload.empty(); }
};

}  // namespace prepost

#endif  // PREPOST_PLANNING_FLAGS_SIMULATION_FLAGS_H_
