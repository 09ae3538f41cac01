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

#include "planning/flags/simulation_flags.h"
#include "tools/report/trace_output.h"

namespace prepost::tools {

/// What is swept, and where it goes.
struct SweepFlags {
  std::vector<std::string> axes;
  std::string csv;                ///< empty: none
  std::string plot;               ///< the same
  std::string plot_y;             ///< empty: completion
  std::optional<uint32_t> seeds;  ///< runs of each row, from --seed on
  unsigned jobs = 0;              ///< 0: as many as cores
  bool is_json = false;
};

struct SimulateFlags : SimulationFlags {
  bool per_node = false;
  TraceOutput trace;
  SweepFlags sweep;

  /// All flags, and PLAN.
  void AddTo(CLI::App& command);
};

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_FLAGS_SIMULATE_FLAGS_H_
