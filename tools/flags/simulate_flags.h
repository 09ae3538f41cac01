// SPDX-License-Identifier: Apache-2.0
//
// SimulateFlags: the arguments of prepost simulate. A row of a sweep is a copy with some of it set
// anew.
#ifndef PREPOST_TOOLS_FLAGS_SIMULATE_FLAGS_H_
#define PREPOST_TOOLS_FLAGS_SIMULATE_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/status.h"
#include "tools/flags/command_line.h"
#include "tools/flags/lowering_flags.h"
#include "tools/flags/noise_flags.h"
#include "tools/flags/simulation_input.h"
#include "tools/flags/values.h"
#include "tools/report/trace_output.h"

namespace prepost::tools {

/// What is swept, and where it goes.
struct SweepFlags {
  std::vector<std::string> axes;
  std::string csv;     ///< empty: none
  std::string plot;    ///< the same
  std::string plot_y;  ///< empty: completion
  unsigned jobs = 0;   ///< 0: as many as cores
  bool is_json = false;
};

struct SimulateFlags {
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
  bool per_node = false;
  bool causes = false;
  TraceOutput trace;
  SweepFlags sweep;
  CommandLine given;

  void AddTo(CLI::App& command);
  /// Checks the flags of one run. Errors: kUsage: flags that do not go together, unknown words.
  Status Check() const;
  /// Several multicasts, or one that is reported per group.
  bool has_groups() const { return groups.has_value() || !workload.empty(); }
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_SIMULATE_FLAGS_H_
